"""What stands below a view where there is room: busy names, findings, more of one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table
from rich.text import Text

from amqpsniff.findings import SEVERITIES
from amqpsniff.units import of_severity
from amqpsniff.wire_text import harmless

from ..render.text import cells, cut, folded
from .lines import line, pair
from .snapshot import Picture
from .views import Row, clock, name, often, queue_name

GAP = 3
RATE_CELLS = 6
MIN_CELLS = 14

_PANELS = (
    ("exchanges", "exchange", "published_per_s"),
    ("routing keys", "routing_key", "published_per_s"),
    ("queues", "queue", "delivered_per_s"),
)


def names(picture: Picture, width: int, lines: int) -> Table:
    """Exchanges, routing keys and queues with the highest rates, side by side."""
    table = Table.grid(padding=(0, GAP, 0, 0))
    tables = (picture.exchanges, picture.keys, picture.queues)
    shown = []
    for (_, key, rated), rows in zip(_PANELS, tables, strict=True):
        write = queue_name if key == "queue" else name
        ranked = sorted(rows, key=lambda row: (-round(row[rated]), str(row[key])))[: lines - 1]
        shown.append([(write(row[key]), often(row[rated])) for row in ranked])
    widths = _widths(shown, width)
    columns: list[list[Text]] = []
    for (title, _, _), pairs, each in zip(_PANELS, shown, widths, strict=True):
        table.add_column(width=each, no_wrap=True)
        columns.append([Text(title, "heading"), *(pair(*one, each) for one in pairs)])
    for at in range(lines + 1):
        table.add_row(
            *(column[at - 1] if 0 < at <= len(column) else Text("") for column in columns)
        )
    return table


def _widths(shown: list[list[tuple[str, str]]], width: int) -> list[int]:
    """How wide each panel is: a third, or what the names of the others leave."""
    widths = [
        max([MIN_CELLS, *(cells(left) + 1 + RATE_CELLS for left, _ in pairs)]) for pairs in shown
    ]
    third = (width - GAP * (len(widths) - 1)) // len(widths)
    if max(widths) <= third:  # names come and go; the panels stay where they are
        return [third] * len(widths)
    while sum(widths) + GAP * (len(widths) - 1) > width:
        widths[widths.index(max(widths))] -= 1
    return widths


def latest(picture: Picture, findings: Iterable[Row], width: int, lines: int) -> Iterator[Text]:
    """What happened to the capture, then the latest findings, errors before all others."""
    shown = [Text(cut(harmless(note), width), "warning") for note in picture.notes[::-1]]
    ranked = sorted(findings, key=lambda row: (row["rank"], row["ts_ns"] or 0), reverse=True)
    for row in ranked[:lines]:
        who = f"{row['who']}: " if row["who"] else ""
        what = f"{clock(row['ts_ns'])} {row['code']} {who}{row['detail']}"
        shown.append(Text(cut(harmless(what), width), row["severity"]))
    yield from shown[:lines]


FINDING_LINES = 5
"""Lines of `finding`, with the empty one above."""


def finding(row: Row, width: int) -> Iterator[Text]:
    """One finding in full, as far as it fits."""
    yield Text("")
    yield line(
        width,
        (f"{row['severity']}: {row['title']}", row["severity"]),
        f"channel {row['channel']}" if row["channel"] is not None else "",
        f"packet {row['packet_number']}" if row["packet_number"] is not None else "",
        f"because of {row['cause_code']}" if row["cause_code"] else "",
    )
    first, *rest = folded(harmless(row["detail"]), width)
    yield Text(first)
    yield Text(cut(" ".join(rest), width))
    yield line(
        width,
        harmless(row["who"] or ""),
        row["client"] if row["client"] != row["who"] else "",
        (f"what to do: amqpsniff explain {row['code']}", "key"),
    )


def counted(picture: Picture) -> list[tuple[str, str]]:
    """How many findings there are of each severity, the gravest first."""
    parts = []
    for severity in SEVERITIES[::-1]:
        number = picture.severities[severity]
        if number:
            parts.append((of_severity(number, severity), severity))
    return parts
