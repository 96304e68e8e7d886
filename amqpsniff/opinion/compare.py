"""Two readings of one capture side by side: ours, row by row, and tshark's.

Both come in the order of packets, but for frames behind a hole, which we give when the hole is
given up, under the number of the packet they were in. So packets are compared once both readings
are `WINDOW_PACKETS` past them; memory holds that much of each.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from amqpsniff.capture import open_capture
from amqpsniff.capture.file import STANDARD_INPUT
from amqpsniff.capture.tshark import SILENCE_S, Tshark, find
from amqpsniff.capture.tshark_frames import dissect
from amqpsniff.decode.redaction import MAX_SECRETS, MIN_SECRET_BYTES
from amqpsniff.errors import UsageError
from amqpsniff.opinion.difference import Difference
from amqpsniff.opinion.known import explain
from amqpsniff.opinion.pairs import differences, only_ours, only_theirs
from amqpsniff.opinion.redaction import redacted, sent_secret
from amqpsniff.opinion.rows import our_frames
from amqpsniff.opinion.sighting import TRANSFER, Ours, Theirs, theirs
from amqpsniff.opinion.traffic import Traffic
from amqpsniff.reader import Capture

WINDOW_PACKETS = 4_000
"""Packets between reading and comparing: longer than a hole is waited for (256 segments of its
conversation) where a few conversations are busy; a frame that comes later still is one of a
connection with lost packets, where the two differ anyway."""

MAX_ALIGNED = 2_000
"""Frames of one packet that are aligned at a cost that grows with their square; more are taken in
their order."""


class Comparison:
    """What both see in a capture.

    Iterate once over it for the `Difference`s, in the order of packets; the counts are whole after.
    Credentials are compared, and shown where the capture's options show them. Raises TsharkError
    where tshark is missing or fails, CaptureError where we cannot read.

    Attributes:
        compared: Frames that both see.
        equal: Those of them that are equal in all that is compared.
        ours, theirs: Frames that one sees.
        known: Differences by the name of the known disagreement that explains them.
        unknown: Differences that none explains.
    """

    def __init__(
        self, capture: Capture, tshark: Tshark | None = None, *, silence_s: float = SILENCE_S
    ) -> None:
        _check_one_file(capture)
        self._show_secrets = capture.options.show_secrets
        self.capture = Capture(capture.names, replace(capture.options, show_secrets=True))
        self.tshark = tshark or find()
        self.silence_s = silence_s
        self.compared = self.equal = self.ours = self.theirs = self.unknown = 0
        self.known: Counter[str] = Counter()
        self._traffic = Traffic()
        self._sent: dict[str, tuple[bytes, ...]] = {}

    def __iter__(self) -> Iterator[Difference]:
        self._traffic = Traffic.of(self.capture)
        options = self.capture.options
        told = dissect(
            self.tshark,
            self.capture.names[0],
            self._traffic.ports,
            self._traffic.tls_ports,
            keylog=options.tls_keylog,
            keys=options.tls_keys,
            silence_s=self.silence_s,
        )
        wanted = options.ports
        sights = (theirs(each) for each in told if not wanted or wanted & _ports(each.ends))
        waiting: dict[int, tuple[list[Ours], list[Theirs]]] = defaultdict(lambda: ([], []))
        done = 0
        for frames in our_frames(self.capture):
            for frame in frames:
                waiting[frame.packet_number][0].append(frame)
            latest = max(frame.packet_number for frame in frames)
            for sight in sights:
                waiting[sight.packet_number][1].append(sight)
                if sight.packet_number > latest:
                    break
            until = latest - WINDOW_PACKETS
            if until > done:
                done = until
                yield from self._compare(waiting, until)
        for sight in sights:
            waiting[sight.packet_number][1].append(sight)
        yield from self._compare(waiting, None)

    def _compare(self, waiting: dict[int, Any], until: int | None) -> Iterator[Difference]:
        for number in sorted(waiting):
            if until is not None and number > until:
                return
            mine, others = waiting.pop(number)
            self.ours += len(mine)
            self.theirs += len(others)
            for frame in mine:
                self._remember(frame)
            for ours, sight in _aligned(mine, others):
                yield from self._pair(ours, sight)

    def _pair(self, ours: Ours | None, sight: Theirs | None) -> Iterator[Difference]:
        if ours is None or sight is None:
            found = [only_ours(ours)] if ours is not None else [only_theirs(sight)]  # type: ignore[arg-type]
        else:
            self.compared += 1
            found = list(differences(ours, sight))
            if sight.malformed and ours.method == TRANSFER:
                self._traffic.malformed.add(sight.ends)
            self.equal += not found
        for difference in found:
            known = explain(difference, self._traffic)
            if known is None:
                self.unknown += 1
            else:
                self.known[known] += 1
            yield self._safe(difference)._replace(known=known)

    def _safe(self, difference: Difference) -> Difference:
        """The difference without credentials, unless the capture shows them."""
        if self._show_secrets:
            return difference
        frame = difference.our_frame
        sent = self._sent.get(frame.connection_id, ()) if frame is not None else ()
        return redacted(difference, sent)

    def _remember(self, frame: Ours) -> None:
        """Remember the secret that a frame carries: the broker may quote it."""
        secret = sent_secret(frame)
        if len(secret) >= MIN_SECRET_BYTES:
            known = self._sent.get(frame.connection_id, ())
            self._sent[frame.connection_id] = tuple(dict.fromkeys((secret, *known)))[:MAX_SECRETS]


def _check_one_file(capture: Capture) -> None:
    """Raise UsageError where tshark cannot be given the capture, CaptureError where nobody can."""
    if len(capture.names) == 1 and not capture.once:
        return
    for name in capture.once[:1]:
        if name != STANDARD_INPUT and not Path(name).is_fifo():
            open_capture(name).close()
    raise UsageError("tshark is given one capture file; several, or a pipe, are not one")


def _ports(ends: Iterable[str]) -> set[int]:
    return {int(end.rpartition(":")[2]) for end in ends}


def _aligned(mine: list[Ours], others: list[Theirs]) -> Iterator[tuple[Ours | None, Theirs | None]]:
    """Frames of one packet in pairs; null for the one that is missing."""
    ours = [(each.kind, each.channel, each.size) for each in mine]
    sights = [(each.kind, each.channel, each.size) for each in others]
    if ours == sights or len(ours) + len(sights) > MAX_ALIGNED:
        yield from _zipped(mine, others)
        return
    for _, begin, end, start, stop in SequenceMatcher(None, ours, sights, False).get_opcodes():
        for mine_one, other in _zipped(mine[begin:end], others[start:stop]):
            if mine_one is None or other is None or _alike(mine_one, other):
                yield mine_one, other
            else:
                yield mine_one, None
                yield None, other


def _alike(ours: Ours, sight: Theirs) -> bool:
    """True if two sightings can be of one frame."""
    return ours.size == sight.size and (ours.kind == sight.kind or ours.channel == sight.channel)


def _zipped(
    mine: Iterable[Ours], others: Iterable[Theirs]
) -> Iterator[tuple[Ours | None, Theirs | None]]:
    left, right = deque(mine), deque(others)
    while left or right:
        yield (left.popleft() if left else None), (right.popleft() if right else None)
