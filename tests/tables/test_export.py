"""What is written in each format reads back as the rows that were given."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import amqpsniff
from amqpsniff.errors import UsageError
from amqpsniff.tables import export
from amqpsniff.tables.batches import plain
from amqpsniff.tables.schema import IN_EVERY_ROW, JSON_COLUMNS, TABLES, schema_of
from tests.conftest import own_captures

CAPTURES = ("pika_mix.pcap", "v08_v09.pcap", "bunny.pcapng", "snapped.pcap")


@pytest.fixture(scope="module", params=CAPTURES)
def capture(request: pytest.FixtureRequest, samples: Path) -> amqpsniff.Capture:
    return amqpsniff.open(samples / request.param, bodies=True, body_sha256=True)


def exported(capture: amqpsniff.Capture, table: str, format: str, *, encoded: bool = True) -> bytes:
    sink = io.BytesIO()
    batches = capture.batches(table, encoded=encoded)
    rows = export.write(batches, schema_of(table), format, sink)
    assert rows == capture.table(table).num_rows
    return sink.getvalue()


@pytest.mark.parametrize("encoded", [True, False])
@pytest.mark.parametrize("table", TABLES)
def test_parquet(capture: amqpsniff.Capture, table: str, encoded: bool) -> None:
    octets = exported(capture, table, "parquet", encoded=encoded)
    read = pq.read_table(io.BytesIO(octets))
    assert read.schema == schema_of(table)
    assert read.equals(capture.table(table))


@pytest.mark.parametrize("table", IN_EVERY_ROW)
def test_parquet_says_what_is_in_every_row(capture: amqpsniff.Capture, table: str) -> None:
    sink = io.BytesIO()
    schema = schema_of(table)
    there = IN_EVERY_ROW[table]
    export.write(capture.batches(table, encoded=True), schema, "parquet", sink, there)
    read = pq.read_table(sink)
    assert {one.name for one in read.schema if not one.nullable} == there
    assert read.cast(schema).equals(capture.table(table))


def test_what_is_in_every_row() -> None:
    for path in own_captures().values():
        rows = amqpsniff.open(path).table("frames")
        assert not any(rows[name].null_count for name in IN_EVERY_ROW["frames"]), path.name


def test_parquet_of_rows_with_and_without_nulls_is_one_dataset(
    capture: amqpsniff.Capture, tmp_path: Path
) -> None:
    """Files written without saying what is in every row go together with those that say it."""
    for name, there in (("a", ()), ("b", IN_EVERY_ROW["frames"]), ("c", ())):
        batches = capture.batches("frames", encoded=True)
        file = tmp_path / f"{name}.parquet"
        export.write(batches, schema_of("frames"), "parquet", file, there)
    rows = capture.table("frames").num_rows
    assert pq.read_table(tmp_path).num_rows == 3 * rows


@pytest.mark.parametrize("encoded", [True, False])
@pytest.mark.parametrize("table", TABLES)
def test_arrow(capture: amqpsniff.Capture, table: str, encoded: bool) -> None:
    octets = exported(capture, table, "arrow", encoded=encoded)
    read = pa.ipc.open_stream(octets).read_all()
    assert read.schema == schema_of(table)
    assert read.equals(capture.table(table))


@pytest.mark.parametrize("table", TABLES)
def test_ndjson(capture: amqpsniff.Capture, table: str) -> None:
    lines = exported(capture, table, "ndjson").splitlines()
    rows = capture.table(table, columns=[n for n in schema_of(table).names if n != "body"])
    for line, row in zip(lines, rows.to_pylist(), strict=True):
        read = json.loads(line)
        read.pop("body", None)
        assert list(read) == list(row)
        for name, value in row.items():
            if value is not None and name in JSON_COLUMNS:
                row[name] = json.loads(value)
            elif hasattr(value, "isoformat"):
                row[name] = value.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        assert read == row


@pytest.mark.parametrize("table", TABLES)
def test_csv(capture: amqpsniff.Capture, table: str) -> None:
    octets = exported(capture, table, "csv")
    rows = list(csv.DictReader(io.StringIO(octets.decode(), newline="")))
    wanted = capture.table(table).to_pylist()
    assert len(rows) == len(wanted)
    for row, want in zip(rows, wanted, strict=True):
        assert list(row) == list(want)
        for name, value in want.items():
            if isinstance(value, (str, int)) and not isinstance(value, bool):
                assert row[name] == str(value)
            elif value is None:
                assert row[name] == ""


def test_csv_tells_null_from_empty_and_writes_bytes_as_text() -> None:
    batch = pa.record_batch(
        {"text": ["", None, 'a"b\n'], "body": [b"plain", b"\xff", None], "list": [[1], None, []]}
    )
    sink = io.BytesIO()
    export.write([batch], batch.schema, "csv", sink)
    assert sink.getvalue().decode() == (
        '"text","body","list"\n'
        '"","plain","[1]"\n'
        ',"{""base64"":""/w==""}",\n'
        '"a""b\n",,"[]"\n'
    )  # fmt: skip


@pytest.mark.parametrize("format", export.FORMATS)
@pytest.mark.parametrize("table", TABLES)
def test_no_rows(table: str, format: str) -> None:
    sink = io.BytesIO()
    assert export.write([], schema_of(table), format, sink) == 0
    octets = sink.getvalue()
    if format == "ndjson":
        assert octets == b""
    elif format == "parquet":
        assert pq.read_schema(io.BytesIO(octets)) == schema_of(table)
    elif format == "arrow":
        assert pa.ipc.open_stream(octets).schema == schema_of(table)
    else:
        assert octets.decode().strip().split(",") == [f'"{n}"' for n in schema_of(table).names]


def test_parquet_has_no_types_of_its_own(samples: Path) -> None:
    octets = exported(amqpsniff.open(samples / "pika_mix.pcap"), "frames", "parquet")
    file = pq.ParquetFile(io.BytesIO(octets))
    assert file.metadata.metadata is None or b"ARROW:schema" not in file.metadata.metadata
    kinds = {column.name: str(column.logical_type) for column in file.schema}
    assert kinds["method"] == "String"
    assert "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds" in kinds["timestamp"]


def test_parquet_row_groups_are_large_and_share_dictionaries(samples: Path) -> None:
    capture = amqpsniff.open(samples / "php_churn.pcap")
    (frames,) = capture.batches("frames", encoded=True)
    whole = frames.select(["packet_number", "connection_id"])
    pieces = [whole] * (export.ROW_GROUP_ROWS // whole.num_rows + 2)
    sink = io.BytesIO()
    export.write(pieces, whole.schema, "parquet", sink)
    file = pq.ParquetFile(sink)
    first, second = (file.metadata.row_group(at).num_rows for at in range(file.num_row_groups))
    assert second == whole.num_rows <= first - export.ROW_GROUP_ROWS + whole.num_rows
    assert file.read().equals(pa.Table.from_batches([plain(one) for one in pieces]))
    column = file.metadata.row_group(0).column(whole.schema.names.index("connection_id"))
    assert "PLAIN_DICTIONARY" in column.encodings or "RLE_DICTIONARY" in column.encodings


def test_parquet_batches_of_different_dictionaries_are_one_group(samples: Path) -> None:
    names = sorted(samples.glob("*.pcap"))
    batches = [b for n in names for b in amqpsniff.open(n).batches("frames", encoded=True)]
    sink = io.BytesIO()
    export.write(batches, schema_of("frames"), "parquet", sink)
    file = pq.ParquetFile(sink)
    assert file.num_row_groups == 1
    assert file.read().equals(pa.Table.from_batches(map(plain, batches)))


def test_a_row_group_ends_when_it_takes_much_memory() -> None:
    batch = pa.record_batch({"body": [b"x" * (export.PLAIN_BYTES * 3 // 5)]})
    encoded = batch.append_column("method", pa.array(["a"]).dictionary_encode())
    for rows, groups in ((batch, 4), (encoded, 2)):
        sink = io.BytesIO()
        export.write([rows] * 8, rows.schema, "parquet", sink)
        assert pq.ParquetFile(sink).num_row_groups == groups


@pytest.mark.parametrize("format", export.FORMATS)
def test_any_schema(format: str) -> None:
    batch = pa.record_batch(
        {
            "ts_ns": pa.array(["a column of this name and another type"]),
            "n": pa.array([1.5]),
            "many": pa.array([[1, 2]]),
            "both": pa.array([{"a": 1}]),
        }
    )
    sink = io.BytesIO()
    assert export.write([batch], batch.schema, format, sink) == 1
    if format == "parquet":
        assert pq.read_table(sink).to_pylist() == batch.to_pylist()


def test_a_file_by_name_and_an_open_one(samples: Path, tmp_path: Path) -> None:
    capture = amqpsniff.open(samples / "pika_mix.pcap")
    path = tmp_path / "frames.parquet"
    export.write(capture.batches("frames", encoded=True), schema_of("frames"), "parquet", path)
    with (tmp_path / "again").open("wb") as file:
        export.write(capture.batches("frames", encoded=True), schema_of("frames"), "parquet", file)
        assert not file.closed
    assert (tmp_path / "again").read_bytes() == path.read_bytes(), "the same rows, another file"


def test_rows_are_written_as_they_come(samples: Path) -> None:
    """A pipe's reader sees a batch before the next one is made."""
    capture = amqpsniff.open(samples / "pika_mix.pcap")
    (batch,) = capture.batches("frames", encoded=True)
    sink = io.BytesIO()

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch
        assert sink.getvalue().count(b"\n") == batch.num_rows

    export.write(batches(), schema_of("frames"), "ndjson", sink)


def test_an_unknown_format_is_named_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="no format `xml`; the formats are ndjson, csv, parquet, "):
        export.write([], schema_of("frames"), "xml", io.BytesIO())


class Broken(io.BytesIO):
    """A pipe whose reader has gone."""

    def write(self, octets: object) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("format", export.FORMATS)
def test_a_broken_pipe_stays_one(samples: Path, format: str) -> None:
    batches = amqpsniff.open(samples / "pika_mix.pcap").batches("frames", encoded=True)
    with pytest.raises(BrokenPipeError):
        export.write(batches, schema_of("frames"), format, Broken())
