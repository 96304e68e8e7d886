"""Batches in types that a line of text can hold: what CSV is written from.

Bytes become text, or `{"base64": …}` where they are not UTF-8; lists and structures become JSON.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from amqpsniff.tables.moments import has_far, interval_text, moment_text
from amqpsniff.tables.values import json_text, python_values


def text_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of what `as_text` gives for batches of this schema."""
    return pa.schema([pa.field(field.name, _text_type(field.type)) for field in schema])


def as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, dictionaries decoded, with text in place of bytes and nested values.

    A column with a time that Arrow has no text for is text too: not what `text_schema` gives.
    """
    columns = [_text_column(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _text_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _text_type(kind.value_type)
    return pa.string() if _needs_text(kind) else kind


def _needs_text(kind: pa.DataType) -> bool:
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    strange = pa.types.is_interval(kind) or isinstance(kind, pa.BaseExtensionType)
    return bool(is_binary or pa.types.is_nested(kind) or strange)


def _text_column(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return _text_column(column.dictionary_decode())
    if has_far(column):
        texts = [moment_text(one).replace("T", " ") if one.is_valid else None for one in column]
        return pa.array(texts, pa.string())
    if not _needs_text(column.type):
        return column
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.string())
    return pa.array([_text(value) for value in python_values(column)], pa.string())


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass
    if hasattr(value, "nanoseconds"):
        return interval_text(*value)
    return json_text(value)
