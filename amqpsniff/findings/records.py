"""Records that concern several connections, to be merged with those of other readers.

A reader of some connections cannot judge findings about many: it records the contributions of its
own connections. `once` holds findings with many places, `notes` contributions of rules, each with
the name of its `judge`, `exchanges` counts by exchange, `outstanding` deliveries of ended
channels and `unknown_acks` acknowledgements that may be for those
(`amqpsniff.session.rules.acknowledging`), `forgotten` and `limits` the entries lost to bounds on
memory, `attempts` connections that were never established. All of it is plain values, and does not
depend on the partition of connections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .attempts import Attempts

Order = tuple[int, int, str, int]
"""When something became known: time, time again where that is not enough, capture, packet."""

NEVER = 2**63 - 1
"""The time of what became known at the end of the capture."""


def order_of(ts_ns: int | None, capture: str | None, number: int | None) -> Order:
    """The order of something that a packet shows."""
    return ts_ns or 0, 0, capture or "", number or 0


def order_of_end(conversation: Any, capture: str | None) -> Order:
    """The order of the end of a conversation."""
    over = conversation.over_ns
    if over >= 0:
        return over, 0, capture or "", conversation.last_packet_number or 0
    begin = conversation.start_ns
    return NEVER, max(begin, 0), capture or "", conversation.first_packet_number or 0


class Records:
    """Collects them; `plain` gives them as plain values, `add` takes those of another."""

    def __init__(self) -> None:
        self.once: dict[tuple[Any, ...], list[Any]] = {}
        self.notes: list[tuple[Order, str, tuple[Any, ...]]] = []
        self.exchanges: dict[str, tuple[int, ...]] = {}
        self.outstanding: list[tuple[Any, ...]] = []
        self.unknown_acks: list[tuple[Any, ...]] = []
        self.forgotten: dict[str, int] = {}
        self.limits: dict[str, int] = {}
        self.attempts = Attempts()

    def seen(
        self,
        order: Order,
        key: tuple[Any, ...],
        detail: Callable[[], str],
        place: tuple[Any, ...],
        count: int = 1,
        last: int | None = None,
    ) -> None:
        """Occurrences of one finding with this key; `place` is of the first, `last` the packet of
        the last, None for the same.

        `detail` returns its text, called only if needed.
        """
        entry = self.once.get(key)
        words = detail() if entry is None or order < entry[0] else ""
        self._join(key, [order, words, place, count, order, last or place[1]])

    def note(self, order: Order, judge: str, *payload: Any) -> None:
        """Record a contribution for a judge."""
        self.notes.append((order, judge, payload))

    def count(self, exchange: str, counts: tuple[int, ...]) -> None:
        """Counts of an exchange."""
        before = self.exchanges.get(exchange, (0,) * len(counts))
        self.exchanges[exchange] = tuple(a + b for a, b in zip(before, counts, strict=True))

    def forget(self, counts: Mapping[str, int]) -> None:
        """Add numbers of entries that rules had to forget."""
        _add(self.forgotten, counts)

    def hit(self, counts: Mapping[str, int]) -> None:
        """Add numbers of hits of limits."""
        _add(self.limits, counts)

    def add(self, other: Records) -> None:
        """Take what another collected."""
        for key, entry in other.once.items():
            self._join(key, list(entry))
        self.notes += other.notes
        self.outstanding += other.outstanding
        self.unknown_acks += other.unknown_acks
        for exchange, counts in other.exchanges.items():
            self.count(exchange, counts)
        self.forget(other.forgotten)
        self.hit(other.limits)
        self.attempts.merge(other.attempts)

    def plain(self) -> dict[str, Any]:
        """All of it as values that marshal knows."""
        return vars(self) | {"attempts": vars(self.attempts)}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Records:
        """The opposite of `plain`."""
        records = cls()
        vars(records.attempts).update(plain["attempts"])
        vars(records).update(plain | {"attempts": records.attempts})
        return records

    def _join(self, key: tuple[Any, ...], entry: list[Any]) -> None:
        joined = self.once.get(key)
        if joined is None:
            self.once[key] = entry
            return
        if entry[0] < joined[0]:
            joined[:3] = entry[:3]
        joined[4] = max(entry[4], joined[4])
        joined[5] = max(entry[5] or 0, joined[5] or 0) or None
        joined[3] += entry[3]


def _add(counts: dict[str, int], added: Mapping[str, int]) -> None:
    for name, count in added.items():
        counts[name] = counts.get(name, 0) + count
