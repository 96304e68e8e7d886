"""Two readings of one capture side by side: ours, row by row, and tshark's.

Both come in the order of packets, but for frames behind a hole, which we give when the hole is
given up, under the number of the packet they were in. So packets are compared once both readings
are `WINDOW_PACKETS` past them; memory holds that much of each.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from amqpsniff.capture import open_capture
from amqpsniff.capture.file import STANDARD_INPUT
from amqpsniff.capture.tshark import SILENCE_S, Tshark, find
from amqpsniff.capture.tshark_frames import dissect
from amqpsniff.decode.redaction import (
    MAX_SECRETS,
    MIN_SECRET_BYTES,
    SECRET_METHODS,
    may_hold_secret,
    password,
    redact_quote,
    without_secrets,
)
from amqpsniff.errors import UsageError
from amqpsniff.opinion.difference import Difference, differences, only_ours, only_theirs
from amqpsniff.opinion.known import explain
from amqpsniff.opinion.sighting import TRANSFER, Ours, Theirs, theirs
from amqpsniff.opinion.traffic import Traffic
from amqpsniff.opinion.values import Table, bytes_of, parsed
from amqpsniff.passes import Passes
from amqpsniff.spec import METHODS

WINDOW_PACKETS = 4_000
"""Packets between reading and comparing: longer than a hole is waited for (256 segments of its
conversation) where a few conversations are busy; a frame that comes later still is one of a
connection with lost packets, where the two differ anyway."""

MAX_ALIGNED = 2_000
"""Frames of one packet that are aligned at a cost that grows with their square; more are taken in
their order."""


class Comparison:
    """The two views of a capture, compared.

    Iterate once over it for the `Difference`s, in the order of packets; the counts are whole after.
    Credentials are compared, and shown where the capture's options show them. Raises TsharkError
    where tshark is missing or fails, CaptureError where we cannot read.

    Attributes:
        compared: Frames that both see.
        equal: Those of them that are equal in all that is compared.
        ours, theirs: Frames that one sees.
        known: Differences by the name of the known disagreement that explains them.
        unknown: Differences that no known disagreement explains.
    """

    def __init__(
        self,
        capture: Passes,
        tshark: Tshark | None = None,
        *,
        silence_s: float = SILENCE_S,
        window_packets: int = WINDOW_PACKETS,
    ) -> None:
        _check_one_file(capture)
        self._show_secrets = capture.options.show_secrets
        self.passes = Passes(capture.names, replace(capture.options, show_secrets=True))
        self.tshark = tshark or find()
        self.silence_s = silence_s
        self.window_packets = window_packets
        self.compared = self.equal = self.ours = self.theirs = self.unknown = 0
        self.known: Counter[str] = Counter()
        self._traffic = Traffic()
        self._sent_secrets: dict[str, tuple[bytes, ...]] = {}

    def __iter__(self) -> Iterator[Difference]:
        self._traffic = Traffic.of(self.passes)
        options = self.passes.options
        frames_of_tshark = dissect(
            self.tshark,
            self.passes.names[0],
            self._traffic.ports,
            self._traffic.tls_ports,
            keylog=options.tls_keylog,
            keys=options.tls_keys,
            silence_s=self.silence_s,
        )
        ports = options.ports
        sights = (
            theirs(dissected)
            for dissected in frames_of_tshark
            if not ports or ports & _ports(dissected.ends)
        )
        waiting: dict[int, tuple[list[Ours], list[Theirs]]] = defaultdict(lambda: ([], []))
        done = 0
        for frames in our_frames(self.passes):
            for frame in frames:
                waiting[frame.packet_number][0].append(frame)
            latest = max(frame.packet_number for frame in frames)
            for sight in sights:
                waiting[sight.packet_number][1].append(sight)
                if sight.packet_number > latest:
                    break
            last_number = latest - self.window_packets
            if last_number > done:
                done = last_number
                yield from self._compare(waiting, last_number)
        for sight in sights:
            waiting[sight.packet_number][1].append(sight)
        yield from self._compare(waiting, None)

    def _compare(self, waiting: dict[int, Any], last_number: int | None) -> Iterator[Difference]:
        for number in sorted(waiting):
            if last_number is not None and number > last_number:
                return
            our_side, their_side = waiting.pop(number)
            self.ours += len(our_side)
            self.theirs += len(their_side)
            for frame in our_side:
                self._remember(frame)
            for ours, sight in _aligned(our_side, their_side):
                yield from self._pair(ours, sight)

    def _pair(self, ours: Ours | None, sight: Theirs | None) -> Iterator[Difference]:
        if ours is None or sight is None:
            found_differences = [only_ours(ours)] if ours is not None else [only_theirs(sight)]  # type: ignore[arg-type]
        else:
            self.compared += 1
            found_differences = list(differences(ours, sight))
            if sight.malformed and ours.method == TRANSFER:
                self._traffic.malformed.add(sight.ends)
            self.equal += not found_differences
        for difference in found_differences:
            explanation = explain(difference, self._traffic)
            if explanation is None:
                self.unknown += 1
            else:
                self.known[explanation] += 1
            yield self._safe(difference)._replace(known=explanation)

    def _safe(self, difference: Difference) -> Difference:
        """The difference without credentials, unless the capture shows them."""
        if self._show_secrets:
            return difference
        frame = difference.our_frame
        secrets = self._sent_secrets.get(frame.connection_id, ()) if frame is not None else ()
        return redacted(difference, secrets)

    def _remember(self, frame: Ours) -> None:
        """Remember the secret that a frame carries: the broker may quote it."""
        secret = sent_secret(frame)
        if len(secret) >= MIN_SECRET_BYTES:
            earlier = self._sent_secrets.get(frame.connection_id, ())
            self._sent_secrets[frame.connection_id] = tuple(dict.fromkeys((secret, *earlier)))[
                :MAX_SECRETS
            ]


def _check_one_file(capture: Passes) -> None:
    """Raise UsageError if the input is not one file, CaptureError if it cannot be read."""
    if len(capture.names) == 1 and not capture.once:
        return
    for name in capture.once[:1]:
        if name != STANDARD_INPUT and not Path(name).is_fifo():
            open_capture(name).close()
    raise UsageError("verify needs a single capture file, not several or a pipe")


def _ports(ends: Iterable[str]) -> set[int]:
    return {int(end.rpartition(":")[2]) for end in ends}


def _aligned(ours: list[Ours], sights: list[Theirs]) -> Iterator[tuple[Ours | None, Theirs | None]]:
    """Frames of one packet in pairs; None for the one that is missing."""
    our_shapes = [(frame.kind, frame.channel, frame.size) for frame in ours]
    their_shapes = [(frame.kind, frame.channel, frame.size) for frame in sights]
    if our_shapes == their_shapes or len(our_shapes) + len(their_shapes) > MAX_ALIGNED:
        yield from _zipped(ours, sights)
        return
    for _, begin, end, start, stop in SequenceMatcher(
        None, our_shapes, their_shapes, False
    ).get_opcodes():
        for our_frame, sight in _zipped(ours[begin:end], sights[start:stop]):
            if our_frame is None or sight is None or _alike(our_frame, sight):
                yield our_frame, sight
            else:
                yield our_frame, None
                yield None, sight


def _alike(ours: Ours, sight: Theirs) -> bool:
    """True if two sightings can be of one frame."""
    return ours.size == sight.size and (ours.kind == sight.kind or ours.channel == sight.channel)


def _zipped(
    ours: Iterable[Ours], sights: Iterable[Theirs]
) -> Iterator[tuple[Ours | None, Theirs | None]]:
    our_queue, their_queue = deque(ours), deque(sights)
    while our_queue or their_queue:
        yield (
            (our_queue.popleft() if our_queue else None),
            (their_queue.popleft() if their_queue else None),
        )


REDACTED = "[redacted]"

_QUOTING = ("reply_text", "reason", "challenge")
"""Arguments in which a broker may quote bytes of a login, and what tshark may take them for."""


def redacted(difference: Difference, secrets: tuple[bytes, ...] = ()) -> Difference:
    """The difference with what may be a secret replaced.

    Of a method that carries a secret, or may, no value is shown; of reply texts, what they quote is
    not, nor are `secrets` that were sent on the connection before.
    """
    frame = difference.our_frame or difference.their_frame
    kind = "method" if frame is None else frame.kind
    may_be_secret = may_hold_secret(kind, difference.channel, difference.method)
    safe: Callable[[Any, tuple[bytes, ...]], Any]
    if may_be_secret and difference.name is not None:
        safe = _hidden
    elif difference.name in _QUOTING:
        safe = _unquoted
    else:
        return difference
    ours, theirs = safe(difference.ours, secrets), safe(difference.theirs, secrets)
    return difference._replace(ours=ours, theirs=theirs)


def sent_secret(frame: Ours) -> bytes:
    """The secret that a frame carries, read with secrets shown; empty without one."""
    if frame.method not in SECRET_METHODS or not isinstance(frame.arguments, Table):
        return b""
    values = dict(frame.arguments)
    response = bytes_of(values.get("response", values.get("new_secret"))) or b""
    return password(bytes_of(values.get("mechanism")) or b"", response)


def _hidden(value: Any, _: tuple[bytes, ...]) -> Any:
    return None if value is None else REDACTED


def _unquoted(value: Any, secrets: tuple[bytes, ...]) -> Any:
    if not isinstance(value, str):
        return value
    text = value.encode(errors="surrogatepass")
    text = redact_quote(text, (0, 0), False) or text
    return (without_secrets(text, secrets) or text).decode(errors="replace")


FRAMES = (
    "packet_number", "connection_id", "client", "server", "sender", "channel", "frame_type", "size",
    "method", "arguments",
)  # fmt: skip
PROPERTIES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id",
    "reply_to", "expiration", "message_id", "message_timestamp", "type", "user_id", "app_id",
    "cluster_id",
)  # fmt: skip
MESSAGES = ("packet_number", "connection_id", "sender", "channel", "body_size", *PROPERTIES)

AT_ONCE = 2_048
"""Frames made into objects at once, 2 kB each with their arguments."""

_CONTENT = {method.name for method in METHODS if method.content}


def our_frames(capture: Passes) -> Iterator[list[Ours]]:
    """Our frames, some `AT_ONCE` of them at a time, with properties, as the message has ended.

    Rows of messages come behind those of the frames with which they ended, so frames wait for them,
    as columns.
    """
    columns: dict[str, Collection[str]] = {"frames": FRAMES, "messages": MESSAGES}
    headers = _Headers()
    previous = None
    for table, batch in capture.tables("frames", "messages", columns=columns):
        if table == "messages":
            for row in batch.select(list(MESSAGES)).to_pylist():
                headers.ended(row)
        if previous is not None:
            yield from _frames(previous, headers)
        previous = batch if table == "frames" else None
    if previous is not None:
        yield from _frames(previous, headers)


def _frames(batch: Any, headers: _Headers) -> Iterator[list[Ours]]:
    chosen = batch.select(list(FRAMES))
    for begin in range(0, chosen.num_rows, AT_ONCE):
        rows = chosen.slice(begin, AT_ONCE).to_pylist()
        frames = [_frame(row) for row in rows]
        headers.saw(rows, frames)
        yield frames


def _frame(row: dict[str, Any]) -> Ours:
    return Ours(
        row["packet_number"],
        row["connection_id"],
        frozenset((row["client"], row["server"])),
        row["frame_type"],
        row["channel"],
        row["size"],
        row["method"],
        parsed(row["arguments"]),
        [],
    )


class _Headers:
    """Content headers and the rows of their messages, whichever comes first."""

    def __init__(self) -> None:
        self._opened: dict[Any, int] = {}
        self._waiting: dict[Any, deque[list[Any]]] = defaultdict(deque)
        self._ended: dict[Any, deque[Table]] = defaultdict(deque)

    def saw(self, rows: list[dict[str, Any]], frames: list[Ours]) -> None:
        for row, frame in zip(rows, frames, strict=True):
            channel = (row["connection_id"], row["sender"], row["channel"])
            if row["method"] in _CONTENT:
                self._opened[channel] = row["packet_number"]
            elif row["frame_type"] == "header" and channel in self._opened:
                key = (*channel, self._opened.pop(channel))
                ended = _next(self._ended, key)
                if ended is None:
                    self._waiting[key].append(frame.properties)
                else:
                    frame.properties.append(ended)

    def ended(self, row: dict[str, Any]) -> None:
        if row["body_size"] is None:
            return  # it has no header
        key = (row["connection_id"], row["sender"], row["channel"], row["packet_number"])
        waiting = _next(self._waiting, key)
        if waiting is None:
            self._ended[key].append(_properties(row))
        else:
            waiting.append(_properties(row))


def _next(queues: dict[Any, deque[Any]], key: Any) -> Any:
    """The first item of a queue, which is deleted with its last one; None without a queue."""
    queue = queues.get(key)
    if queue is None:
        return None
    first = queue.popleft()
    if not queue:
        del queues[key]
    return first


def _properties(row: dict[str, Any]) -> Table:
    properties = []
    for name in PROPERTIES:
        value = row[name]
        if value is None:
            continue
        if name == "headers":
            value = parsed(value)
        elif name == "message_timestamp":
            name, value = "timestamp", value.isoformat()  # noqa: PLW2901
        properties.append((name, value))
    return Table(properties)
