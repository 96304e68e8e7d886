"""Tables without lines that fit a terminal: what may be cut is cut, what may be left out goes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat, zip_longest
from pathlib import PurePath
from typing import Any

from amqpsniff.analysis.top_rows import is_error
from amqpsniff.units import UNKNOWN
from amqpsniff.wire_text import exchange_name, harmless, named

from .text import NONE, Paint, Words, cells, cut, cut_middle, folded_at

INDENT = 2
"""Columns by which what belongs to a heading is moved in."""
PROSE = 88
"""Columns of a text at most, however wide the terminal: longer lines are hard to read."""
GAP = 2
BELOW = 4
"""Columns by which a text below its row is moved in."""
MIN_CELLS = 6
"""Columns that are left of a text that is cut."""
SOON_CELLS = 10
"""Columns that are left of a text that is cut before others are."""
COMFORT_CELLS = 16
"""Columns that a text is given before others are left out for it."""
NARROW = 4
MAX_LINES = 3
"""A text that would take more lines in less than a quarter of the width stands below its row."""
ROWS_AT_ONCE = 1_024
"""Rows that are laid out together, column by column."""

_BETWEEN = " " * GAP
_Cell = str | tuple[tuple[str, str], ...]
"""A text, or the pieces of one with the style of each."""


Column = tuple[str, str, Callable[[Any], Any]]
"""A heading with its marks, the key of a value in each row, and how that is written; without a key
the whole row is written."""


def table(rows: Iterable[Mapping[str, Any]], *columns: Column, indent: int = 0) -> Grid:
    """Rows under the headings of these columns."""
    grid = Grid("|".join(heading for heading, _, _ in columns), indent=indent)
    for row in rows:
        grid.add(*(write(row[key] if key else row) for _, key, write in columns))
    return grid


def packet_text(row: Mapping[str, Any], several: bool) -> str:
    """The packet number of a row, with its file where there are `several`; `-` for none."""
    if row["packet_number"] is None:
        return NONE
    name = f"{harmless(PurePath(row['capture']).name)}#" if several and row["capture"] else ""
    return f"{name}{row['packet_number']}"


METHOD = partial(Words, style="method")


def short_id(connection_id: str) -> str:
    """The beginning of a connection's id, by which options name it too."""
    return connection_id[:8]


def or_unknown(text: str | None) -> str:
    """A text from the wire; `?` if unknown or empty."""
    return harmless(text or UNKNOWN)


def ended(by: str | None, code: int | None, text: str | None) -> Words:
    """The end of a connection or channel: code and sender of its close, or TCP's end."""
    if by is None:
        return Words("open")
    role = "error" if is_error(code, text) else ""
    if code is None:
        return Words(by, role or "warning") if by in ("fin", "rst") else Words(f"by {by}", role)
    return Words(f"{code} by {by}", role)


ID: Column = ("id", "connection_id", short_id)
EXCHANGE: Column = ("*exchange", "exchange", exchange_name)
ROUTING_KEY: Column = ("*routing key", "routing_key", named)
QUEUE: Column = ("*queue", "queue", named)


def several_vhosts(vhosts: Iterable[str | None]) -> tuple[Column, ...]:
    """The column of virtual hosts; empty if there is only one."""
    return (("*vhost", "vhost", named),) if len(set(vhosts)) > 1 else ()


def or_none(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Writes a value; `-` for null."""
    return lambda value: NONE if value is None else write(value)


def facts(
    rows: Iterable[tuple[str, str | Words]], *, indent: int = 0, max_width: int | None = None
) -> Grid:
    """Labels and a text for each, in `max_width` columns; empty ones are left out."""
    grid = Grid("|~", indent=indent, max_width=max_width)
    for label, text in rows:
        if text:
            grid.add(Words(label, "key"), text)
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
        styles: Styles of the texts of a column, by its heading.
    """

    def __init__(
        self,
        columns: str,
        *,
        indent: int = 0,
        max_width: int | None = None,
        styles: Mapping[str, str] | None = None,
    ) -> None:
        self.indent = indent
        self._max_width = max_width
        self._marks: list[str] = []
        self._headings: list[str] = []
        for column in columns.split("|"):
            heading = column.lstrip(">*?~=")
            self._headings.append(heading)
            self._marks.append(column[: len(column) - len(heading)])
        self._styles = [(styles or {}).get(heading, "") for heading in self._headings]
        self._columns: list[list[_Cell]] = [[] for _ in self._headings]
        self._measured: tuple[int, list[int]] = (-1, [])
        self._pieced: set[int] = set()  # columns with cells in pieces

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self._columns[0])

    def fields(self) -> Iterator[list[tuple[str, str]]]:
        """Each row as headings and what stands under them."""
        for row in zip(*self._columns, strict=True):
            yield list(zip(self._headings, map(_plain, row), strict=True))

    def add(self, *cells_: Any) -> None:
        """Add a row of harmless texts, `Words` or anything that has one."""
        for at, (column, cell) in enumerate(zip(self._columns, cells_, strict=True)):
            column.append(_cell_of(cell))
            if isinstance(cell, Words):
                self._pieced.add(at)

    def extend(self, columns: Iterable[Sequence[Any]]) -> None:
        """Add rows column by column."""
        for at, (column, values) in enumerate(zip(self._columns, columns, strict=True)):
            converted = {cell: _cell_of(cell) for cell in set(values) if type(cell) is not str}
            column.extend(map(converted.get, values, values) if converted else values)
            if tuple in map(type, converted.values()):
                self._pieced.add(at)

    def fits(self, width: int) -> bool:
        """True if all columns fit side by side at this width, each wide enough to read."""
        widths = self._widths()
        enough = self._comfort(widths, list(range(len(widths)))) <= width
        return enough and self._layout(width)[2] is None

    def _widths(self) -> list[int]:
        """The width of each column; there may be very many rows, most of them with equal cells."""
        if self._measured[0] != self.rows:
            widths = [
                max(cells(heading), _widest(self._texts(at, set(column))))
                for at, (heading, column) in enumerate(
                    zip(self._headings, self._columns, strict=True)
                )
            ]
            self._measured = self.rows, widths
        return list(self._measured[1])

    def _comfort(self, widths: list[int], shown: list[int]) -> int:
        """Columns of a terminal that these columns want."""
        comfortable = [
            min(widths[at], COMFORT_CELLS) if set("*=~") & set(self._marks[at]) else widths[at]
            for at in shown
        ]
        return sum(comfortable) + GAP * (len(shown) - 1)

    def _texts(self, at: int, cells_: Collection[_Cell]) -> Collection[str]:
        """The texts of some cells of a column."""
        return list(map(_plain, cells_)) if at in self._pieced else cells_  # type: ignore[return-value]

    def _words(self, cell: _Cell, at: int) -> Words:
        """A cell with its style or those of its pieces."""
        if isinstance(cell, str):
            return Words(cell, self._styles[at])
        words = Words()
        words.parts = list(cell)
        return words

    def lines(self, width: int, paint: Paint) -> Iterator[str]:
        """Headings and rows as lines of at most `width` columns, without blanks at their ends."""
        widths, shown, below = self._layout(width)
        rooms: list[int] = []
        remaining = width
        for at in shown:
            rooms.append(min(widths[at], max(remaining, 0)))
            remaining -= rooms[-1] + GAP
        if any(self._headings):
            key = [
                self._cell(self._headings[at], Words(self._headings[at], "key"), at, room, paint)
                for at, room in zip(shown, rooms, strict=True)
            ]
            yield from _continued(key, rooms)
        for begin in range(0, self.rows, ROWS_AT_ONCE):
            columns = [
                self._laid_out(self._columns[at][begin : begin + ROWS_AT_ONCE], at, room, paint)
                for at, room in zip(shown, rooms, strict=True)
            ]
            for number, row in enumerate(zip(*columns, strict=True), begin):
                line = _BETWEEN.join(row)
                if "\n" in line:
                    yield from _continued(row, rooms)
                else:
                    yield line.rstrip(" ")
                if below is not None and _plain(self._columns[below][number]):
                    words = self._words(self._columns[below][number], below)
                    yield from (" " * BELOW + line for line in words.lines(width - BELOW, paint))

    def _laid_out(self, column: list[_Cell], at: int, room: int, paint: Paint) -> list[str]:
        """Cells of a column as wide as it is; the lines of one that is continued in one text."""
        different = {column[0]} if column.count(column[0]) == len(column) else set(column)
        if 2 * len(different) > len(column) and not paint.colour:
            texts = self._texts(at, column)
            joined = "".join(texts)
            if joined.isascii() and max(map(len, texts)) <= room:
                pad = str.rjust if ">" in self._marks[at] else str.ljust
                return list(map(pad, texts, repeat(room)))
        by_cell = {}
        for cell in different:
            coloured = paint.colour and (self._styles[at] or not isinstance(cell, str))
            words = self._words(cell, at) if coloured else None
            by_cell[cell] = self._cell(_plain(cell), words, at, room, paint)
        return [by_cell[cell] for cell in column]

    def _layout(self, width: int) -> tuple[list[int], list[int], int | None]:
        """The width of each column, which are shown, and the one that stands below its row."""
        widths, shown = self._fitted(width)
        if not self._stands_below(widths, shown, width):
            return widths, shown, None
        below = shown[-1]
        return *self._fitted(width, without=below), below

    def left_out(self, width: int) -> Iterator[str]:
        """Headings of the columns that `lines` leaves out at this width, without empty ones."""
        _, shown, below = self._layout(width)
        for at, heading in enumerate(self._headings):
            if at not in (*shown, below) and self._has_text(at):
                yield heading

    def _stands_below(self, widths: list[int], shown: list[int], width: int) -> bool:
        """True if the last column has too little room for its texts."""
        if shown[-1] != len(self._marks) - 1:
            return False  # it says nothing
        if "~~" in self._marks[-1]:
            return _taken(widths, shown) > width
        widest = self._widths()[-1]
        readable = min(width // NARROW, widest // MAX_LINES)
        needed = min(max(SOON_CELLS, readable), widest, self._max_width or widest)
        return "~" in self._marks[-1] and widths[-1] < needed

    def _has_text(self, at: int) -> bool:
        """True if not all cells of a column are empty."""
        return any(self._texts(at, set(self._columns[at])))

    def _cell(self, text: str, words: Words | None, at: int, width: int, paint: Paint) -> str:
        """A cell as wide as its column, in the colours of `words`."""
        if cells(text) <= width:
            lines = [(text, 0)]
        elif "~" in self._marks[at]:
            lines = list(folded_at(text, width))
        else:
            lines = [((cut_middle if "=" in self._marks[at] else cut)(text, width), 0)]
        made = []
        for line, place in lines:
            blanks = " " * (width - cells(line))
            shown = words.painted(paint, line, place) if words else line
            made.append(blanks + shown if ">" in self._marks[at] else shown + blanks)
        return "\n".join(made)

    def _fitted(self, width: int, without: int | None = None) -> tuple[list[int], list[int]]:
        """The width of each column, and which are shown."""
        widths = self._widths()
        if "~" in self._marks[-1] and self.rows and not self._has_text(-1):
            without = len(widths) - 1
        shown = [at for at in range(len(widths)) if at != without]
        optional = [at for at in shown if "?" in self._marks[at]]
        for at in sorted(optional, key=lambda at: -self._marks[at].count("?")):
            if self._comfort(widths, shown) > width:
                shown.remove(at)
        self._cut(widths, shown, width)
        return widths, shown

    def _cut(self, widths: list[int], shown: list[int], width: int) -> None:
        """Make the widest of the columns that may be cut narrower until all fit."""
        continued = [at for at in shown if "~" in self._marks[at]]
        excess = _taken(widths, shown) - sum(widths[at] - MIN_CELLS for at in continued) - width
        shrinkable = [at for at in shown if set("*=") & set(self._marks[at])]
        sooner = [at for at in shrinkable if "**" in self._marks[at]]
        for columns, least in ((sooner, SOON_CELLS), (shrinkable, MIN_CELLS)):
            while excess > 0 and any(widths[at] > least for at in columns):
                widest = max(columns, key=lambda at: widths[at])
                widths[widest] -= 1
                excess -= 1
        for at in continued:
            if "~~" in self._marks[at]:
                continue
            others = _taken(widths, shown) - widths[at]
            widths[at] = min(widths[at], max(width - others, 1), self._max_width or width)


def _taken(widths: list[int], shown: list[int]) -> int:
    """Columns of a terminal that columns of these widths take."""
    return sum(widths[at] for at in shown) + GAP * (len(shown) - 1)


def _continued(row: Sequence[str], rooms: Sequence[int]) -> Iterator[str]:
    """The lines of a row: as many as its longest cell is continued on."""
    blanks = [" " * room for room in rooms]  # under a cell without more
    for line in zip_longest(*(cell.split("\n") for cell in row)):
        texts = [text or blank for text, blank in zip(line, blanks, strict=True)]
        yield _BETWEEN.join(texts).rstrip(" ")


def _cell_of(cell: Any) -> _Cell:
    if isinstance(cell, Words):
        return tuple(cell.parts)
    return cell if type(cell) is str else str(cell)


def _plain(cell: _Cell) -> str:
    return cell if isinstance(cell, str) else "".join([text for text, _ in cell])


def _widest(texts: Collection[str]) -> int:
    """Columns of a terminal that the widest of some texts takes."""
    return max(map(len if "".join(texts).isascii() else cells, texts), default=0)
