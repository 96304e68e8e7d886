"""Methods that a snap length cut: an argument that was not captured is not an empty one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from amqpsniff import Engine
from amqpsniff.session.rules.opening import CAPABILITIES
from tests.findings.cases import packets_of

IP_AND_TCP = 40

OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
CONFIRMING = OPEN + "C1: confirm.select\nS1: confirm.select-ok\n"
CONSUMING = OPEN + "C1: basic.qos prefetch_count=9\nS1: basic.qos-ok\n"
CONSUME = "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
PUBLISH = "C1: basic.publish routing_key=q | body=1\n"
DELIVER = "S1: basic.deliver consumer_tag=t delivery_tag={} routing_key=q | body=1\n"
CLOSE = "C1: channel.close reply_code=200\nS1: channel.close-ok\n"
THREE = CONSUMING + CONSUME + "".join(DELIVER.format(tag) for tag in (1, 2, 3))
Cuts = dict[int, int]


def cut(text: str, cuts: Cuts | None = None) -> Engine:
    """A script fed with some packets cut: bytes that are left, by the place from the end."""
    packets = packets_of(text)
    for place, octets in (cuts or {}).items():
        packets[place] = packets[place].cut(IP_AND_TCP + octets)
    engine = Engine()
    for packet in packets:
        engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type, packet.original)
    engine.finish()
    return engine


def found(text: str, cuts: Cuts | None = None) -> dict[str, Any]:
    rows = cut(text, cuts).take("findings").to_pylist()
    return {row["code"]: row["detail"] for row in rows}


DECLARED = "C1: queue.declare queue=q exclusive=1 arguments={}\nS1: queue.declare-ok queue=q\n"
POLLED = "C1: basic.consume queue=q no_ack=1 consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
REFUSED = "C1: basic.consume queue=q\nS1: channel.close reply_code=404 reply_text=no class_id=60 "

CLIENT = json.dumps({"capabilities": dict.fromkeys(CAPABILITIES, True)})

CASES: dict[str, tuple[str, Cuts]] = {
    "prefetch-unlimited": (OPEN + "C1: basic.qos prefetch_count=9\n" + CONSUME, {-3: 13}),
    "prefetch-unlimited ": (
        OPEN + REFUSED + "method_id=20\nC1: channel.close-ok",
        {-2: 15},
    ),
    "automatic-acknowledgement": (OPEN + DECLARED + POLLED, {-4: 15}),
    "automatic-acknowledgement ": (OPEN + DECLARED + POLLED, {-4: 14}),
    "reply-missing": (
        OPEN + "C1: queue.declare queue=q no_wait=1\n@+9000ms C1: basic.publish | body=1\n",
        {-2: 15},
    ),
    "operation-destructive": (
        OPEN + DECLARED + "C1: queue.delete queue=amq.gen-x\nS1: queue.delete-ok",
        {-2: 16},
    ),
    "message-unroutable": (
        OPEN + "S1: basic.return reply_code=312 reply_text=NO_ROUTE "
        "routing_key=amq.rabbitmq.reply-to.x | body=0",
        {-1: 26},
    ),
    "capabilities-missing": (f"handshake client='{CLIENT}'", {-5: 30}),
    "connection-unnamed": ('handshake client=\'{"connection_name": "p"}\'', {-5: 30}),
    "publishes-in-doubt": (
        CONFIRMING + PUBLISH + "S1: basic.ack delivery_tag=1\n" + CLOSE,
        {-3: 17},
    ),
    "publishes-in-doubt ": (
        CONFIRMING + PUBLISH + "S1: basic.ack delivery_tag=1\n" + CLOSE,
        {-3: 10},
    ),
    "deliveries-in-doubt": (THREE + "C1: basic.ack delivery_tag=3 multiple=1\n" + CLOSE, {-3: 19}),
    "acknowledgement-invalid": (
        CONSUMING + CONSUME + DELIVER.format(1) + "C1: basic.ack delivery_tag=1\n" + CLOSE,
        {-4: 16},
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_what_was_cut_is_not_empty(code: str) -> None:
    text, cuts = CASES[code]
    assert code.strip() not in found(text)
    assert code.strip() not in found(text, cuts)


REPEATED = OPEN + "".join(
    f"C1: queue.bind queue=q routing_key=key{place:02}\nS1: queue.bind-ok\n" for place in range(30)
)


def test_declarations_that_are_alike_only_where_they_were_cut() -> None:
    assert "declaration-repeated" not in found(REPEATED)
    assert "declaration-repeated" not in found(REPEATED, {-2 * n: 16 for n in range(1, 31)})


def test_it_is_said_once_that_an_answer_was_cut() -> None:
    text = CONFIRMING + PUBLISH + "S1: basic.ack delivery_tag=1\n" + CLOSE
    assert "capture-inconclusive" not in found(text)
    for octets in (10, 12, 18):
        assert (
            "frames or arguments are missing" in found(text, {-3: octets})["capture-inconclusive"]
        )


def test_a_publish_that_a_close_answers_whose_method_was_cut() -> None:
    refusal = "S1: channel.close reply_code=404 reply_text=no class_id=60 method_id=40\n"
    text = CONFIRMING + PUBLISH + refusal + "C1: channel.close-ok"
    assert "publishes-in-doubt" not in found(text)
    assert "publishes-in-doubt" not in found(text, {-2: 15})
    assert "publishes-in-doubt" in found(text.replace(PUBLISH, PUBLISH * 2), {-2: 15})


def test_a_reason_that_was_cut_is_not_missing() -> None:
    text = "handshake\nS: connection.close reply_code=501 reply_text=bad\nC: connection.close-ok"
    assert found(text)["connection-closed-by-broker"].startswith("501 bad")
    assert found(text, {-2: 14})["connection-closed-by-broker"].startswith(
        "501 FRAME_ERROR, reason not captured"
    )
    text = "handshake\nS: connection.blocked reason=low"
    assert found(text)["connection-blocked"].startswith("low")
    assert found(text, {-1: 12})["connection-blocked"].startswith("reason not captured")


# outcomes


def outcomes(text: str, cuts: Cuts | None = None) -> list[str | None]:
    rows = cut(text, cuts).take("messages").to_pylist()
    return [row["outcome"] for row in rows]


def depths(text: str, cuts: Cuts | None = None) -> list[int | None]:
    (row,) = cut(text, cuts).take("channels").to_pylist()
    return [row[f"{kind}_end"] for kind in ("unconfirmed", "unsettled")]


TWO = CONFIRMING + PUBLISH * 2


@pytest.mark.parametrize(
    ("text", "cuts", "expected"),
    [
        (TWO + "S1: basic.ack delivery_tag=1\n", {}, ["confirmed", "unconfirmed"]),
        (TWO + "S1: basic.ack delivery_tag=1\n", {-1: 17}, [None, None]),
        (TWO + "S1: basic.ack delivery_tag=1\n", {-1: 19}, ["confirmed", "unconfirmed"]),
        (TWO + "S1: basic.ack delivery_tag=2\n", {-1: 19}, [None, "confirmed"]),
        (
            TWO + "S1: basic.nack delivery_tag=1\nS1: basic.ack delivery_tag=2 multiple=1\n",
            {-2: 17},
            [None, "confirmed"],
        ),
        (TWO + "S1: basic.ack delivery_tag=2\n" + PUBLISH, {-2: 12}, [None, None, "unconfirmed"]),
        (THREE + "C1: basic.ack delivery_tag=2\n", {}, ["unsettled", "acked", "unsettled"]),
        (THREE + "C1: basic.ack delivery_tag=2\n", {-1: 19}, [None, "acked", "unsettled"]),
        (THREE + "C1: basic.ack delivery_tag=2\n", {-1: 17}, [None, None, None]),
        (
            THREE + "C1: basic.reject delivery_tag=1\nC1: basic.ack delivery_tag=3 multiple=1\n",
            {-2: 19},
            [None, "acked", "acked"],
        ),
        (
            THREE + "C1: basic.reject delivery_tag=1\nC1: basic.ack delivery_tag=3 multiple=1\n",
            {-2: 17},
            [None, None, "acked"],
        ),
        (THREE + "C1: basic.recover requeue=1\n", {-1: 11}, [None, None, None]),
        (
            CONFIRMING + "C1: basic.publish routing_key=q mandatory=1 | body=1\n"
            "S1: basic.return reply_code=312 reply_text=NO_ROUTE routing_key=q | body=1\n"
            "S1: basic.ack delivery_tag=1\n",
            {-2: 23},
            [None, None],
        ),
    ],
)
def test_outcomes(text: str, cuts: Cuts, expected: list[str | None]) -> None:
    assert outcomes(text, cuts) == expected


def test_depths() -> None:
    text = TWO + "S1: basic.ack delivery_tag=1\n"
    assert depths(text) == [1, 0]
    assert depths(text, {-1: 17}) == [None, 0]
    text = THREE + "C1: basic.ack delivery_tag=2\n"
    assert depths(text) == [0, 2]
    assert depths(text, {-1: 17}) == [0, None]


def test_a_consumer_of_a_queue_whose_name_was_cut() -> None:
    text = OPEN + "C1: queue.declare queue=other\nS1: queue.declare-ok queue=other\n" + CONSUME
    text += DELIVER.format(1)
    for cuts, queue in ({}, "q"), ({-3: 14}, None):
        (row,) = cut(text, cuts).take("messages").to_pylist()
        assert row["queue"] == queue
