"""Batches made from the decoder's columns: types, nulls, words, and only the columns asked for."""

from pathlib import Path

import pyarrow as pa
import pytest

import amqpsniff
from amqpsniff.columns import PADDING_BYTES
from amqpsniff.decode.rows import FrameRows, MessageRows
from amqpsniff.engine import Engine
from amqpsniff.errors import FilterError, UsageError
from amqpsniff.findings import Finding
from amqpsniff.tables.batches import NEVER_NULL, Maker, finding_batch, plain
from amqpsniff.tables.query import Filter
from amqpsniff.tables.schema import FINDINGS, OUTCOME, TABLES, schema_of
from tests.conftest import CAPTURES
from tests.thorough import some

NO_METHOD = bytes.fromhex("01 0001 00000004 1234 5678 ce")
ODD_TYPE = bytes.fromhex("1f 0001 00000000 ce")
HEARTBEAT = bytes.fromhex("08 0000 00000000 ce")
HEADER = b"AMQP\0\0\x09\x01"


def captures(samples: Path) -> list[Path]:
    return sorted(path for path in samples.iterdir() if ".pcap" in path.name)


@pytest.mark.parametrize("table", TABLES)
def test_every_sample_gives_valid_batches_of_the_contract(samples: Path, table: str) -> None:
    no_texts = CAPTURES / "hostile" / "bad8_ex.pcap"  # names of bytes that are not text
    for path in (*captures(samples), no_texts):
        capture = amqpsniff.open(path, bodies=True, body_sha256=True)
        for batch in capture.batches(table, encoded=True):
            batch.validate(full=True)
            for column in batch.columns:
                words = getattr(column, "dictionary", pa.array([])).to_pylist()
                assert len(set(words)) == len(words)
            whole = plain(batch)
            whole.validate(full=True)
            assert whole.schema == schema_of(table)
            assert not any(isinstance(column, pa.DictionaryArray) for column in whole.columns)


@pytest.mark.parametrize("table", ["frames", "messages"])
def test_columns_that_are_not_searched_for_nulls_have_none(samples: Path, table: str) -> None:
    for path in captures(samples):
        rows = amqpsniff.open(path).table(table)
        for name in NEVER_NULL.intersection(rows.column_names):
            assert all(value >= 0 for value in rows[name].to_pylist()), (path.name, name)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "name", ["v08_v09.pcap", "pika_mix.pcap", "../tests/captures/amqp10/links.pcap"]
)
def test_columns_asked_for_are_as_in_the_whole_table(samples: Path, name: str, table: str) -> None:
    capture = amqpsniff.open(samples / name, bodies=True, body_sha256=True)
    whole = capture.table(table)
    assert whole.num_rows or table == "links"
    every = name == "pika_mix.pcap" or table == "links"
    for column in whole.column_names if every else some(whole.column_names):
        assert capture.table(table, columns=[column]).equals(whole.select([column])), column
    third = whole.column_names[::3]
    assert capture.table(table, columns=third[::-1]).column_names == third


def test_messages_are_the_same_where_nobody_asks_what_became_of_them(samples: Path) -> None:
    for path in captures(samples):
        capture = amqpsniff.open(path)
        whole = capture.table("messages")
        names = [name for name in whole.column_names if name not in OUTCOME]
        assert capture.table("messages", columns=names).equals(whole.select(names)), path.name
        assert capture.table("messages", columns=["outcome"]).equals(whole.select(["outcome"]))


def test_nothing_of_the_memory_stands_behind_the_rows(samples: Path) -> None:
    """Arrow's streams have up to `PADDING_BYTES` of what a buffer has behind its last row."""
    capture = amqpsniff.open(samples / "pika_mix.pcap", bodies=True)
    for table, kind in (("frames", FrameRows), ("messages", MessageRows)):
        for batch in capture.batches(table, encoded=True):
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                texts = getattr(column, "dictionary", column)
                if pa.types.is_string(texts.type) or pa.types.is_binary(texts.type):
                    _, offsets, octets = texts.buffers()
                    end = memoryview(offsets).cast("i")[len(texts)]
                    assert not any(bytes(octets)[end : end + PADDING_BYTES]), name
                if name in kind.WRITTEN and column.type not in (pa.string(), pa.bool_()):
                    numbers = getattr(column, "indices", column)
                    end = numbers.type.bit_width // 8 * len(numbers)
                    assert not any(bytes(numbers.buffers()[1])[end : end + PADDING_BYTES]), name


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="frames: no column `size_bytes`; `amqpsniff sql"):
        Maker("frames", columns=["size_bytes"])


@pytest.mark.parametrize(
    ("table", "old", "new"),
    [
        ("findings", "grade", "confidence"),
        ("messages", "match", "link_confidence"),
        ("messages", "late", "reply_late"),
        ("connections", "client_octets", "client_bytes"),
        ("connections", "lost_octets", "lost_bytes"),
    ],
)
def test_the_old_name_of_a_column_says_the_new_one(table: str, old: str, new: str) -> None:
    words = f"no column `{old}`; it is `{new}` now"
    with pytest.raises(UsageError, match=f"{table}: {words}"):
        Maker(table, columns=[old])
    with pytest.raises(FilterError, match=words):
        Filter(schema_of(table, everything=True), f"{old} IS NOT NULL")


def test_unknown_methods_and_frame_types_have_names() -> None:
    engine = Engine()
    engine.feed_bytes("a", "client", HEADER + NO_METHOD + ODD_TYPE + NO_METHOD)
    rows = engine.take("frames").to_pylist()
    assert [row["method"] for row in rows] == [None, "4660.22136", None, "4660.22136"]
    assert [row["frame_type"] for row in rows] == ["protocol-header", "method", "type-31", "method"]


def test_times_are_rounded_down_to_microseconds_and_null_where_unknown() -> None:
    engine = Engine()
    engine.feed_bytes("a", "client", HEADER, ts_ns=1_700_000_000_000_001_999)
    engine.feed_bytes("a", "client", HEARTBEAT)
    first, second = engine.take("frames").to_pylist()
    assert first["ts_ns"] == 1_700_000_000_000_001_999
    assert first["timestamp"].isoformat() == "2023-11-14T22:13:20.000001+00:00"
    assert second["ts_ns"] is second["timestamp"] is None


def test_a_file_name_that_is_not_utf_8_is_shown_with_escapes() -> None:
    name = b"caf\xe9.pcap".decode(errors="surrogateescape")
    engine = Engine(capture=name)
    engine.feed_bytes("a", "client", HEADER)
    batch = engine.take("frames")
    batch.validate(full=True)
    assert batch.column("capture").to_pylist() == [r"caf\udce9.pcap"]


def test_findings_have_the_catalogue_s_words_and_nulls_where_nothing_is_known() -> None:
    bare = Finding("capture-truncated", "the file ends")
    full = Finding("not-amqp", "TLS", "x.pcap", 3, 5_000, "00ff", "a:1", "b:2", 7, 9, 12)
    batch = finding_batch([bare, full])
    batch.validate(full=True)
    assert batch.schema == FINDINGS
    first, second = batch.to_pylist()
    assert first["severity"] == "warning"
    assert first["title"] == bare.kind.title
    assert [name for name, value in first.items() if value is None] == [
        *("capture", "packet_number", "ts_ns", "timestamp", "connection_id", "client", "server"),
        *("channel", "last_packet_number", "cause_code", "cause_packet_number"),
    ]
    assert (second["channel"], second["count"], second["last_packet_number"]) == (7, 9, 12)
    assert second["timestamp"].microsecond == 5
    assert finding_batch([]).num_rows == 0
    assert finding_batch([]).schema == FINDINGS


def test_messages_keep_their_bodies_and_flags() -> None:
    capture = amqpsniff.open(Path(__file__).parents[2] / "samples" / "pika_mix.pcap", bodies=True)
    rows = capture.table("messages").to_pylist()
    published = [row for row in rows if row["method"] == "basic.publish"]
    delivered = [row for row in rows if row["method"] == "basic.deliver"]
    assert {row["mandatory"] for row in published} <= {True, False}
    assert {row["mandatory"] for row in delivered} == {None}
    assert {row["redelivered"] for row in delivered} <= {True, False}
    whole = [row for row in rows if row["status"] == "complete"]
    assert whole
    assert all(len(row["body"]) == row["body_size"] for row in whole)
