"""Rows that wait: packed and whole again they are the same, and they do not wait for ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff import pipeline
from amqpsniff.capture import CaptureSet
from amqpsniff.columns import Codes, Integers, Texts
from amqpsniff.decode.rows import FrameRows, MessageRows, Vocabularies
from amqpsniff.limits import Limits
from amqpsniff.null import NULL
from amqpsniff.options import Options
from amqpsniff.plan import Plan
from amqpsniff.session import row_buffer
from amqpsniff.session.limits import Limits as SessionLimits
from amqpsniff.session.row_buffer import Batch
from amqpsniff.tables.schema import schema_of
from tests.findings.cases import packets_of
from tests.session.script import Remembering, Script
from tests.tcp import wire

SAMPLES = Path(__file__).parents[2] / "samples"
OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
CONFIRM = "C1: confirm.select\nS1: confirm.select-ok\n"
EVERY = schema_of("messages", everything=True).names


def rows_of(name: str, **limits: Any) -> list[list[dict[str, Any]]]:
    """Frames, and messages with their links."""
    capture = amqpsniff.open(SAMPLES / name, limits=Limits(**limits))
    messages = [
        row for one in capture.batches("messages", columns=EVERY) for row in one.to_pylist()
    ]
    return [[row for one in capture.batches("frames") for row in one.to_pylist()], messages]


@pytest.mark.parametrize(
    "name", ["pika_mix.pcap", "late_consumer.pcap", "aiopika_rpc.pcap", "lost.pcap", "node.pcap"]
)
def test_packed_rows_are_the_same(name: str) -> None:
    expected = rows_of(name)
    packed = SessionLimits(open_rows=0)
    for most in (1, 7, 100):
        assert rows_of(name, rows_per_batch=most) == expected, most
        assert rows_of(name, rows_per_batch=most, session=packed) == expected, most


def message_rows(count: int) -> Batch:
    """A batch whose messages have columns that are alike, that rise, and that are null."""
    lines = "".join(
        f"C1: basic.publish | body=5 priority={n % 3}" + f" message_id=m{n}" * (n % 2) + "\n"
        for n in range(count)
    )
    joined = pipeline.Pipeline(plan=Plan(("frames", "messages"), links=True, meanings=True))
    joined.feed(wire.batch(packets_of(OPEN + CONFIRM + lines)))
    (batch,) = joined.take_open()
    assert batch[1].rows == count
    return batch


def told(rows: MessageRows) -> list[Any]:
    """Every value of every column."""
    found: list[Any] = []
    for name, column in rows.columns().items():
        if isinstance(column, Texts):
            found.append((name, [column.bytes_of(row) for row in range(rows.rows)]))
        else:
            width, kind = (8, "q") if isinstance(column, Integers) else (4, "i")
            whole = memoryview(column.storage)[: width * rows.rows].cast(kind)
            found.append((name, whole.tolist()))
    return found


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000, 1025])
def test_columns_are_whole_again(count: int) -> None:
    batch = message_rows(count)
    rows = batch[1]
    expected = told(rows)
    held = row_buffer.RowBuffer(SessionLimits(open_rows=-1))
    held.put(batch)
    left = sum(len(one.storage) for one in rows.columns().values() if isinstance(one, Codes))
    assert left == 4 * 2 * rows.capacity  # of outcome and waiting
    held.pop()
    assert told(rows) == expected


def test_what_changes_is_written_while_packed() -> None:
    """Confirms find the rows that wait, and rows that are given early are counted."""
    script = CONFIRM + "C1: basic.publish routing_key=k | body=5\n" * 9
    script += "S1: basic.ack delivery_tag=9 multiple=1\n"
    packed = SessionLimits(open_rows=2)
    assert outcomes(script, rows_per_batch=1, session=packed) == ["confirmed"] * 9


def outcomes(script: str, **limits: Any) -> list[str | None]:
    """Outcomes of messages, of packets one by one."""
    memory = Remembering(Script(OPEN + script), Limits(**limits), ("messages",))
    return [row["outcome"] for row in memory.messages()]


@pytest.mark.parametrize(
    "line",
    [
        "C1: basic.publish | body=5 message_id=" + "m" * 200 + "{n}",
        "C1: basic.publish routing_key=" + "r" * 200 + "{n} | body=5",
    ],
)
def test_texts_do_not_wait_without_bound(line: str) -> None:
    """Rows are given early where they hold too much: here three of 202 bytes and some words."""
    script = CONFIRM + "".join(f"{line}\n".replace("{n}", str(n)) for n in range(10, 20))
    script += "S1: basic.ack delivery_tag=10 multiple=1\n"

    assert outcomes(script, rows_per_batch=1) == ["confirmed"] * 10
    packed = SessionLimits(held_bytes=1_000)
    few = outcomes(script, rows_per_batch=1, session=packed)
    assert few == [None] * 7 + ["confirmed"] * 3


def test_nulls_are_nulls() -> None:
    rows = FrameRows(Vocabularies())
    rows.reserve()
    rows.rows = 5
    held = row_buffer.RowBuffer(SessionLimits(open_rows=-1))
    held.put((rows, MessageRows(Vocabularies()), [], [], []))
    held.pop()
    assert memoryview(rows.delivery_tag.storage).cast("q").tolist() == [NULL] * 5
    assert memoryview(rows.method.storage).cast("i").tolist() == [-1] * 5


def test_texts_that_wait_have_no_room_to_spare() -> None:
    """Batches with many bytes are packed however few their rows, and stay exact."""
    batch = message_rows(1025)
    rows = batch[1]
    expected = told(rows)
    held = row_buffer.RowBuffer(SessionLimits(open_bytes=100))
    held.put(batch)
    assert rows.message_id.size < 1000
    assert all(one.size == max(one.used, 1) for one in rows.vocabularies.by_name().values())
    held.pop()
    assert rows.message_id.size == rows.message_id.used > 1000
    assert told(rows) == expected


@pytest.mark.parametrize(
    "line", ["message_id=" + "m" * 200, 'headers=\'{"h":"' + "x" * 200 + "\"}'"]
)
def test_batches_end_at_their_bytes(line: str) -> None:
    """As many batches come at the end as there are thousands of bytes, for nothing is settled."""
    limits = Limits(bytes_per_batch=1_000)
    joined = pipeline.Pipeline(Options(limits=limits), Plan(("messages",)))
    talk = wire.Talk()
    talk.hands()
    for packet in Script(OPEN + f"C1: basic.publish | body=5 {line}\n" * 50).packets:
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    for packet in talk.packets:
        joined.feed(wire.batch([packet]))
    joined.finish()
    assert len(list(joined.rest())) >= 50 * 200 // 1_000 - 1


@pytest.mark.parametrize(("outcomes", "outstanding"), [(True, 9), (False, 0)])
def test_nothing_waits_for_outcomes_that_nobody_asks_for(outcomes: bool, outstanding: int) -> None:
    passed = pipeline.Pipeline(plan=Plan(("messages",), outcomes=outcomes))
    with CaptureSet([str(SAMPLES / "lost.pcap")]) as packets:
        for batch in packets:
            passed.feed(batch)
    assert passed.tracker.settler.outstanding == outstanding
