"""Single values as JSON text."""

import datetime
import json
import tracemalloc
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from amqpsniff.tables.values import ROWS_AT_ONCE, bytes_text, json_text, rows_of

UTC = datetime.UTC


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (-7, "-7"),
        (2**64, "18446744073709551616"),
        (0.1, "0.1"),
        (float("nan"), '"NaN"'),
        (float("inf"), '"Infinity"'),
        (float("-inf"), '"-Infinity"'),
        (Decimal("1.500"), "1.500"),
        (Decimal("1E+3"), "1000"),
        (Decimal("NaN"), '"NaN"'),
        ('é"\n', '"é\\"\\n"'),
        (b"text", '"text"'),
        (b"\xff", '{"base64":"/w=="}'),
        ([1, [None]], "[1,[null]]"),
        ((1, "a"), '[1,"a"]'),
        ({"a": 1, 'b"': b"\xff"}, '{"a":1,"b\\"":{"base64":"/w=="}}'),
        (datetime.datetime(2026, 1, 2, 3, 4, 5, 6, UTC), '"2026-01-02T03:04:05.000006Z"'),
        (datetime.datetime(2026, 1, 2), '"2026-01-02T00:00:00.000000"'),
        (datetime.date(2026, 1, 2), '"2026-01-02"'),
        (datetime.time(1, 2, 3), '"01:02:03"'),
        (datetime.timedelta(days=1), '"1 day, 0:00:00"'),
    ],
)
def test_json_text(value: Any, text: str) -> None:
    assert json_text(value) == text
    json.loads(text)


def test_times_of_other_zones_are_in_utc() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    assert json_text(datetime.datetime(2026, 1, 1, 1, tzinfo=zone)) == (
        '"2025-12-31T23:00:00.000000Z"'
    )


def test_bytes_of_a_lone_surrogate_are_no_text() -> None:
    assert json.loads(bytes_text(b"\xed\xa0\x80")) == {"base64": "7aCA"}


def test_few_rows_are_dicts_at_a_time() -> None:
    number = 40 * ROWS_AT_ONCE + 5
    batch = pa.record_batch({"a": range(number), "b": ["x"] * number, "c": [None] * number})
    assert list(rows_of(batch)) == batch.to_pylist()
    assert list(rows_of(batch.slice(0, 0))) == []
    tracemalloc.start()
    read = sum(row["a"] for row in rows_of(batch))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read == number * (number - 1) // 2
    assert peak < 50 * number  # a dict of each row would take more than 200


def test_rows_of_encoded_columns() -> None:
    texts = pa.array(["x", None, "y", "x"]).dictionary_encode()
    times = pa.array([1, None, 2, 3], pa.timestamp("us", tz="UTC"))
    batch = pa.record_batch([texts, times], ["text", "time"])
    assert list(rows_of(batch)) == batch.to_pylist()
