"""Requests and replies whose ids frameworks keep in headers or bodies are linked, and followed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from amqpsniff import Engine
from tests.session import script as scripts
from tests.session.script import Script


def table(**values: Any) -> str:
    return json.dumps(values, separators=(",", ":"))


def body(**values: Any) -> str:
    """A body; words of a script have no blanks."""
    return "body='text:" + json.dumps(values, separators=(",", ":")) + "'"


def headers(**values: Any) -> str:
    return f"body=1 headers='{table(**values)}'"


ASKED = table(method="m", _msg_id="r1", _reply_q="q")
"""What oslo.messaging has in a body as a text."""

OPENING = ("handshake", "C1: channel.open", "S1: channel.open-ok")

MESSAGES: dict[str, tuple[str, str, str]] = {
    "masstransit": (
        body(messageType=["urn:message:A:B"], destinationAddress="x", requestId="r1",
             responseAddress="rabbitmq://host/bus-1?temporary=true"),
        body(messageType=["urn:message:A:C"], destinationAddress="x", requestId="r1",
             responseAddress=None),
        body(messageType=["urn:message:A:C"], destinationAddress="x", requestId="r2",
             responseAddress=None),
    ),
    "oslo.messaging": (
        body(**{"oslo.version": "2.0", "oslo.message": ASKED}),
        body(**{"oslo.version": "2.0", "oslo.message": table(result=1, _msg_id="r1")}),
        body(**{"oslo.version": "2.0", "oslo.message": table(result=1, _msg_id="r2")}),
    ),
    "nservicebus": (
        headers(**{"NServiceBus.MessageId": "r1", "NServiceBus.ReplyToAddress": "q",
                   "NServiceBus.MessageIntent": "Send"}),
        headers(**{"NServiceBus.MessageId": "r9", "NServiceBus.RelatedTo": "r1",
                   "NServiceBus.MessageIntent": "Reply"}),
        headers(**{"NServiceBus.MessageId": "r9", "NServiceBus.RelatedTo": "r1",
                   "NServiceBus.MessageIntent": "Publish"}),
    ),
    "rebus": (
        headers(**{"rbs2-msg-id": "r1", "rbs2-return-address": "q", "rbs2-intent": "p2p"}),
        headers(**{"rbs2-msg-id": "r9", "rbs2-in-reply-to": "r1", "rbs2-intent": "p2p"}),
        headers(**{"rbs2-msg-id": "r9", "rbs2-in-reply-to": "r2", "rbs2-intent": "p2p"}),
    ),
    "celery-control": (
        body(method="ping", arguments={}, ticket="r1", reply_to={"routing_key": "k"}),
        headers(ticket="r1"),
        headers(ticket="r2"),
    ),
}  # fmt: skip
"""A request, its reply, and what is nearly one."""


def linked(framework: str, second: str) -> list[dict[str, Any]]:
    """Links of two publishes on two connections."""
    to = "exchange=celery.pidbox" if framework == "celery-control" else "exchange=x"
    back = "exchange=reply.celery.pidbox" if framework == "celery-control" else "exchange=y"
    script = Script()
    for line in (
        *(f"{name}.{step}" for name in "ab" for step in OPENING),
        f"a.C1: basic.publish {to} | {MESSAGES[framework][0]}",
        f"@+20ms b.C1: basic.publish {back} routing_key=z | {second}",
    ):  # fmt: skip
        script.add(line)
    engine: Engine = scripts.feed(script).engine
    return engine.take("messages").to_pylist()


@pytest.mark.parametrize("framework", MESSAGES)
def test_reply(framework: str) -> None:
    request, reply = linked(framework, MESSAGES[framework][1])
    assert request["request_packet_number"] is None
    assert reply["request_packet_number"] == request["packet_number"]
    assert reply["request_ns"] >= 20_000_000


@pytest.mark.parametrize("framework", MESSAGES)
def test_what_is_no_reply(framework: str) -> None:
    request, other = linked(framework, MESSAGES[framework][2])
    assert request["request_packet_number"] is None
    assert other["request_packet_number"] is None


CLIENTS = {
    "masstransit": ("client_api", "MassTransit", "bus-1"),
    "oslo.messaging": ("product", "py-amqp", "q"),
    "nservicebus": ("client_api", "NServiceBus", "q"),
    "rebus": ("Type", "Rebus/.NET", "q"),
    "celery-control": ("product", "py-amqp", "k.reply.celery.pidbox"),
}
"""What recognises a client, and the queue of its replies."""


def found(framework: str, second: str, lines: tuple[str, ...] = (), ms: int = 20) -> set[str]:
    """Findings about a request that waits for a reply; two before it were answered. The reply is
    delivered after other `lines`, `ms` later.

    Their ids are among those that are followed of frameworks whose requests need no reply.
    """
    script = Script()
    name, value, queue = CLIENTS[framework]
    first, answer, _ = MESSAGES[framework]
    to = "celery.pidbox" if framework == "celery-control" else "x"
    before = [one.replace("r1", id_) for id_ in ("r13", "r18") for one in (first, answer)]
    first, second = (one.replace("r1", "r5") for one in (first, second))
    for line in (
        f"handshake client='{table(**{name: value})}'", *OPENING[1:],
        f"C1: basic.consume queue={queue} consumer_tag=c", "S1: basic.consume-ok consumer_tag=c",
        *(f"C1: basic.publish exchange={to} | {one}" for one in before),
        f"C1: basic.publish exchange={to} | {first}",
        *lines,
        f"@+{ms}ms S1: basic.deliver exchange={to} delivery_tag=1 consumer_tag=c | {second}",
        "@+11000ms C1: basic.ack delivery_tag=1",
    ):  # fmt: skip
        script.add(line)
    return {one.code for one in scripts.feed(script).engine.findings()}


@pytest.mark.parametrize("framework", MESSAGES)
def test_a_request_without_a_reply_is_found(framework: str) -> None:
    _, reply, other = MESSAGES[framework]
    assert "rpc-unanswered" not in found(framework, reply)
    assert "rpc-unanswered" in found(framework, other)


@pytest.mark.parametrize("framework", MESSAGES)
def test_a_late_reply_after_what_is_missing(framework: str) -> None:
    """The first reply may be there: several have the same key."""
    reply = MESSAGES[framework][1]
    assert "rpc-slow" not in found(framework, reply)
    assert "rpc-slow" in found(framework, reply, ms=10_001)
    assert "rpc-slow" not in found(framework, reply, ("GAP S 100",), 10_001)
