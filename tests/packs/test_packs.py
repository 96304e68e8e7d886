"""Packs: each recognises its message, reads its columns, and is silent where a mark is missing."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest

from amqpsniff.decode.meanings import MAX_BODY_BYTES, MAX_SHAPES
from amqpsniff.packs import COLUMNS, load
from amqpsniff.tables.batches import Maker
from tests.decode.feeding import Feeder
from tests.decode.script import CLIENT, OPENING, sent
from tests.packs.rebuilt import ROWS, Rebuilt

PACKS = load()
_MAKER = Maker("messages", columns=COLUMNS)


def meanings(*rows: Rebuilt) -> list[dict[str, Any]]:
    """What the columns of messages say, nulls left out."""
    done = sent(*(row.octets() for row in rows), meanings=True)
    assert done.findings == []
    return [
        {name: _number(value) for name, value in row.items() if value is not None}
        for row in _MAKER.make(done.taken).to_pylist()
    ]


def _number(value: Any) -> Any:
    return round(value.timestamp() * 1e6) if hasattr(value, "timestamp") else value


def test_every_pack_has_a_message() -> None:
    assert {row.pack for row in ROWS} == {pack.name for pack in PACKS.packs if pack.when}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pack)
def test_pack(row: Rebuilt) -> None:
    (meaning,) = meanings(row)
    framework = {"framework": row.framework} if row.framework else {}
    assert meaning == framework | row.meaning


def test_all_in_one_batch() -> None:
    """Columns of one message are not those of its neighbours."""
    every = [*ROWS, *reversed(ROWS)]
    assert meanings(*every) == [one for row in every for one in meanings(row)]


NEAR_MISSES = (
    Rebuilt("celery-task", None, {}, {"task": "shop.tasks.bill"}),
    Rebuilt("celery-task-v1", None, {}, {}, {"task": "x", "id": "1"}),
    Rebuilt("dramatiq", None, {}, {}, {"actor_name": "x", "message_id": "1"}),
    Rebuilt("dramatiq", None, {}, {}, {"a": {"actor_name": 1, "message_id": 1, "queue_name": 1}}),
    Rebuilt("masstransit", None, {}, {}, {"messageType": ["urn:message:X"]}),
    Rebuilt("oslo-messaging", None, {}, {}, {"oslo.version": "2.0"}),
    Rebuilt("easynetq", None, {}, exchange="Order", properties={"type": "Order"}),
    Rebuilt("trace-w3c", None, {}, {"traceparent": "not a trace"}),
    *(
        Rebuilt("trace-w3c", None, {}, {"traceparent": parent})
        for parent in (
            f"00-{'0' * 32}-b7ad6b7169203331-01",
            f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01x",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-none",
        )
    ),
    Rebuilt("trace-datadog", None, {}, {"x-datadog-trace-id": "99999999999999999999"}),
    Rebuilt("delayed-exchange", None, {}, {"x-delay": -2000}),
    Rebuilt("dead-letter", None, {}, {"x-death": []}),
    Rebuilt("symfony-messenger", None, {}, {"type": "App\\Order"}),
    Rebuilt("laravel", None, {}, {"laravel5": {"attempts": 2}}),
    Rebuilt("hutch", None, {}, exchange="hutch2"),
)


@pytest.mark.parametrize("row", NEAR_MISSES, ids=lambda row: row.pack)
def test_near_miss(row: Rebuilt) -> None:
    assert meanings(row) == [{}]


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_packed_body(pack: Any) -> None:
    """gzip and zlib are told by their first bytes."""
    (row,) = (one for one in ROWS if one.pack == "dramatiq")
    packed = row._replace(body=pack(json.dumps(row.body).encode()))
    assert meanings(packed) == meanings(row)


def test_only_the_beginning_of_a_body() -> None:
    """What stands after it is not there, nor is a value that it cuts."""
    room = "x" * (MAX_BODY_BYTES - 60)
    before = {"task_id": "1", "status": "S", "result": 1, "room": room}
    behind = {"room": room + "x" * 60, "task_id": "1", "status": "S", "result": 1}
    cut = {"task_id": "1", "status": "S", "result": "x" * MAX_BODY_BYTES}
    rows = [Rebuilt("celery-result", None, {}, {}, body) for body in (before, behind, cut)]
    assert [one.get("framework") for one in meanings(*rows)] == ["celery-result", None, None]


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"", b"\x1f\x8b\x08broken", b'{"task" 1}', b"\xff" * 20, b'{"task_id":']
)
def test_body_that_is_none(body: bytes) -> None:
    assert meanings(Rebuilt("", None, {}, {}, body)) == [{}]


def test_more_shapes_than_are_remembered() -> None:
    rows = [
        Rebuilt("", None, {}, {"traceparent": "?"}, exchange=f"x{number}")
        for number in range(MAX_SHAPES + 10)
    ]
    assert meanings(*rows, ROWS[0])[-1]["framework"] == "celery"


def test_clients() -> None:
    assert PACKS.client({"client_api": "NServiceBus", "endpoint_name": "Sales"}) == (
        "nservicebus",
        "Sales",
    )
    assert PACKS.client({"Type": "Rebus/.NET", "InputQueue": 3}) == ("rebus", None)
    assert PACKS.client({"product": "py-amqp"}) == ("kombu", None)
    assert PACKS.client({"product": "pika"}) == (None, None)


PAD = "x" * 200


@pytest.mark.parametrize(
    "other",
    [
        {"exchange": "nameko-rpc"},
        {"routing_key": "other"},
        {"headers": {"pad": PAD, "x-delivery-count": 2}},
        {"properties": {"message_id": "2", "type": "a"}},
        {"properties": {"message_id": "1", "type": "b"}},
        {"properties": {"message_id": "1", "type": "a", "content_type": "application/json"}},
        {"body": {"pad": PAD, "n": 2}},
    ],
    ids=str,
)
def test_again_but_for_one_thing(other: dict[str, Any]) -> None:
    row = Rebuilt(
        "hutch", "hutch", {}, {"pad": PAD}, {"pad": PAD, "n": 1}, exchange="hutch",
        properties={"message_id": "1", "type": "a"},
    )  # fmt: skip
    rows = (row, row._replace(**other), row, row, row._replace(**other))
    assert meanings(*rows) == [one for row in rows for one in meanings(row)]


def test_again_later() -> None:
    """A delay counts from each message's own time."""
    row = Rebuilt("delayed-exchange", None, {}, {"x-delay": 5000, "pad": PAD})
    feeder = Feeder(meanings=True).data(CLIENT, OPENING)
    for number in (2_000, 3_000, 4_000):
        feeder.data(CLIENT, row.octets(), number)
    done = feeder.finish()
    rows = Maker("messages", columns=["ts_ns", "not_before"]).make(done.taken).to_pylist()
    assert len({one["ts_ns"] for one in rows}) == 3
    for one in rows:
        assert _number(one["not_before"]) == one["ts_ns"] // 1000 + 5_000_000
