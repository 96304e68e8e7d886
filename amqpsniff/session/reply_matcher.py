# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Requests and their replies: the synchronous methods of each side, channel by channel."""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.clock import elapsed
from cython.cimports.amqpsniff.decode.rows import FrameRows
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.counts import Histogram
from cython.cimports.amqpsniff.session.method_frame import (
    Request,
    request_of,
)

from amqpsniff.session import method_flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.session.entities import ChannelSlot, Session
    from amqpsniff.session.settling import Settler

_NOTHING: list[Any] = cython.declare(list, [])  # of slots where nothing waits: never added to


_MAX_EARLY = cython.declare(cython.int, 16)
_METHODS = cython.declare(cython.int, len(method_flags.NAMES))
# Dialects may have methods of one name.
_NAMES = cython.declare(list, method_flags.NAMES)
_CLOSES = cython.declare(bytes, method_flags.CLOSES)
_REPLIES = cython.declare(bytes, method_flags.REPLIES)


@cython.no_gc
@cython.cclass
class ReplyTimes:
    """Times that answers to one method took. `number` and `ts_ns` are of the slowest request.

    `before`: those of the method that was answered first before it, or None.
    """

    name: str
    before: ReplyTimes
    count: cython.longlong
    took_ns: cython.longlong
    longest_ns: cython.longlong
    number: cython.longlong
    ts_ns: cython.longlong

    def __init__(self, name: str, before: ReplyTimes | None) -> None:
        self.name, self.before = name, before
        self.count = self.took_ns = self.number = 0
        self.longest_ns = -1
        self.ts_ns = NULL


@cython.no_gc
@cython.cclass
class Waited:
    """Time in which a connection waited for answers, overlapping waits counted once. `number` and
    `ts_ns` are of the first request; `latest` is of the method that was answered first last.
    """

    latest: ReplyTimes

    number: cython.longlong
    ts_ns: cython.longlong
    count: cython.longlong
    waited_ns: cython.longlong
    until_ns: cython.longlong

    def __init__(self, request: Request) -> None:
        self.number, self.ts_ns = request.number, request.ts_ns
        self.count = self.waited_ns = self.until_ns = 0
        self.latest = None

    def by_method(self) -> dict[str, ReplyTimes]:
        """The answers by method, in the order in which each was answered first."""
        answers: ReplyTimes = self.latest
        found: list[Any] = []
        while answers is not None:
            found.append((answers.name, answers))
            answers = answers.before
        return dict(reversed(found))


def note_answer(
    memory: dict[Any, Any], name: str, request: Request, now: cython.longlong
) -> cython.longlong:
    """Remember how long an answer took, by the request's method, and give that."""
    took: cython.longlong = max(now - request.ts_ns, 0)
    waited: Waited = memory.get("waited")
    if waited is None:
        waited = memory["waited"] = Waited(request)
    answers: ReplyTimes = waited.latest
    while answers is not None and answers.name != name:
        answers = answers.before
    if answers is None:
        answers = waited.latest = ReplyTimes(name, waited.latest)
    answers.count += 1
    answers.took_ns += took
    if took > answers.longest_ns:
        answers.longest_ns = took
        answers.number, answers.ts_ns = request.number, request.ts_ns
    waited.count += 1
    since: cython.longlong = max(request.ts_ns, waited.until_ns)
    if now > since:
        waited.waited_ns += now - since
    waited.until_ns = now
    return took


@cython.cfunc
def _is_later(place: Any, request: Request) -> cython.bint:
    """True if a place (packet number, ts_ns) comes after a request by its packet and by its time:
    each capture has packet numbers of its own.
    """
    return place[0] > request.number and place[1] >= request.ts_ns


@cython.cfunc
def _losses(session: Session, side: cython.int) -> cython.longlong:
    """The number of losses of frames of a side so far."""
    lost: list[Any] = session.lost_at[side] if session.lost_at is not None else None
    return lost[len(lost) - 1][2] if lost else 0


@cython.cfunc
def _losses_before(session: Session, request: Request) -> cython.longlong:
    """The number of losses of the other side's frames before a request; -1 if that is forgotten."""
    if session.lost_at is None:
        return 0
    lost: list[Any] = session.lost_at[1 - request.side]
    for at, (*place, count) in enumerate(lost):
        if _is_later(place, request):
            return count - 1 if at or count == 1 else -1
    return _losses(session, 1 - request.side)


@cython.cclass
class ReplyMatcher:
    """Finds the request that a method answers.

    After a resynchronization, or a wait for a hole, frames come late, after later frames of the
    other side: requests after their replies, and after a loss of these replies. So the last replies
    of a channel slot without a request are kept as (method, side, packet number, ts_ns, losses of
    that side so far), and packet numbers decide the order.

    Args:
        limits: Bounds on what is remembered.
        settler: Counts the entries dropped because of a limit; has the scope of the census.
        measures: Keep times of replies: a `counts.Histogram` for each request by name.
    """

    most: cython.longlong

    settler: Settler
    histograms: dict[Any, Any]

    def __init__(self, limits: Any, settler: Any, measures: bool) -> None:
        self.most = limits.requests
        self.settler = settler
        self.histograms = {} if measures else None

    def ask(
        self,
        session: Session,
        slot: ChannelSlot,
        frames: FrameRows,
        row: cython.longlong,
        method: cython.int,
        side: cython.int,
        subject: Any,
    ) -> cython.int:
        """A request that waits for its reply from now on, unless it is late and that is there."""
        request: Request = request_of(frames, row)
        before: cython.longlong = _losses_before(session, request)
        if slot.early_replies and self._came(session, slot, request, before):
            return 0
        if before < _losses(session, 1 - side):
            return 0  # its reply may be missing
        if (slot.no_reply_expected | session.no_reply_expected) & (1 << side) and not _CLOSES[
            method
        ]:
            return 0
        if len(slot.requests) >= self.most:
            return self.settler.limit_reached("requests")
        request.subject = subject
        if not slot.requests:
            slot.requests = []
        slot.requests.append(request)
        frames.wait(row)
        return 0

    @cython.cfunc
    def reply(
        self,
        session: Session,
        slot: ChannelSlot,
        frames: FrameRows,
        row: cython.longlong,
        method: cython.int,
        side: cython.int,
    ) -> Request:
        """The request that a method of `ANSWERS` answers, noted in its frame; or None."""
        place: cython.Py_ssize_t = 0
        request: Request = None
        number: cython.longlong = frames.packet_number.values[row]
        ts_ns: cython.longlong = frames.ts_ns.values[row]
        while place < len(slot.requests):
            request = slot.requests[place]
            if (
                request.side != side
                and _REPLIES[request.method * _METHODS + method]
                and not (number < request.number and ts_ns <= request.ts_ns)
            ):
                break
            place += 1
        if place == len(slot.requests):
            early = (method, side, number, ts_ns, _losses(session, side))
            slot.early_replies = [*slot.early_replies[-_MAX_EARLY + 1 :], early]
            return None
        del slot.requests[place]
        if not slot.requests:
            slot.requests = _NOTHING
        request.rows.settle(request.row)
        self._answer(session, slot, request, number, ts_ns)
        return request

    def _came(
        self, session: Session, slot: ChannelSlot, request: Request, before: cython.longlong
    ) -> cython.bint:
        """True if a reply came before a request; it is its own if nothing was lost `before` it."""
        kept = [
            one
            for one in slot.early_replies
            if one[1] == request.side or _is_later(one[2:4], request)
        ]
        slot.early_replies = kept
        for place, (reply, by, number, ts_ns, losses) in enumerate(kept):
            if by != request.side and _REPLIES[request.method * _METHODS + reply]:
                del kept[place]
                if losses <= before:
                    self._answer(session, slot, request, number, ts_ns)
                return True
        return False

    def _answer(
        self,
        session: Session,
        slot: ChannelSlot,
        request: Request,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """A request was answered in a packet, at a time."""
        rows: FrameRows = request.rows
        took: cython.longlong = elapsed(request.ts_ns, ts_ns)
        counts: cython.bint = True
        if self.settler.scope is not None:
            counts = self.settler.scope.includes(session.connection, slot.number, request.ts_ns)
        if self.histograms is not None and took != NULL and counts:
            name = _NAMES[request.method]
            histogram: Histogram = self.histograms.get(name)
            if histogram is None:
                histogram = self.histograms[name] = Histogram()
            histogram.add(took)
        if rows.wanted and not rows.given:
            rows.response_packet_number.values[request.row] = number
            rows.response_ns.values[request.row] = took
        return 0
