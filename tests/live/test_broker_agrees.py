"""What is told of a broker from its traffic is what the broker says of itself while it goes on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cli.running import run
from tests.live.broker import Broker
from tests.live.sniffing import Sniffer, rows_of
from tests.waiting import PATIENCE

HOST = "127.0.0.1"
TABLES = ("connections", "channels", "messages")
Row = dict[str, Any]


@contextmanager
def connected(broker: Broker, name: str, **more: Any) -> Iterator[Any]:
    """A connection of pika with a name, slow to send heartbeats: they would count as bytes."""
    import pika

    properties = {"connection_name": name}
    parameters = pika.ConnectionParameters(
        HOST, broker.port, client_properties=properties, socket_timeout=PATIENCE,
        stack_timeout=PATIENCE, **more,
    )  # fmt: skip
    connection = pika.BlockingConnection(parameters)
    yield connection
    connection.close()


def work(publisher: Any, consumer: Any) -> None:
    """Declare and bind, publish in every mode, leave deliveries unsettled.

    Everything else has been answered when it ends.
    """
    import pika

    sending = publisher.channel()
    sending.exchange_declare("agree.in", "topic", durable=True)
    sending.exchange_declare("agree.out", "headers", auto_delete=True)
    sending.exchange_bind("agree.out", "agree.in", "to.#")
    sending.queue_declare("agree.q", durable=True, arguments={"x-max-length": 500})
    sending.queue_declare("agree.gone")
    sending.queue_bind("agree.q", "agree.in", "order.*")
    sending.queue_bind("agree.q", "agree.out", arguments={"x-match": "any", "kind": "a"})
    sending.queue_bind("agree.q", "agree.in", "never")
    sending.queue_unbind("agree.q", "agree.in", "never")
    sending.queue_bind("agree.gone", "agree.in", "order.gone")
    sending.queue_delete("agree.gone")
    sending.exchange_declare("agree.gone", "fanout")
    sending.exchange_delete("agree.gone")
    sending.confirm_delivery()
    for number in range(40):
        sending.basic_publish("agree.in", f"order.{number % 3}", bytes(number))

    taking = consumer.channel()
    taking.basic_qos(prefetch_count=100, global_qos=True)
    taking.basic_qos(prefetch_count=25)
    held: list[int] = []

    def take(channel: Any, method: Any, properties: Any, body: bytes) -> None:
        if len(held) < 9:
            channel.basic_ack(method.delivery_tag)
        held.append(method.delivery_tag)

    taking.basic_consume("agree.q", take, consumer_tag="first")
    while len(held) < 34:
        consumer.process_data_events(0.1)

    transacted = consumer.channel()
    transacted.tx_select()
    for _ in range(3):
        transacted.basic_publish("agree.in", "order.tx", b"uncommitted")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        publisher.channel().queue_declare("agree.q", durable=False)
    sending.queue_declare("agree.q", passive=True)
    transacted.exchange_declare("agree.in", passive=True)


@pytest.fixture(scope="module")
def told(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the broker says while two connections work, and what the traffic until then shows."""
    folder = tmp_path_factory.mktemp("told")
    sniffer = Sniffer("-i", "lo", "--port", broker.port, "-w", "it.pcapng", folder=folder)
    with (
        connected(broker, "the publisher", heartbeat=370, frame_max=65_536) as publisher,
        connected(broker, "the consumer", heartbeat=380, channel_max=77) as consumer,
    ):
        work(publisher, consumer)
        said: dict[str, Any] = {
            "connections": broker.says(
                "list_connections peer_port user vhost frame_max channel_max timeout channels "
                "auth_mechanism client_properties recv_oct send_oct"
            ),
            "channels": broker.says(
                "list_channels name number confirm transactional consumer_count prefetch_count "
                "messages_unacknowledged messages_uncommitted"
            ),
            "exchanges": broker.says("list_exchanges name type durable auto_delete internal"),
            "queues": broker.says("list_queues name durable auto_delete exclusive"),
            "bindings": broker.says(
                "list_bindings source_name destination_name destination_kind routing_key arguments"
            ),
        }
        assert sniffer.stop() == 0, sniffer.err
    file = folder / "it.pcapng"
    tables = {name: rows_of(run("export", file, "-t", name).out) for name in TABLES}
    topology = json.loads(run("topology", file, "--format", "json").out)
    return {"said": said, "seen": tables | {"topology": topology}}


@pytest.mark.broker
def test_connections(told: dict[str, Any]) -> None:
    """User, virtual host, limits as tuned, heartbeat, names, and bytes to the last one."""
    seen = {
        int(row["client"].rpartition(":")[2]): (
            row["user"], row["vhost"], row["frame_max"], row["channel_max"], row["heartbeat"],
            row["mechanism"], row["connection_name"], row["client_version"],
            row["client_bytes"], row["server_bytes"],
        )
        for row in told["seen"]["connections"]
    }  # fmt: skip
    said = {}
    for row in told["said"]["connections"]:
        properties = {name: value for name, _, value in row["client_properties"]}
        said[row["peer_port"]] = (
            row["user"], row["vhost"], row["frame_max"], row["channel_max"], row["timeout"],
            row["auth_mechanism"], properties["connection_name"], properties["version"],
            row["recv_oct"], row["send_oct"],
        )  # fmt: skip
    assert len(said) == 2
    assert seen == said


@pytest.mark.broker
def test_channels(told: dict[str, Any]) -> None:
    """Mode, consumers, prefetch, and what is neither acknowledged nor committed."""
    uncommitted: Counter[Any] = Counter()
    for row in told["seen"]["messages"]:
        uncommitted[row["connection_id"], row["channel"]] += row["routing_key"] == "order.tx"
    seen = {
        (row["client"], row["channel"]): (
            row["mode"], row["consumers"], row["prefetch_count"], row["unsettled_end"],
            uncommitted[row["connection_id"], row["channel"]],
        )
        for row in told["seen"]["channels"]
        if row["closed_by"] is None
    }  # fmt: skip
    said = {}
    for row in told["said"]["channels"]:
        mode = "confirm" if row["confirm"] else "tx" if row["transactional"] else None
        said[row["name"].split(" -> ")[0], row["number"]] = (
            mode, row["consumer_count"], row["prefetch_count"] or None,
            row["messages_unacknowledged"], row["messages_uncommitted"],
        )  # fmt: skip
    assert len(said) == 3
    assert seen == said


@pytest.mark.broker
def test_topology(told: dict[str, Any]) -> None:
    """Exchanges, queues and bindings: what is there is, what was removed is not."""
    said, seen = told["said"], told["seen"]["topology"]

    def ours(name: str, column: str, facts: str) -> dict[str, tuple[Any, ...]]:
        """What was declared and not removed, with its facts."""
        return {
            row[column]: tuple(row[fact] for fact in facts.split())
            for row in seen[name]
            if row["declared"] and not row["removed"]
        }

    def theirs(name: str, facts: str) -> dict[str, tuple[Any, ...]]:
        """The same by the broker, of what this test declared."""
        return {
            row["name"]: tuple(row[fact] for fact in facts.split())
            for row in said[name]
            if row["name"].startswith("agree.")
        }

    facts = "type durable auto_delete internal"
    assert ours("exchanges", "exchange", facts) == theirs("exchanges", facts)
    facts = "durable auto_delete exclusive"
    assert ours("queues", "queue", facts) == theirs("queues", facts)
    bound = {
        (
            row["exchange"], row["destination"], row["destination_type"], row["routing_key"],
            json.dumps(row["arguments"], sort_keys=True),
        )
        for row in seen["bindings"]
        if not row["removed"]
    }  # fmt: skip
    listed = {
        (
            row["source_name"], row["destination_name"], row["destination_kind"],
            row["routing_key"],
            json.dumps({name: value for name, _, value in row["arguments"]}, sort_keys=True),
        )
        for row in said["bindings"]
        if row["source_name"].startswith("agree.")
    }  # fmt: skip
    assert len(listed) == 3
    assert bound == listed
    removed = {row["destination"] for row in seen["bindings"] if row["removed"]}
    assert removed == {"agree.q", "agree.gone"}
