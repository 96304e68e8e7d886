"""Filters by name choose the same traffic in every table, and refuse what cannot be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import amqpsniff
from amqpsniff.analysis.selection import (
    ERRORS,
    PACKETS,
    TEXTS,
    Filters,
    RowFilter,
    Selection,
    selection,
)
from amqpsniff.errors import UsageError
from amqpsniff.tables.schema import TABLES
from tests.conftest import REPO, SAMPLES

MIX = SAMPLES / "pika_mix.pcap"


def column(table: str, name: str, **part: Any) -> list[Any]:
    """A column of the rows of a table that are chosen."""
    return list(amqpsniff.open(MIX).table(table, columns=[name], **part).column(0).to_pylist())


def keys(table: str, **part: Any) -> set[tuple[Any, ...]]:
    """Connection and channel of the rows of a table that are chosen."""
    rows = amqpsniff.open(MIX).table(table, columns=["connection_id", "channel"], **part)
    return {tuple(row.values()) for row in rows.to_pylist()}


def test_every_argument_is_an_attribute() -> None:
    named = {one.name for one in fields(Selection)} - {"limit", "found"}
    assert named == set(Filters.__annotations__)


def test_every_condition_is_about_a_column_of_its_table() -> None:
    for columns in TEXTS.values():
        for table, names in columns.items():
            assert set(names) <= set(TABLES[table].names)
    for table in (*ERRORS, *PACKETS):
        part = Selection(errors=table in ERRORS, packet=1 if table in PACKETS else None)
        assert RowFilter(part, table, lambda: None, alone=True).columns <= set(TABLES[table].names)


@pytest.mark.parametrize(
    ("part", "where"),
    [
        ({"queue": "orders.eu"}, "queue = 'orders.eu'"),
        ({"queue": "*.eu"}, "queue LIKE '%.eu'"),
        ({"queue": "orders?eu"}, "queue LIKE 'orders_eu'"),
        ({"exchange": "(default)"}, "exchange = ''"),
        ({"exchange": ""}, "exchange = ''"),
        ({"routing_key": "order.*"}, "routing_key LIKE 'order.%'"),
        ({"routing_key": "100%_'x"}, "false"),
        ({"method": "publish"}, "method = 'basic.publish'"),
        ({"method": "basic.*", "outcome": "acked"}, "outcome = 'acked'"),
        ({"message_id": "m13"}, "message_id = 'm13'"),
        ({"client": "10.77.0.2:43706"}, "client = '10.77.0.2:43706'"),
        ({"client": ":43706"}, "client LIKE '%:43706'"),
        ({"client": "10.77.0.2"}, "true"),
        ({"client": "10.77.0.3"}, "false"),
        ({"packet": 46}, "packet_number = 42"),
        ({"packet": "42-47"}, "packet_number IN (42, 47)"),
        ({"errors": True}, "outcome IN ('requeued', 'discarded')"),
    ],
)
def test_a_filter_is_a_condition_on_columns(part: dict[str, Any], where: str) -> None:
    chosen = column("messages", "packet_number", **part)
    assert chosen == column("messages", "packet_number", where=where)


@pytest.mark.parametrize("client", ["FD88:0::2", "[fd88:0:0::2]", "[FD88::2]:5000"])
def test_an_address_of_ipv6_is_known_however_it_is_written(client: str) -> None:
    wanted = Selection(client=client).matches_connection()
    assert wanted is not None
    assert wanted("", "[fd88::2]:5000", "")
    assert not wanted("", "[fd88::3]:5000", "")


def test_connections_choose_rows_of_every_table() -> None:
    part = {"client": "order-service-*", "user": "app", "vhost": "shop"}
    names = column("connections", "connection_id", **part)
    assert names
    assert len(names) < len(column("connections", "connection_id"))
    for table in TABLES:
        every = column(table, "connection_id")
        expected = [name for name in every if name in names]
        assert column(table, "connection_id", **part) == expected


def test_frames_are_chosen_with_their_message() -> None:
    part = {"message_id": "m13"}
    messages = column("messages", "packet_number", **part)
    frames = amqpsniff.open(MIX).table("frames", **part).to_pylist()
    assert [row["packet_number"] for row in frames if row["method"]] == sorted(messages)
    assert [row["frame_type"] for row in frames] == ["method", "header", "body"] * len(messages)


def test_messages_of_one_packet_are_told_apart() -> None:
    """Several deliveries in a packet differ in their message only."""
    capture = amqpsniff.open(MIX)
    deliveries = list(capture.messages(method="basic.deliver", packet=317))
    assert len(deliveries) > 2
    for message in (deliveries[0], deliveries[2]):
        found = list(capture.frames(message_id=message.message_id, packet=317))
        tags = {row.delivery_tag for row in found if row.frame_type == "method"}
        assert tags == {message.delivery_tag}


def test_channels_and_findings_are_chosen_by_their_traffic() -> None:
    used = keys("messages", queue="orders.eu") | keys("frames", queue="orders.eu")
    assert keys("channels", queue="orders.eu") == used
    connections = {name for name, _ in used}
    for name, channel in keys("findings", queue="orders.eu"):
        assert (name, channel) in used or (not channel and name in connections)
    assert set(column("connections", "connection_id", queue="orders.eu")) == connections


def test_a_closed_channel_is_an_error_of_its_own() -> None:
    codes = column("channels", "close_code", errors=True)
    assert codes
    assert all(code >= 300 for code in codes)
    on_queue = column("channels", "close_code", errors=True, queue="orders.*")
    assert set(on_queue) <= set(codes)
    assert column("findings", "severity", errors=True) == ["error"] * 7


@pytest.mark.parametrize(
    "ask",
    [
        lambda capture, part: capture.summary(**part)["frames"],
        lambda capture, part: capture.topology(**part)["publishers"],
        lambda capture, part: list(capture.timeline(**part)),
        lambda capture, part: list(capture.findings(**part)),
        lambda capture, part: capture.trace(message_id="m1", **part),
    ],
)
def test_the_api_takes_them_everywhere(ask: Callable[[Any, Any], Any]) -> None:
    capture = amqpsniff.open(MIX)
    assert ask(capture, {"client": "order-service-1"})
    assert not ask(capture, {"client": "somebody-else"})


def test_a_conversation_is_chosen_by_its_traffic() -> None:
    part = {"queue": "orders.eu", "method": "basic.consume"}
    found = amqpsniff.open(MIX).follow(":43706", **part)
    assert found is not None
    assert [entry.method for entry in found.entries] == ["basic.consume"]


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ({"method": "basic.pubish"}, "did you mean `basic.publish`?"),
        ({"method": "pubish"}, "did you mean `publish`?"),
        ({"outcome": "ackd"}, "did you mean `acked`?"),
        ({"outcome": "x"}, "there are confirmed, rejected"),
        ({"packet": "x"}, "write 496, or 490-510"),
        ({"packet": "5-4"}, "write 496, or 490-510"),
        ({"packet": -1}, "write 496, or 490-510"),
        ({"queues": "x"}, "there is no `queues`"),
        ({"top": 3}, "`top` is now `limit`"),
        ({"from_": "12:00", "tz": "Mars"}, "not a time zone"),
    ],
)
def test_what_cannot_be_is_refused(part: Any, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        selection(part)
    assert says in str(refused.value)


def test_what_cannot_be_read_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="`queue`: the capture would have to be read twice"):
        RowFilter(Selection(queue="x"), "channels", lambda: None)


@pytest.mark.parametrize(
    "part", [{"client": "10.77.0.3"}, {"client": "nobody"}, {"user": "x"}, {"queue": "x"}]
)
def test_a_diagnosis_of_nothing_is_no_sound_one(part: dict[str, Any]) -> None:
    assert amqpsniff.open(MIX).diagnose(client="order-service-1", queue="orders.eu").findings
    with pytest.raises(UsageError, match="nothing of `"):
        amqpsniff.open(MIX).diagnose(**part)
    assert not amqpsniff.open(MIX).summary(**part)["frames"]


def test_times_are_numbers_and_datetimes_too() -> None:
    capture = amqpsniff.open(SAMPLES / "pika_mix.pcap")
    rows = capture.table("frames").to_pylist()
    since = [row for row in rows if row["ts_ns"] >= capture.totals.first_ns + 500_000_000]
    began = datetime.fromtimestamp(capture.totals.first_ns / 1e9).astimezone()
    for time in (0.5, "0.5", began + timedelta(seconds=0.5)):
        assert abs(len(list(capture.frames(from_=time))) - len(since)) <= 1


def test_times_are_in_a_zone() -> None:
    start_ns = 1_795_224_677_000_000_000  # 2026-11-21T01:31:17Z
    part = Selection(from_="02:31:18", to="2026-11-21T02:31:19", tz="Europe/Berlin")
    first, last = part.span(lambda: start_ns)
    assert (first, last) == (start_ns + 10**9, start_ns + 2 * 10**9)
    assert Selection(from_="02:31:18", tz="+01:00").span(lambda: start_ns)[0] == first
    assert Selection(from_="01:31:18").span(lambda: start_ns)[0] == first


AMQP10 = sorted((REPO / "tests/captures/amqp10").glob("*.pcap*"))


def of_delivery(frame: dict[str, Any], message: dict[str, Any]) -> bool:
    """True if a frame is a transfer of a delivery."""
    same = all(
        frame[name] == message[name]
        for name in ("connection_id", "sender", "channel", "delivery_tag")
    )
    last = message["last_packet_number"] or message["packet_number"]
    in_time = message["packet_number"] <= frame["packet_number"] <= last
    return same and in_time and bool(frame["method"] == "transfer")


@pytest.mark.parametrize("path", AMQP10, ids=lambda path: path.name)
def test_transfers_are_chosen_by_their_message(path: Path, tmp_path: Path) -> None:
    """For frames, and for the packets that are cut."""
    capture = amqpsniff.open(path)
    messages = capture.table("messages").to_pylist()
    sent = [one for one in messages if one["message_id"] and one["packet_number"]][:1]
    for one in sent:
        same = [row for row in messages if row["message_id"] == one["message_id"]]
        expected = [
            frame
            for frame in capture.table("frames").to_pylist()
            if any(of_delivery(frame, message) for message in same)
        ]
        chosen = capture.table("frames", message_id=one["message_id"]).to_pylist()
        assert [frame for frame in chosen if frame["method"] == "transfer"] == expected
        assert expected or one["method"] not in ("send", "receive")
        cut = capture.cut(tmp_path / "part.pcapng", message_id=one["message_id"])
        assert cut.packets >= len({frame["packet_number"] for frame in expected})


@pytest.mark.parametrize("path", [*AMQP10, MIX], ids=lambda path: path.name)
def test_frames_are_the_same_rows_beside_any_table(path: Path) -> None:
    capture = amqpsniff.open(path)
    alone = capture.table("frames")
    beside = [batch for name, batch in capture.tables("frames", "messages") if name == "frames"]
    assert pa.Table.from_batches(beside, alone.schema).equals(alone)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda capture: list(capture.messages(channel="a")),
        lambda capture: list(capture.messages(errors="yes")),
        lambda capture: list(capture.messages(limit="3")),
        lambda capture: capture.report_table("latency", bucket_seconds=-1),
        lambda capture: capture.diff(capture, fail_on="x"),
        lambda capture: capture.same_traffic(capture, fail_on="x"),
        lambda capture: capture.diff("later.pcap"),
    ],
)
def test_wrong_arguments_are_usage_errors(wrong: Callable[[Any], Any]) -> None:
    with pytest.raises(UsageError):
        wrong(amqpsniff.open(MIX))
