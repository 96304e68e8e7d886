"""Message logs of tasks (`amqpsniff.session.message_log`) in files, and what all of them together
show.

Words and places of what was found are read in the end, of those rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from amqpsniff.columns import NULL
from amqpsniff.findings import Finding, FindingLog
from amqpsniff.session.message_log import NUMBERS, PLACES, TEXTS, MessageLog
from amqpsniff.session.message_replay import COLUMNS, MessageReplay, ReplayedChannel
from amqpsniff.session.rules.publishing import REPEATED, repeat_words
from amqpsniff.session.rules.queues import RESIDENCE, is_long, residence_words
from amqpsniff.session.rules.requeueing import POISON, poison_words

from .filesystem import Folder
from .ordered_merge import Open, Sighted, WitnessFile, buffer_of, bytes_of, in_order, number_columns

if TYPE_CHECKING:
    import pyarrow as pa

_UNLIKE = ("mark", "route", "message_id")

_PLACE_TYPES = {"place": "binary", "channel_number": "int32"}


class SightingsFile(WitnessFile):
    """A file of sightings; `sightings` is what the task is to be given."""

    def __init__(self, folder: Folder, name: str, seed: int) -> None:
        super().__init__(folder, name, _columns, _UNLIKE)
        self.sightings = MessageLog(seed, self.add)


def _columns(sightings: MessageLog) -> dict[str, pa.Array]:
    import pyarrow as pa

    rows = sightings.rows
    columns = number_columns(sightings, NUMBERS)
    for name in TEXTS:
        kind = pa.binary() if name == "message_id" else pa.string()
        columns[name] = pa.array(getattr(sightings, name), kind)
    places: list[list[Any]] = [[None] * rows for _ in PLACES]
    for row, *place in sightings.places:
        for values, value in zip(places, place, strict=True):
            values[row] = value
    places[0] = [None if name is None else bytes_of(name) for name in places[0]]
    for name, values in zip(PLACES, places, strict=True):
        columns[name] = pa.array(values, _PLACE_TYPES.get(name, "string"))
    return columns


def review_sightings(
    sighted: Sequence[Sighted], open_file: Open, captures: Iterable[str], log: FindingLog
) -> MessageReplay:
    """Add to a log what all sightings together show; gives what went over them."""
    review = MessageReplay()
    for table in in_order(sighted, open_file, captures, NUMBERS):
        review.feed({name: buffer_of(table[name]) for name in COLUMNS}, table.num_rows)
    for found in _worded(review, sighted, open_file):
        log.add(found)
    return review


@dataclass
class _Verdict:
    """A finding that is not in words: it is about the channel of `seen`, and a sighting."""

    order: int
    code: str
    seen: ReplayedChannel
    row: int
    number: int
    ts_ns: int
    count: int
    last: int
    word: Callable[[dict[str, Any]], str]


def _verdicts(seen: ReplayedChannel) -> Iterator[_Verdict]:
    first = seen.repeated
    if first is not None:
        known = first.known
        yield _Verdict(
            first.order, REPEATED, seen, first.row, first.number, first.ts_ns,
            seen.repeats, max(first.number, seen.last_repeat),
            lambda texts: repeat_words(
                _text(texts["message_id"]), texts["exchange"], texts["routing_key"], known
            ),
        )  # fmt: skip
    again = seen.poisoned
    if again is not None:
        yield _Verdict(
            again.order, POISON, seen, again.row, again.number, again.ts_ns,
            seen.poisons, seen.last_poison,
            lambda texts: poison_words(
                again.kind, again.known, None if texts["route"] == NULL else texts["route"],
                texts["queue"], texts["message_id"],
            ),
        )  # fmt: skip
    if seen.longest is not None and is_long(seen):
        number, ts_ns, row, published = seen.longest
        yield _Verdict(
            seen.channel, RESIDENCE, seen, row, number, ts_ns, seen.queued, number,
            lambda texts: residence_words(seen, texts["queue"], published),
        )  # fmt: skip


def _text(octets: bytes) -> str:
    return octets.decode(errors="replace")


def _worded(review: MessageReplay, sighted: Sequence[Sighted], open_file: Open) -> list[Finding]:
    told = [one for seen in review.seen.values() for one in _verdicts(seen)]
    told.sort(key=lambda one: one.order)
    rows: dict[int, set[int]] = {}
    for one in told:
        rows.setdefault(one.seen.task, set()).update((one.row, one.seen.channel))
    texts = {task: _read_rows(open_file(sighted[task].name), rows[task]) for task in sorted(rows)}
    found = []
    for one in told:
        place = texts[one.seen.task][one.seen.channel]
        found.append(
            Finding(
                one.code,
                one.word(texts[one.seen.task][one.row]),
                capture=place["place"].decode(errors="surrogateescape"),
                packet_number=one.number,
                ts_ns=None if one.ts_ns == NULL else one.ts_ns,
                connection_id=place["connection_id"],
                client=place["client"],
                server=place["server"],
                channel=place["channel_number"],
                count=one.count,
                last_packet_number=one.last,
            )
        )
    return found


def _read_rows(file: IO[bytes], rows: set[int]) -> dict[int, dict[str, Any]]:
    import pyarrow.dataset as ds

    wanted = sorted(rows)
    with file:
        there = ds.ParquetFileFormat().make_fragment(file)
        values = there.take(wanted, columns=["route", *TEXTS, *PLACES]).to_pylist()
    return dict(zip(wanted, values, strict=True))
