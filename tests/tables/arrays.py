"""Hypothesis strategies for record batches of any types, and what JSON of them has to say."""

from __future__ import annotations

import base64
import datetime
import decimal
import math
import struct
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

UTC = datetime.UTC
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)

text = st.text(max_size=20) | st.text('"\\/\b\t\n\r\x00\x1f\x7f\u2028é😀a', max_size=20)
int32 = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([0, -1, 9, 10, -(2**31), 2**31 - 1])
int64 = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(
    [0, -1, 99, 100, -(2**63), 2**63 - 1, 10**18, 10**18 - 1, 10**17]
)
times = st.datetimes(
    datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999)
)
days = st.dates()
amounts = st.decimals(-(10**9), 10**9, places=4)

# Types that the tables of the contract have.
TABLE_TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): int64,
    pa.int32(): int32,
    pa.bool_(): st.booleans(),
    pa.string(): text,
    pa.binary(): st.binary(max_size=20) | text.map(str.encode),
    pa.timestamp("us", "UTC"): times.map(lambda value: value.replace(tzinfo=UTC)),
    pa.dictionary(pa.int32(), pa.string()): text,
}

# And some that SQL gives.
SQL_TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.uint16(): st.integers(0, 65535),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.decimal128(20, 4): amounts,
    pa.date32(): days,
    pa.time64("us"): st.times(),
    pa.timestamp("us"): times,
    pa.timestamp("ms", "UTC"): times.map(
        lambda value: value.replace(tzinfo=UTC, microsecond=value.microsecond // 1000 * 1000)
    ),
    pa.large_string(): text,
    pa.dictionary(pa.int8(), pa.string()): text,
    pa.list_(pa.int64()): st.lists(int64, max_size=3),
    pa.list_(pa.string()): st.lists(text, max_size=3),
    pa.struct({"a": pa.int64(), 'b"': pa.float64()}): st.fixed_dictionaries(
        {"a": int64, 'b"': st.floats()}
    ),
    pa.null(): st.none(),
}


@st.composite
def columns(draw: st.DrawFn, types: dict[pa.DataType, Any], rows: int) -> pa.Array:
    """A column of some type, often with nulls, often a slice of a longer one."""
    kind = draw(st.sampled_from(list(types)))
    before, behind = draw(st.integers(0, 3)), draw(st.integers(0, 2))
    values = types[kind]
    if draw(st.booleans()):
        values |= st.none()
    if draw(st.integers(0, 5)) == 0:
        values = st.none()
    count = before + rows + behind
    listed = draw(st.lists(values, min_size=count, max_size=count))
    if pa.types.is_dictionary(kind):
        whole = pa.array(listed, kind.value_type).dictionary_encode().cast(kind)
    else:
        whole = pa.array(listed, kind)
    return whole.slice(before, rows)


@st.composite
def batches(draw: st.DrawFn, types: dict[pa.DataType, Any]) -> pa.RecordBatch:
    """A record batch of up to five columns with names that are not easy."""
    rows = draw(st.integers(0, 12))
    names = draw(st.lists(text, min_size=1, max_size=5, unique=True))
    made = [draw(columns(types, rows)) for _ in names]
    if draw(st.booleans()) and pa.types.is_dictionary(made[0].type):  # neighbours that share codes
        words = [f"{word}-2" for word in made[0].dictionary.to_pylist()]
        again = pa.DictionaryArray.from_arrays(made[0].indices, pa.array(words, pa.string()))
        names.insert(1, names[0] + "-again")
        made.insert(1, again)
    return pa.RecordBatch.from_arrays(made, names=names)


def expected(value: Any, kind: pa.DataType) -> Any:
    """What reading the JSON of a value with `json.loads` has to give."""
    if pa.types.is_dictionary(kind):
        return expected(value, kind.value_type)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if kind == pa.float32() and value is not None:
        return fewest_digits(value)
    if isinstance(value, datetime.datetime):
        written = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return written + ("Z" if value.tzinfo else "")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, list):
        return [expected(one, kind.value_type) for one in value]
    if isinstance(value, dict):
        return {name: expected(one, kind.field(name).type) for name, one in value.items()}
    return value


def fewest_digits(value: float) -> float:
    """What the shortest text says that only this number of 32 bits is nearest to."""
    for digits in range(1, 10):
        told = float(f"{value:.{digits}g}")
        try:
            if struct.unpack("f", struct.pack("f", told)) == (value,):
                return told
        except OverflowError:
            continue  # rounded up
    raise AssertionError(value)


def expected_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """What the lines of a batch have to say, by name."""
    kinds = {field.name: field.type for field in batch.schema}
    return [
        {name: expected(value, kinds[name]) for name, value in row.items()}
        for row in batch.to_pylist()
    ]
