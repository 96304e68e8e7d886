"""Tables without lines that fit a terminal: what may be cut is cut, what may be left out goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from .styled_text import Words
from .text import cells, cut, cut_middle, folded_at
from .theme import Paint

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

GAP = 2
BELOW = 4
"""Columns by which a text below its row is moved in."""
MIN_CELLS = 6
"""Columns that are left of a text that is cut."""
SOON_CELLS = 10
"""Columns that are left of a text that is cut before others are."""
COMFORT_CELLS = 16
"""Columns that a text is given before others are left out for it."""
MAX_ALIKE = 1_000
"""Cells of a column that are laid out once: of very many rows most say the same."""

_BETWEEN = " " * GAP
_SHOWN = (str, Words)
_Column = tuple[int, int, bool, dict[Any, list[str]]]
"""Place, width, whether it is aligned right, and its cells that were laid out."""


def facts(
    rows: Iterable[tuple[str, str | Words]], *, indent: int = 0, most: int | None = None
) -> Grid:
    """Labels and what is said of each, in `most` columns, as a table without headings; of what is
    empty nothing is said.
    """
    grid = Grid("|~", indent=indent, most=most)
    for label, said in rows:
        if said:
            grid.add(Words(label, "key"), said)
    return grid


class Grid:
    """Rows under headings.

    Args:
        columns: Headings with `|` between them; a line of nothing but empty ones is left out. Marks
            before a heading: `>` aligns right, `*` may be cut (`**` before others), `?` may be left
            out on a narrow terminal (`??` sooner, and so on), `=` is cut in its middle rather than
            at its end. `~`, for the last column, is continued on further lines, or stands below its
            row where there is little room; with `~~` it stands below where it is too long. It is
            left out where it says nothing.
        indent: Columns by which all of it is moved in where it stands alone.
        most: Columns that a `~` column has at most, however much room there is.
    """

    def __init__(self, columns: str, *, indent: int = 0, most: int | None = None) -> None:
        self.indent = indent
        self._most = most
        self._marks: list[str] = []
        self._headings: list[str] = []
        for column in columns.split("|"):
            heading = column.lstrip(">*?~=")
            self._headings.append(heading)
            self._marks.append(column[: len(column) - len(heading)])
        self._rows: list[tuple[str | Words, ...]] = []
        self._measured: tuple[int, list[int]] = (-1, [])

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def fields(self) -> Iterator[list[tuple[str, str]]]:
        """Each row as headings and what stands under them."""
        for row in self._rows:
            yield list(zip(self._headings, map(_plain, row), strict=True))

    def add(self, *cells_: Any) -> None:
        """Add a row of harmless texts, `Words` or anything that has one."""
        self._rows.append(tuple([c if type(c) in _SHOWN else str(c) for c in cells_]))

    def fits(self, width: int) -> bool:
        """True if all columns are beside each other at this width, with enough of each to read."""
        widths = self._widths()
        enough = self._comfort(widths, list(range(len(widths)))) <= width
        return enough and self._layout(width)[2] is None

    def _widths(self) -> list[int]:
        """The width of each column; there may be very many rows, of which most say the same."""
        if self._measured[0] != len(self._rows):
            columns = zip(*self._rows, strict=True) if self._rows else [()] * len(self._headings)
            widths = [
                max(map(cells, {heading, *map(_plain, set(column))}))
                for heading, column in zip(self._headings, columns, strict=True)
            ]
            self._measured = len(self._rows), widths
        return list(self._measured[1])

    def _comfort(self, widths: list[int], shown: list[int]) -> int:
        """Columns of a terminal that these columns want."""
        wanted = [
            min(widths[at], COMFORT_CELLS) if set("*=~") & set(self._marks[at]) else widths[at]
            for at in shown
        ]
        return sum(wanted) + GAP * (len(shown) - 1)

    def build(self, width: int) -> Table:
        """The table for rich, at most this wide if cutting and leaving out can make it so."""
        from rich.table import Table
        from rich.text import Text

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

    def _text(self, cell: str | Words, at: int, width: int) -> Text:
        """A cell for rich's table, cut where that is not left to it."""
        if isinstance(cell, str):
            cell = Words(cell)
        if "=" in self._marks[at] and cells(cell.plain) > width:
            return Words(cut_middle(cell.plain, width), cell.parts[0][1]).rich()
        return cell.rich()

    def lines(self, width: int, paint: Paint) -> Iterator[str]:
        """The same as lines, without rich."""
        widths, shown, below = self._layout(width)
        columns: list[_Column] = []
        left = width
        for at in shown:
            room = min(widths[at], max(left, 0))
            columns.append((at, room, ">" in self._marks[at], {}))
            left -= room + GAP
        if any(self._headings):
            headings = [Words(heading, "key") for heading in self._headings]
            yield from self._row(headings, columns, paint)
        for row in self._rows:
            yield from self._row(row, columns, paint)
            if below is not None and _plain(row[below]):
                cell = row[below]
                words = cell if isinstance(cell, Words) else Words(cell)
                yield from (" " * BELOW + line for line in words.lines(width - BELOW, paint))

    def _layout(self, width: int) -> tuple[list[int], list[int], int | None]:
        """The width of each column, which are shown, and the one that stands below its row."""
        widths, shown = self._fitted(width)
        if not self._stands_below(widths, shown, width):
            return widths, shown, None
        below = shown[-1]
        return *self._fitted(width, without=below), below

    def left_out(self, width: int) -> Iterator[str]:
        """Headings of the columns that `lines` leaves out at this width, but for empty ones."""
        _, shown, below = self._layout(width)
        for at, heading in enumerate(self._headings):
            if at not in (*shown, below) and any(_plain(row[at]) for row in self._rows):
                yield heading

    def _stands_below(self, widths: list[int], shown: list[int], width: int) -> bool:
        """True if the last column has too little room for its texts."""
        if shown[-1] != len(self._marks) - 1:
            return False  # it says nothing
        if "~~" in self._marks[-1]:
            return _taken(widths, shown) > width
        wanted = min(SOON_CELLS, self._widths()[-1], self._most or SOON_CELLS)
        return "~" in self._marks[-1] and widths[-1] < wanted

    def _row(
        self, row: Sequence[str | Words], columns: list[_Column], paint: Paint
    ) -> Iterator[str]:
        """The lines of a row: one, or as many as its longest cell is continued on."""
        made = []
        for at, room, right, known in columns:
            cell = row[at]
            key = cell if isinstance(cell, str) else tuple(cell.parts)
            pieces = known.get(key)
            if pieces is None:
                if len(known) >= MAX_ALIKE:
                    known.clear()
                pieces = known[key] = [
                    " " * (room - taken) + text if right else text + " " * (room - taken)
                    for taken, text in self._cell(cell, at, room, paint)
                ]
            made.append(pieces)
        if max(map(len, made), default=0) == 1:
            yield _BETWEEN.join([pieces[0] for pieces in made]).rstrip(" ")
            return
        blanks = [" " * room for _, room, _, _ in columns]
        for line in zip_longest(*made):  # under a cell without more there are blanks
            texts = [one or blank for one, blank in zip(line, blanks, strict=True)]
            yield _BETWEEN.join(texts).rstrip(" ")

    def _cell(self, cell: str | Words, at: int, width: int, paint: Paint) -> list[tuple[int, str]]:
        """The lines of a cell: how many columns each takes, and the text with its colours."""
        text = _plain(cell)
        if cells(text) <= width:
            lines = [(text, 0)]
        elif "~" in self._marks[at]:
            lines = list(folded_at(text, width))
        else:
            lines = [((cut_middle if "=" in self._marks[at] else cut)(text, width), 0)]
        if isinstance(cell, str):
            return [(cells(line), line) for line, _ in lines]
        return [(cells(line), cell.painted(paint, line, place)) for line, place in lines]

    def _fitted(self, width: int, without: int | None = None) -> tuple[list[int], list[int]]:
        """The width of each column, and which are shown."""
        widths = self._widths()
        if "~" in self._marks[-1] and self._rows and not any(_plain(row[-1]) for row in self._rows):
            without = len(widths) - 1
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
        excess = _taken(widths, shown) - sum(widths[at] - MIN_CELLS for at in continued) - width
        able = [at for at in shown if set("*=") & set(self._marks[at])]
        sooner = [at for at in able if "**" in self._marks[at]]
        for columns, least in ((sooner, SOON_CELLS), (able, MIN_CELLS)):
            while excess > 0 and any(widths[at] > least for at in columns):
                widest = max(columns, key=lambda at: widths[at])
                widths[widest] -= 1
                excess -= 1
        for at in continued:
            if "~~" in self._marks[at]:
                continue
            others = _taken(widths, shown) - widths[at]
            widths[at] = min(widths[at], max(width - others, 1), self._most or width)


def _taken(widths: list[int], shown: list[int]) -> int:
    """Columns of a terminal that columns of these widths take."""
    return sum(widths[at] for at in shown) + GAP * (len(shown) - 1)


def _plain(cell: str | Words) -> str:
    return cell if isinstance(cell, str) else cell.plain
