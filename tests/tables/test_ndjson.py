"""NDJSON says what the batch says, whatever its types, encoding and slicing."""

import datetime
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import amqpsniff
from amqpsniff.tables.batches import plain
from amqpsniff.tables.ndjson import KEPT_BYTES, WRITE_BYTES, Writer
from amqpsniff.tables.schema import JSON_COLUMNS, TABLES
from tests.plain import bytes_of, copied
from tests.tables import arrays
from tests.thorough import some

SCRIPT = """
import sys
import pyarrow as pa
from amqpsniff.tables import ndjson
from amqpsniff.tables.ndjson import Writer

print(ndjson.__file__.endswith(".py"), flush=True)
for name in sys.argv[1:]:
    with pa.ipc.open_stream(name) as reader:
        writer = Writer(reader.schema)
        for batch in reader:
            writer.write(batch, sys.stdout.buffer)
"""


def written(batch: pa.RecordBatch, schema: pa.Schema | None = None) -> bytes:
    sink = io.BytesIO()
    Writer(schema or batch.schema).write(batch, sink)
    return sink.getvalue()


def read(octets: bytes) -> list[Any]:
    assert not octets or octets.endswith(b"\n")
    return [json.loads(line) for line in octets.split(b"\n")[:-1]]


def check(batch: pa.RecordBatch) -> None:
    octets = written(batch)
    rows = read(octets)
    assert rows == arrays.expected_rows(batch)
    assert [list(row) for row in rows] == [batch.schema.names] * batch.num_rows
    assert octets.decode().isprintable() or b"\x00" not in octets
    assert not any(octet < 32 for line in octets.split(b"\n") for octet in line)


@given(arrays.batches(arrays.TABLE_TYPES))
def test_types_of_the_tables(batch: pa.RecordBatch) -> None:
    check(batch)


@given(arrays.batches(arrays.TABLE_TYPES | arrays.SQL_TYPES))
def test_types_that_sql_gives(batch: pa.RecordBatch) -> None:
    check(batch)


@given(st.lists(arrays.int64))
@example([-(2**63), 2**63 - 1, 0])
def test_numbers_have_all_their_digits(values: list[int]) -> None:
    batch = pa.record_batch({"n": pa.array(values, pa.int64())})
    assert written(batch) == b"".join(b'{"n":%d}\n' % value for value in values)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
@example([-(2**63), 2**63 - 1, -1, 0, -62_135_596_800_000_000, 253_402_300_799_999_999])
def test_times_are_rfc_3339_where_it_can_say_them(values: list[int]) -> None:
    batch = pa.record_batch({"t": pa.array(values, pa.timestamp("us", "UTC"))})
    for micros, row in zip(values, read(written(batch)), strict=True):
        try:
            time = arrays.EPOCH + datetime.timedelta(microseconds=micros)
        except OverflowError:
            if abs(micros) == 2**63 - 1:
                assert row["t"] == ("infinity" if micros > 0 else "-infinity")
                continue
            sign, rest = row["t"][0], row["t"][1:]
            assert sign in "+-"
            assert rest[6:7] == rest[9:10] == "-"
        else:
            assert row["t"] == arrays.expected(time, pa.timestamp("us", "UTC"))


@pytest.mark.parametrize("table", TABLES)
def test_samples_encoded_and_plain_give_the_same_lines(samples: Path, table: str) -> None:
    for path in some(sorted(samples.glob("*.pcap*")), 2):
        for batch in amqpsniff.open(path, bodies=True).batches(table, encoded=True):
            octets = written(batch)
            whole = plain(batch)
            assert octets == written(whole)
            rows = arrays.expected_rows(whole)
            for row in rows:
                for name in JSON_COLUMNS & row.keys():
                    row[name] = row[name] and json.loads(row[name])
            assert read(octets) == rows


def test_columns_in_any_order(samples: Path) -> None:
    (batch,) = amqpsniff.open(samples / "pika_mix.pcap").batches("frames", encoded=True)
    names = batch.schema.names[::-2]
    some = batch.select(names)
    rows = read(written(some))
    assert all(list(row) == names for row in rows)
    assert rows == arrays.expected_rows(plain(some))


def test_json_that_sql_made_is_nested_only_where_it_is_json() -> None:
    values = ['{"a":\n[1]}', "[1]", "7", "no", "{", None, '{"a":1}{', "[" * 100_000]
    for mark, sound in ((b"object", 1), (b"any", 3)):
        field = pa.field("arguments", pa.string(), metadata={b"json": mark})
        batch = pa.record_batch({"arguments": pa.array(values, pa.string())})
        octets = written(batch, pa.schema([field]))
        got = [row["arguments"] for row in read(octets)]
        wanted = [json.loads(value) for value in values[:3] if value]
        assert got == [*wanted[:sound], *values[sound:]]


def test_lines_reach_the_sink_in_pieces_and_a_long_line_leaves_no_large_buffer() -> None:
    class Sink(io.BytesIO):
        sizes: list[int] = []  # noqa: RUF012

        def write(self, octets: Any) -> int:
            self.sizes.append(len(octets))
            return super().write(octets)

    sink = Sink()
    batch = pa.record_batch({"text": ["x" * 1000] * 1000 + ["y" * (KEPT_BYTES + 1)]})
    writer = Writer(batch.schema)
    tracemalloc.start()
    writer.write(batch, sink)  # type: ignore[arg-type]
    kept_bytes = tracemalloc.get_traced_memory()[0] - len(sink.getbuffer())
    tracemalloc.stop()
    assert sum(sink.sizes[:-1]) >= 3 * WRITE_BYTES
    assert max(sink.sizes[:-1]) <= WRITE_BYTES + 1100
    assert kept_bytes <= KEPT_BYTES
    assert read(sink.getvalue()) == batch.to_pylist()


def test_no_columns_and_no_rows() -> None:
    batch = pa.record_batch({"a": pa.array([], pa.int64())})
    assert written(batch) == b""
    assert written(pa.record_batch({"a": pa.array([], pa.null())})) == b""


def test_uncompiled_lines_are_the_same(samples: Path, tmp_path: Path) -> None:
    copied(tmp_path)
    names, wanted = [], b"True\n"
    for path in ("pika_mix.pcap", "v08_v09.pcap"):
        for table in TABLES:
            capture = amqpsniff.open(samples / path, bodies=True)
            name = str(tmp_path / f"{path}.{table}")
            batches = list(capture.batches(table, encoded=True))
            batches.append(odd_batch())
            for place, batch in enumerate(batches):
                names.append(f"{name}.{place}")
                with pa.ipc.new_stream(names[-1], batch.schema) as sink:
                    sink.write_batch(batch)
                wanted += written(batch)
    assert bytes_of(tmp_path, SCRIPT, *names) == wanted


def odd_batch() -> pa.RecordBatch:
    """Values at the edges, that samples do not have."""
    edges = [None, -(2**63), 2**63 - 1, 0, -1, 10**18]
    return pa.record_batch(
        {
            "long": pa.array(edges, pa.int64()),
            "time": pa.array(edges, pa.timestamp("us", "UTC")),
            "text": ['\0\x1f"\\\n\r\t\x7f', "é😀\u2028", "", None, "a" * 100, "\\"],
            "octets": [b"\xff\0", b"plain", b"", None, b"\xed\xa0\x80", b'"'],
            "truth": [True, False, None, True, False, None],
            "real": [0.1, float("nan"), float("inf"), None, -0.0, 1e300],
        }
    )
