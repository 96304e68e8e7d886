"""A capture answers what the commands answer: the same data, chosen by the same options."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff import Capture
from amqpsniff.analysis.trace import MAX_ROWS
from amqpsniff.errors import FilterError, UsageError
from tests.cli.running import run, write_capture
from tests.conftest import SAMPLES
from tests.session.script import repeated
from tests.tcp.wire import Talk

MIX = "pika_mix.pcap"
PARTS: list[dict[str, Any]] = [
    {},
    {"connection": ":43706"},
    {"connection": "f6bf", "channel": 1},
    {"from_": "0.1", "to": "+1s"},
]


@pytest.fixture(autouse=True)
def _in_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SAMPLES)


def options(part: dict[str, Any]) -> list[str]:
    """A selection as options of a command."""
    return [word for name, value in part.items() for word in (f"--{name.strip('_')}", str(value))]


def rows_of(command: str, *words: str) -> list[Any]:
    """The rows that a command writes as NDJSON."""
    return [
        json.loads(line) for line in run(command, *words, "--format", "ndjson").out.splitlines()
    ]


@pytest.mark.parametrize("part", PARTS, ids=str)
@pytest.mark.parametrize(("method", "top"), [("summary", 3), ("topology", 2)])
def test_it_gives_what_the_command_prints(method: str, top: int, part: dict[str, Any]) -> None:
    made = getattr(amqpsniff.open(MIX), method)(limit=top, **part)
    printed = run(method, MIX, "--format", "json", "--limit", str(top), *options(part)).out
    assert json.loads(json.dumps(made)) == json.loads(printed)


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_a_diagnosis_has_the_rows_that_the_command_writes(part: dict[str, Any]) -> None:
    found = amqpsniff.open(MIX).diagnose(**part)
    written = rows_of("diagnose", MIX, *options(part))
    assert [(row["code"], row["packet_number"], row["detail"]) for row in found.findings] == [
        (row["code"], row["packet_number"], row["detail"]) for row in written
    ]
    in_tree = [row for root in found.cases for case in root.walk() for row in case.rows]
    assert len(in_tree) == len(written)


def test_a_diagnosis_is_of_codes_and_of_an_expression() -> None:
    capture = amqpsniff.open(MIX)
    for only in (
        "vhost-refused, channel-closed-by-broker",
        ["vhost-refused", "channel-closed-by-broker"],
    ):
        codes = {row["code"] for row in capture.diagnose(only=only).findings}
        assert codes == {"vhost-refused", "channel-closed-by-broker"}
    severe = capture.diagnose(where="severity = 'error'")
    assert {row["severity"] for row in severe.findings} == {"error"}
    assert severe.packets == capture.totals.packets
    assert severe.quality["gaps"] == 0
    assert severe.flaws == []


def test_a_timeline_has_the_lines_of_inspect() -> None:
    timeline = amqpsniff.open(MIX).timeline(where="method LIKE 'queue.%'", limit=4)
    entries = list(timeline)
    lines = run("inspect", MIX, "--where", "method LIKE 'queue.%'", "-n", "4").out.splitlines()
    assert len(entries) == len(lines) == 4
    for entry, line in zip(entries, lines, strict=True):
        assert f" {entry.packet_number} " in line
        assert str(entry.method) in line
    assert [entry.packet_number for entry in timeline] == [one.packet_number for one in entries]


def test_a_timeline_of_frames_has_every_frame() -> None:
    capture = amqpsniff.open(MIX)
    every = list(capture.timeline(frames=True))
    assert [entry.packet_number for entry in every] == [
        frame.packet_number for frame in capture.frames()
    ]
    methods = [entry for entry in capture.timeline() if entry.message is not None]
    assert len(methods) == len(list(capture.messages()))


def test_a_conversation_has_what_follow_shows() -> None:
    conversation = amqpsniff.open(MIX).follow(":43706", bodies=True)
    assert conversation is not None
    text = run("follow", MIX, "--connection", ":43706").out.splitlines()
    assert text[0].startswith(conversation.row["connection_id"])
    entries = list(conversation.entries)
    shown = [line for line in text if "→" in line or "←" in line]
    assert len(entries) <= len(shown)
    assert any(entry.message and entry.message["body"] for entry in entries)
    assert all(
        row["connection_id"] == conversation.row["connection_id"] for row in conversation.findings
    )


def test_every_loop_over_a_conversation_reads_it_again() -> None:
    conversation = amqpsniff.open(MIX).follow(":43706", limit=5)
    assert conversation is not None
    first, second = (list(conversation.entries) for _ in range(2))
    assert len(first) == 5
    assert first == second
    kept = pickle.loads(pickle.dumps(conversation))
    assert list(kept.entries) == first


def test_gaps_of_a_conversation_are_entries() -> None:
    capture = amqpsniff.open("lost.pcap")
    row = max(capture.table("connections").to_pylist(), key=lambda one: one["lost_bytes"] or 0)
    conversation = capture.follow(row["connection_id"])
    assert conversation is not None
    assert any(entry.frame_type == "gap" and entry.size > 0 for entry in conversation.entries)


def test_a_trace_that_leaves_rows_out_says_so(tmp_path: Path) -> None:
    path = repeated(tmp_path / "many.pcap", MAX_ROWS + 5)
    with pytest.warns(UserWarning, match="only the first 20,000 rows that match are kept") as said:
        part = amqpsniff.open(path).trace(routing_key="a")
    assert said[0].filename == __file__
    assert sum(len(one.rows) for one in part) == MAX_ROWS


def test_a_trace_has_a_message_with_its_reply() -> None:
    capture = amqpsniff.open("aiopika_rpc.pcap")
    request = next(message for message in capture.messages() if message.reply_to)
    traced = capture.trace(correlation_id=request.correlation_id)
    assert traced[0].rows[0]["packet_number"] == request.packet_number
    assert traced[0].requested_ns is None
    (reply,) = traced[0].replies
    assert reply.requested_ns == request.ts_ns
    assert capture.trace(body_sha256="0" * 64) == []


def test_a_difference_is_what_the_command_prints() -> None:
    before, after = amqpsniff.open(MIX), amqpsniff.open("node.pcap")
    made = before.diff(after, fail_on="warning", fail_slower=10)
    words = ("--fail-on", "warning", "--fail-slower", "10", "--format", "json")
    assert json.loads(json.dumps(made)) == json.loads(run("diff", MIX, "node.pcap", *words).out)
    assert before.diff(before)["notable_count"] == 0


def test_a_report_is_the_page_of_the_command(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    part = {"connection": ":43706", "title": "Friday"}
    amqpsniff.open(MIX).report(tmp_path / "made.html", **part)
    run("report", MIX, "-q", "-o", tmp_path / "printed.html", *options(part))
    made = (tmp_path / "made.html").read_text(encoding="utf-8")
    assert made == (tmp_path / "printed.html").read_text(encoding="utf-8")
    assert "<title>Friday</title>" in made


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        ("summary", {"from_": "yesterday"}),
        ("topology", {"from_": "5", "to": "3"}),
        ("topology", {"connection": ""}),
        ("trace", {}),
        ("trace", {"body_sha256": "abc"}),
        ("trace", {"header": "tenant"}),
        ("diagnose", {"only": "no-such-code"}),
        ("diagnose", {"connection": "ffff"}),
        ("follow", {"connection": "ffff"}),
        ("follow", {}),
        ("report", {"path": "-", "connection": "ffff"}),
    ],
)
def test_what_cannot_be_is_an_error(method: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        getattr(amqpsniff.open(MIX), method)(**wrong)
    assert not Path("-").exists()


@pytest.mark.parametrize("method", ["diagnose", "follow"])
def test_an_expression_is_checked_before_anything_is_read(method: str) -> None:
    capture = amqpsniff.open(MIX)
    with pytest.raises(FilterError):
        getattr(capture, method)(where="no_such_column = 1")
    assert capture.totals.packets == 0


def test_a_packet_names_the_connection_that_is_followed() -> None:
    """All of it, not that packet alone; with a connection a packet chooses what is shown of it."""
    capture = amqpsniff.open(MIX)
    by_packet, by_name = capture.follow(packet=333), capture.follow(":43706")
    assert by_packet is not None
    assert by_name is not None
    assert by_packet.row == by_name.row
    assert len(list(by_packet.entries)) == len(list(by_name.entries))
    assert capture.follow(client=":43706").row == by_name.row
    chosen = capture.follow(":43706", packet=333)
    assert chosen is not None
    assert {entry.packet_number for entry in chosen.entries} == {333}
    with pytest.raises(UsageError, match="no bytes of a connection in packet 2;"):
        capture.follow(packet=2)
    assert (
        run("follow", MIX, "--packet", "333").out
        == run("follow", MIX, "--connection", ":43706").out
    )


def test_nothing_is_followed_where_there_is_no_amqp(tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "none.pcap", [Talk().client(b"GET / HTTP/1.1\r\n")])
    assert amqpsniff.open(capture).follow() is None


def test_the_same_traffic_is_what_the_command_prints() -> None:
    names = ("compared/path_client.pcap.gz", "compared/path_broker.pcap.gz")
    client, broker = map(amqpsniff.open, names)
    words = ("--same-traffic", "--fail-on", "warning", "--limit", "3", "--format", "json")
    made = client.same_traffic(broker, limit=3, fail_on="warning")
    assert json.loads(json.dumps(made)) == json.loads(run("diff", *names, *words).out)


ASKED_WITH_A_LIMIT: dict[str, Callable[[Capture, int], Any]] = {
    "frames": lambda capture, limit: list(capture.frames(limit=limit)),
    "messages": lambda capture, limit: capture.messages(limit=limit).df(),
    "findings": lambda capture, limit: capture.findings(limit=limit).df(),
    "timeline": lambda capture, limit: list(capture.timeline(limit=limit)),
    "summary": lambda capture, limit: capture.summary(limit=limit)["connections"],
    "topology": lambda capture, limit: capture.topology(limit=limit)["queues"],
    "follow": lambda capture, limit: list(capture.follow(":43706", limit=limit).entries),
    "same_traffic": lambda capture, limit: capture.same_traffic(capture, limit=limit)["slowest"],
}


@pytest.mark.parametrize("asked", ASKED_WITH_A_LIMIT)
def test_a_limit_is_a_number_of_rows(asked: str) -> None:
    ask, capture = ASKED_WITH_A_LIMIT[asked], amqpsniff.open(MIX)
    assert len(ask(capture, 0)) == 0
    with pytest.raises(UsageError, match="limit is -1; it is a number of rows, 0 or more"):
        ask(capture, -1)
