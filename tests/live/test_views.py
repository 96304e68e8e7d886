"""The views of the dashboard: the order of their rows, the line chosen, names that are cut."""

from __future__ import annotations

import gzip
import time
from collections import deque
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import amqpsniff
from amqpsniff.analysis.selection import Selection
from amqpsniff.capture import read
from amqpsniff.capture.tail import FileCapture
from amqpsniff.cli.dashboard.screen import sides
from amqpsniff.cli.dashboard.state import State
from amqpsniff.cli.dashboard.views import CLIENTS, EXCHANGES, QUEUES, ordered
from amqpsniff.cli.render.grid import Grid
from amqpsniff.cli.render.text import Paint, cut_middle
from amqpsniff.errors import FilterError
from amqpsniff.live.figures import Figures
from amqpsniff.live.operations import COLUMNS, COUNTS, MAX_OPERATIONS, Operations
from amqpsniff.live.picture import Picture, Pictures, chosen
from amqpsniff.live.watch import Watch
from amqpsniff.options import Options
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from tests.archive.splits import packets_of, write_pcap
from tests.capture.build import pcap_header, pcap_record
from tests.decode.amqp10.truth import capture
from tests.session.script import Script, written
from tests.tcp.wire import IPV4_LINK, Talk

Row = dict[str, Any]


def rows(**rates: float) -> list[Row]:
    """Connections with so many messages a second."""
    return [{"connection_id": name, "messages_per_s": rate} for name, rate in rates.items()]


def order(listed: list[Row], before: dict[Any, float], *, backwards: bool = False) -> str:
    """Connections in the order in which they are shown."""
    found = ordered(listed, "messages_per_s", backwards=backwards, view=CLIENTS, before=before)
    return "".join(row["connection_id"] for row in found)


def test_rows_keep_their_places() -> None:
    """Rates that go up and down a little do not change the order; a change that counts does."""
    before: dict[Any, float] = {}
    assert order(rows(a=100, b=105, c=7), before) == "bac"
    assert order(rows(a=110, b=104, c=7), before) == "bac"
    assert order(rows(a=119, b=88, c=8), before) == "bac"
    assert order(rows(a=130, b=88, c=8), before) == "abc"
    assert order(rows(a=130, b=88, c=300), before) == "cab"
    assert order(rows(b=88, c=300), before) == "cb"
    assert set(before) == {("b",), ("c",)}
    assert order(rows(a=0, b=0, c=0), {}) == order(rows(c=0, b=0, a=0), {}) == "abc"
    assert order(rows(a=1, b=2), {}, backwards=True) == "ab"


def test_the_line_chosen_goes_with_its_row() -> None:
    """What was chosen stays so when the order changes, and its place when it is gone."""
    state = State()
    state.press("enter", rows(a=1, b=2))
    assert state.connection == "a"  # nothing was chosen: the first line
    state = State()
    state.press("down", rows(a=1, b=2, c=3))
    assert state.at(rows(a=1, c=3, b=2)) == 2
    state.press("enter", rows(a=1, c=3, b=2))
    assert (state.view, state.connection) == ("connection", "b")
    state.press("escape", [])
    assert state.at(rows(a=1, c=3, d=4)) == 2
    assert state.at(rows(a=1)) == 0
    assert state.at([]) == 0
    state.press("home", rows(a=1, b=2, c=3))
    assert state.at(rows(c=3, a=1, b=2)) == 0


def test_queues_without_a_name_come_last() -> None:
    listed = [{"queue": None, "delivered_per_s": 3.0}, {"queue": "q", "delivered_per_s": 2.0}]
    assert ordered(listed, "queue", backwards=False, view=QUEUES)[0]["queue"] == "q"


def test_names_are_cut_in_their_middle() -> None:
    """Names of one kind differ at their ends."""
    assert cut_middle("order.created.customer-17", 12) == "order.…er-17"
    assert cut_middle("short", 5) == "short"
    assert cut_middle("länger als erlaubt", 8) == "länger …"
    assert cut_middle("ab", 1) == "…"
    grid = Grid("=name|>n")
    grid.add("order.created.customer-17", "1")
    assert list(grid.lines(15, Paint(colour=False)))[1] == "order.…er-17  1"


JOINED = """
    midstream
    C1: basic.publish exchange=e
    C1: basic.publish exchange=e
    @+7ms S1: basic.ack delivery_tag=51
    @+5ms S1: basic.ack delivery_tag=52
    C1: basic.publish exchange=e
    @+9ms S1: basic.ack delivery_tag=53
    C1: basic.publish exchange=e
    C1: basic.publish exchange=e
    C1: basic.publish exchange=e
    @+20ms S1: basic.ack delivery_tag=55 multiple=1
"""


def figures_of(text: str, path: Path) -> Figures:
    """The figures of a script, of which nothing ended."""
    script = Script(text)
    talk = Talk(step_ns=0)
    octets = pcap_header(link=IPV4_LINK)
    for packet in script.packets:
        direction = 0 if packet.sender == "client" else 1
        talk.sent[direction] += packet.missing
        talk.put(direction, packet.octets)
        for each in talk.packets:
            seconds, rest = divmod(packet.ts_ns, 10**9)
            octets += pcap_record("<", seconds, rest // 1000, each.octets)
        talk.packets.clear()
    path.write_bytes(octets)
    return figures_at(path)


def figures_at(path: Path, **options: Any) -> Figures:
    """The figures of a capture, before its end."""
    figures = Figures(10, **options)
    pipeline = Pipeline(Options(), Plan((), census=figures))
    for batch in read([path]):
        pipeline.feed(batch)
    figures.tick()
    return figures


def test_connections_that_are_not_looked_at() -> None:
    """What messages said of them is kept; each of those looked at has its rate."""
    every = figures_at(INCIDENTS / "o_restart.pcap")
    names = [row["connection_id"] for row in every.connections]
    assert len(names) == every.open == 15
    assert all(4 < row["published_per_s"] < 6 for row in every.connections)  # since it opened
    figures = figures_at(INCIDENTS / "o_restart.pcap", shown=2)
    assert (len(figures.connections), figures.open) == (2, 15)
    said = {"connection_id": names[:1], "sender": ["client"], "app_id": ["shop"]}
    said |= {name: pa.array([None], pa.string()) for name in ("user_id", "consumer_tag")}
    figures.add_hints(pa.RecordBatch.from_pydict(said))
    figures.tick()
    assert [row["connection_id"] for row in figures.connections] == names[-2:]
    assert figures.connection(names[-2])["connection_name"] == figures.name_of(names[-2])


def test_confirms_of_a_joined_channel(tmp_path: Path) -> None:
    """Counted from the first publish that was seen; numbers that cannot be are left out."""
    for last in ("", f"S1: basic.ack delivery_tag={(1 << 63) - 1} multiple=1"):
        figures = figures_of(JOINED + last, tmp_path / "joined.pcap")
        (row,) = figures.connections
        assert row["at_least"]
        assert (row["published"], row["unconfirmed"]) == (6, 1)
        assert row["confirm_p50_ms"] == pytest.approx(12, rel=0.1)  # of 8, 12, 9, 22 and 21 ms
        assert row["confirm_p99_ms"] == pytest.approx(22, rel=0.1)
        (channel,) = figures.channels_of(row["connection_id"])
        assert (channel["mode"], channel["unconfirmed"]) == ("confirm", 1)


def test_publishes_of_a_joined_channel_without_confirms(tmp_path: Path) -> None:
    """Whether they are to be confirmed is not known."""
    figures = figures_of("midstream\nC1: basic.publish exchange=e", tmp_path / "joined.pcap")
    (row,) = figures.connections
    assert (row["unconfirmed"], row["at_least"], row["unacked"]) == (None, "unconfirmed", 0)
    assert figures.totals()["unconfirmed"] is None


OPEN = """
C0: connection.open virtual_host=/
S0: connection.open-ok
C1: channel.open
S1: channel.open-ok
C1: confirm.select
S1: confirm.select-ok
C1: basic.consume queue=q consumer_tag=t
S1: basic.consume-ok consumer_tag=t
C1: basic.publish exchange=e
S1: basic.deliver consumer_tag=t delivery_tag=1
"""
LOST = {"publish": "GAP S 21", "delivery": "GAP C 21"}
"""An answer that is not captured, by what it answers."""

AFTER = """
@+50ms C1: basic.qos prefetch_count=9
@+50ms S1: basic.qos-ok
@+50ms C1: basic.qos prefetch_count=9
@+50ms S1: basic.qos-ok
"""
MORE = """
C1: basic.publish exchange=e
S1: basic.deliver consumer_tag=t delivery_tag=2
"""


@pytest.mark.parametrize(
    ("lost", "more", "unconfirmed", "unacked"),
    [
        ("", "", 1, 1),
        ("publish", "", None, 1),
        ("delivery", "", 1, None),
        ("publish", MORE, 1, 2),
        ("delivery", MORE, 1, 1),
    ],
)
def test_depths_where_an_answer_may_be_missing(
    tmp_path: Path, lost: str, more: str, unconfirmed: int | None, unacked: int | None
) -> None:
    """What certainly waits is counted; where that is nothing, the depth is not known."""
    figures = figures_of(OPEN + LOST.get(lost, "") + AFTER + more, tmp_path / "lost.pcap")
    (row,) = figures.connections
    (channel,) = figures.channels_of(row["connection_id"])
    assert figures.outstanding() == (unacked, unconfirmed)
    for shown in (row, channel, figures.totals()):
        assert (shown["unconfirmed"], shown["unacked"]) == (unconfirmed, unacked)
        assert shown["at_least"].split() == (["unacked", "unconfirmed"] if lost else [])
    lines = [line.plain for line in sides(figures.totals(), 200)]
    for line, number in zip(lines, (unconfirmed, unacked), strict=True):
        said = "?" if number is None else f"≥{number}" if lost else str(number)
        assert line.split()[-1] == said


HANGS = """
C0: connection.open virtual_host=/
S0: connection.open-ok
C1: channel.open
S1: channel.open-ok
C1: basic.qos prefetch_count=1
S1: basic.qos-ok
C1: basic.consume queue=q consumer_tag=t
S1: basic.consume-ok consumer_tag=t
S1: basic.deliver consumer_tag=t delivery_tag=1
@+{after}000ms C2: channel.open
"""


@pytest.mark.parametrize(("after", "hangs"), [(4, None), (6, "acks")])
def test_what_hangs(tmp_path: Path, after: int, hangs: str | None) -> None:
    """A consumer that may be sent no more hangs after five seconds."""
    (row,) = figures_of(HANGS.format(after=after), tmp_path / "hangs.pcap").connections
    assert (row["hangs"], row["hangs_s"]) == (hangs, hangs and pytest.approx(after))


def test_what_hangs_of_amqp10(tmp_path: Path) -> None:
    """Links without credit, whose clients hold all that they got."""
    octets = packets_of([capture("rabbitmq43_consumers")])
    part = write_pcap(tmp_path / "part.pcap", octets[:656])
    rows = [row for row in figures_at(part).connections if row["hangs"]]
    assert {row["hangs"] for row in rows} == {"acks"}
    assert sorted(row["unacked"] for row in rows) == [5, 5, 40]


INCIDENTS = Path(__file__).parents[1] / "captures" / "incidents"
PACKS = INCIDENTS.with_name("packs")
CROSS = "rabbitmq43_cross"


def run_of(capture: Path, **wanted: Any) -> Picture:
    """The dashboard's picture of a capture, before its end."""
    figures = Figures(10)
    source = FileCapture([str(capture)])
    watch = Watch(source, Options(), (), census=figures, judge=True, name_clients=True)
    watch.step()
    deque(watch.rows(), 0)
    picture = Pictures(watch, Selection(**wanted)).take(None)
    watch.close()
    return picture


def test_the_verdict_of_now_and_what_hangs_first() -> None:
    picture = run_of(INCIDENTS / "a_prefetch.pcap")
    assert str(picture.verdict).startswith("A consumer holds all it may hold")
    first, *_ = ordered(picture.connections, "urgency", backwards=False, view=CLIENTS)
    assert first["label"] == "orders-worker"
    assert first["waits"].startswith("acks 16.")


def test_what_hangs_goes_on_while_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait is longer by the time in which no packet came, less what packets may be late."""
    figures = Figures(10)
    source = FileCapture([str(INCIDENTS / "a_prefetch.pcap")])
    watch = Watch(source, Options(), (), census=figures, settle_seconds=2.0)
    watch.step()
    pictures = Pictures(watch, Selection())
    before = pictures.take(None).connections
    now = time.monotonic()
    monkeypatch.setattr("amqpsniff.live.watch.time.monotonic", lambda: now + 42.0)
    after = pictures.take(None).connections
    waited = [
        later["hangs_s"] - one["hangs_s"]
        for one, later in zip(before, after, strict=True)
        if one["hangs"] is not None
    ]
    assert waited == pytest.approx([40.0], abs=0.5)
    watch.close()


def test_names_of_two_virtual_hosts_are_told_apart(tmp_path: Path) -> None:
    """Only where there are two: the column takes room."""
    lines = (
        "handshake vhost={}", "C1: channel.open", "S1: channel.open-ok",
        "C1: basic.publish exchange=e routing_key=k", "C1: basic.publish exchange=f",
    )  # fmt: skip
    shown = []
    for vhosts in ("a", "ab"):
        texts = [f"{name}.{line.format(name)}" for name in vhosts for line in lines]
        found = figures_at(written(Script("\n".join(texts)), tmp_path / vhosts)).exchanges
        shown.append([(row["vhost"], row["exchange"], row["published"]) for row in found])
        head, *_ = EXCHANGES.grid(found, None).lines(80, Paint(colour=False))
        assert ("vhost" in head) == (len(vhosts) > 1)
    assert shown == [
        [(vhost, name, 1) for vhost in vhosts for name in "ef"] for vhosts in ("a", "ab")
    ]


def test_messages_of_both_protocols_count(tmp_path: Path) -> None:
    """In the head and in views; the credit of AMQP 1.0 stands where 0-9-1 has the prefetch."""
    figures = Figures(10)
    octets = gzip.decompress((INCIDENTS.with_name("amqp10") / f"{CROSS}.pcap.gz").read_bytes())
    path = tmp_path / f"{CROSS}.pcap"
    path.write_bytes(octets[: octets.rindex(b"\0\x53\x18\x45")])  # before a side closes
    watch = Watch(FileCapture([str(path)]), Options(), (), census=figures, judge=True)
    figures.tick()
    watch.step()
    figures.tick()
    totals = figures.totals()
    assert (totals["published_per_s"], totals["delivered_per_s"]) == (15, 20)
    both = {row["label"]: row for row in figures.connections}
    assert both["shop-10"]["published"] == 7
    (session,) = figures.channels_of(both["shop-10"]["connection_id"])
    assert (session["prefetch"], session["consumers"]) == (40, 2)
    watch.close()


@pytest.mark.parametrize("name", ["celery", "dramatiq"])
def test_operations_are_those_of_the_report(name: str) -> None:
    path = PACKS / f"{name}.pcap.gz"
    watch = Watch(FileCapture([str(path)]), Options(), ("messages",), columns={"messages": COLUMNS})
    watch.step()
    counted = Operations()
    for _, batch in (*watch.rows(), *watch.finish()):
        counted.add(batch)
    watch.close()
    counted.tick(0.0)
    told = ["framework", "operation", *COUNTS, "error_type"]
    report = {
        tuple(row[one] for one in told) for row in amqpsniff.open(path).operations().to_pylist()
    }
    assert {tuple(row[one] for one in told) for row in counted.rows} == report


def test_operations_without_end_are_one_row() -> None:
    names = [f"o{n}" for n in range(MAX_OPERATIONS + 9)]
    batch = pa.RecordBatch.from_pydict(
        {one: [None] * len(names) for one in COLUMNS}
        | {"operation": names, "method": ["basic.publish"] * len(names)}
    )
    counted = Operations()
    counted.add(batch)
    counted.tick()
    assert [row["published"] for row in counted.rows if row["operation"] is None] == [9]
    assert len(counted.rows) == MAX_OPERATIONS + 1


def test_a_joined_connection_is_named_by_its_messages() -> None:
    """By a consumer's tag, as nothing else tells."""
    labels = [row["label"] for row in run_of(INCIDENTS / "a_prefetch_midstream.pcap").connections]
    assert labels == ["10.91.11.2:47774", "worker-1"]


def test_a_joined_connection_is_named_by_what_it_publishes(tmp_path: Path) -> None:
    """By application and user; what is delivered to it tells of others."""
    named = "midstream\nC1: basic.publish exchange=e | app_id=shop user_id=ada\n"
    figures = figures_of(named, tmp_path / "joined.pcap")
    assert figures.name_of(figures.connections[0]["connection_id"]) is None
    picture = run_of(tmp_path / "joined.pcap")
    assert [(row["label"], row["user"]) for row in picture.connections] == [("shop", "ada")]


def test_the_dashboard_is_filtered_by_name() -> None:
    """Views without the filter's columns show all."""
    mix = run_of(INCIDENTS / "a_prefetch.pcap", client="orders-w*", queue="nothing", errors=True)
    assert [row["label"] for row in mix.connections] == ["orders-worker"]
    assert mix.queues == []
    assert mix.exchanges
    assert {row["severity"] for row in mix.findings} == {"error"}


def test_a_filter_of_an_unknown_column_is_answered_with_those_of_the_view() -> None:
    row = {name: 1 for name, *_ in CLIENTS.columns} | dict.fromkeys(map(chr, range(97, 123)), 1)
    with pytest.raises(FilterError, match="no column `nosuch_col`; there are ") as said:
        chosen([row], "nosuch_col > 3")
    assert "DESCRIBE" not in str(said.value)


def test_a_column_without_values_compares_with_anything() -> None:
    rows = [{"hangs_s": None, "name": "shop"}]
    assert chosen(rows, "hangs_s > 1") == []
    assert chosen(rows, "hangs_s > 1 OR name = 'shop'") == rows
