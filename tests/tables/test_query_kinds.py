"""SQL: every type of DuckDB in every format has the value that DuckDB's own text has."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

import amqpsniff
from amqpsniff.cli.output import Output
from amqpsniff.cli.render.query_result import show
from amqpsniff.errors import FilterError
from amqpsniff.tables import export

MAX = 2**128 - 1

KINDS = {
    "bigint": "9223372036854775807::BIGINT",
    "hugeint": "170141183460469231731687303715884105727::HUGEINT",
    "uhugeint": f"{MAX}::UHUGEINT",
    "bignum": f"'{10**60 + 7}'::BIGNUM",
    "bit": "'0101011'::BIT",
    "blob": "'abc'::BLOB",
    "boolean": "true",
    "date": "DATE '2024-02-29'",
    "decimal": "123456789012345678901234567890.12345678::DECIMAL(38, 8)",
    "double": "0.1::DOUBLE",
    "float": "3.4028235e+38::FLOAT",
    "enum": "'b'::ENUM('a', 'b')",
    "geometry": "'POINT (1 2)'::GEOMETRY",
    "integer": "2147483647::INTEGER",
    "smallint": "32767::SMALLINT",
    "tinyint": "127::TINYINT",
    "ubigint": "18446744073709551615::UBIGINT",
    "uinteger": "4294967295::UINTEGER",
    "usmallint": "65535::USMALLINT",
    "utinyint": "255::UTINYINT",
    "interval": "INTERVAL '1 year 2 months 3 days 04:05:06.789'",
    "time": "TIME '23:59:59.999999'",
    "time with time zone": "'12:34:56.789+02'::TIMETZ",
    "time_ns": "'12:34:56.123456789'::TIME_NS",
    "timestamp": "TIMESTAMP '2024-02-29 12:34:56.789001'",
    "timestamp with time zone": "'2024-02-29 12:34:56.789001+00'::TIMESTAMPTZ",
    "timestamp_s": "'2024-02-29 12:34:56'::TIMESTAMP_S",
    "timestamp_ms": "'2024-02-29 12:34:56.789'::TIMESTAMP_MS",
    "timestamp_ns": "'2024-02-29 12:34:56.123456789'::TIMESTAMP_NS",
    "timestamptz_ns": "'2024-02-29 12:34:56.123456789+00'::TIMESTAMPTZ_NS",
    "uuid": "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID",
    "varchar": "'plain'",
    "variant": "42::VARIANT",
    "type": "get_type(1)",
}
"""An expression for each type that holds one value, by DuckDB's name of the type."""

ALSO = {
    "infinite nanoseconds": "'infinity'::TIMESTAMP_NS",
    "negative": "INTERVAL '-1 second'",
    "small": "7::UHUGEINT",
}

NESTED = {"list", "array", "struct", "map", "union", "tuple", "null"}
"""Types of DuckDB whose values are made of others, or none."""


@pytest.fixture(scope="module")
def capture(samples: Path) -> amqpsniff.Capture:
    return amqpsniff.open(samples / "late_consumer.pcap")


def as_ndjson(octets: bytes) -> str:
    value = json.loads(octets, parse_float=Decimal)["v"]
    return value if isinstance(value, str) else json.dumps(value, default=str).strip('"')


def as_csv(octets: bytes) -> str:
    return list(csv.reader(io.StringIO(octets.decode())))[1][0]


@cache
def in_utc() -> Any:
    """A connection of DuckDB whose times are those of UTC."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def as_columns(table: pa.Table) -> str:
    connection = in_utc()
    connection.register("given", table)
    return _one(connection, "SELECT v::VARCHAR FROM given")


READ: dict[str, Callable[[bytes], str]] = {
    "ndjson": as_ndjson,
    "csv": as_csv,
    "parquet": lambda octets: as_columns(parquet.read_table(io.BytesIO(octets))),
    "arrow": lambda octets: as_columns(pa.ipc.open_stream(octets).read_all()),
}


def _one(connection: Any, statement: str) -> str:
    ((text,),) = connection.execute(statement).fetchall()
    return str(text)


def alike(text: str) -> str:
    """Text without what is written in several ways: a T between date and time, zones, zeros."""
    text = text.strip().replace("T", " ").removesuffix("Z").removesuffix("+00")
    return text.rstrip("0").rstrip(".") if "." in text and ":" in text else text.lower()


def of_duckdb(value: str) -> str:
    return _one(in_utc(), f"SELECT ({value})::VARCHAR")


def test_all_types_are_here() -> None:
    asked = "SELECT DISTINCT lower(logical_type) FROM duckdb_types()"
    there = {name for (name,) in duckdb.connect().execute(asked).fetchall()}
    assert there - NESTED - {'"null"'} <= set(KINDS)


@pytest.mark.parametrize("value", [*KINDS.values(), *ALSO.values()], ids=[*KINDS, *ALSO])
def test_values(capture: amqpsniff.Capture, value: str) -> None:
    if "TIMESTAMPTZ_NS" in value and duckdb.__version__ < "2":
        pytest.skip("no such type yet")
    expected = alike(of_duckdb(value))
    result = capture.sql(f"SELECT {value} AS v")
    batches = list(result)
    for format, read in READ.items():
        sink = io.BytesIO()
        export.write(batches, result.schema, format, sink)
        assert (format, alike(read(sink.getvalue()))) == (format, expected)
    show(result, Output(text := io.StringIO()))
    heading, _, shown = text.getvalue().partition("\n")
    assert (heading.strip(), alike(shown.strip())) == ("v", expected)


@pytest.mark.parametrize("kind", ["uhugeint", "bit", "time with time zone", "type", "variant"])
@pytest.mark.parametrize(
    "around",
    [
        "[{}]",
        "array_value({})",
        "{{'a \"b\"': {}, 'c': 1}}",
        "MAP {{'k': {}}}",
        "[[{}]]",
        "row({})",
    ],
)
def test_values_within_others(capture: amqpsniff.Capture, around: str, kind: str) -> None:
    value = of_duckdb(KINDS[kind])
    (row,) = capture.sql(f"SELECT 1 AS v, {around.format(KINDS[kind])} AS v").table()[1].to_pylist()
    assert value in repr(row)


def test_rows_stay_in_their_order(capture: amqpsniff.Capture) -> None:
    statement = 'SELECT n::UHUGEINT AS n, n AS "a ""b""" FROM range(5000) AS t(n) ORDER BY n DESC'
    table = capture.sql(statement).table()
    assert table.schema.names == ["n", 'a "b"']
    assert table["n"].to_pylist() == [str(number) for number in reversed(range(5000))]


FAR = {
    "infinite date": "'-infinity'::DATE",
    "infinite timestamp": "'infinity'::TIMESTAMP",
    "infinite time of a zone": "'infinity'::TIMESTAMPTZ",
    "far date": "DATE '10000-01-01'",
    "far time of a zone": "to_timestamp(1782000000000)",
    "before the year 1": "DATE '0001-01-01' - 1",
    "in a list": "['infinity'::TIMESTAMP]",
    "in a structure": "{'a': TIMESTAMP '0001-01-01 00:00:00' - INTERVAL 1 second}",
    "end of a day": "TIME '24:00:00'",
}


@pytest.mark.parametrize("value", FAR.values(), ids=FAR)
def test_times_far_from_now_are_refused(capture: amqpsniff.Capture, value: str) -> None:
    statement = f"SELECT CASE WHEN n = 5100 THEN {value} END AS v FROM range(6000) AS t(n)"
    with pytest.raises(FilterError, match=r"^`v` has a time outside .* cast it to VARCHAR$"):
        capture.sql(statement).table()
    (text,) = capture.sql(f"SELECT ({value})::VARCHAR AS v").table()["v"].to_pylist()
    assert text == of_duckdb(value)


@pytest.mark.parametrize("value", ["DATE '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"])
def test_first_and_last_time(capture: amqpsniff.Capture, value: str) -> None:
    (one,) = capture.sql(f"SELECT {value} AS v").table()["v"].to_pylist()
    assert str(one) == of_duckdb(value)
