"""Tables as sources of other engines: the rows are those of the table, and only what is asked for
is made."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import amqpsniff
from amqpsniff.errors import UsageError
from amqpsniff.tables.scans import ScannedTable, lazy_frame
from amqpsniff.tables.schema import EVERYTHING
from tests.conftest import SAMPLES

CAPTURE = f"{SAMPLES}/pika_mix.pcap"


class Readings:
    """The columns of each reading of the messages of a capture."""

    def __init__(self) -> None:
        self.columns: list[list[str]] = []

    def __call__(self, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        self.columns.append(list(columns))
        return amqpsniff.open(CAPTURE).batches("messages", columns=columns)


@pytest.mark.parametrize("table", EVERYTHING)
def test_rows_are_those_of_the_table(table: str) -> None:
    capture = amqpsniff.open(CAPTURE)
    names = EVERYTHING[table].names
    rows = capture.table(table, columns=names)
    assert capture.dataset(table).to_table().equals(rows)
    assert capture.scan(table).collect().equals(pl.from_arrow(rows))


def test_a_query_of_duckdb_reads_its_columns_only() -> None:
    readings = Readings()
    messages = ScannedTable(EVERYTHING["messages"], readings)
    statement = "SELECT method, sum(body_size) FROM messages WHERE outcome = 'acked' GROUP BY 1"
    assert duckdb.sql(statement).fetchall() == [("basic.deliver", 17557)]
    assert messages.schema == EVERYTHING["messages"]
    assert readings.columns == [["method", "body_size", "outcome"]]


def test_duckdb_counts_without_columns() -> None:
    readings = Readings()
    messages = ScannedTable(EVERYTHING["messages"], readings)
    assert messages.count_rows() == 111
    assert duckdb.sql("SELECT count(*) FROM messages").fetchall() == [(111,)]
    assert len(readings.columns[1]) == 1


def test_rows_are_chosen_by_columns_that_are_not_given() -> None:
    readings = Readings()
    messages = ScannedTable(EVERYTHING["messages"], readings)
    chosen = messages.to_table(columns=["method"], filter=ds.field("outcome") == "acked")
    assert chosen.to_pylist() == [{"method": "basic.deliver"}] * 40
    assert readings.columns == [["method", "outcome"]]


def test_a_query_of_polars_reads_its_columns_only() -> None:
    readings = Readings()
    messages = lazy_frame(EVERYTHING["messages"], readings)
    acked = messages.filter(pl.col("outcome") == "acked").select("body_size")
    assert acked.sum().collect().item() == 17557
    assert readings.columns == [["body_size", "outcome"]]


def test_polars_ends_a_reading_when_it_has_enough() -> None:
    readings = Readings()
    messages = lazy_frame(EVERYTHING["messages"], readings).select("packet_number", "method")
    whole = messages.collect()
    assert messages.head(3).collect().equals(whole.head(3))
    deliveries = pl.col("method") == "basic.deliver"
    assert messages.filter(deliveries).head(3).collect().equals(whole.filter(deliveries).head(3))


def test_filters_choose_rows() -> None:
    part = amqpsniff.open(CAPTURE).dataset("messages", queue="orders.eu", outcome="requeued")
    assert part.count_rows() == 8
    assert amqpsniff.open(CAPTURE).scan("frames", method="queue.*").collect().height == 26


def test_a_table_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="no table `queues`; the tables are frames"):
        amqpsniff.open(CAPTURE).dataset("queues")
