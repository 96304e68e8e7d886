"""Results as tables of Arrow, pandas and polars; parameters of statements; files that are open."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.errors import FilterError, UsageError
from tests.conftest import SAMPLES

MIX = SAMPLES / "pika_mix.pcap"


@pytest.mark.parametrize("name", ["frames", "messages", "findings"])
def test_rows_as_tables(name: str) -> None:
    rows = getattr(amqpsniff.open(MIX), name)(connection=":43706")
    table = rows.arrow()
    assert table.num_rows == len(list(rows))
    assert table.equals(rows.arrow())
    capture = amqpsniff.open(MIX)
    assert table.select(capture.table(name).schema.names).equals(
        capture.table(name, connection=":43706")
    )


def test_pandas_keeps_numbers_that_may_be_null() -> None:
    pytest.importorskip("pandas")
    frame = amqpsniff.open(MIX).messages().df()
    assert frame["outcome_ns"].dtype == "int64[pyarrow]"
    assert frame["redelivered"].dtype == "bool[pyarrow]"
    assert int(frame["outcome_ns"].isna().sum()) > 0
    assert len(amqpsniff.open(MIX).sql("SELECT method FROM frames").df()) == 563


def test_polars() -> None:
    pytest.importorskip("polars")
    frame = amqpsniff.open(MIX).messages(limit=5).pl()
    assert frame.height == 5
    assert str(frame["outcome_ns"].dtype) == "Int64"


@pytest.mark.parametrize(("library", "method"), [("pandas", "df"), ("polars", "pl")])
def test_a_library_that_is_not_there(
    library: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UsageError, match=rf"no {library} here; .*pip install 'amqpsniff\[data"):
        getattr(amqpsniff.open(MIX).frames(limit=1), method)()


def test_parameters() -> None:
    capture = amqpsniff.open(MIX)
    in_order = capture.sql("SELECT count(*) AS n FROM frames WHERE method = ?", ["basic.ack"])
    named = capture.sql("SELECT count(*) AS n FROM frames WHERE method = $m", {"m": "basic.ack"})
    for result in (in_order, named):
        assert [result.arrow().to_pylist() for _ in range(2)] == [[{"n": 89}]] * 2
    hostile = "' OR true --"
    assert capture.sql("SELECT 1 FROM frames WHERE method = ?", [hostile]).arrow().num_rows == 0
    assert capture.sql("SELECT method FROM frames WHERE size > ? ORDER BY 1", [800]).arrow()
    for parameters in (None, [], ["a", "b"]):
        with pytest.raises(FilterError):
            capture.sql("SELECT 1 FROM frames WHERE method = ?", parameters)


class Stream(io.RawIOBase):
    """A file that only reads on."""

    def __init__(self, octets: bytes) -> None:
        self._rest = io.BytesIO(octets)

    def readable(self) -> bool:
        return True

    def readinto(self, room: bytearray) -> int:  # type: ignore[override]
        return self._rest.readinto(room)


def test_files_that_are_open() -> None:
    octets = MIX.read_bytes()
    expected = amqpsniff.open(MIX).table("messages").drop_columns("capture")
    packed = gzip.compress(octets)
    unpacked = gzip.GzipFile(fileobj=io.BytesIO(packed))
    with MIX.open("rb") as file:
        for one in (file, io.BytesIO(octets), io.BytesIO(packed), unpacked, Stream(octets)):
            capture = amqpsniff.open(one)
            for _ in range(2):
                assert capture.table("messages").drop_columns("capture").equals(expected)
            outer, inner = capture.batches("frames"), capture.batches("frames")
            assert next(outer).equals(next(inner))
        assert amqpsniff.open(file).names == [str(MIX)]
    two = amqpsniff.open(io.BytesIO(octets), io.BytesIO(octets), SAMPLES / "bunny.pcapng")
    assert two.names == ["<BytesIO>", "<BytesIO> 2", str(SAMPLES / "bunny.pcapng")]
    assert two.diagnose().packets == 568 * 2 + 128
    assert amqpsniff.open(Stream(octets)).cut("/dev/null", method="basic.ack").packets > 0


def test_what_is_no_binary_file(tmp_path: Path) -> None:
    for wrong in (3, io.StringIO("text"), MIX.open(encoding="latin-1")):
        with pytest.raises(UsageError, match="is not a capture"):
            amqpsniff.open(wrong)  # type: ignore[arg-type]


def test_watch_gives_rows_as_they_are_settled(tmp_path: Path) -> None:
    growing = tmp_path / "growing.pcap"
    octets = MIX.read_bytes()
    growing.write_bytes(octets[:40_000])
    rows = amqpsniff.watch(capture=str(growing), packets=568, settle_seconds=None, method="publish")
    first = next(rows)
    assert (first.method, first.outcome) == ("basic.publish", "confirmed")
    with growing.open("ab") as file:
        file.write(octets[40_000:])
    assert 1 + len(list(rows)) == 53
    connections = amqpsniff.watch(capture=str(MIX), packets=568, table="connections")
    assert len(list(connections)) == 4
    assert list(amqpsniff.watch(capture=str(MIX), seconds=0.3, limit=0)) == []
    with pytest.raises(UsageError, match="an interface"):
        amqpsniff.watch()
    with pytest.raises(UsageError):
        amqpsniff.watch("no-such-interface")
