# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The last publishes with an id: to find repeated ones, and the time of deliveries in their queue.

A message is identified by the `mark` of its content header (size and properties) and its route.
Bodies are not compared, so only messages with a message-id or a correlation-id are considered. The
last `MAX_PUBLISHES` are kept, in a ring; for equal marks only the last. Forgotten publishes are not
found. Missing frames never cause a false match. If frames of a broker are missing after a publish,
it may have been returned or refused in them, so an equal publish does not count as a repetition. If
frames of a client are missing, an equal publish may be among them, so a delivery may be of that.
`amqpsniff.session.linker` finds more if links are requested, at several times the cost.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Codes, Integers
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.codes import CLIENT
from cython.cimports.amqpsniff.session.fingerprint import coded, mixed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.rows import MessageRows

MAX_PUBLISHES = 65_536
"""Publishes remembered: some seconds of a busy broker, in 5 MB. A power of two."""

WITHIN_NS = 300_000_000_000
"""Time within which a publisher that is in doubt tries again; later ones mean it."""

_MAX = cython.declare(cython.longlong, MAX_PUBLISHES)
_ENDS = cython.declare(cython.longlong, MAX_PUBLISHES - 1)
_WITHIN = cython.declare(cython.longlong, WITHIN_NS)
_MASK63 = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)


@cython.cclass
class RecentPublishes:
    """The latest publishes with an id; `forgotten` counts older ones.

    `since`: the time of a publish that is the only one for its deliveries, else `NULL`. `owners`:
    the number of its connection; `stamps`: number of publishes before it. `lost`: number of
    publishes before the last loss of the broker's frames, by connection; `hidden`: the same for the
    last loss of a client's frames. `heads`: the last slots by the low bits of their mark, `before`:
    the previous slot with the same bits; negative for none. Marks are hashes with a secret seed, so
    an attacker cannot cause many collisions.
    """

    count: cython.longlong
    forgotten: cython.longlong
    published: cython.longlong
    hidden: cython.longlong

    lost: dict[Any, Any]
    heads: Codes
    before: Codes
    owners: Integers
    stamps: Integers
    marks: Integers
    routes: Integers
    numbers: Integers
    times: Integers
    since: Integers

    def __init__(self) -> None:
        self.lost = {}
        self.count = self.forgotten = self.published = self.hidden = 0
        self.heads, self.before = Codes(), Codes()
        self.owners = Integers()
        self.stamps = Integers()
        self.marks = Integers()
        self.routes = Integers()
        self.numbers = Integers()
        self.times = Integers()
        self.since = Integers()

    def _make_room(self) -> cython.int:
        """The first publish: make room for all."""
        columns = (self.marks, self.routes, self.numbers, self.times, self.since)
        for column in (*columns, self.owners, self.stamps, self.heads, self.before):
            column.reserve(MAX_PUBLISHES)
        return 0

    @cython.exceptval(-2)
    def first(
        self,
        messages: MessageRows,
        row: cython.longlong,
        owner: cython.longlong,
        answered: cython.bint,
    ) -> cython.longlong:
        """Packet of the publish that a row repeats; else -1, and the row's publish is remembered.

        `owner`: the number of the connection; `answered`: frames of its broker were captured.
        """
        keyed: cython.bint = messages.routing_key.values[row] >= 0  # it was not cut
        named: cython.bint = keyed and messages.message_id.has(row)
        if not named and not messages.correlation_id.has(row):
            return -1
        named = named and answered
        return self.publish(
            messages.mark.values[row],
            self._route(messages, row),
            named,
            messages.packet_number.values[row],
            messages.ts_ns.values[row],
            owner,
        )

    @cython.ccall
    @cython.exceptval(-2)
    def publish(
        self,
        mark: cython.longlong,
        route: cython.longlong,
        named: cython.bint,
        number: cython.longlong,
        now: cython.longlong,
        owner: cython.longlong,
    ) -> cython.longlong:
        """The same of a publish with an id, as numbers."""
        if self.published == 0:
            self._make_room()
        self.published += 1
        slot: cython.longlong = self._find(mark)
        since: cython.longlong = now
        if slot < 0:
            slot = self._free()
            self.marks.values[slot] = mark
            self.before.values[slot] = self.heads.values[mark & _ENDS]
            self.heads.values[mark & _ENDS] = slot
        elif self.routes.values[slot] == route:
            since = NULL
            before: cython.longlong = self.times.values[slot]
            recent: cython.bint = NULL not in (now, before) and now - before <= _WITHIN
            if named and recent and not self._may_be_refused(slot):
                self.since.values[slot] = NULL
                return self.numbers.values[slot]
        self.since.values[slot] = since
        self.routes.values[slot] = route
        self.numbers.values[slot] = number
        self.times.values[slot] = now
        self.owners.values[slot] = owner
        self.stamps.values[slot] = self.published
        return -1

    @cython.ccall
    @cython.exceptval(-1)
    def lose(self, owner: cython.longlong, side: cython.int) -> cython.int:
        """Frames that a side sent on a connection may be missing."""
        if side == CLIENT:
            self.hidden = self.published
            return 0
        if len(self.lost) >= 2 * MAX_PUBLISHES:
            kept = {self.owners.values[at] for at in range(min(self.count, _MAX))}
            self.lost = {one: stamp for one, stamp in self.lost.items() if one in kept}
        self.lost[owner] = self.published
        return 0

    def _may_be_refused(self, slot: cython.longlong) -> cython.bint:
        """True if the broker's answer to a publish may be missing."""
        if not self.lost:
            return False
        stamp: cython.longlong = self.lost.get(self.owners.values[slot], 0)
        return stamp >= self.stamps.values[slot]

    @cython.exceptval(-2)
    def slot_of(self, messages: MessageRows, row: cython.longlong) -> cython.longlong:
        """The slot of the publish that a delivery is of, or -1 if it is unknown or has no time."""
        slot: cython.longlong = self._last(messages.mark.values[row])
        if slot >= 0 and self.routes.values[slot] != self._route(messages, row):
            return -1
        return slot

    @cython.ccall
    @cython.exceptval(-2)
    def place_of(self, mark: cython.longlong, route: cython.longlong) -> cython.longlong:
        """The same of a delivery with this mark and route."""
        slot: cython.longlong = self._last(mark)
        return slot if slot >= 0 and self.routes.values[slot] == route else -1

    @cython.exceptval(-2)
    def _last(self, mark: cython.longlong) -> cython.longlong:
        """The slot of the last publish of a mark whose deliveries can only be of it, or -1."""
        slot: cython.longlong = self._find(mark)
        if slot < 0 or self.since.values[slot] == NULL or self.stamps.values[slot] <= self.hidden:
            return -1
        return slot

    @cython.exceptval(-2)
    def _find(self, mark: cython.longlong) -> cython.longlong:
        """The slot of the last publish of a mark, or -1."""
        if self.published == 0:
            return -1
        slot: cython.longlong = self.heads.values[mark & _ENDS]
        while slot >= 0 and self.marks.values[slot] != mark:
            slot = self.before.values[slot]
        return slot

    def _unlink(self, slot: cython.longlong) -> cython.bint:
        """Remove a slot from its chain; False if it was not in one."""
        place: cython.longlong = self.marks.values[slot] & _ENDS
        at: cython.longlong = self.heads.values[place]
        if at == slot:
            self.heads.values[place] = self.before.values[slot]
            return True
        while at >= 0 and self.before.values[at] != slot:
            at = self.before.values[at]
        if at >= 0:
            self.before.values[at] = self.before.values[slot]
        return at >= 0

    @cython.exceptval(-2)
    def _free(self) -> cython.longlong:
        """The next slot of the ring; its old publish is forgotten."""
        slot: cython.longlong = self.count % _MAX
        if self.count >= _MAX and self._unlink(slot):
            self.forgotten += 1
        self.count += 1
        return slot

    @cython.exceptval(-2)
    def _route(self, messages: MessageRows, row: cython.longlong) -> cython.longlong:
        """A number for exchange and routing key."""
        words = messages.vocabularies
        exchange: cython.ulonglong = coded(words.exchange, messages.exchange.values[row])
        h: cython.ulonglong = coded(words.routing_key, messages.routing_key.values[row])
        return mixed(exchange, h) & _MASK63

    @cython.ccall
    @cython.exceptval(-1)
    def forget(self, mark: cython.longlong) -> cython.int:
        """The broker refused the publish of this mark, so a repetition is expected."""
        slot: cython.longlong = self._find(mark)
        if slot >= 0:
            self._unlink(slot)
        return 0
