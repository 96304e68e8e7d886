"""Traces of requests: each with its delivery and its reply, whatever protocol carries them."""

from __future__ import annotations

import pytest

import amqpsniff
from amqpsniff.analysis.trace import TracedMessage
from tests.conftest import REPO

CAPTURES = REPO / "tests" / "captures"


def senders(message: TracedMessage) -> list[str]:
    """The side that sent each of its rows."""
    return [row["sender"] for row in message.rows]


@pytest.mark.parametrize("name", ["amqp10/rpc.pcap", "../../samples/aiopika_rpc.pcap"])
def test_a_request_and_its_reply_go_through_the_broker(name: str) -> None:
    capture = amqpsniff.open(CAPTURES / name)
    columns = ["correlation_id", "sender", "reply_to"]
    rows = capture.table("messages", columns=columns).to_pylist()
    asked = [row["correlation_id"] for row in rows if row["reply_to"] and row["sender"] == "client"]
    for correlation_id in asked[:3]:
        (request,) = capture.trace(correlation_id=correlation_id)
        (reply,) = request.replies
        assert senders(request) == ["client", "server"]
        assert senders(reply) == ["client", "server"]
    assert asked


def test_a_reply_to_an_address_of_rabbitmq() -> None:
    """`/queues/NAME` with a name that is percent-encoded, as RabbitMQ 4 gives it."""
    capture = amqpsniff.open(CAPTURES / "amqp10" / "rabbitmq43_direct_replies.pcap.gz")
    (request,) = capture.trace(message_id="r1")
    (reply,) = request.replies
    assert request.rows[0]["reply_to"].endswith("%3D%3D")
    assert reply.rows[0]["routing_key"].endswith("==")
    assert [senders(request), senders(reply)] == 2 * [["client", "server"]]
