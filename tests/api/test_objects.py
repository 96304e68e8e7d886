"""Rows as objects: what a column says, by its name."""

from __future__ import annotations

import datetime
import pickle

import pytest

import amqpsniff
from amqpsniff.objects import Finding, Frame, Message
from amqpsniff.tables.schema import schema_of
from tests.conftest import SAMPLES

KINDS = {"frames": Frame, "messages": Message, "findings": Finding}


@pytest.mark.parametrize("name", ["pika_mix.pcap", "snapped.pcap", "v08_v09.pcap"])
@pytest.mark.parametrize("table", KINDS)
def test_every_column_of_every_row(name: str, table: str) -> None:
    capture = amqpsniff.open(SAMPLES / name)
    objects = list(getattr(capture, table)())
    every = schema_of(table, everything=True).names
    rows = capture.table(table, columns=every).to_pylist()
    assert len(objects) == len(rows)
    for each, row in zip(objects, rows, strict=True):
        shown = each.as_dict()
        assert shown.keys() == row.keys()
        for column, value in row.items():
            if column not in KINDS[table].JSON:
                assert shown[column] == getattr(each, column) == value
            else:
                assert value is None or isinstance(shown[column], dict)


@pytest.mark.parametrize("table", KINDS)
def test_columns_are_declared(table: str) -> None:
    """For type checkers, in the table's order."""
    schema = schema_of(table, everything=True)
    assert list(KINDS[table].__annotations__) == schema.names


def test_values() -> None:
    capture = amqpsniff.open(SAMPLES / "pika_mix.pcap", bodies=True)
    message = next(capture.messages())
    assert (message.exchange, message.mandatory, message.redelivered) == ("orders", True, None)
    assert isinstance(message.body, bytes)
    assert isinstance(message.timestamp, datetime.datetime)
    assert message.ts_ns is not None
    assert message.timestamp.timestamp() == pytest.approx(message.ts_ns / 1e9, abs=1e-6)
    declared = next(frame for frame in capture.frames() if frame.method == "queue.declare")
    assert declared.arguments is not None
    assert declared.arguments["queue"] == declared.queue


def test_names() -> None:
    (*_, frame) = amqpsniff.open(SAMPLES / "bunny.pcapng").frames()
    assert {"packet_number", "arguments", "as_dict"} <= set(dir(frame))
    with pytest.raises(AttributeError, match="no column `colour`; `amqpsniff sql"):
        frame.colour  # noqa: B018
    with pytest.raises(AttributeError):
        frame._hidden  # noqa: B018
    assert (
        repr(frame) == f"<Frame connection.close-ok #{frame.packet_number} channel 0 from server>"
    )


@pytest.mark.parametrize("table", KINDS)
def test_objects_are_equal_by_value(table: str) -> None:
    """Of two readings too, whatever stands before them in their batches."""
    capture = amqpsniff.open(SAMPLES / "pika_mix.pcap")
    whole, again = (list(getattr(capture, table)()) for _ in range(2))
    assert whole == again
    assert pickle.loads(pickle.dumps(whole[-1])) == whole[-1]
    assert len({*whole, *again}) == len(whole)
    assert whole[0] != whole[0].as_dict()
    if table == "messages":
        part = list(capture.messages(method="basic.deliver"))
        assert part
        assert part == [one for one in whole if one.method == "basic.deliver"]


def test_a_table_named_twice_is_read_once() -> None:
    capture = amqpsniff.open(SAMPLES / "pika_mix.pcap")
    assert sum(batch.num_rows for _, batch in capture.tables("frames", "frames")) == 563


def test_objects_outlive_the_capture() -> None:
    with amqpsniff.open(SAMPLES / "bunny.pcapng") as capture:
        kept = list(capture.messages())
    assert {message.status for message in kept} == {"complete"}
    rows = [message.as_dict() for message in kept]
    assert pickle.loads(pickle.dumps(rows)) == rows
