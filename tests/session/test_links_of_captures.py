"""Links in real captures: true ones, only where they are wanted, and the same in any batches."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import pytest

import amqpsniff
from amqpsniff.limits import Limits
from amqpsniff.tables.batches import Maker, plan_for
from amqpsniff.tables.schema import EVERYTHING, LINKED
from tests.conftest import CAPTURES, SAMPLES

EVERY = EVERYTHING["messages"].names


@pytest.mark.parametrize(
    "name", ["aiopika_rpc.pcap", "kombu.pcap.gz", "node.pcap", "pika_mix.pcap", "bunny.pcapng"]
)
def test_links_are_true(name: str) -> None:
    """Every match that is sure has the body of its publish, and every delivery is matched."""
    with amqpsniff.open(SAMPLES / name, body_sha256=True) as capture:
        rows = capture.table("messages", columns=EVERY).to_pylist()
    bodies = defaultdict(set)
    for row in rows:
        if row["method"] == "basic.publish":
            bodies[row["connection_id"], row["packet_number"]].add(row["body_sha256"])
    delivered = [row for row in rows if row["method"] in ("basic.deliver", "basic.get-ok")]
    assert delivered
    for row in delivered:
        publish = row["published_connection_id"], row["published_packet_number"]
        assert row["link_confidence"] in ("exact", "likely")
        assert row["body_sha256"] in bodies[publish]
        assert row["published_ns"] > 0
        assert (row["delivery_number"] is None) == row["redelivered"]


def test_headers_in_another_order_are_linked() -> None:
    """RabbitMQ 4.3 sorts headers by name: classic and quorum queue, messages without id and with."""
    path = CAPTURES / "own" / "rabbitmq43_headers.pcap"
    rows = amqpsniff.open(path).table("messages", columns=EVERY).to_pylist()
    published = defaultdict(list)
    for row in rows:
        if row["method"] == "basic.publish":
            published[row["packet_number"]].append(json.loads(row["headers"] or "{}"))
    delivered = [row for row in rows if row["method"] == "basic.deliver"]
    assert len(delivered) == 20
    assert sum(row["link_confidence"] == "exact" for row in delivered) == 10
    for row in delivered:
        assert (row["link_confidence"] == "exact") == (row["message_id"] is not None)
        assert json.loads(row["headers"] or "{}") in published[row["published_packet_number"]]


def test_real_calls() -> None:
    """aio-pika: requests and replies by correlation id, found apart from the tracker."""
    rows = amqpsniff.open(SAMPLES / "aiopika_rpc.pcap").table("messages", columns=EVERY).to_pylist()
    requests = {
        row["correlation_id"]: row
        for row in rows
        if row["method"] == "basic.publish" and row["reply_to"]
    }
    replies = [row for row in rows if row["request_packet_number"] is not None]
    assert Counter(row["method"] for row in replies) == {"basic.publish": 60, "basic.deliver": 60}
    for row in replies:
        request = requests[row["correlation_id"]]
        assert row["request_packet_number"] == request["packet_number"]
        assert row["request_connection_id"] == request["connection_id"]
        assert row["request_ns"] == row["ts_ns"] - request["ts_ns"]
        assert row["reply_late"] is False
    assert {row["correlation_id"] for row in replies} == set(requests)


def test_nothing_is_linked_that_nobody_asked_for() -> None:
    """Columns chosen without links: the same rows, and no work for them."""
    chosen = [name for name in EVERY if name not in LINKED]
    every = amqpsniff.open(SAMPLES / "node.pcap").table("messages", columns=EVERY)
    few = amqpsniff.open(SAMPLES / "node.pcap").table("messages", columns=chosen)
    assert few.equals(every.select(chosen))
    assert not plan_for([Maker("messages", columns=chosen)]).links
    assert plan_for([Maker("messages", columns=EVERY)]).links


def test_batches_do_not_matter() -> None:
    """Rows given out in small batches have the links that those of one large one have."""
    whole, small = (
        amqpsniff.open(SAMPLES / "aiopika_rpc.pcap", limits=limits).table("messages", columns=EVERY)
        for limits in (Limits(), Limits(rows_per_batch=5))
    )
    assert small.to_pylist() == whole.to_pylist()
