"""Tables without lines that fit a terminal: what may be cut is cut, what may be left out goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

from .text import cells, cut, cut_middle, folded
from .theme import Paint

GAP = 2
BELOW = 4
"""Columns by which a text below its row is moved in."""
LEAST_CELLS = 6
"""Columns that are left of a text that is cut."""
SOON_CELLS = 10
"""Columns that are left of a text that is cut before others are."""
COMFORT_CELLS = 16
"""Columns that a text is given before others are left out for it."""


class Grid:
    """Rows under headings.

    Args:
        columns: Headings with `|` between them. Marks before a heading: `>` aligns right, `*` may
            be cut (`**` before others), `?` may be left out on a narrow terminal (`??` sooner, and
            so on), `~` is continued on further lines, `=` is cut in its middle rather than at its
            end. Of `lines`, a `~` column is the last, and stands below where it is too long.
    """

    def __init__(self, columns: str) -> None:
        self._marks: list[str] = []
        self._headings: list[str] = []
        for column in columns.split("|"):
            heading = column.lstrip(">*?~=")
            self._headings.append(heading)
            self._marks.append(column[: len(column) - len(heading)])
        self._rows: list[tuple[str | Text, ...]] = []

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def fields(self) -> Iterator[list[tuple[str, str]]]:
        """Each row as headings and what stands under them."""
        for row in self._rows:
            yield list(zip(self._headings, map(_plain, row), strict=True))

    def add(self, *cells_: Any) -> None:
        """Add a row of texts; what is no rich `Text` must be harmless."""
        self._rows.append(tuple(c if isinstance(c, Text) else str(c) for c in cells_))

    def fits(self, width: int) -> bool:
        """Whether all columns are this wide or less with enough of each to read."""
        widths = self._widths()
        return self._comfort(widths, list(range(len(widths)))) <= width

    def _widths(self) -> list[int]:
        return [
            max([cells(heading), *(cells(_plain(row[at])) for row in self._rows)])
            for at, heading in enumerate(self._headings)
        ]

    def _comfort(self, widths: list[int], shown: list[int]) -> int:
        """Columns of a terminal that these columns want."""
        wanted = [
            min(widths[at], COMFORT_CELLS) if set("*=~") & set(self._marks[at]) else widths[at]
            for at in shown
        ]
        return sum(wanted) + GAP * (len(shown) - 1)

    def build(self, width: int) -> Table:
        """The table, at most this wide if cutting and leaving out can make it so."""
        widths, shown = self._fitted(width)
        table = Table(box=None, pad_edge=False, header_style="key", padding=(0, GAP, 0, 0))
        for at in shown:
            folds = "~" in self._marks[at]
            table.add_column(
                Text(self._headings[at]),
                justify="right" if ">" in self._marks[at] else "left",
                width=None if folds else widths[at],
                no_wrap=not folds,
                overflow="fold" if folds else "ellipsis",
            )
        for row in self._rows:
            table.add_row(*(self._text(row[at], at, widths[at]) for at in shown))
        return table

    def _text(self, cell: str | Text, at: int, width: int) -> Text:
        """A cell for the table, cut where that is not left to it."""
        if "=" in self._marks[at] and cells(_plain(cell)) > width:
            return Text(
                cut_middle(_plain(cell), width), "" if isinstance(cell, str) else cell.style
            )
        return Text(cell) if isinstance(cell, str) else cell

    def lines(self, width: int, paint: Paint) -> Iterator[str]:
        """The same as lines, quickly, for many rows."""
        widths, shown = self._fitted(width)
        below = None
        if "~" in self._marks[-1] and _taken(widths, shown) > width:
            below = shown[-1]
            widths, shown = self._fitted(width, without=below)
        places = [(at, widths[at], ">" in self._marks[at]) for at in shown]
        headings = [Text(heading, "key") for heading in self._headings]
        for row in (headings, *self._rows):
            line, blanks, left = "", 0, width
            for at, room, right in places:
                cell = row[at]
                shorten = cut_middle if "=" in self._marks[at] else cut
                text = shorten(_plain(cell), min(room, left))
                left -= room + GAP
                gap = room - cells(text)
                if text:
                    before = blanks + gap if right else blanks
                    style = "" if isinstance(cell, str) else str(cell.style)
                    line += " " * before + (paint(style, text) if style else text)
                    blanks = GAP if right else gap + GAP
                else:
                    blanks += gap + GAP
            yield line
            if below is not None and row is not headings and (text := _plain(row[below])):
                yield from (" " * BELOW + part for part in folded(text, width - BELOW))

    def _fitted(self, width: int, without: int | None = None) -> tuple[list[int], list[int]]:
        """The width of each column, and which are shown."""
        widths = self._widths()
        shown = [at for at in range(len(widths)) if at != without]
        optional = [at for at in shown if "?" in self._marks[at]]
        for at in sorted(optional, key=lambda at: -self._marks[at].count("?")):
            if self._comfort(widths, shown) > width:
                shown.remove(at)
        self._cut(widths, shown, width)
        return widths, shown

    def _cut(self, widths: list[int], shown: list[int], width: int) -> None:
        """Make the widest of what may be cut narrower until all of it fits."""
        continued = [at for at in shown if "~" in self._marks[at]]
        excess = _taken(widths, shown) - sum(widths[at] - LEAST_CELLS for at in continued) - width
        able = [at for at in shown if set("*=") & set(self._marks[at])]
        sooner = [at for at in able if "**" in self._marks[at]]
        for columns, least in ((sooner, SOON_CELLS), (able, LEAST_CELLS)):
            while excess > 0 and any(widths[at] > least for at in columns):
                widest = max(columns, key=lambda at: widths[at])
                widths[widest] -= 1
                excess -= 1


def _taken(widths: list[int], shown: list[int]) -> int:
    """Columns of a terminal that columns of these widths take."""
    return sum(widths[at] for at in shown) + GAP * (len(shown) - 1)


def _plain(cell: str | Text) -> str:
    return cell if isinstance(cell, str) else cell.plain
