"""`amqpsniff verify`: what tshark sees in captures, held against what is decoded here."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from amqpsniff.errors import CaptureError, UsageError
from amqpsniff.units import count, plural
from amqpsniff.wire_text import harmless

from .entry import FAILED, FOUND, complain
from .options import Input, at_least, one_of, spread
from .output import Output, write_text
from .reading import Reading
from .render.findings import PROSE
from .render.grid import facts
from .render.text import Paint, cut, folded

if TYPE_CHECKING:
    from amqpsniff.capture.tshark import Tshark
    from amqpsniff.opinion import Comparison, Difference


FORMATS = ("text", "ndjson")


@spread("""
    Output:
        --unknown: List only differences that no known disagreement explains.
        -n --limit N: List at most this many differences; all are counted.
        --format F: Output format: {FORMATS}; with ndjson the summary goes to standard error.
            [default]
""")
def verify(
    source: Input,
    unknown: bool = False,
    limit: Annotated[int | None, at_least(0)] = None,
    format_: Annotated[str, one_of(FORMATS, "no format {} here")] = FORMATS[0],
) -> int:
    """Decode captures with tshark too, and list where it and this program differ.

    Frames are compared packet by packet: channel, type, size, class, method, and every argument
    and property. Known differences have names, which the last lines explain; the exit code is 1 if
    there are others. It needs tshark, and tells it the ports of the servers.

    Examples:

        amqpsniff verify trace.pcapng
        amqpsniff verify captures/ --unknown
        amqpsniff verify trace.pcapng --format ndjson | jq 'select(.known == null)'
    """
    from amqpsniff.capture import expand
    from amqpsniff.capture.tshark import find

    names = expand(source.captures)
    if "-" in names:
        raise UsageError("both read the capture from its beginning; save standard input to a file")
    listing = _Listing(Output(), format_, limit, unknown=unknown, several=len(names) > 1)
    tshark, failed, done = find(), 0, None
    for name in names:
        try:
            done = listing.compare(replace(source, captures=[name]), tshark)
        except CaptureError as error:
            if len(names) == 1:
                raise
            complain(str(error))
            failed += 1
    if done is not None and not (source.quiet and format_ == "ndjson"):
        listing.conclude()
    return FAILED if failed else FOUND if listing.unknown else 0


class _Listing:
    """Writes differences, and counts them over all captures."""

    def __init__(
        self, output: Output, form: str, limit: int | None, *, unknown: bool, several: bool
    ) -> None:
        self._output = output
        self._form = form
        self._left = limit
        self._only_unknown = unknown
        self._several = several
        self._version = ""
        self._counts: Counter[str] = Counter()
        self._known: Counter[str] = Counter()

    @property
    def unknown(self) -> int:
        """Differences that nothing explains."""
        return self._counts["unknown"]

    def compare(self, source: Input, tshark: Tshark) -> Comparison:
        """List the differences of one capture."""
        from amqpsniff.opinion import Comparison

        reading = Reading(source)
        comparison = Comparison(reading.capture, tshark)
        for difference in comparison:
            self._list(source.captures[0], difference)
        reading.capture = comparison.capture
        reading.judge(reading.capture.found)
        self._version = tshark.version_text
        for name in ("compared", "equal", "ours", "theirs", "unknown"):
            self._counts[name] += getattr(comparison, name)
        self._known += comparison.known
        return comparison

    def _list(self, name: str, difference: Difference) -> None:
        if self._only_unknown and difference.known is not None:
            return
        if self._left is not None:
            if not self._left:
                return
            self._left -= 1
        if self._form == "ndjson":
            row = {"capture": name, **difference.row()}
            write_text(json.dumps(row, ensure_ascii=False, default=str) + "\n")
            return
        self._output.lines([self._line(name if self._several else "", difference)])

    def _line(self, name: str, difference: Difference) -> str:

        return line(name, difference, self._output.paint, self._output.width)

    def conclude(self) -> None:
        """Write the summary."""

        text = verdict(self._counts, self._known, self._version)
        if self._form != "text":
            for line in text.splitlines():
                complain(line)
            return
        for line in text.splitlines():
            self._output.lines(folded(line, self._output.room))
        met = explanations(self._known)
        if self._output.terminal:
            self._output.show(facts(met, most=PROSE))
        else:
            self._output.lines(f"{name}: {what}" for name, what in met)


MAX_BYTES = 120
"""Characters of a value that are shown: two long tables would hide what differs in them."""

UNEXPLAINED = "unknown"


def line(name: str, difference: Difference, paint: Paint, width: int | None) -> str:
    """A difference as one line: capture, packet, channel, method, what each says, and its name."""
    place = f"{difference.packet_number:>6} {difference.channel:>3}"
    what = harmless(difference.method or _kind(difference))
    said = _said(difference)
    known = difference.known or UNEXPLAINED
    start = f"{harmless(name)}:" if name else ""
    if width is not None:
        room = width - len(start) - len(place) - len(what) - len(known) - 6
        said = cut(said, max(room, 20))
    named = paint("key" if difference.known else "error", f"({known})")
    return f"{start}{paint('packet', place)} {paint('method', what)} {said} {named}"


def _kind(difference: Difference) -> str:
    frame = difference.our_frame or difference.their_frame
    return frame.kind if frame is not None else ""


def _said(difference: Difference) -> str:
    if difference.what == "only-ours":
        return "is not shown by tshark"
    if difference.what == "only-theirs":
        return "is shown by tshark alone"
    if difference.what == "malformed":
        return "is malformed to tshark"
    subject = harmless(difference.name or difference.what)
    return f"{subject}: {_value(difference.ours)}, tshark {_value(difference.theirs)}"


def _value(value: Any) -> str:
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return cut(harmless(text) or '""', MAX_BYTES)


def verdict(counts: Counter[str], known: Counter[str], version: str) -> str:
    """How many frames were compared, and how they differ."""
    explained = ", ".join(f"{name} {count(number)}" for name, number in known.most_common())
    return (
        f"{plural(counts['ours'], 'frame')} here, {count(counts['theirs'])} with tshark {version}: "
        f"{count(counts['compared'])} compared, {count(counts['equal'])} equal\n"
        f"known differences: {explained or 'none'}; unknown: {count(counts['unknown'])}"
    )


def explanations(known: Counter[str]) -> list[tuple[str, str]]:
    """(name, what it is) of each known disagreement that was met."""
    from amqpsniff.opinion import KNOWN

    return [
        (row.name, f"{row.traffic}; tshark: {row.tshark}; here: {row.here}")
        for row in KNOWN
        if row.name in known
    ]
