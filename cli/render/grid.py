"""Tables without lines that fit a terminal: what may be cut is cut, what may be left out goes."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from .text import cells

GAP = 2
LEAST_CELLS = 6
"""Columns that are left of a text that is cut."""
COMFORT_CELLS = 16
"""Columns that a text is given before others are left out for it."""


class Grid:
    """Rows under headings.

    Args:
        columns: Headings with `|` between them. Marks before a heading: `>` aligns right, `*` may
            be cut, `?` may be left out on a narrow terminal, `~` is continued on further lines.
    """

    def __init__(self, columns: str) -> None:
        self._marks: list[str] = []
        self._headings: list[str] = []
        for column in columns.split("|"):
            heading = column.lstrip(">*?~")
            self._headings.append(heading)
            self._marks.append(column[: len(column) - len(heading)])
        self._rows: list[tuple[Text, ...]] = []

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def add(self, *cells_: Any) -> None:
        """Add a row of texts; what is no rich `Text` is made one, and must be harmless."""
        self._rows.append(tuple(c if isinstance(c, Text) else Text(str(c)) for c in cells_))

    def build(self, width: int) -> Table:
        """The table, at most this wide if cutting and leaving out can make it so."""
        widths = [
            max(cells(heading), *(cells(row[at].plain) for row in self._rows))
            for at, heading in enumerate(self._headings)
        ]
        shown = list(range(len(widths)))
        for at in [at for at in shown if "?" in self._marks[at]]:
            wanted = [
                min(widths[one], COMFORT_CELLS)
                if set("*~") & set(self._marks[one])
                else widths[one]
                for one in shown
            ]
            if sum(wanted) + GAP * (len(shown) - 1) > width:
                shown.remove(at)
        self._cut(widths, shown, width)
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
            table.add_row(*(row[at] for at in shown))
        return table

    def _cut(self, widths: list[int], shown: list[int], width: int) -> None:
        """Make the widest of what may be cut narrower until all of it fits."""
        taken = [LEAST_CELLS if "~" in self._marks[at] else widths[at] for at in shown]
        excess = sum(taken) + GAP * (len(shown) - 1) - width
        able = [at for at in shown if "*" in self._marks[at]]
        while excess > 0 and able:
            widest = max(able, key=lambda at: widths[at])
            if widths[widest] <= LEAST_CELLS:
                return
            widths[widest] -= 1
            excess -= 1
