"""Where tshark and we differ, as lines."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from amqpsniff.units import count, plural
from amqpsniff.wire_text import harmless

from .text import cut
from .theme import Paint

if TYPE_CHECKING:
    from amqpsniff.opinion import Difference


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
