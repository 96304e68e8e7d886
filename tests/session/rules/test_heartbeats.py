# ruff: noqa: E501 (one packet, one line)
"""Heartbeats that are off, too frequent, or missing; blocked connections."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpsniff.findings import KINDS
from tests.amqp10 import EMPTY
from tests.encoder import HEARTBEAT_FRAME
from tests.findings.pairs_of_links import opening
from tests.session.rules.found import of_capture
from tests.session.rules.telling import one, told, told_of
from tests.session.script import Script
from tests.tcp import wire

OPEN = """
    hello
    S: connection.start version_minor=9
    C: connection.start-ok mechanism=PLAIN response='\\0joe\\0x'
    S: connection.tune channel_max=2047 frame_max=131072 heartbeat=60
    [ok] C: connection.tune-ok channel_max=2047 frame_max=131072 heartbeat=10
    C: connection.open virtual_host=/
    S: connection.open-ok
    C1: channel.open
    S1: channel.open-ok
"""


@pytest.mark.parametrize(("beat", "code"), [(0, "heartbeat-disabled"), (1, "heartbeat-too-short"), (4, "heartbeat-too-short"), (5, "")])  # fmt: skip
def test_intervals(beat: int, code: str) -> None:
    rows = told(
        OPEN.replace("heartbeat=10", f"heartbeat={beat}"),
        "heartbeat-disabled",
        "heartbeat-too-short",
    )
    assert [(row["code"], row["packet_number"]) for row in rows] == [(code, 5)] * bool(code)


def test_a_client_that_falls_silent() -> None:
    text = OPEN + "@+9000ms S: connection.unblocked\n" * 2 + "@+5000ms RST S"
    row = one(text, "heartbeat-missed")
    assert (
        row["detail"]
        == "nothing from the client for 23.0 s, heartbeat 10 s; then TCP was ended by the other side"
    )
    assert told(OPEN + "@+9000ms S: connection.unblocked\n" + "@+5000ms RST S", "heartbeat-missed")


def test_a_silence_that_ends() -> None:
    text = (
        OPEN
        + "@+25000ms C1: basic.qos prefetch_count=1\nS1: basic.qos-ok\nC: connection.close reply_code=200\nS: connection.close-ok"
    )
    row = one(text, "heartbeat-missed")
    assert (
        row["detail"]
        == "nothing from the client for 25.0 s, nothing from the broker for 25.0 s, heartbeat 10 s"
    )
    assert row["packet_number"] == 10  # with which it ends


@pytest.mark.parametrize("text", [
    OPEN + "@+15000ms C1: basic.qos prefetch_count=1\nS1: basic.qos-ok",
    OPEN + "@+9000ms RST S",
    OPEN.replace("heartbeat=10", "heartbeat=0") + "@+90000ms RST S",
    OPEN + "S: connection.blocked reason=r\n" + "@+9000ms S1: channel.flow active=1\n" * 4 + "S: connection.unblocked\nC1: channel.flow-ok active=1",
    "midstream\n" + OPEN.replace("    hello\n", "") + "@+90000ms C1: basic.qos prefetch_count=1\nS1: basic.qos-ok",
    OPEN + "GAP C 100\n@+90000ms C1: basic.qos prefetch_count=1",
])  # fmt: skip
def test_silences_that_are_allowed_or_not_known(text: str) -> None:
    assert not told(text, "heartbeat-missed")


BLOCKED = (
    OPEN
    + """
    C1: basic.publish routing_key=q | body=1
    [blocked] S: connection.blocked reason='low on memory'
    C1: basic.publish routing_key=q | body=1
"""
)


def test_a_blocked_connection() -> None:
    row = one(
        BLOCKED + "@+3000ms S: connection.unblocked\nC1: basic.publish | body=1",
        "connection-blocked",
    )
    assert row["detail"] == (
        "low on memory, for 3.00 s, 1 publish meanwhile (all in the first 500 ms)"
    )
    assert row["packet_number"] == 11


def test_a_publish_that_was_sent_right_before_the_block() -> None:
    """Its confirm is late because of the block, which the broker tells those that publish."""
    text = (
        OPEN
        + "C1: confirm.select\nS1: confirm.select-ok\nC1: basic.publish | body=1\n"
        + "S: connection.blocked reason=low\n@+6000ms S: connection.unblocked\n"
        + "S1: basic.ack delivery_tag=1\n"
    )
    row = one(text, "confirms-slow")
    assert (row["cause_code"], row["packet_number"]) == ("connection-blocked", 12)


def test_connections_blocked_until_the_end() -> None:
    text = "b.handshake\nb.S: connection.blocked reason=disk\n" + BLOCKED + "@+4000ms FIN C"
    rows = told(text, "connection-blocked")
    assert len(rows) == 2
    assert (
        "low on memory, for 4.00 s until the end, 1 publish meanwhile (all in the first 500 ms), 2 connections blocked at that time"
        in [row["detail"] for row in rows]
    )
    assert not told(OPEN + "S: connection.unblocked", "connection-blocked")


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (
            "midstream\nC1: basic.publish | body=1\n@+8000ms S: connection.unblocked",
            "; it lasted for the first 8.00 s of the capture, 1 publish meanwhile",
        ),
        ("midstream\nGAP S 100\n@+8000ms S: connection.unblocked", ""),
        (OPEN + "GAP S 100\nS: connection.unblocked", ""),
    ],
    ids=["before the capture", "in a hole at its beginning", "in a hole"],
)
def test_a_block_of_which_only_the_end_was_captured(text: str, detail: str) -> None:
    row, so = one(text, "connection-blocked"), "ended here" if detail else "it ended here"
    assert (
        row["detail"] == f"a block whose beginning and reason were not captured{detail}, and {so}"
    )


def test_publishing_all_the_same() -> None:
    text = (
        BLOCKED
        + "@+2000ms C1: basic.publish | body=1\nC1: basic.publish | body=1\nS: connection.unblocked\n@+2000ms C1: basic.publish | body=1"
    )
    assert (
        "3 publishes meanwhile (1 of them in the first 500 ms)"
        in one(text, "connection-blocked")["detail"]
    )
    row = one(text, "publish-while-blocked")
    assert row["detail"] == "published 2.00 s after connection.blocked in packet 14"
    assert row["count"] == 2
    assert not told(BLOCKED + "@+300ms C1: basic.publish | body=1", "publish-while-blocked")


CLIENT_SAYS = "@+9000ms C1: basic.qos prefetch_count=1\n"
BROKER_SAYS = "@+9000ms S1: basic.qos-ok\n"


@pytest.mark.parametrize(("text", "silent"), [
    (CLIENT_SAYS * 2 + "@+2001ms S1: basic.qos-ok", "broker for 20.0 s"),
    (CLIENT_SAYS * 2 + "@+2000ms S1: basic.qos-ok", ""),
    (CLIENT_SAYS + "@+1001ms FIN C", "broker for 10.0 s"),
    (CLIENT_SAYS + "@+1000ms FIN C", ""),
    (CLIENT_SAYS + "@+1001ms FIN S", ""),  # who is silent and ends it, is there
    (BROKER_SAYS + "@+1001ms FIN S", "client for 10.0 s"),
    (BROKER_SAYS + "@+1001ms FIN C", ""),
    (BROKER_SAYS + CLIENT_SAYS + "S: connection.close reply_code=320\n@+90000ms FIN S", ""),
])  # fmt: skip
def test_who_is_silent_for_how_long(text: str, silent: str) -> None:
    quiet = OPEN.replace("S1: channel.open-ok\n", "S1: channel.open-ok\n    @+0ms C1: basic.qos\n")
    text = quiet + "& S1: basic.qos-ok\n".replace("& ", "@+0ms ") + text
    said = [row["detail"] for row in told(text, "heartbeat-missed")]
    assert [one.split(",")[0] for one in said] == [f"nothing from the {silent}"] * bool(silent)


def test_a_silence_before_the_end_that_is_not_the_longest() -> None:
    text = OPEN + "@+25000ms C1: basic.qos\nS1: basic.qos-ok\n@+12000ms S1: basic.qos-ok\nFIN S"
    assert not one(text, "heartbeat-missed")["detail"].endswith("the other side")


def test_a_handshake_without_heartbeats() -> None:
    slow = OPEN.replace("[ok]", "[ok] @+25000ms")
    assert not told(slow + "@+5000ms FIN C", "heartbeat-missed")
    assert told(slow + "@+25000ms C1: basic.qos", "heartbeat-missed")


def test_who_may_be_silent_while_blocked() -> None:
    """The client, for as long as it is blocked; not the broker."""
    blocked = OPEN + "C1: basic.publish | body=1\nS: connection.blocked reason=r\n"
    assert not told(blocked + BROKER_SAYS * 4 + "RST S", "heartbeat-missed")
    assert told(blocked + CLIENT_SAYS * 4 + "RST C", "heartbeat-missed")
    unblocked = blocked + BROKER_SAYS + "S: connection.unblocked\n"
    assert not told(unblocked + BROKER_SAYS + "@+1900ms C1: basic.qos", "heartbeat-missed")
    assert told(unblocked + BROKER_SAYS * 2 + "@+3000ms C1: basic.qos", "heartbeat-missed")


def test_a_connection_that_is_blocked_for_two_reasons() -> None:
    text = (
        OPEN + "S: connection.blocked reason=memory\n@+1000ms S: connection.blocked reason=disk\n"
    )
    row = one(text + "@+1000ms S: connection.unblocked", "connection-blocked")
    assert (row["detail"], row["count"]) == ("memory, for 2.00 s", 1)


@pytest.mark.parametrize(("after_ms", "cause"), [(900, "connection-blocked"), (1100, None)])
def test_alarms_one_after_the_other_and_an_end(after_ms: int, cause: str | None) -> None:
    """Each reason is said with its time; an end long after both has nothing to do with them."""
    alarm = "@+500ms S: connection.blocked reason={}\n@+2000ms S: connection.unblocked\n"
    text = OPEN + alarm.format("memory") + alarm.format("disk") + alarm.format("memory")
    codes = ("connection-blocked", "disconnect-unclean")
    *blocked, ended = told(text + f"@+{after_ms}ms RST C", *codes)
    assert [(row["detail"], row["count"]) for row in blocked] == [
        ("memory, for 2.00 s", 2),
        ("disk, for 2.00 s", 1),
    ]
    assert (ended["code"], ended["cause_code"]) == ("disconnect-unclean", cause)


def test_a_connection_that_is_blocked_for_no_reason() -> None:
    text = OPEN + "S: connection.blocked\n@+1000ms S: connection.unblocked"
    assert one(text, "connection-blocked")["detail"] == "no reason given, for 1.00 s"


# a path on which nothing gets through

INCIDENTS = Path(__file__).parents[2] / "captures" / "incidents"


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("i_dead", "no frame of either side for 20.0 s, heartbeat 8 s; no packet from the client for 21.0 s, though the broker sent 7 segments again; then TCP was ended by the other side"),
        ("i_dead_path", "no frame of either side for 26.5 s, heartbeat 8 s; no packet from the broker for 26.6 s, though the client sent 8 segments again"),
        ("i_router_down", "no frame of either side for 44.7 s, heartbeat 8 s; no packet from the broker for 45.2 s, though the client sent 19 segments again"),
    ],
)  # fmt: skip
def test_a_path_that_is_cut(name: str, detail: str) -> None:
    found = {row["code"]: row for row in of_capture(INCIDENTS / f"{name}.pcap")}
    assert found["path-interrupted"]["detail"] == detail
    assert "heartbeat-missed" not in found


def test_a_path_that_is_cut_while_the_connection_is_blocked() -> None:
    """A block does not explain the silence, and nobody saw its end."""
    found = {row["code"]: row for row in of_capture(INCIDENTS / "i_blocked_cut.pcap")}
    assert found["path-interrupted"]["cause_code"] is None
    assert "heartbeat-missed" not in found
    assert found["connection-blocked"]["detail"] == (
        "low on memory, for 6.08 s at least, until nothing came from the broker any more, 13 publishes meanwhile"
    )


@pytest.mark.parametrize("first", [0, 8], ids=["heartbeats are off", "midstream"])
@pytest.mark.parametrize("answered", [False, True])
def test_a_path_that_is_cut_where_no_heartbeat_says_so(first: int, answered: bool) -> None:
    """The client sends its last bytes again and again; a host that is there acknowledges them."""
    talk = wire.Talk(step_ns=1_000_000).hands()
    for packet in Script(OPEN.replace("heartbeat=10", "heartbeat=0")).packets:
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    at = talk.sent[0]
    for wait in (0, 1, 2, 4):
        talk.wait(wait * 1_000_000_000)
        talk.client(HEARTBEAT_FRAME, at=at)
    if answered:
        talk.server()
    (row,) = told_of(talk.packets[first:], "path-interrupted")
    detail = (
        "for 7.00 s the client sent the same bytes again, 3 times, and no packet came from the "
    )
    assert row["detail"] == f"{detail}broker{'; then it got through' * answered}"
    assert row["packet_number"] == len(talk.packets[first:]) - 3 - answered


def cut(beat: int = 10) -> wire.Talk:
    """A connection that is open, with heartbeats of so many seconds."""
    talk = wire.Talk(step_ns=1_000_000).hands()
    for packet in Script(OPEN.replace("heartbeat=10", f"heartbeat={beat}")).packets:
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    return talk


def insist(talk: wire.Talk, side: int, octets: bytes, heard: bytes | None = None) -> None:
    """A side sends bytes again for 7 s; `heard`: the other one sends these, and acknowledges."""
    at = talk.sent[side]
    for wait in (0, 1, 2, 4):
        talk.wait(wait * 1_000_000_000)
        talk.put(side, octets, at=at)
        if heard is not None:
            talk.put(1 - side, heard)


@pytest.mark.parametrize("late", [b"", HEARTBEAT_FRAME])
def test_a_client_that_gives_a_silent_broker_up(late: bytes) -> None:
    """Its FIN arrived, so the path was not cut, and what comes later changes nothing."""
    talk = cut()
    talk.wait(9_000_000_000)
    talk.client(HEARTBEAT_FRAME)
    talk.wait(6_000_000_000)
    fin = talk.client(flags=wire.FIN | wire.ACK)
    behind = talk.sent[0] + 1
    talk.server(ack=behind)
    talk.wait(13_000_000_000)
    if late:
        talk.server(late, ack=behind)
        talk.client(flags=wire.RST)
    else:
        talk.server(flags=wire.RST | wire.ACK, ack=behind)
    codes = "path-interrupted", "heartbeat-missed", "disconnect-unclean"
    missed, unclean = sorted(told_of(talk.packets, *codes), key=lambda row: row["code"])[::-1]
    assert (missed["code"], missed["ts_ns"], missed["detail"]) == (
        "heartbeat-missed",
        fin.ts_ns,
        "nothing from the broker for 15.0 s, heartbeat 10 s; then TCP was ended by the other side",
    )
    assert unclean["ts_ns"] == fin.ts_ns
    assert unclean["detail"].startswith(
        "the client ended TCP after 15.0 s (FIN), last frames: the client's 6.00 s before"
    )


def test_a_cut_in_one_direction() -> None:
    """The broker has the client's bytes, and what it answers does not arrive."""
    talk = cut()
    insist(talk, 0, HEARTBEAT_FRAME, HEARTBEAT_FRAME)
    rows = {row["code"]: row for row in told_of(talk.packets, "path-interrupted")}
    assert rows["path-interrupted"]["detail"] == (
        "for 7.01 s the client sent the same bytes again, 3 times, and the broker acknowledged "
        "them: nothing from the broker reached the client"
    )


def test_a_cut_path_of_amqp10() -> None:
    talk = wire.Talk(step_ns=1_000_000).hands()
    for side, octets in opening(idle_time_out=3000):
        talk.put("CS".index(side), octets)
    insist(talk, 0, EMPTY)
    rows = told_of(talk.packets, "path-interrupted", "heartbeat-missed")
    assert [row["code"] for row in rows] == ["path-interrupted"]


def test_a_cut_that_is_over_before_three_attempts() -> None:
    talk = cut()
    at = talk.sent[0]
    for _ in range(3):
        talk.client(HEARTBEAT_FRAME, at=at)
        talk.wait(4_000_000_000)
    talk.server()
    assert not told_of(talk.packets, "path-interrupted")


def test_bytes_for_a_closed_window() -> None:
    """They are sent again to find out if it is open: the other side has them."""
    talk = cut()
    at = talk.sent[0]
    talk.client(HEARTBEAT_FRAME)
    shut = talk.server(ack=at)
    talk.packets[-1] = shut._replace(octets=shut.octets[:34] + b"\0\0" + shut.octets[36:])
    for wait in (1, 2, 4):
        talk.wait(wait * 1_000_000_000)
        talk.client(HEARTBEAT_FRAME, at=at)
    assert not told_of(talk.packets, "path-interrupted")


def test_a_message_that_a_cut_path_holds_up() -> None:
    """Its client is not at fault, and what it waits for is a result."""
    talk = cut()
    octets = Script(OPEN + "C1: basic.publish routing_key=q | body=1").packets[-1].octets
    talk.client(octets[: 8 + int.from_bytes(octets[3:7], "big")])
    talk.server()
    talk.wait(4_000_000_000)
    insist(talk, 1, HEARTBEAT_FRAME)
    talk.server(flags=wire.RST | wire.ACK)
    codes = "path-interrupted", "publish-incomplete", "message-stalled"
    rows = {row["code"]: row for row in told_of(talk.packets, *codes)}
    assert rows.keys() == {"path-interrupted", "publish-incomplete"}
    assert rows["path-interrupted"]["packet_number"] == len(talk.packets) - 4
    assert rows["publish-incomplete"]["cause_code"] == "disconnect-unclean"


def test_a_hung_client_is_not_a_cut_path() -> None:
    """Its host answers every segment, and the broker goes on sending heartbeats."""
    rows = told(OPEN + BROKER_SAYS * 2 + "@+5000ms RST S", "heartbeat-missed", "path-interrupted")
    assert [row["code"] for row in rows] == ["heartbeat-missed"]


def test_silent_programs_whose_hosts_answer() -> None:
    """While a window is closed no frame comes through, but packets do."""
    script = Script(OPEN)
    talk = wire.Talk(step_ns=1_000_000).hands()
    for packet in script.packets:
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    for _ in range(4):
        talk.wait(9_000_000_000)
        talk.client()
        talk.server()
    codes = {row["code"] for row in told_of(talk.packets, "heartbeat-missed", "path-interrupted")}
    assert codes == {"heartbeat-missed"}


@pytest.mark.parametrize("cause", ["connection-blocked"])
def test_a_block_is_no_cause_of_silence(cause: str) -> None:
    assert cause not in KINDS["heartbeat-missed"].causes
    assert cause not in KINDS["path-interrupted"].causes
