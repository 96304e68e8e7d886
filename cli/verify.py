"""`amqpsniff verify`: captures decoded with tshark too, and the differences."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from amqpsniff.errors import CaptureError, read_twice
from amqpsniff.units import count, plural
from amqpsniff.wire_text import harmless

from .entry import FAILED, FOUND, complain
from .files import write_text
from .options import Input, at_least, spread
from .output import Output
from .reading import Reading
from .render.grid import PROSE, facts
from .render.text import cut, folded

if TYPE_CHECKING:
    from amqpsniff.opinion import Difference


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
    format_: str = FORMATS[0],
) -> int:
    """Compare the decoding of captures with tshark's, and list where they differ.

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
    from amqpsniff.opinion import Comparison

    names = expand(source.captures)
    if "-" in names:
        raise read_twice("verify", "-")
    output, tshark, failed, listed = Output(), find(), False, 0
    counts: Counter[str] = Counter()
    known: Counter[str] = Counter()
    for name in names:
        try:
            reading = Reading(replace(source, captures=[name]))
            comparison = Comparison(reading.passes, tshark)
            for difference in comparison:
                explained = unknown and difference.known is not None
                if explained or (limit is not None and listed >= limit):
                    continue
                listed += 1
                if format_ == "ndjson":
                    row = {"capture": name, **difference.row()}
                    write_text(json.dumps(row, ensure_ascii=False, default=str) + "\n")
                else:
                    shown = line(name if len(names) > 1 else "", difference, output)
                    output.lines([shown])
            reading.passes = comparison.passes
            reading.judge()
        except CaptureError as error:
            if len(names) == 1:
                raise
            complain(str(error))
            failed = True
            continue
        for field in ("compared", "equal", "ours", "theirs", "unknown"):
            counts[field] += getattr(comparison, field)
        known += comparison.known
    if counts and not (source.quiet and format_ == "ndjson"):
        _conclude(verdict(counts, known, tshark.version_text), known, format_, output)
    return FAILED if failed else FOUND if counts["unknown"] else 0


def _conclude(text: str, known: Counter[str], form: str, output: Output) -> None:
    """Write the summary, and what known disagreements are."""
    if form != "text":
        for row in text.splitlines():
            complain(row)
        return
    for row in text.splitlines():
        output.lines(folded(row, output.room))
    rows = explanations(known)
    if output.terminal:
        output.show(facts(rows, max_width=PROSE))
    else:
        output.lines(f"{name}: {meaning}" for name, meaning in rows)


MAX_BYTES = 120
"""Most characters of a value: two long tables would hide their difference."""

UNEXPLAINED = "unknown"


def line(name: str, difference: Difference, output: Output) -> str:
    """A difference as one line: capture, packet, channel, method, what each says, and its name."""
    place = f"{difference.packet_number:>6} {difference.channel:>3}"
    method = harmless(difference.method or _kind(difference))
    text = _difference_text(difference)
    label = difference.known or UNEXPLAINED
    start = f"{harmless(name)}:" if name else ""
    if output.width is not None:
        room = output.width - len(start) - len(place) - len(method) - len(label) - 6
        text = cut(text, max(room, 20))
    paint = output.paint
    painted = paint("key" if difference.known else "error", f"({label})")
    return f"{start}{paint('packet', place)} {paint('method', method)} {text} {painted}"


def _kind(difference: Difference) -> str:
    frame = difference.our_frame or difference.their_frame
    return frame.kind if frame is not None else ""


def _difference_text(difference: Difference) -> str:
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
    """The number of compared frames, and that of their differences."""
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
