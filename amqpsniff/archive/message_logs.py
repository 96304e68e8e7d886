"""Message logs of tasks (`amqpsniff.session.event_logs`) in files, and the findings of all of them
together.

Texts and places of findings are read at the end, only from the rows that have findings.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import IO, TYPE_CHECKING, Any

from amqpsniff.findings import FURTHER, Finding, FindingLog
from amqpsniff.null import NULL
from amqpsniff.session.event_logs import MESSAGE_LOG_NUMBERS, NAMES, PLACES, MessageLog
from amqpsniff.session.log_replay import (
    MESSAGE_COLUMNS,
    FirstCase,
    MessageReplay,
    ReplayedChannel,
)
from amqpsniff.session.rules.context import MAX_SUBJECTS
from amqpsniff.session.rules.overloaded_consumers import OVERLOADED, is_growing, overload_words
from amqpsniff.session.rules.publishing import REPEATED, repeat_words
from amqpsniff.session.rules.queues import RESIDENCE, is_long, residence_words
from amqpsniff.session.rules.requeueing import POISON, poison_words
from amqpsniff.tables.batches import integer_array

from .encoding import numbers
from .filesystem import Folder
from .ordered_merge import EventLogFile, Open, WrittenLog, in_order, number_columns

if TYPE_CHECKING:
    import pyarrow as pa

_PLACE_TYPES = {"channel_number": "int32"}


class MessageLogFile(EventLogFile):
    """A file of sightings."""

    log: MessageLog

    def __init__(self, folder: Folder, name: str, seed: int) -> None:
        super().__init__(folder, name, _columns)
        self.log = MessageLog(seed, self.add)


def _columns(sightings: MessageLog) -> dict[str, pa.Array]:
    import pyarrow as pa

    rows = sightings.rows
    columns = number_columns(sightings, [*MESSAGE_LOG_NUMBERS, "seen_in"])
    names = pa.array(list(sightings.names), pa.string())
    for name in NAMES:
        named = integer_array(getattr(sightings, name).storage, rows)
        columns[name] = pa.DictionaryArray.from_arrays(named.cast(pa.int32()), names)
    columns["message_id"] = pa.array(sightings.message_id, pa.binary())
    codes = array("q", [NULL]) * rows
    for code, (row, *_) in enumerate(sightings.places):
        codes[row] = code
    taken = integer_array(bytearray(codes), rows)
    for at, name in enumerate(PLACES, 1):
        places = pa.array(
            [place[at] for place in sightings.places], _PLACE_TYPES.get(name, "string")
        )
        columns[name] = places.take(taken)
    return columns


def replay_messages(
    written: Sequence[WrittenLog], open_file: Open, captures: Iterable[str], log: FindingLog
) -> MessageReplay:
    """Add to a log what all sightings together show; gives what went over them."""
    replay = MessageReplay()
    for table in in_order(written, open_file, captures, MESSAGE_LOG_NUMBERS):
        replay.feed({name: numbers(table[name]) for name in MESSAGE_COLUMNS}, table.num_rows)
    for found in _findings_with_texts(replay, written, open_file):
        log.add(found)
    return replay


Verdict = tuple[int, ReplayedChannel, int, int, Callable[[dict[str, Any]], str], Finding]
"""When it was found, its channel, the sighting that it is seen at, that with the texts for its
words, the words for these, and the finding, which lacks its words and its place."""


def _verdicts(seen: ReplayedChannel) -> Iterator[Verdict]:
    def verdict(
        order: int,
        code: str,
        rows: tuple[int, int],
        place: tuple[int, int],
        counts: tuple[int, int],
        word: Any,
    ) -> Verdict:
        (number, ts_ns), (count, last) = place, counts
        time = None if ts_ns == NULL else ts_ns
        finding = Finding(
            code, "", packet_number=number, ts_ns=time, count=count, last_packet_number=last
        )
        return order, seen, *rows, word, finding

    first = seen.repeated
    if first is not None:
        yield verdict(
            first.order, REPEATED, (first.row, first.row), (first.number, first.ts_ns),
            (seen.repeats, max(first.number, seen.last_repeat)),
            lambda texts: repeat_words(
                _text(texts["message_id"]), texts["exchange"], texts["routing_key"], first.known
            ),
        )  # fmt: skip
    for ordinal, (delivery, count, last) in seen.poisoned.items():
        poisoned = verdict(
            delivery.order, POISON, (delivery.row, delivery.row),
            (delivery.number, delivery.ts_ns), (count, last),
            partial(_poison_words, delivery, ordinal == MAX_SUBJECTS),
        )  # fmt: skip
        poisoned[-1].variant = ordinal or None
        yield poisoned
    if seen.longest is not None and is_long(seen):
        number, _, row, published = seen.longest
        yield verdict(
            seen.channel, RESIDENCE, (seen.long_row, row), (seen.long_number, seen.long_ns),
            (seen.queued_long, number),
            lambda texts: residence_words(seen, texts["queue"], published),
        )  # fmt: skip
    if seen.loaded >= 0 and is_growing(seen):
        yield verdict(
            seen.channel, OVERLOADED, (seen.fresh_row, seen.loaded),
            (seen.fresh_number, seen.fresh_ns), (1, seen.fresh_number),
            lambda texts: overload_words(seen, texts["queue"]),
        )  # fmt: skip


def _poison_words(delivery: FirstCase, further: bool, texts: dict[str, Any]) -> str:
    tag = None if texts["route"] == NULL else texts["route"]
    words = poison_words(delivery.kind, delivery.known, tag, texts["queue"], texts["message_id"])
    return FURTHER * further + words


def _text(octets: bytes) -> str:
    return octets.decode(errors="replace")


def _findings_with_texts(
    replay: MessageReplay, written: Sequence[WrittenLog], open_file: Open
) -> list[Finding]:
    verdicts = [verdict for seen in replay.channels.values() for verdict in _verdicts(seen)]
    verdicts.sort(key=itemgetter(0))
    rows: dict[int, set[int]] = {}
    for _, seen, at, row, _, _ in verdicts:
        rows.setdefault(seen.task, set()).update((at, row, seen.channel))
    texts = {task: _read_rows(open_file(written[task].name), rows[task]) for task in sorted(rows)}
    for _, seen, at, row, word, finding in verdicts:
        place = texts[seen.task][seen.channel]
        finding.detail = word(texts[seen.task][row])
        finding.capture = written[seen.task].captures[texts[seen.task][at]["seen_in"]]
        finding.channel = place["channel_number"]
        for name in ("connection_id", "client", "server"):
            setattr(finding, name, place[name])
    return [verdict[-1] for verdict in verdicts]


def _read_rows(file: IO[bytes], rows: set[int]) -> dict[int, dict[str, Any]]:
    import pyarrow.dataset as ds

    numbers = sorted(rows)
    with file:
        fragment = ds.ParquetFileFormat().make_fragment(file)
        values = fragment.take(
            numbers, columns=["seen_in", "route", *NAMES, "message_id", *PLACES]
        ).to_pylist()
    return dict(zip(numbers, values, strict=True))
