"""Which connection of one capture is which of the other.

Addresses, ports and the originator's initial sequence number name a connection; behind a
translation of addresses only the sequence numbers stay. A proxy that ends TCP makes a connection of
its own, which is not this one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from amqpsniff.compare.sighting import Direction, Sighting, Talk

HALF = 1 << 31
WHOLE = 1 << 32


class Pair(NamedTuple):
    """One connection in two captures.

    Attributes:
        client: As seen nearer to the client.
        broker: As seen nearer to the broker.
        how: What told that they are one: `id`, `ends`, `sequence` (behind a translation of
            addresses), or `order` (sequence numbers are rewritten as well).
        shifts: What is added to a stream offset of the broker's capture to be the client's, by
            direction of the client's capture.
        turned: Whether the two captures take different ends for the originator.
    """

    client: Talk
    broker: Talk
    how: str
    shifts: tuple[int, int]
    turned: bool = False

    @property
    def rewritten(self) -> bool:
        """Whether something between gives the connection other sequence numbers."""
        return self.how == "order"

    @property
    def translated(self) -> bool:
        """Whether addresses or ports differ."""
        return set(self.client.ends) != set(self.broker.ends)


def pairs(client: Sighting, broker: Sighting) -> tuple[list[Pair], list[Talk], list[Talk]]:
    """Connections of both captures, and those that only one of them has."""
    near, far = list(client.talks.values()), list(broker.talks.values())
    found: list[Pair] = []
    steps: tuple[tuple[str, Callable[[Talk], Hashable]], ...] = (
        ("id", lambda talk: talk.connection_id),
        ("ends", lambda talk: frozenset(talk.ends)),
        ("sequence", lambda talk: talk.isn),
        ("sequence", lambda talk: None if talk.isn is not None else "midstream"),
        ("order", lambda talk: frozenset(talk.ends) if talk.syn_seen else None),
    )
    for how, key in steps:
        made = _matched(near, far, how, key)
        found += made
        gone = {id(talk) for pair in made for talk in (pair.client, pair.broker)}
        near = [talk for talk in near if id(talk) not in gone]
        far = [talk for talk in far if id(talk) not in gone]
    return sorted(found, key=lambda pair: pair.client.start_ns), near, far


def _matched(
    near: Iterable[Talk], far: Iterable[Talk], how: str, key: Callable[[Talk], Hashable]
) -> list[Pair]:
    """The pairs that one step finds: those where there is but one choice."""
    others: dict[Hashable, list[Talk]] = defaultdict(list)
    for talk in far:
        if key(talk) is not None:
            others[key(talk)].append(talk)
    found = []
    for talk in sorted(near, key=lambda talk: talk.start_ns):
        listed = others.get(key(talk)) or []
        fitting = [pair for other in listed if (pair := _pair(talk, other, how)) is not None]
        if how == "order":
            fitting = fitting[:1]
        if len(fitting) == 1:
            found.append(fitting[0])
            listed.remove(fitting[0].broker)
    return found


def _pair(talk: Talk, other: Talk, how: str) -> Pair | None:
    """Two conversations as one, if their sequence numbers allow it."""
    turned = talk.client != other.client
    shifts = []
    for at in (0, 1):
        mine, yours = talk.directions[at], other.directions[at ^ turned]
        if (talk.syn_seen and other.syn_seen) or None in (mine.start, yours.start):
            shift = 0
            if how == "sequence" and mine.start != yours.start:
                return None  # one number alone may be chance
        else:
            assert mine.start is not None
            assert yours.start is not None
            shift = (yours.start - mine.start + HALF) % WHOLE - HALF
        if how != "id" and not _overlap(mine, yours, shift):
            return None
        shifts.append(shift)
    if how == "ends" and talk.isn is not None and other.isn is not None and talk.isn != other.isn:
        return None
    return Pair(talk, other, how, (shifts[0], shifts[1]), turned)


def _overlap(mine: Direction, yours: Direction, shift: int) -> bool:
    """Whether both captures have octets of the same numbers, or one has none at all."""
    one, other = mine.coverage.bounds, yours.coverage.bounds
    if one is None or other is None:
        return True
    return one[0] < other[1] + shift and other[0] + shift < one[1]
