"""`amqpsniff verify`: what tshark sees in captures, held against what is decoded here."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from amqpsniff.errors import CaptureError, UsageError

from .entry import FAILED, FOUND, complain
from .options import Input, at_least, one_of, spread
from .output import Output, write_text
from .reading import Reading
from .render.findings import PROSE
from .render.grid import facts
from .render.opinion import explanations, line, verdict
from .render.text import folded

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
