"""`amqpsniff follow`: one conversation, both directions, from top to bottom."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

from amqpsniff.analysis.timeline import GAP, Entry
from amqpsniff.units import duration, octets, plural
from amqpsniff.wire_text import ends, harmless, word

from .export import write_rows
from .options import Input, Rows, TimeForm, at_least, spread
from .output import Output
from .reading import Reading
from .render.body import preview
from .render.lines import ARROWS, Lines
from .render.text import cut

if TYPE_CHECKING:
    from amqpsniff.analysis.conversation import Conversation
    from amqpsniff.session.owing import Silence


BODY_LIMIT = 64
"""Bytes of a body shown by default: enough to know it again."""

FORMATS = ("text", "ndjson")


@spread("""
    Output:
        --bodies: Whole bodies, not only their beginnings.
        --body-limit N: Bytes of each body that are shown, 0 for none. [default]
        --format F: Output format: {FORMATS}; ndjson gives the connection's rows of the frames
            table. [default]
""")
def follow(
    source: Input,
    rows: Rows,
    bodies: bool = False,
    body_limit: Annotated[int, at_least(0)] = BODY_LIMIT,
    time: TimeForm = "relative",
    format_: str = FORMATS[0],
) -> int:
    """Show one conversation, both directions, from top to bottom.

    Each method is a line as in inspect: → to the server, ← from it. Under a message is the
    beginning of its body; text is shown as text, other bytes in hex. Bytes that are missing from
    the capture and findings about the connection stand where they occurred; filters leave out
    methods, not these. Where nothing but heartbeats was sent for five seconds or more though a
    side owed something, a line says who owed whom; the last line says it of the end.

    The connection is named by the beginning of its id, its client's address:port or :port; where
    there is only one, it need not be named. Without --connection, --packet names the connection
    of a packet, and shows all of it. The captures are read twice, so standard input cannot be
    used.

    Examples:

        amqpsniff follow trace.pcapng --connection 7f29
        amqpsniff follow trace.pcapng --packet 496
        amqpsniff follow trace.pcapng --connection :43706 --channel 3
        amqpsniff follow trace.pcapng --queue orders --from 10 --bodies
    """
    limit = sys.maxsize if bodies else body_limit
    reading, output = Reading(source, rows), Output()
    with reading.passing() as capture:
        found = capture.follow(**rows.part(), bodies=limit > 0)
    if found is None:
        return reading.exit_code
    if format_ == "ndjson":
        source.quiet = True  # the first reading has warned
        packet = rows.packet if rows.connection else None
        part = replace(rows, connection=found.row["connection_id"], packet=packet)
        return write_rows(source, part, "frames", format_, warned_of=())
    lines = Lines(output, reading, time, whose=False)
    telling = Telling(output, lines, found, limit)
    output.lines(telling.heading())
    entries = iter(found.entries)
    output.lines(line for entry in islice(entries, rows.limit) for line in telling.tell(entry))
    if next(entries, None) is None:
        output.lines(telling.end(complete=rows.to is None))
    return reading.exit_code


ENDS = {
    "fin": "TCP ended without a close",
    "rst": "TCP was reset",
    None: "the connection was open when the capture ended",
}
"""The last line if no side closed the connection."""

SAID = (
    ("vhost", "vhost"), ("user", "user"), ("connection_name", "name"),
    ("client_product", "client"), ("client_version", ""),
    ("server_product", "server"), ("server_version", ""),
)  # fmt: skip
"""Columns of the connection in the heading, and their labels there."""


class Telling:
    """Prints a conversation entry by entry."""

    def __init__(
        self, output: Output, lines: Lines, conversation: Conversation, body_limit: int
    ) -> None:
        self._output = output
        self._lines = lines
        self._row = conversation.row
        self._findings = deque(sorted(conversation.findings, key=_place))
        self._silences = deque(conversation.silences)
        self._body_limit = body_limit

    def heading(self) -> Iterator[str]:
        """The two ends of the conversation."""
        row, paint = self._row, self._output.paint
        yield f"{paint('connection', row['connection_id'])} {ends(row['client'], row['server'])}"
        details = " ".join(
            f"{name}={word(row[column])}" if name else word(row[column])
            for column, name in SAID
            if row[column] is not None
        )
        if row["midstream"]:
            details = f"it began before the capture {details}".rstrip()
        if details:
            yield self._cut(details)

    def tell(self, entry: Entry) -> Iterator[str]:
        """The lines of an entry, after the findings that come before it."""
        if self._findings or self._silences:
            yield from self._before(entry)
        if entry.frame_type == GAP:
            arrow = ARROWS.get(entry.sender, "?")
            text = f"{arrow} - {octets(entry.size)} before this packet are missing or not decoded"
            yield from self._lines.aside(entry, "warning", text)
            return
        yield self._lines.frame(entry)
        if entry.message and entry.message.get("body"):
            yield from preview(entry.message, self._body_limit, self._output)

    def end(self, *, complete: bool) -> Iterator[str]:
        """Lines after the last entry; `complete` if none was left out after it."""
        while self._findings:
            yield from self._finding(self._findings.popleft())
        if complete and self._row["closed_by"] in ENDS:
            yield self._cut(ENDS[self._row["closed_by"]])
        if complete and self._row["owed"] is not None:
            yield self._cut(self._row["owed"])

    def _before(self, entry: Entry) -> Iterator[str]:
        """Findings before an entry, and who owed whom in a silence that ended with or before it."""
        while self._findings and _place(self._findings[0]) < _moment(entry):
            yield from self._finding(self._findings.popleft())
        silence = None
        while self._silences and _silence_order(self._silences[0]) <= _moment(entry):
            silence = self._silences.popleft()
        if silence is not None and _silence_order(silence) == _moment(entry):
            text = f"… {duration(silence.lasted_ns)} without traffic: {silence.owed}"
            yield from self._lines.aside(entry, "key", text)

    def _finding(self, finding: dict[str, Any]) -> Iterator[str]:
        text = f"! {finding['severity']} {finding['code']}: {finding['title']}"
        if finding["detail"]:
            text += f" ({finding['detail']})"
        if finding["count"] > 1:
            often = plural(finding["count"], "time")
            text += f", {often}, last in #{finding['last_packet_number']}"
        return self._lines.aside(SimpleNamespace(**finding), finding["severity"], harmless(text))

    def _cut(self, text: str) -> str:
        width = self._output.width
        return self._output.paint("key", text if width is None else cut(text, width))


def _place(finding: dict[str, Any]) -> tuple[int, int]:
    return finding["ts_ns"] or 0, finding["packet_number"] or 0


def _silence_order(silence: Silence) -> tuple[int, int]:
    return silence.ts_ns, silence.packet_number


def _moment(entry: Entry) -> tuple[int, int]:
    return entry.ts_ns or 0, entry.packet_number
