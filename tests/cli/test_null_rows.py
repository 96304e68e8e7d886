"""Rows whose columns are null, and whose texts are not UTF-8, end no command.

Every batch of a table passes through `Maker.make`; there columns that may be null become null, and
texts in JSON columns become bytes, before any command sees the rows.
"""

from __future__ import annotations

import json
import random
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import amqpsniff
from amqpsniff.objects import Finding, Frame, Message
from amqpsniff.tables.batches import Maker
from amqpsniff.tables.schema import EVERYTHING, IN_EVERY_ROW, JSON_COLUMNS
from tests.cli.every_way import WAYS, check, go
from tests.conftest import REPO, SAMPLES
from tests.thorough import THOROUGH

CAPTURE = SAMPLES / "pika_mix.pcap"
CONNECTIONS = {
    CAPTURE: "7f298e1b",
    REPO / "tests/captures/amqp10/rabbitmq43_rhea.pcap.gz": "c650497a",
}

OBJECTS = {"frames": Frame, "messages": Message, "findings": Finding}
COUNTS = "published delivered acknowledged"
NEVER = {
    "connections": f"capture connection_id midstream channels {COUNTS} retransmissions gaps "
    "lost_bytes",
    "channels": f"capture connection_id channel incarnation {COUNTS} confirmed returned consumers",
    "links": "capture connection_id channel incarnation role refused deliveries",
}
"""Columns that are never null, of tables that have no class that says so."""


def nullable(table: str) -> list[str]:
    """The columns of a table that may be null."""
    names = [one for one in EVERYTHING[table].names if one not in IN_EVERY_ROW.get(table, ())]
    if table in OBJECTS:
        hints = typing.get_type_hints(OBJECTS[table])
        return [name for name in names if type(None) in typing.get_args(hints[name])]
    return [name for name in names if name not in NEVER[table].split()]


def without(batch: pa.RecordBatch, name: str, is_null: Callable[[], bool]) -> pa.RecordBatch:
    """The batch with null in rows of a column."""
    if name not in batch.schema.names:
        return batch
    place = batch.schema.get_field_index(name)
    column = batch.column(place)
    kept = pa.array([None if is_null() else row for row in range(len(column))], pa.int32())
    return batch.set_column(place, batch.schema.field(place), column.take(kept))


def as_bytes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with every text in its JSON columns as bytes that are not UTF-8."""
    for name in JSON_COLUMNS.intersection(batch.schema.names):
        place = batch.schema.get_field_index(name)
        column = batch.column(place)
        written = [None if text is None else _as_bytes(text) for text in column.to_pylist()]
        batch = batch.set_column(place, batch.schema.field(place), pa.array(written, column.type))
    return batch


def _as_bytes(text: str) -> str:
    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: changed(one) for name, one in value.items()}
        if isinstance(value, list):
            return [changed(one) for one in value]
        return {"base64": "//6A"} if isinstance(value, str) else value

    return json.dumps(changed(json.loads(text)), separators=(",", ":"))


def changing(monkeypatch: pytest.MonkeyPatch, change: Callable[[str, Any], Any]) -> None:
    """Let every batch that is made be changed, given its table."""
    make = Maker.make
    monkeypatch.setattr(Maker, "make", lambda self, taken: change(self.table, make(self, taken)))


def halves(seed: int) -> Callable[[str, Any], Any]:
    """Null in half of the cells that may be null, chosen for each column; bytes for texts."""
    dice = random.Random(seed)

    def change(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        for name in nullable(table):
            batch = without(batch, name, lambda: dice.random() < 0.5)
        return as_bytes(batch)

    return change


def all_null(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Null in every cell that may be null."""
    for name in nullable(table):
        batch = without(batch, name, lambda: True)
    return batch


CHANGES = pytest.mark.parametrize("change", [halves(1), all_null], ids=["half", "all"])


@CHANGES
@pytest.mark.parametrize("capture", CONNECTIONS, ids=["0-9-1", "1.0"])
def test_no_null_ends_a_command(
    change: Callable[[str, Any], Any],
    capture: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each way with one of the changes, unless all cases are tried."""
    changing(monkeypatch, change)
    for number, way in enumerate(WAYS):
        if THOROUGH or number % 2 == (change is all_null):
            check(way, go(way, capture, CAPTURE, CONNECTIONS[capture], tmp_path / str(number)))


@CHANGES
def test_objects_with_nulls_are_shown(
    change: Callable[[str, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a console and in a notebook."""
    changing(monkeypatch, change)
    capture = amqpsniff.open(CAPTURE)
    for rows in (capture.frames(), capture.messages(), capture.findings()):
        for row in rows:
            assert repr(row).isprintable()
            assert row._repr_html_().startswith("<table")
            assert row.as_dict().keys() <= set(dir(row))
    result = capture.sql("SELECT * FROM messages")
    assert repr(result).isprintable()
    assert result._repr_html_().startswith("<table")
