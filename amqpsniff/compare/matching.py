"""Connections of one capture matched with those of the other.

Addresses, ports and the originator's initial sequence number name a connection; behind a
translation of addresses only the sequence numbers stay. A proxy that ends TCP makes a connection of
its own, which is not this one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from amqpsniff.compare.sighting import CapturedConnection, Direction, Sighting

HALF = 1 << 31
WHOLE = 1 << 32

Choices = Callable[[CapturedConnection], Iterable[CapturedConnection]]
"""The connections of one capture that may be a given one of the other."""

_Placed = tuple[int, int, CapturedConnection]
_Run = tuple[list[_Placed], int, int]
"""Connections of a list, from a place in it up to another."""


class Pair(NamedTuple):
    """One connection in two captures.

    Attributes:
        client: As seen nearer to the client.
        broker: As seen nearer to the broker.
        how: How they were recognized as one: `id`, `ends`, `sequence` (behind a translation of
            addresses), or `order` (sequence numbers are rewritten as well).
        shifts: What is added to a stream offset of the broker's capture to be the client's, by
            direction of the client's capture.
        turned: Whether the two captures take different ends for the originator.
    """

    client: CapturedConnection
    broker: CapturedConnection
    how: str
    shifts: tuple[int, int]
    turned: bool = False

    @property
    def rewritten(self) -> bool:
        """True if something between gives the connection other sequence numbers."""
        return self.how == "order"

    @property
    def translated(self) -> bool:
        """True if addresses or ports differ."""
        return set(self.client.ends) != set(self.broker.ends)


def pairs(
    client: Sighting, broker: Sighting
) -> tuple[list[Pair], list[CapturedConnection], list[CapturedConnection]]:
    """Connections of both captures, and those that only one of them has."""
    near, far = list(client.connections.values()), list(broker.connections.values())
    found: list[Pair] = []
    steps: tuple[tuple[str, Callable[[list[CapturedConnection]], Choices]], ...] = (
        ("id", _with_same_key(lambda connection: connection.connection_id)),
        ("ends", _with_same_key(lambda connection: frozenset(connection.ends))),
        ("sequence", _with_same_key(lambda connection: connection.isn)),
        ("sequence", overlapping),
        (
            "order",
            _with_same_key(
                lambda connection: frozenset(connection.ends) if connection.syn_seen else None
            ),
        ),
    )
    for how, choices in steps:
        matched = _matched(near, choices(far), how)
        found += matched
        used = {id(connection) for pair in matched for connection in (pair.client, pair.broker)}
        near = [connection for connection in near if id(connection) not in used]
        far = [connection for connection in far if id(connection) not in used]
    return sorted(found, key=lambda pair: pair.client.start_ns), near, far


def _matched(near: Iterable[CapturedConnection], choices: Choices, how: str) -> list[Pair]:
    """The pairs that one step finds: connections with a single choice."""
    enough = 1 if how == "order" else 2
    found: list[Pair] = []
    used: set[int] = set()
    for connection in sorted(near, key=lambda connection: connection.start_ns):
        others = (other for other in choices(connection) if id(other) not in used)
        candidates = (
            pair for other in others if (pair := paired(connection, other, how)) is not None
        )
        fitting = list(islice(candidates, enough))
        if len(fitting) == 1:
            found.append(fitting[0])
            used.add(id(fitting[0].broker))
    return found


def _with_same_key(
    key: Callable[[CapturedConnection], Hashable],
) -> Callable[[list[CapturedConnection]], Choices]:
    """Choices are the connections with the same key; without a key there are none."""

    def choices(far: list[CapturedConnection]) -> Choices:
        others: dict[Hashable, list[CapturedConnection]] = defaultdict(list)
        for connection in far:
            if key(connection) is not None:
                others[key(connection)].append(connection)
        return lambda connection: others.get(key(connection), ())

    return choices


def overlapping(far: list[CapturedConnection]) -> Choices:
    """Choices in mid-stream are those whose bytes may have the same sequence numbers."""
    others = [connection for connection in far if connection.isn is None]
    indexes = [_Numbers(others, by_client) for by_client in (True, False)]

    def choices(connection: CapturedConnection) -> Iterable[CapturedConnection]:
        if connection.isn is not None:
            return
        runs = min((numbers.runs(connection) for numbers in indexes), key=_length)
        for listed, first, end in runs:
            for at in range(first, end):
                yield listed[at][-1]

    return choices


class _Numbers:
    """Connections sorted by the sequence numbers of what one side sent.

    They are kept apart by how many bytes that is, in powers of two: then those that overlap with
    others begin at most twice as far before them as they have to.
    """

    def __init__(self, connections: Iterable[CapturedConnection], by_client: bool) -> None:
        self._by_client = by_client
        self._sorted: dict[int, list[_Placed]] = defaultdict(list)
        for place, connection in enumerate(connections):
            begin, octets = self._span(connection)
            self._sorted[1 << octets.bit_length()].append((begin, place, connection))
        for listed in self._sorted.values():
            listed.sort(key=itemgetter(0, 1))

    def runs(self, connection: CapturedConnection) -> list[_Run]:
        """Those that may overlap with a connection: all that do, and some that do not."""
        first_number, octets = self._span(connection)
        found: list[_Run] = []
        for longest, listed in self._sorted.items():
            if octets + longest >= WHOLE:
                found.append((listed, 0, len(listed)))
                continue
            begin = (first_number - longest) % WHOLE
            end = begin + longest + octets
            for low, high in ((begin, end), (0, end - WHOLE)):  # after the last number comes 0
                first, last = (bisect_left(listed, at, key=itemgetter(0)) for at in (low, high))
                found.append((listed, first, last))
        return found

    def _span(self, connection: CapturedConnection) -> tuple[int, int]:
        """The first sequence number and how many there are; all of them where it may be any."""
        client = connection.client or 0
        direction = connection.directions[client if self._by_client else 1 - client]
        bounds = direction.coverage.bounds
        if direction.start is None or bounds is None:
            return 0, WHOLE
        return (direction.start + bounds[0]) % WHOLE, bounds[1] - bounds[0]


def _length(runs: list[_Run]) -> int:
    return sum(end - first for _, first, end in runs)


def paired(connection: CapturedConnection, other: CapturedConnection, how: str) -> Pair | None:
    """Two conversations as one, if their sequence numbers allow it."""
    turned = connection.client != other.client
    shifts = []
    for at in (0, 1):
        near, far = connection.directions[at], other.directions[at ^ turned]
        if (connection.syn_seen and other.syn_seen) or None in (near.start, far.start):
            shift = 0
            if how == "sequence" and near.start != far.start:
                return None  # one number alone may be chance
        else:
            assert near.start is not None
            assert far.start is not None
            shift = (far.start - near.start + HALF) % WHOLE - HALF
        if how != "id" and not _overlap(near, far, shift):
            return None
        shifts.append(shift)
    if (
        how == "ends"
        and connection.isn is not None
        and other.isn is not None
        and connection.isn != other.isn
    ):
        return None
    return Pair(connection, other, how, (shifts[0], shifts[1]), turned)


def _overlap(near: Direction, far: Direction, shift: int) -> bool:
    """True if both captures have bytes of the same numbers, or one has none at all."""
    near_bounds, far_bounds = near.coverage.bounds, far.coverage.bounds
    if near_bounds is None or far_bounds is None:
        return True
    return near_bounds[0] < far_bounds[1] + shift and far_bounds[0] + shift < near_bounds[1]
