"""Captures of real programs: recognised frameworks, and which columns have values."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.findings.catalogue.frameworks import FRAMEWORKS
from amqpsniff.packs import COLUMNS
from tests.conftest import REPO

PACKS = REPO / "tests" / "captures" / "packs"

SEEN = {
    "celery": {
        ("celery", "ctasks.charge"): 10,
        ("celery", "ctasks.place"): 2,
        ("celery", "ctasks.ship"): 6,
        ("celery-control", "ping"): 2,
        ("celery-control", None): 2,
        ("celery-event", "task.multi"): 8,
        ("celery-event", "worker.heartbeat"): 3,
        ("celery-event", "worker.offline"): 1,
        ("celery-event", "worker.online"): 1,
        ("celery-result", "FAILURE"): 2,
        ("celery-result", "RETRY"): 2,
        ("celery-result", "SUCCESS"): 13,
    },
    "dramatiq": {("dramatiq", "resize"): 12},
    "nameko": {
        ("nameko", "added"): 2,
        ("nameko", "cart.add"): 4,
        ("nameko", "shop.buy"): 4,
        ("nameko", None): 8,
    },
    "oslo": {
        ("oslo.messaging", "build"): 6,
        ("oslo.messaging", "instance.create"): 1,
        ("oslo.messaging", None): 4,
    },
    "kombu": {(None, None): 8},
    "amqplib": {(None, None): 24},
    "chord": {
        ("celery", "celery.chord_unlock"): 2,
        ("celery", "shop.price"): 6,
        ("celery", "shop.total"): 2,
    },
    "order": {(None, None): 36},
}
"""Messages by framework and operation; replies have no operation of their own."""

VALUES = {
    "celery": {"conversation_key": 18, "error_type": 2, "retry_count": 18, "not_before": 4},
    "dramatiq": {"message_key": 12, "error_type": 4, "retry_count": 4, "not_before": 4},
    "nameko": {"conversation_key": 10, "parent_key": 6, "error_type": 4},
    "oslo": {"message_key": 11, "conversation_key": 6, "parent_key": 8, "error_type": 2},
    "kombu": {},
    "amqplib": {"trace_id": 20, "retry_count": 4},
    "chord": {"conversation_key": 10, "parent_key": 2, "not_before": 2},
    "order": {"trace_id": 27, "span_id": 27},
}
"""Messages in which a column has a value."""

CLIENTS = {
    "celery": {"kombu"},
    "dramatiq": {None},
    "nameko": {"kombu"},
    "oslo": {"kombu"},
    "kombu": {"kombu"},
    "amqplib": {None},
    "chord": {"kombu"},
    "order": {None},
}

LOST = (
    "user 'guest' (audit-service) from 127.0.0.1 received 9 messages with the context of a trace "
    "and published 9 messages without one"
)

INDEXER = "user 'guest' (indexer) from 127.0.0.1"

FINDINGS = {
    "celery": {
        ("operation-failed", "a task whose result is FAILURE (celery-result) failed with KeyError")
    },
    "order": {
        (
            "trace-context-lost",
            LOST,
        )
    },
    "chord": set(),
    "workers": {
        (
            "task-result-unread",
            (
                "8 messages for queue '9c86f16b-f675-3896-89cd-6df447b60614', "
                "which nobody reads in the capture"
            ),
        ),
        ("delay-missed", "tasks.report was to wait 1.99 s and waited 6.15 s"),
        ("operation-failed", "a task whose result is RETRY (celery-result) failed with ValueError"),
        ("operation-retried", "tasks.bill (celery) was published with 5 tries behind it"),
        ("workers-controlled", "revoke, from user 'guest' (py-amqp) from 127.0.0.1"),
    },
    "dead_letters": {
        ("celery-delay-direct-exchange", "'tasks' at exchange 'tasks'"),
        (
            "celery-protocol-mixed",
            (
                "tasks in protocol 1 and in protocol 2 go to the default exchange, routing key "
                "'tasks'; py-amqp publishes protocol 1"
            ),
        ),
        (
            "eta-beyond-consumer-timeout",
            "from queue 'default.DQ', due in 40 min; the broker allows 30 min",
        ),
        (
            "trace-context-never",
            "user 'guest' (Pika Python Client Library) from 127.0.0.1",
        ),
    },
    "unanswered": {("rpc-unanswered", "1 request without an answer, ping (celery-control)")},
    "firehose": {
        ("firehose-on", "user 'guest' (Pika Python Client Library) from 127.0.0.1"),
    },
    "oslo": {("operation-failed", "a message of oslo.messaging failed with ValueError")},
    "nameko": {("operation-failed", "a message of nameko failed with ValueError")},
    "streams": {
        (
            "stream-start-next",
            (f"{INDEXER} skipped 10 messages of queue 'log': it had 159 last, and began at 170"),
        ),
        (
            "stream-reread",
            (f"{INDEXER} reads 175 messages again of queue 'log': it had 174 last, and began at 0"),
        ),
        (
            "trace-context-mixed",
            (
                "user 'guest' (gateway) from 127.0.0.1 publishes w3c; "
                "user 'guest' (legacy) from 127.0.0.1 b3"
            ),
        ),
        (
            "delay-queues-many",
            (
                "user 'guest' (retries) from 127.0.0.1 declares a queue for each "
                "delay, like 'jobs.delay.N': 40 or more"
            ),
        ),
    },
    "stream_gap": {("stream-offset-gap", "17642 offsets of queue 'log' after 457 did not come")},
}
"""What packs say of the traffic, as (code, detail)."""


@pytest.mark.parametrize("name", SEEN)
def test_operations(name: str) -> None:
    capture = amqpsniff.open(PACKS / f"{name}.pcap.gz")
    rows = capture.table("messages", columns=["framework", "operation"]).to_pylist()
    assert Counter((row["framework"], row["operation"]) for row in rows) == SEEN[name]


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    table = amqpsniff.open(PACKS / f"{name}.pcap.gz").table("messages", columns=COLUMNS)
    counts = {column: table.num_rows - table[column].null_count for column in VALUES[name]}
    assert counts == VALUES[name]


@pytest.mark.parametrize("name", CLIENTS)
def test_clients(name: str) -> None:
    capture = amqpsniff.open(PACKS / f"{name}.pcap.gz")
    rows = capture.table("connections", columns=["client_framework"]).to_pylist()
    assert {row["client_framework"] for row in rows} == CLIENTS[name]


def test_nameko_calls_are_a_tree() -> None:
    """A call that a service makes names the one that led to it, in the same conversation."""
    columns = ["operation", "message_key", "conversation_key", "parent_key", "method"]
    rows = amqpsniff.open(PACKS / "nameko.pcap.gz").table("messages", columns=columns).to_pylist()
    sent = {row["message_key"]: row for row in rows if row["method"] == "basic.publish"}
    calls = [row for row in sent.values() if row["operation"] == "cart.add"]
    assert [sent[row["parent_key"]]["operation"] for row in calls] == ["shop.buy"] * 2
    assert all(
        sent[row["parent_key"]]["conversation_key"] == row["conversation_key"] for row in calls
    )


@pytest.mark.parametrize("name", FINDINGS)
def test_findings(name: str) -> None:
    others = {"celery-event-noise", "serialized-code"}
    codes = {one.code for one in FRAMEWORKS} - others | {"rpc-unanswered", "rpc-answered-twice"}
    found = amqpsniff.open(PACKS / f"{name}.pcap.gz").findings()
    assert {(one.code, one.detail) for one in found if one.code in codes} == FINDINGS[name]


PACK = """[shop]
framework = "shop"
when = "header:n & type = order"
operation = "type"
message_key = "message_id"
retry_count = "header:n"
"""


def test_messages_of_amqp10(tmp_path: Path) -> None:
    """Application properties are the headers that a pack reads."""
    file = tmp_path / "shop.toml"
    file.write_text(PACK)
    path = REPO / "tests" / "captures" / "amqp10" / "amqp10_rabbitmq43.pcap.gz"
    columns = ["framework", "operation", "message_key", "retry_count"]
    rows = amqpsniff.open(path, packs=file).table("messages", columns=columns).to_pylist()
    told = {"framework": "shop", "operation": "order", "message_key": "o-0", "retry_count": 0}
    assert told in rows
