"""Bytes of one direction that were lost between two captures, or are missing from one of them.

TCP tells which it was. Bytes that the sender's side saw go out more often than the receiver's side
saw them come were lost on the way, and sent again. Bytes that never came, in a stream that went on
and was acknowledged, did come: the capture missed them. Bytes that came twice, and were not
acknowledged when they came again, were dropped by the receiving host behind its capture, unless its
acknowledgement was still to come. Bytes that came but were not seen to go
are missing from the sender's capture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from amqpsniff.compare.sighting import Direction
from amqpsniff.compare.spans import Repeat

LOST = "lost"
NEEDLESS = "needless"
DROPPED = "dropped"
DOUBLED = "doubled"
UNREPAIRED = "unrepaired"
SENDER_MISSED = "sender-capture"
RECEIVER_MISSED = "receiver-capture"

KINDS = {
    LOST: "lost on the network and sent again",
    UNREPAIRED: "lost on the network and never acknowledged",
    DROPPED: "came unacknowledged and was sent again",
    NEEDLESS: "sent again though it had come",
    DOUBLED: "came more often than it was seen to be sent",
    SENDER_MISSED: "missing from the capture at the sender",
    RECEIVER_MISSED: "missing from the capture at the receiver",
}
"""Kinds of losses and repetitions."""


class Loss(NamedTuple):
    """Bytes of one direction that did not go through once, and once only.

    `begin` and `end` are stream offsets of the client's capture. `times`: how often they were lost,
    or came too often. `number` is the packet that carried them again, at the sender's side for what
    was sent again, and at the receiver's for what came twice; `ts_ns` its time; null without one.
    """

    kind: str
    begin: int
    end: int
    times: int
    number: int | None = None
    ts_ns: int | None = None


class View(NamedTuple):
    """One side of a direction: its capture's view, and the shift of its stream offsets."""

    direction: Direction
    shift: int

    def spans(self) -> list[list[int]]:
        """Spans that were carried, in common stream offsets."""
        return [[a + self.shift, b + self.shift] for a, b in self.direction.coverage.spans]

    def repeats(self) -> list[Repeat]:
        """Spans that were carried again, in common stream offsets."""
        return [
            repeat._replace(
                begin=repeat.begin + self.shift,
                end=repeat.end + self.shift,
                acked=repeat.acked + self.shift,
            )
            for repeat in self.direction.coverage.repeats
        ]


def shared(sender: View, receiver: View) -> tuple[int, int] | None:
    """The stream offsets that both captures cover; None without any."""
    sent, received = sender.direction.coverage.bounds, receiver.direction.coverage.bounds
    if sent is None or received is None:
        return None
    begin = max(sent[0] + sender.shift, received[0] + receiver.shift)
    end = min(sent[1] + sender.shift, received[1] + receiver.shift)
    return (begin, end) if begin < end else None


def losses(sender: View, receiver: View) -> list[Loss]:
    """Losses and repetitions of bytes between the captures, in the order of the stream."""
    bounds = shared(sender, receiver)
    if bounds is None:
        return []
    # beyond a hole nothing is acknowledged before the hole is filled
    acked = receiver.direction.acked + receiver.shift
    found: list[Loss] = []
    for begin, end, out, back in _pieces(bounds, _carried(sender), _carried(receiver)):
        found += _judged(begin, end, out, back, acked)
    return _joined(found)


Carried = list[tuple[int, int, Repeat | None]]
"""Spans, and the segment that carried them where it was not the first to do so."""


def _carried(view: View) -> Carried:
    """Every time that bytes were carried."""
    first: Carried = [(begin, end, None) for begin, end in view.spans()]
    return first + [(repeat.begin, repeat.end, repeat) for repeat in view.repeats()]


def _pieces(
    bounds: tuple[int, int], *sides: Carried
) -> Iterator[tuple[int, int, list[Repeat | None], list[Repeat | None]]]:
    """Spans without a change inside, with each time that either side carried them."""
    low, high = bounds
    edges: list[tuple[int, bool, int, Repeat | None]] = []
    for side, carried in enumerate(sides):
        for first, stop, repeat in carried:
            begin, end = max(first, low), min(stop, high)
            if begin < end:
                edges += [(begin, True, side, repeat), (end, False, side, repeat)]
    edges.sort(key=lambda edge: edge[:3])
    now: tuple[list[Repeat | None], list[Repeat | None]] = ([], [])
    at = low
    for place, begins, side, repeat in edges:
        if at < place:
            yield at, place, *now
            at = place
        if begins:
            now[side].append(repeat)
        else:
            now[side].remove(repeat)


def _judged(
    begin: int, end: int, out: list[Repeat | None], back: list[Repeat | None], acked: int
) -> Iterator[Loss]:
    """The loss or repetition of a span that was sent (`out`) and received (`back`) so often."""
    if len(out) == len(back) == 1 or not (out or back):
        return
    if not out:
        yield Loss(SENDER_MISSED, begin, end, 1)
        return
    if not back:
        yield Loss(RECEIVER_MISSED if acked >= end else UNREPAIRED, begin, end, 1)
        if acked < end:
            return
    # bytes that a capture missed were received once all the same
    came = max(len(back), 1)
    last = _last_of(out if len(out) >= came else back)
    place = (last.number, last.ts_ns) if last is not None else (None, None)
    if len(out) > came:
        yield Loss(LOST, begin, end, len(out) - came, *place)
    elif came > len(out):
        yield Loss(DOUBLED, begin, end, came - len(out), *place)
    elif came > 1:
        last_received = _last_of(back)
        kind = DROPPED if last_received is not None and last_received.acked < end else NEEDLESS
        yield Loss(kind, begin, end, came - 1, *place)


def _last_of(carried: list[Repeat | None]) -> Repeat | None:
    """The segment that carried bytes last."""
    return max((repeat for repeat in carried if repeat is not None), key=_number, default=None)


def _number(repeat: Repeat) -> int:
    return repeat.number


def _joined(found: list[Loss]) -> list[Loss]:
    """Losses that touch and are of the same sort and packet as one."""
    joined: list[Loss] = []
    for loss in found:
        before = joined[-1] if joined else None
        if (
            before is not None
            and before.end == loss.begin
            and (before.kind, before.times, before.number) == (loss.kind, loss.times, loss.number)
        ):
            joined[-1] = before._replace(end=loss.end)
        else:
            joined.append(loss)
    return joined
