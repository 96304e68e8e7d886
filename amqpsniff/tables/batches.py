"""Arrow batches from the decoder's columns, mostly without copying.

Strings that repeat (method, connection, …) come from the decoder as codes and stay dictionary
encoded here, which is what Parquet wants; `plain` turns a batch into the types of `schema`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from amqpsniff.columns import NULL, Codes, Integers, Texts
from amqpsniff.decode.rows import STATUS_NAMES, FrameRows, MessageRows
from amqpsniff.errors import UsageError
from amqpsniff.findings import Finding
from amqpsniff.spec import FRAME_TYPES, METHODS
from amqpsniff.tables.schema import FINDINGS, FRAMES, MESSAGES, TIMESTAMP, schema_of

_NULL = pa.scalar(NULL, pa.int64())
_SENDERS = pa.array(["client", "server"])
_STATUSES = pa.array(STATUS_NAMES)
_METHOD_NAMES = [method.name for method in METHODS]


def _frame_type_names() -> pa.Array:
    """Name of every frame-type code: 0 to 255, and 256 for a protocol header."""
    known = {row.code: row.name for row in FRAME_TYPES}
    names = [known.get(code, f"type-{code}") for code in range(256)]
    return pa.array([*names, "protocol-header"])


_FRAME_TYPES = _frame_type_names()


def _integers(column: Integers, rows: int) -> pa.Array:
    array = pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(column.take())])
    absent = pc.equal(array, _NULL)
    return pc.if_else(absent, None, array) if pc.any(absent).as_py() else array


def _codes(column: Codes, rows: int) -> pa.Array:
    array = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(column.take())])
    absent = pc.less(array, 0)
    return pc.if_else(absent, None, array) if pc.any(absent).as_py() else array


def _dictionary(column: Codes, rows: int, values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(_codes(column, rows), values)


def _texts(column: Texts, rows: int, kind: pa.DataType) -> pa.Array:
    offsets, valid, octets, values = column.take(rows)
    if not values:
        return pa.nulls(rows, kind)
    bitmap = None
    if values < rows:
        flags = pa.Array.from_buffers(pa.uint8(), rows, [None, pa.py_buffer(valid)])
        bitmap = flags.cast(pa.bool_()).buffers()[1]
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(octets)]
    return pa.Array.from_buffers(kind, rows, buffers, rows - values)


def _places(
    columns: dict[str, Any], rows: int, connections: Sequence[tuple[str, str, str]]
) -> dict[str, pa.Array]:
    """The columns that say where and when a row is."""
    codes = _codes(columns["connection"], rows)
    ids, clients, servers = zip(*connections, strict=True) if connections else ((), (), ())
    ts_ns = _integers(columns["ts_ns"], rows)
    return {
        "ts_ns": ts_ns,
        "timestamp": pc.divide(ts_ns, 1000).cast(TIMESTAMP),
        "connection_id": pa.DictionaryArray.from_arrays(codes, pa.array(ids, pa.string())),
        "client": pa.DictionaryArray.from_arrays(codes, pa.array(clients, pa.string())),
        "server": pa.DictionaryArray.from_arrays(codes, pa.array(servers, pa.string())),
        "sender": _dictionary(columns["sender"], rows, _SENDERS),
    }


def _batch(schema: pa.Schema, arrays: dict[str, pa.Array], rows: int) -> pa.RecordBatch:
    """Arrays by name, in the schema's order; columns that nobody made are null."""
    columns = [
        arrays[field.name] if field.name in arrays else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def frame_batch(
    frames: FrameRows,
    connections: Sequence[tuple[str, str, str]],
    captures: Sequence[str],
    method_names: Sequence[str],
) -> pa.RecordBatch:
    """The `frames` table's rows; string columns that repeat are dictionary encoded."""
    rows = frames.rows
    columns = frames.columns()
    methods = pa.array([*_METHOD_NAMES, *method_names])
    arrays = _places(columns, rows, connections) | {
        "capture": _dictionary(columns["capture"], rows, pa.array(captures, pa.string())),
        "frame_type": _dictionary(columns["frame_type"], rows, _FRAME_TYPES),
        "method": _dictionary(columns["method"], rows, methods),
        "channel": _codes(columns["channel"], rows),
        "reply_code": _codes(columns["reply_code"], rows),
    }
    for name in ("packet_number", "stream_offset", "size", "delivery_tag"):
        arrays[name] = _integers(columns[name], rows)
    for name in ("arguments", "exchange", "routing_key", "queue", "consumer_tag", "reply_text"):
        arrays[name] = _texts(columns[name], rows, pa.string())
    return _batch(FRAMES, arrays, rows)


def message_batch(
    messages: MessageRows,
    connections: Sequence[tuple[str, str, str]],
    captures: Sequence[str],
) -> pa.RecordBatch:
    """The `messages` table's rows; string columns that repeat are dictionary encoded."""
    rows = messages.rows
    columns = messages.columns()
    arrays = _places(columns, rows, connections) | {
        "capture": _dictionary(columns["capture"], rows, pa.array(captures, pa.string())),
        "method": _dictionary(columns["method"], rows, pa.array(_METHOD_NAMES)),
        "status": _dictionary(columns["status"], rows, _STATUSES),
    }
    for name in ("channel", "reply_code", "delivery_mode", "priority"):
        arrays[name] = _codes(columns[name], rows)
    for name in ("redelivered", "mandatory", "immediate"):
        arrays[name] = _codes(columns[name], rows).cast(pa.bool_())
    for name in MessageRows.INTEGERS:
        if name not in arrays:
            arrays[name] = _integers(columns[name], rows)
    arrays["message_timestamp"] = arrays["message_timestamp"].cast(TIMESTAMP)
    for name in MessageRows.TEXTS:
        arrays[name] = _texts(columns[name], rows, MESSAGES.field(name).type)
    return _batch(MESSAGES, arrays, rows)


def finding_batch(findings: Iterable[Finding]) -> pa.RecordBatch:
    """The `findings` table's rows."""
    rows = []
    for finding in findings:
        row = {name: getattr(finding, name, None) for name in FINDINGS.names}
        row["severity"] = finding.kind.severity
        row["title"] = finding.kind.title
        row["advice"] = finding.kind.advice
        if finding.ts_ns is not None:
            row["timestamp"] = finding.ts_ns // 1000
        rows.append(row)
    return pa.RecordBatch.from_pylist(rows, schema=FINDINGS)


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with every dictionary decoded: the types of the table contract."""
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


class Maker:
    """Makes the batches of one table from what a pipeline gives.

    `schema` is that of the batches that `make` gives when they are not `encoded`.
    """

    def __init__(
        self, table: str, *, encoded: bool = False, columns: Collection[str] | None = None
    ) -> None:
        self.table = table
        self.encoded = encoded
        self.schema = schema_of(table)
        if columns is not None:
            unknown = [name for name in columns if name not in self.schema.names]
            if unknown:
                raise UsageError(f"no column `{unknown[0]}` in {table}")
            self.schema = pa.schema([field for field in self.schema if field.name in columns])

    def make(self, taken: Any) -> pa.RecordBatch:
        """A batch from what `Pipeline.take` gave, or for `findings` from a list of them."""
        if self.table == "findings":
            batch = finding_batch(taken)
        else:
            frames, messages, connections, captures, method_names = taken
            if self.table == "frames":
                batch = frame_batch(frames, connections, captures, method_names)
            else:
                batch = message_batch(messages, connections, captures)
        if len(self.schema.names) < batch.num_columns:
            batch = batch.select(self.schema.names)
        return batch if self.encoded else plain(batch)
