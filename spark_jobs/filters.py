"""Conditions of a query that tasks apply to their rows before those go to the JVM.

Spark hands over what a `where` asks of single columns. A condition that is kept here is taken out
of the plan, so each is applied exactly as Spark would; what is not in the tables below stays
Spark's. Texts that repeat come as codes, of which each distinct text is tested once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

_OF_VALUES: Final[dict[type[Filter], Callable[[Any, Any], Any]]] = {
    EqualTo: pc.equal,
    GreaterThan: pc.greater,
    GreaterThanOrEqual: pc.greater_equal,
    LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
    StringStartsWith: pc.starts_with,
    StringEndsWith: pc.ends_with,
    StringContains: pc.match_substring,
    In: lambda column, values: pc.is_in(column, value_set=pa.array(values, column.type)),
}
"""What gives whether values of a column meet a condition; null for those that are null, but for
`In`, which therefore is not negated here."""

_OF_NULLS: Final[dict[type[Filter], Callable[[Any], Any]]] = {
    IsNull: pc.is_null,
    IsNotNull: pc.is_valid,
}


def can_test(condition: Any, schema: pa.Schema) -> bool:
    """Whether a condition on a table of this schema is one of those that are applied here.

    Those on texts, truths and whole numbers are; Spark's times and octets are left to Spark.
    """
    if isinstance(condition, Not):
        return not isinstance(condition.child, In) and can_test(condition.child, schema)
    kind = type(condition)
    if kind not in _OF_VALUES and kind not in _OF_NULLS:
        return False
    (name,) = condition.attribute
    if kind in _OF_NULLS:
        return True
    value = condition.value
    values = value if kind is In else (value,)
    fitting = {pa.string(): str, pa.bool_(): bool, pa.int64(): int, pa.int32(): int}
    wanted = fitting.get(schema.field(name).type)
    return wanted is not None and all(type(one) is wanted for one in values)


def chosen(batch: pa.RecordBatch, conditions: Iterable[Filter]) -> pa.RecordBatch:
    """The rows of a batch, encoded or not, that meet all of these conditions."""
    for condition in conditions:
        batch = batch.filter(_truths(batch, condition))
    return batch


def _truths(batch: pa.RecordBatch, condition: Any) -> Any:
    """Whether each row meets a condition; null counts as no."""
    if isinstance(condition, Not):
        return pc.invert(_truths(batch, condition.child))
    kind = type(condition)
    column = batch.column(condition.attribute[0])
    if kind in _OF_NULLS:
        return _OF_NULLS[kind](column)
    value = condition.value
    if pa.types.is_dictionary(column.type):
        return _OF_VALUES[kind](column.dictionary, value).take(column.indices)
    return _OF_VALUES[kind](column, value)
