# ruff: noqa: E501 (one packet, one line)
"""How connections are opened: slow, refused, with limits that the broker does not take."""

from __future__ import annotations

import pytest

import amqpsniff
from amqpsniff.findings import KINDS
from tests.conftest import CAPTURES, SAMPLES
from tests.findings.cases import packets_of
from tests.findings.pairs_of_links import opening, said
from tests.session.rules.found import of_capture
from tests.session.rules.telling import one, several, told, told_of
from tests.session.script import Script
from tests.tcp.wire import ACK, SYN, Packet, Talk

START = "hello\nS: connection.start version_minor=9 mechanisms=PLAIN\n"
LOGIN = START + "C: connection.start-ok mechanism=PLAIN response='\\0joe\\0secret'\n"
TUNED = LOGIN + "S: connection.tune channel_max=2047 frame_max=131072 heartbeat=60\n"
ASKED = TUNED + "C: connection.tune-ok channel_max=2047 frame_max=131072 heartbeat=60\n"
OPEN = ASKED + "C: connection.open virtual_host=shop\n"


def test_a_login_that_takes_long() -> None:
    text = (OPEN + "S: connection.open-ok").replace(
        "S: connection.tune", "@+2500ms S: connection.tune"
    )
    row = one(text, "handshake-slow")
    assert "2.50 s of it for the broker's connection.tune" in row["detail"]


@pytest.mark.parametrize(("ms", "cause"), [(1000, "handshake-slow"), (1001, None)])
def test_a_slow_handshake_that_succeeded_is_no_cause_of_a_later_end(
    ms: int, cause: str | None
) -> None:
    slow = OPEN.replace("S: connection.tune", "@+2500ms S: connection.tune")
    text = f"{slow}S: connection.open-ok\n@+{ms}ms RST C"
    assert one(text, "disconnect-unclean")["cause_code"] == cause
    assert one(text, "handshake-slow")
    first = opening()
    opened = said(first[:3], (*first[3], 2500), first[4:], ("C", "RST", ms - 2))
    slow_one, end = told_of(packets_of(opened), "handshake-slow", "disconnect-unclean")
    assert (slow_one["code"], end["cause_code"]) == ("handshake-slow", cause)


@pytest.mark.parametrize("ms", [1, 400])
def test_a_long_way_is_no_slow_handshake(ms: int) -> None:
    text = (OPEN + "S: connection.open-ok").replace("S:", f"@+{ms}ms S:")
    assert not told(text, "handshake-slow")


def test_syns_that_the_network_lost() -> None:
    path = CAPTURES / "cases" / "syn_lost.pcap.gz"
    rows = [row for row in of_capture(path) if row["code"] == "handshake-slow"]
    assert [row["detail"].split(": ") for row in rows] == [
        [f"{took} until connection.open-ok, {tcp} of it until TCP was connected", again]
        for took, tcp, again in (
            ("1.02 s", "1.01 s", "1 SYN was sent again"),
            ("5.11 s", "5.11 s", "5 SYNs were sent again"),
        )
    ]
    assert amqpsniff.open(path).summary()["quality"]["retransmissions"] == 6


def _connected(*hands: tuple[int, int, int], identified: bool = True) -> list[Packet]:
    """A login behind SYNs and their answers: who sends one, how many ms later, and in which IP
    packet of the sender.
    """
    talk = Talk(step_ns=1000)
    for side, wait_ms, number in hands:
        talk.wait(wait_ms * 1_000_000)
        packet = talk.put(side, flags=SYN | ACK if side else SYN)
        octets = packet.octets
        named = number.to_bytes(2, "big") if identified else b"\0\0"
        octets = octets[:4] + named + octets[6:]
        talk.packets[-1] = packet._replace(octets=octets)
    talk.client()
    for packet in Script(OPEN + "S: connection.open-ok").packets:
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    return talk.packets


@pytest.mark.parametrize(("hands", "detail"), [
    ([(0, 0, 1), (1, 0, 1)], ""),
    ([(0, 0, 1), (0, 999, 2), (1, 0, 1)], ""),
    ([(0, 0, 1), (0, 1000, 1), (1, 0, 1)], ""),  # a copy
    ([(0, 0, 1), (1, 1500, 1)], ""),  # a long way
    ([(0, 0, 1), (0, 0, 1), (0, 1000, 2), (0, 0, 2), (1, 0, 1)], "1 SYN was sent again"),
    ([(0, 0, 1), (0, 1000, 2), (0, 2000, 3), (1, 0, 1)], "2 SYNs were sent again"),
    ([(0, 0, 1), (1, 0, 1), (1, 1000, 2)], "1 answer to the SYN was sent again"),
])  # fmt: skip
def test_how_often_syns_were_sent(hands: list[tuple[int, int, int]], detail: str) -> None:
    rows = told_of(_connected(*hands), "handshake-slow")
    assert [row["detail"].partition("connected: ")[2] for row in rows] == [detail] * bool(detail)


@pytest.mark.parametrize(("wait_ms", "number"), [(199, 0), (1000, 1)])
def test_syns_without_identification(wait_ms: int, number: int) -> None:
    """Those that are near in time are copies."""
    packets = _connected((0, 0, 1), (0, wait_ms, 2), (1, 1000 - wait_ms, 1), identified=False)
    assert len(told_of(packets, "handshake-slow")) == number


def test_a_broker_that_gives_up() -> None:
    row = one(START + "@+9990ms FIN S", "handshake-slow")
    assert (
        row["detail"]
        == "the broker gave up after 9.99 s, waiting for the client's connection.start-ok"
    )
    assert not told(START + "@+9990ms FIN C", "handshake-slow")


def test_a_login_refused_with_a_close() -> None:
    row = one(
        LOGIN + "S: connection.close reply_code=403 reply_text='ACCESS_REFUSED - no'",
        "authentication-failed",
    )
    assert row["detail"] == "user 'joe' from 10.0.0.1 in packet 6: 403 ACCESS_REFUSED - no"
    assert row["packet_number"] == 4
    assert not told(LOGIN + "S: connection.close reply_code=403", "connection-closed-by-broker")


def test_a_login_refused_without_a_word() -> None:
    row = one(LOGIN + "@+2900ms FIN S", "authentication-failed")
    assert row["packet_number"] == 3
    assert row["detail"].startswith(
        "user 'joe' from 10.0.0.1 with PLAIN in packet 6: the broker ended TCP 2.90 s later"
    )
    assert "secret" not in row["detail"]


@pytest.mark.parametrize(
    "end", ["@+2900ms FIN C", "@+7000ms RST S", "S: connection.tune\nFIN S", "GAP S 10"]
)
def test_logins_that_may_not_have_been_refused(end: str) -> None:
    assert not told(LOGIN + end, "authentication-failed")


def test_who_is_told_of_refused_logins_was_not_refused_without_a_word() -> None:
    properties = '{"capabilities": {"authentication_failure_close": true}}'
    text = LOGIN.replace("start-ok ", f"start-ok client_properties='{properties}' ")
    assert not told(text + "@+2900ms FIN S", "authentication-failed")


def test_a_virtual_host_that_is_not_there() -> None:
    close = "S: connection.close reply_code=530 reply_text='NOT_ALLOWED - vhost shop not found' class_id=10 method_id=40"
    row = one(OPEN + close, "vhost-refused")
    assert row["detail"].endswith("vhost shop not found; answer to connection.open in packet 9")
    assert not told(OPEN + close, "limit-reached", "connection-closed-by-broker")


@pytest.mark.parametrize("text", [
    "NOT_ALLOWED - access to vhost shop refused for user joe: connection limit (0) is reached",
    "NOT_ALLOWED - number of channels opened (1) has reached the negotiated channel_max (1)",
])  # fmt: skip
def test_limits(text: str) -> None:
    close = f"S: connection.close reply_code=530 reply_text='{text}' class_id=10 method_id=40"
    assert one(OPEN + close, "limit-reached")["detail"].startswith("530 " + text)
    assert not told(OPEN + close, "vhost-refused", "connection-closed-by-broker")


@pytest.mark.parametrize(("asked", "said"), [
    ("channel_max=65535 frame_max=131072", "channel-max 65535 where the broker offers 2047"),
    ("channel_max=0 frame_max=131072", "channel-max 0 (no limit) where the broker offers 2047"),
    ("channel_max=10 frame_max=1048576", "frame-max 1048576 where the broker offers 131072"),
    ("channel_max=10 frame_max=1000", "frame-max 1000 where 4096 is the least"),
])  # fmt: skip
def test_limits_that_the_broker_does_not_take(asked: str, said: str) -> None:
    row = one(TUNED + f"[ok] C: connection.tune-ok {asked}\n@+3000ms RST S", "tuning-rejected")
    assert row["detail"] == "tune-ok has " + said
    assert row["packet_number"] == 5


def test_limits_that_the_broker_takes() -> None:
    text = (
        TUNED
        + "C: connection.tune-ok channel_max=0 frame_max=0\nC: connection.open virtual_host=/\n"
    )
    assert not told(text + "S: connection.open-ok\nRST S", "tuning-rejected")
    assert not told(ASKED + "@+3000ms RST S", "tuning-rejected")


def test_what_a_client_does_not_say() -> None:
    row = one(
        'handshake client=\'{"product": "p", "capabilities": {"basic.nack": true}}\'',
        "capabilities-missing",
    )
    assert row["detail"] == (
        "p does not announce connection.blocked (an alarm that stops publishing looks like silence), "
        "consumer_cancel_notify (a consumer that the broker cancels looks like an empty queue), "
        "authentication_failure_close (a refused login looks like a broken connection), "
        "publisher_confirms (it may not know confirms)"
    )
    capabilities = "connection.blocked consumer_cancel_notify authentication_failure_close basic.nack publisher_confirms"
    every = ", ".join(f'"{name}": true' for name in capabilities.split())
    named = '{"connection_name": "orders", "capabilities": {' + every + "}}"
    text = f"handshake client='{named}'"
    assert not told(text, "capabilities-missing", "connection-unnamed")


def test_only_what_is_lacking_is_named() -> None:
    """py-amqp announces what tells it of alarms, cancelled consumers and refused logins."""
    rows = [
        one
        for one in of_capture(SAMPLES / "kombu.pcap.gz")
        if one["code"] == "capabilities-missing"
    ]
    assert [row["detail"] for row in rows] == [
        (
            "py-amqp does not announce basic.nack (it may not understand that a publish is refused), "
            "publisher_confirms (it may not know confirms)"
        )
    ]
    for word in ("alarm", "cancel", "login"):
        assert (
            word not in KINDS["capabilities-missing"].title + KINDS["capabilities-missing"].advice
        )


def test_connections_without_a_name_are_one_finding() -> None:
    row = one(several('c{n}.handshake client=\'{"product": "p"}\'', 5), "connection-unnamed")
    assert row["detail"] == "p sets no connection_name"
    assert row["count"] == 5


ASKED_FIRST = """
hello
S: connection.start
C: connection.start-ok
S: connection.tune
C: connection.open
"""


def test_clients_that_say_nothing_of_themselves() -> None:
    missing = one("handshake client='{}'", "capabilities-missing")["detail"]
    assert missing.startswith("user 'guest' from 10.0.0.1 does not announce connection.blocked (")
    unnamed = one("handshake client='{}'", "connection-unnamed")["detail"]
    assert unnamed == "user 'guest' from 10.0.0.1 sets no connection_name"


def test_open_before_tune_ok() -> None:
    refused = ASKED_FIRST + "S: connection.close reply_code=503 reply_text=COMMAND_INVALID"
    row = one(refused, "handshake-out-of-order")
    wanted = "the client sent connection.open where connection.tune-ok was to come"
    assert (row["packet_number"], row["detail"]) == (5, wanted)
    assert one(ASKED_FIRST + "FIN S", "handshake-out-of-order")["packet_number"] == 5


def test_open_in_the_packet_of_another_step() -> None:
    asked = ASKED_FIRST.replace("S: connection.tune\nC: connection.open", "& C: connection.open")
    refused = asked + "S: connection.close reply_code=503 reply_text=COMMAND_INVALID"
    wanted = (
        "the client sent connection.open where connection.secure or connection.tune was to come"
    )
    assert one(refused, "handshake-out-of-order")["detail"] == wanted


def test_directions_that_seem_out_of_step() -> None:
    """The packets of one direction were captured late, and the connection was opened."""
    opened = ASKED_FIRST + "C: connection.tune-ok\nS: connection.open-ok\nFIN C"
    assert told(opened, "handshake-out-of-order") == []


# bounds


@pytest.mark.parametrize(("waits", "slow"), [
    ((0, 1001, 0, 0, 0), "1.00 s of it for the client's connection.start-ok"),
    ((0, 1000, 0, 0, 0), ""),  # 999 ms more than its quickest
    ((400, 400, 1400, 400, 400), "1.40 s of it for the broker's connection.tune"),
    ((400, 400, 1399, 400, 400), ""),
    ((1001, 1001, 1001, 1001, 1001), ""),  # a long way
    ((1500, 1, 2600, 1, 1), "2.60 s of it for the broker's connection.tune"),
    ((1, 1, 1, 1, 1, 1500), "1.50 s of it for the broker's connection.open-ok"),
    ((1, 1, 1, 1, 1500, 1), "1.50 s of it for the client's connection.open"),
    ((1, 1200, 1, 1200, 1, 1), ""),  # a long way to the client, who does not wait to say open
])  # fmt: skip
def test_which_step_is_slow(waits: tuple[int, ...], slow: str) -> None:
    """A step's time beyond the quickest of its side; where the last is left out, as the first."""
    lines = (OPEN + "S: connection.open-ok").splitlines()
    text = "\n".join([lines[0], *(f"@+{ms or 1}ms {line}" for ms, line in
                                 zip((*waits, waits[0])[:6], lines[1:], strict=True))])  # fmt: skip
    details = [row["detail"] for row in told(text, "handshake-slow")]
    assert [one.partition("open-ok, ")[2] for one in details] == ([slow] if slow else [])


def test_a_slow_handshake_that_was_captured_in_part() -> None:
    slow = (OPEN + "S: connection.open-ok").replace(
        "S: connection.tune", "@+2500ms S: connection.tune"
    )
    for text in (
        slow.replace("hello\n", "midstream\n"),
        slow.replace("C: connection.open ", "GAP S 20\nC: connection.open "),
        "\n".join(line for line in slow.splitlines() if "tune-ok" not in line),
    ):
        assert not told(text, "handshake-slow")


@pytest.mark.parametrize(("text", "whose"), [
    (LOGIN + "@+9990ms FIN S", "its own connection.tune"),
    (TUNED + "@+9990ms FIN S", "the client's connection.tune-ok"),
    (OPEN + "@+9990ms FIN S", "its own connection.open-ok"),
])  # fmt: skip
def test_whom_a_broker_waited_for(text: str, whose: str) -> None:
    assert one(text, "handshake-slow")["detail"].endswith(f"waiting for {whose}")


@pytest.mark.parametrize(("ms", "gave_up"), [(7998, False), (7999, True)])
def test_how_long_a_broker_is_patient(ms: int, gave_up: bool) -> None:
    """Since the connection began, a millisecond before its first word."""
    assert bool(told(START + f"@+{ms}ms FIN S", "handshake-slow")) is gave_up


@pytest.mark.parametrize("text", [
    "hello\n@+9990ms FIN S",  # it said nothing at all
    LOGIN.replace(START, "hello\n") + "@+2900ms FIN S",
    OPEN + "S: connection.close reply_code=320\n@+9990ms FIN S",
    OPEN + "S: connection.open-ok\n@+9990ms FIN S",
])  # fmt: skip
def test_ends_that_are_no_lost_patience(text: str) -> None:
    assert not told(text, "handshake-slow", "authentication-failed")


def test_how_long_a_broker_takes_to_refuse_a_login() -> None:
    assert told(LOGIN + "@+5000ms FIN S", "authentication-failed")
    assert not told(LOGIN + "@+5001ms FIN S", "authentication-failed")


@pytest.mark.parametrize(("asked", "version", "fails"), [
    (4095, "4.0.9", True), (4096, "4.0.9", False), (8191, "4.1.0", True), (8192, "4.1.0", False),
    (8191, "", False), (1, "4.0.9", True),
])  # fmt: skip
def test_the_smallest_frames(asked: int, version: str, fails: bool) -> None:
    server = f'{{"product": "RabbitMQ", "version": "{version}"}}'
    text = TUNED.replace("version_minor=9", f"version_minor=9 server_properties='{server}'")
    text += f"C: connection.tune-ok channel_max=9 frame_max={asked}\nFIN S"
    assert bool(told(text, "tuning-rejected")) is fails
    other = text.replace("RabbitMQ", "Another")
    assert bool(told(other, "tuning-rejected")) is (asked < 4096)


def test_what_the_broker_does_not_limit() -> None:
    """0 stands for no limit."""
    text = TUNED.replace("2047", "0").replace("131072", "0")
    text += "C: connection.tune-ok channel_max=9 frame_max=9999999\nFIN S"
    assert not told(text, "tuning-rejected")
    assert not told(text.replace("9999999", "0"), "tuning-rejected")


def test_who_ended_what_was_asked_for_too_much() -> None:
    asked = TUNED + "C: connection.tune-ok channel_max=65535 frame_max=131072\n"
    closed = "S: connection.close reply_code=530 reply_text=NOT_ALLOWED\n"
    assert one(asked + closed, "tuning-rejected")["packet_number"] == 5
    assert not told(asked + "FIN C", "tuning-rejected")
    assert not told(asked + closed.replace("S:", "C:"), "tuning-rejected")


def test_steps_that_are_cut_short() -> None:
    """What was not captured of them is no reason to object, nor a login that was refused."""
    packets = packets_of(ASKED + "@+2900ms FIN S")
    for place, packet in enumerate(packets):
        for length in range(54, len(packet.octets)):
            cut = packet._replace(octets=packet.octets[:length], original=len(packet.octets))
            rows = told_of([*packets[:place], cut, *packets[place + 1 :]], "tuning-rejected")
            assert rows == []


@pytest.mark.parametrize("text", [
    ASKED_FIRST.replace("hello", "midstream") + "S: connection.close reply_code=503",
    ASKED_FIRST + "GAP S 20\nS: connection.close reply_code=503",
    ASKED_FIRST + "FIN C",
    ASKED_FIRST.replace("S: connection.start\n", "") + "S: connection.close reply_code=503",
    OPEN + "S: connection.close reply_code=320\nC: connection.open\nFIN S",
])  # fmt: skip
def test_orders_that_nobody_objected_to_or_that_are_not_known(text: str) -> None:
    assert not told(text, "handshake-out-of-order")
