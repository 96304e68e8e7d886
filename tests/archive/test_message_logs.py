"""Files of what tasks see of messages, all of them as one, and what is found in them."""

from __future__ import annotations

import random
from array import array
from pathlib import Path
from types import SimpleNamespace

import pytest

from amqpsniff.archive.filesystem import Folder
from amqpsniff.archive.message_logs import MessageLogFile
from amqpsniff.archive.ordered_merge import WrittenLog, in_order
from amqpsniff.session.codes import SERVER
from amqpsniff.session.entities import Channel, ChannelSlot, Session
from amqpsniff.session.event_logs import (
    CLOSED,
    COUNTED,
    DELIVER,
    LOST,
    MESSAGE_LOG_NUMBERS,
    NAMED,
    PUBLISH,
)
from amqpsniff.session.log_replay import MESSAGE_COLUMNS, MessageReplay
from amqpsniff.session.recent_publishes import MAX_PUBLISHES
from amqpsniff.session.rules.shared_state import of_messages

SECOND = 1_000_000_000
CAPTURES = ("a.pcap", "b.pcap", "c.pcap")
MAX = 7

Key = tuple[int, int, int]
"""When something was: time, index of the capture, packet."""


def _write(folder: Folder, name: str, keys: list[Key]) -> WrittenLog:
    """A task that sees something at these times."""
    peer = SimpleNamespace(began=True, name=lambda: ("1", "c:1", "s:2"))
    channel = Channel(Session(peer, CAPTURES[0], 0), ChannelSlot(1), CAPTURES[0], True)
    with MessageLogFile(folder, name, 5) as file:
        file.log.most = MAX
        for ts_ns, capture, number in keys:
            file.log.at(CAPTURES[capture], number, ts_ns)
            file.log.note(COUNTED, channel, 5, 0, number, ts_ns, None, None)
        file.log.finish()
    assert file.written is not None
    assert file.written.rows == len(keys)
    return file.written


@pytest.mark.parametrize("seed", range(8))
def test_tasks_come_together_in_order_and_some_at_a_time(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    folder = Folder(str(tmp_path))
    tasks: list[list[Key]] = []
    for _ in range(12):
        begin = chance.randrange(300)
        span = chance.choice([1, 30, 300])
        drawn = {
            (begin + chance.randrange(span), chance.randrange(3), chance.randrange(50))
            for _ in range(chance.randint(1, 60))
        }
        tasks.append(sorted(drawn))
    written = [_write(folder, f"{at}.parquet", keys) for at, keys in enumerate(tasks)]
    together = []
    for table in in_order(written, folder.open, CAPTURES, MESSAGE_LOG_NUMBERS):
        rows = [table[name].to_pylist() for name in ("ts_ns", "capture", "number")]
        together += zip(*rows, strict=True)
        assert table.num_rows <= 60 * len(tasks)
    assert together == sorted(key for keys in tasks for key in keys)


def test_a_task_that_sees_nothing_leaves_nothing(tmp_path: Path) -> None:
    with MessageLogFile(Folder(str(tmp_path)), "none.parquet", 5) as file:
        file.log.finish()
    assert file.written is None
    assert not list(tmp_path.iterdir())
    assert not list(in_order([], Folder(str(tmp_path)).open, CAPTURES, MESSAGE_LOG_NUMBERS))


def _feed(replay: MessageReplay, *rows: dict[str, int]) -> None:
    columns = {name: array("q", [row.get(name, 0) for row in rows]) for name in MESSAGE_COLUMNS}
    replay.feed(columns, len(rows))


def test_publishes_that_are_forgotten_are_counted() -> None:
    def told(publishes: int) -> tuple[int, dict[str, int]]:
        replay = MessageReplay()
        numbers = range(publishes)
        _feed(replay, *({"kind": NAMED, "mark": at, "seen_number": at} for at in numbers))
        _feed(replay, {"kind": NAMED, "task": 1, "channel": 3, "seen_number": publishes})
        return len(replay.channels), of_messages(replay.recent_publishes, replay.requeues)

    assert told(MAX_PUBLISHES) == (1, {})
    assert told(MAX_PUBLISHES + 2) == (0, {"publishes with an id": 3})


@pytest.mark.parametrize(("task", "connection", "repeats"), [(0, 4, 0), (1, 4, 1), (0, 5, 1)])
def test_what_a_broker_said_of_a_publish_may_be_missing(
    task: int, connection: int, repeats: int
) -> None:
    """On the connection of the first publish, whatever connection has the second."""
    replay = MessageReplay()
    first = {"kind": NAMED, "mark": 7, "connection": 4, "channel": 1}
    again = {**first, "connection": 9, "channel": 2, "seen_number": 2}
    lost = {"kind": LOST, "task": task, "connection": connection, "mark": SERVER}
    _feed(replay, first, lost, again)
    assert sum(one.repeats for one in replay.channels.values()) == repeats
    _feed(replay, {**again, "seen_number": 3})
    assert sum(one.repeats for one in replay.channels.values()) == repeats + 1


def test_channels_that_are_over_are_kept_when_there_is_something_to_say() -> None:
    replay = MessageReplay()
    for channel, seconds in enumerate((1, 11)):
        _feed(
            replay,
            {"kind": PUBLISH, "channel": 8, "mark": channel},
            {"kind": DELIVER, "channel": channel, "mark": channel, "seen_ns": seconds * SECOND},
        )
    assert [one.channel for one in replay.channels.values()] == [0, 1]
    _feed(replay, *({"kind": CLOSED, "channel": channel} for channel in (0, 1, 8)))
    assert [one.channel for one in replay.channels.values()] == [1]
