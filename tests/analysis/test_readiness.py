"""Each change of newer brokers with traffic that it concerns, and with traffic that it does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import amqpsniff
from amqpsniff.analysis.readiness import COLUMNS, MAX_USES, Affected, review
from amqpsniff.errors import UsageError
from amqpsniff.spec.version_changes import EFFECTS, VERSION_CHANGES, VERSIONS
from amqpsniff.tables.schema import EVERYTHING
from tests.conftest import OWN, SAMPLES

HALF_AN_HOUR = 1_800_000_000_000


def rows(table: str, *given: dict[str, Any]) -> tuple[str, pa.RecordBatch]:
    """A batch of a table with these rows; what a row does not name is null."""
    names = COLUMNS[table]
    schema = pa.schema([EVERYTHING[table].field(name) for name in names])
    filled = [
        dict.fromkeys(names) | {"connection_id": "a", "packet_number": 7} | row for row in given
    ]
    return table, pa.RecordBatch.from_pylist(
        [{name: row[name] for name in names if name in row} for row in filled], schema
    )


def method(name: str, **arguments: Any) -> tuple[str, pa.RecordBatch]:
    return rows("frames", {"method": name, "arguments": json.dumps(arguments)})


def declared(durable: bool | None = True, exclusive: bool | None = False, **table: Any) -> Any:
    given = {"queue": "q", "durable": durable, "exclusive": exclusive, "arguments": table}
    return method("queue.declare", **{name: one for name, one in given.items() if one is not None})


def message(name: str, **columns: Any) -> tuple[str, pa.RecordBatch]:
    if "headers" in columns:
        columns["headers"] = json.dumps(columns["headers"], separators=(",", ":"))
    return rows("messages", {"method": name, "exchange": "x", "queue": "q"} | columns)


CASES = {
    "dialect-0-8": (
        rows("connections", {"protocol": "0-8", "first_packet_number": 1}),
        rows("connections", {"protocol": "0-9", "first_packet_number": 1}),
    ),
    "address-version": (
        method("attach", role=False, target={"address": "/queue/orders"}),
        method("attach", role=False, target={"address": "/queues/orders"}),
        method("attach", role=True, target={"address": "/queue/orders"}),
        method("attach", role=False, target={}),
    ),
    "message-size": (
        message("basic.publish", body_size=(16 << 20) + 1),
        message("basic.publish", body_size=16 << 20),
        message("basic.deliver", body_size=32 << 20),
        message("basic.publish", body_size=None),
    ),
    "frame-max": (
        method("connection.tune-ok", frame_max=4096),
        method("connection.tune-ok", frame_max=8192),
        method("connection.tune-ok", frame_max=0),
        method("connection.tune", frame_max=4096),
    ),
    "transient-queue": (
        declared(durable=False),
        declared(),
        declared(durable=False, exclusive=True),
        declared(durable=False, exclusive=None),
        method("queue.declare", queue="q", durable=False, exclusive=False, passive=True),
    ),
    "queue-version": (
        declared(**{"x-queue-version": 1}),
        declared(**{"x-queue-version": 2}),
    ),
    "queue-master-locator": (
        declared(**{"x-queue-master-locator": "min-masters"}),
        declared(**{"x-queue-leader-locator": "balanced"}),
    ),
    "delayed-exchange": (
        method("exchange.declare", exchange="e", type="x-delayed-message"),
        method("exchange.declare", exchange="e", type="topic"),
        method("exchange.declare", exchange="e", type="x-delayed-message", passive=True),
    ),
    "consumer-timeout-argument": (
        declared(**{"x-consumer-timeout": 5000}),
        method("queue.declare", queue="q", passive=True, arguments={"x-consumer-timeout": 5000}),
    ),
    "queue-mode": (declared(**{"x-queue-mode": "lazy"}), declared()),
    "mirrored-queue": (declared(**{"x-ha-policy": "all"}), declared()),
    "global-prefetch": (
        method("basic.qos", prefetch_count=3, **{"global": True}),
        method("basic.qos", prefetch_count=3, **{"global": False}),
        method("basic.qos", prefetch_count=0, **{"global": True}),
    ),
    "delivery-limit": (
        message("basic.deliver", headers={"x-delivery-count": 20}),
        message("basic.deliver", headers={"x-delivery-count": 19}),
        message("basic.publish", headers={"x-delivery-count": 20}),
        message("basic.deliver", headers={"x-delivery-count": "20"}),
    ),
    "x-death-published": (
        message("basic.publish", headers={"x-death": [{"count": 1}]}),
        message("basic.deliver", headers={"x-death": [{"count": 1}]}),
        message("basic.publish", headers={"death": 1}),
    ),
    "reply-to-mandatory": (
        message(
            "basic.publish", exchange="", routing_key="amq.rabbitmq.reply-to.g", mandatory=True
        ),
        message(
            "basic.publish", exchange="", routing_key="amq.rabbitmq.reply-to.g", mandatory=False
        ),
        message("basic.publish", exchange="", routing_key="q", mandatory=True),
    ),
    "consumer-timeout": (
        message("basic.deliver", outcome_ns=HALF_AN_HOUR),
        message("basic.deliver", outcome_ns=HALF_AN_HOUR - 1),
        message("basic.publish", outcome_ns=HALF_AN_HOUR),
        message("basic.deliver", outcome_ns=None),
    ),
}


def affected(*batches: Any, version: str = "rabbitmq-4.3") -> list[Affected]:
    return review(batches, version).affected


def test_every_change_has_a_case() -> None:
    assert CASES.keys() == {change.code for change in VERSION_CHANGES}
    assert len({change.code for change in VERSION_CHANGES}) == len(VERSION_CHANGES)


def test_the_consumer_timeout_of_a_quorum_queue_is_taken() -> None:
    (found,) = affected(declared(**{"x-consumer-timeout": 5000, "x-queue-type": "quorum"}))
    assert found.code == "consumer-timeout"


@pytest.mark.parametrize("code", CASES)
def test_traffic_that_a_change_concerns(code: str) -> None:
    concerned, *others = CASES[code]
    (found,) = affected(concerned)
    assert (found.code, found.count) == (code, 1)
    assert affected(*others) == []
    change = next(one for one in VERSION_CHANGES if one.code == code)
    versions = ["{}.{}".format(*one) for one in VERSIONS]
    here = versions.index(found.version)
    assert [bool(affected(concerned, version=one)) for one in versions] == [
        at >= here for at in range(len(versions))
    ]
    assert found.effect == change.effect in EFFECTS


@pytest.mark.parametrize(
    ("broker", "taken", "listed"),
    [
        (("RabbitMQ", "4.3.6"), True, False),
        (("RabbitMQ", "4.10.0"), True, False),
        (("RabbitMQ", "4.3.6"), False, True),
        (("RabbitMQ", "4.2.1"), True, True),
        (("Other", "4.3.6"), True, True),
        ((None, None), True, True),
    ],
)
def test_what_such_a_broker_took_is_not_refused(
    broker: tuple[str | None, str | None], taken: bool, listed: bool
) -> None:
    arguments = json.dumps({"queue": "q", "durable": False, "exclusive": False})
    answered = {"response_packet_number": 8 if taken else None}
    asked = {"method": "queue.declare", "arguments": arguments} | answered
    product, version = broker
    connection = rows("connections", {"server_product": product, "server_version": version})
    assert bool(affected(rows("frames", asked), connection)) == listed


def test_clients_by_name_and_what_is_refused_first() -> None:
    client = {"connection_name": "orders", "user": "app", "vhost": "/", "client": "10.0.0.1:5"}
    nameless = {"client_product": "pika", "client_version": "1.3"}
    found = affected(
        rows("frames", {"connection_id": "b", "method": "basic.qos", "packet_number": 3,
                        "arguments": '{"prefetch_count":1,"global":true}'}),
        declared(durable=False),
        declared(durable=False),
        rows("connections", client, {"connection_id": "b"} | nameless),
    )  # fmt: skip
    assert [(one.client, one.user, one.thing, one.count, one.effect) for one in found] == [
        ("orders", "app", "queue q", 2, "refused"),
        ("pika 1.3", None, "", 1, "ignored"),
    ]


@pytest.mark.parametrize("target", ["rabbitmq-3.13", "4", "artemis-2.0", "", "rabbitmq-4.3.x"])
def test_a_version_that_nothing_is_known_of(target: str) -> None:
    with pytest.raises(UsageError, match=r"rabbitmq-4\.0, .*rabbitmq-4\.3 are"):
        review([], target)


@pytest.mark.parametrize("target", ["4.3", "RabbitMQ-4.3", "rabbitmq-4.3.6", " 4.3 "])
def test_ways_to_write_a_version(target: str) -> None:
    assert review([], target).version == "4.3"


def test_memory_is_bounded() -> None:
    def many() -> Iterator[Any]:
        for first in range(0, MAX_USES + 100, 1000):
            yield rows("frames", *(
                {"method": "queue.declare",
                 "arguments": json.dumps({"queue": f"q{at}", "durable": False, "exclusive": False})}
                for at in range(first, first + 1000)
            ))  # fmt: skip

    found = review(many(), "4.3")
    assert len(found.affected) == MAX_USES
    assert found.forgotten == 1000


def test_captures_of_rabbitmq_4_3() -> None:
    found = amqpsniff.open(OWN / "rabbitmq43_changes.pcap").readiness("rabbitmq-4.3")
    assert (found.connections, found.midstream, found.forgotten) == (8, 0, 0)
    assert [(one.code, one.client, one.thing, one.packet_number) for one in found.affected] == [
        ("queue-version", "v1-app", "queue v1.q", 170),
        ("queue-mode", "lazy-app", "queue lazy.q", 153),
        ("global-prefetch", "global-qos", "", 104),
        ("reply-to-mandatory", "rpc-server", "", 290),
    ]
    held = amqpsniff.open(OWN / "rabbitmq43_consumer_timeout.pcap").readiness("4.3").affected
    assert {(one.code, one.client) for one in held} == {
        ("consumer-timeout", "slow-with-notify"),
        ("consumer-timeout", "slow-without-notify"),
    }


def test_connections_that_began_before_the_capture_are_counted() -> None:
    found = amqpsniff.open(SAMPLES / "midstream.pcap").readiness("4.3")
    assert (found.connections, found.midstream) == (2, 2)
