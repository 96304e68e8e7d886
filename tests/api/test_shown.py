"""How public objects are shown in a console and in a notebook: short, harmless, without secrets."""

from __future__ import annotations

import os
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import amqpsniff
from amqpsniff import html_repr
from amqpsniff.errors import UsageError
from amqpsniff.objects import Frame, Message, rows
from amqpsniff.tables.schema import MESSAGES
from tests.conftest import REPO, SAMPLES

MIX = SAMPLES / "pika_mix.pcap"
LONGEST = 250  # characters of a line in a console
TAGS = {"table", "caption", "b", "tr", "th", "td", "code"}


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[tuple[str, str | None]] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.append(tag)
        self.attributes.update(attributes)

    def handle_data(self, data: str) -> None:
        self.text += data


def _message(**values: Any) -> Message:
    """A message with these columns."""
    given = dict.fromkeys(MESSAGES.names) | {"method": "basic.publish", "packet_number": 1} | values
    batch = pa.RecordBatch.from_pylist([given], schema=MESSAGES)
    return next(rows(Message, [batch]))


def test_rows() -> None:
    capture = amqpsniff.open(MIX)
    for made in (capture.frames(), capture.messages(), capture.findings()):
        for row in made:
            assert len(repr(row)) < LONGEST
            shown = _Tags(row._repr_html_())
            assert set(shown.tags) == TAGS
            assert shown.tags.count("tr") == sum(v is not None for v in row.as_dict().values())


@given(st.text(max_size=400))
def test_hostile_names(text: str) -> None:
    message = _message(routing_key=text, exchange=text)
    assert repr(message).isprintable()
    assert len(repr(message)) < LONGEST
    shown = _Tags(message._repr_html_())
    assert set(shown.tags) == TAGS
    assert shown.attributes == {("style", "text-align:left")}
    assert len(shown.text) < 5 * LONGEST


def test_hostile_header() -> None:
    message = _message(headers='{"<script>alert(1)</script>": "&"}')
    assert "<script>" not in message._repr_html_()
    assert "&lt;script&gt;" in message._repr_html_()


def test_body_is_cut() -> None:
    shown = _message(body=bytes(5_000_000))._repr_html_()
    assert "00 … (5,000,000 bytes)" in shown
    assert len(shown) < 2_000


def test_secrets_stay_away() -> None:
    frames = [f for f in amqpsniff.open(MIX).frames() if f.method == "connection.start-ok"]
    assert frames
    for frame in frames:
        assert "s3cret" not in frame._repr_html_() + repr(frame)


def test_capture() -> None:
    capture = amqpsniff.open(MIX, ports=[5672], bodies=True)
    assert repr(capture) == f"<Capture {MIX}>"
    before = _Tags(capture._repr_html_())
    assert "[5672]" in before.text
    assert "packets" not in before.text, "nothing is read to show it"
    sum(1 for _ in capture.frames())
    assert "packets" in _Tags(capture._repr_html_()).text
    capture.close()
    assert repr(capture) == "<Capture closed>"


@pytest.mark.parametrize("value", [-1, None, "no", 2.5])
@pytest.mark.parametrize("name", ["bodies", "body_sha256", "show_secrets"])
def test_what_is_neither_true_nor_false(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{name} is {value!r}; it is of the type bool"):
        amqpsniff.open(SAMPLES / "bunny.pcapng", **{name: value})


def test_many_captures() -> None:
    capture = amqpsniff.open(SAMPLES)
    assert repr(capture).endswith(f" and {len(capture.names) - 3} more>")


def test_engine() -> None:
    engine = amqpsniff.Engine()
    engine.feed_bytes("a", "client", b"AMQP\x00\x00\x09\x01")
    assert repr(engine) == "<Engine 1 packets>"
    engine.finish()
    assert repr(engine) == "<Engine 1 packets, finished>"


def test_result() -> None:
    result = amqpsniff.open(MIX).sql("SELECT method, count(*) AS n FROM frames GROUP BY 1")
    assert repr(result) == "<Result method, n>"
    table = result.table()
    assert table.column_names == ["method", "n"]
    assert table.num_rows > 10
    assert amqpsniff.open(MIX).sql("SELECT 1 WHERE false").table().num_rows == 0


def test_result_in_a_notebook() -> None:
    text = "SELECT packet_number, arguments, '<b>' AS x, 1 AS x FROM frames"
    result = amqpsniff.open(MIX).sql(text)
    shown = _Tags(result._repr_html_())
    assert shown.tags.count("tr") == html_repr.ROWS_SHOWN + 2
    assert shown.tags.count("b") == 1
    assert "<b>Result</b>" in result._repr_html_()  # names of columns stand above them
    assert shown.text == _Tags(result._repr_html_()).text
    assert result.table().equals(amqpsniff.open(MIX).sql(text).table()), "nothing was taken"
    assert shown.text == _Tags(result._repr_html_()).text, "also when all rows were given"
    none = amqpsniff.open(MIX).sql("SELECT 1 AS n WHERE false")
    assert _Tags(none._repr_html_()).tags.count("tr") == 1


@pytest.mark.parametrize("table", ["frames", "messages", "findings"])
def test_rows_in_a_notebook(table: str) -> None:
    """The first ones, without the columns that say nothing of them."""
    result = getattr(amqpsniff.open(MIX), table)()
    assert repr(result) == f"<TableRows {table}>"
    shown = _Tags(result._repr_html_())
    first = [one.as_dict() for one in result][: html_repr.ROWS_SHOWN]
    columns = [name for name in first[0] if any(one[name] is not None for one in first)]
    assert shown.tags.count("th") == len(columns)
    more = len(list(result)) > len(first)
    assert shown.tags.count("tr") == 1 + len(first) + more
    none = getattr(amqpsniff.open(MIX), table)(limit=0)
    assert _Tags(none._repr_html_()).tags.count("tr") == 1


def test_what_can_be_read_once_is_not_read_to_be_shown() -> None:
    small = SAMPLES / "bunny.pcapng"  # which a pipe holds
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(small.read_bytes())
    frames = amqpsniff.open(f"/dev/fd/{read}").frames()
    assert _Tags(frames._repr_html_()).text.split() == ["frames", "…"]
    assert len(list(frames)) == len(list(amqpsniff.open(small).frames()))
    os.close(read)


def test_results_say_what_they_are() -> None:
    assert repr(amqpsniff.open(MIX).timeline()) == "<Rows timeline>"


def test_messages_say_where_they_go() -> None:
    read = amqpsniff.open(REPO / "tests/captures/amqp10/rabbitmq43_links.pcap.gz")
    received = next(read.messages(method="receive"))
    assert repr(received) == "<Message receive #26 q=rejects 7 bytes>"
    assert repr(_message()) == "<Message basic.publish #1>"
    default = _message(exchange="", routing_key="a b", body_size=0)
    assert repr(default) == '<Message basic.publish #1 x="" rk="a b" 0 bytes>'


def test_long_mapping() -> None:
    shown = _Tags(html_repr.table("many", ((str(n), n) for n in range(1_000))))
    assert shown.tags.count("tr") == html_repr.MAX_ROWS + 1
    assert "… and 920 more" in shown.text


@pytest.mark.parametrize("value", [frozenset({2, 1}), SimpleNamespace(), {"a": [1]}, 1.5, True])
def test_any_value(value: object) -> None:
    assert html_repr.line(value)


def test_frame_without_a_method() -> None:
    frame = next(amqpsniff.open(MIX).frames())
    assert isinstance(frame, Frame)
    assert repr(frame) == "<Frame protocol-header #4 channel 0 from client>"
