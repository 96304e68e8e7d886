"""Tables of HTML that the page's script sorts and filters; without it they are plain tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any

from amqpsniff.wire_text import shortened

MAX_CHARACTERS = 200
"""Characters of a cell: a name from the wire may have thousands."""

FILTERED_FROM = 8
"""Rows from which on there is a field that filters them."""


def plain(value: Any) -> str:
    """A value as text for a cell; times are those of UTC."""
    if value is None:
        return ""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return str(value.astimezone(UTC).replace(tzinfo=None))
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: The key of its value in a row.
        title: Its heading.
        form: Makes text of a value; an empty one is shown as a dash.
        number: Whether it is sorted by number, and stands at the right.
        wide: Whether it is text to be read in full, over several lines.
        link: Whether a value is the name of a conversation that the page can show.
    """

    name: str
    title: str
    form: Callable[[Any], str] = plain
    number: bool = False
    wide: bool = False
    link: bool = False


def table(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[Column],
    caption: str,
    *,
    label: str = "",
    note: str = "",
    links: frozenset[str] = frozenset(),
    limit: int = MAX_CHARACTERS,
) -> str:
    """A table with a caption; `note` says which rows are not there.

    A column without any value is left out. `label` is what it is called where a caption stands
    above several tables of a page.

    Values of a column with links that are among `links` lead to that conversation. Cells have at
    most `limit` characters.
    """
    if not rows:
        return f'<p class="none">{escape(caption)}: none.</p>'
    columns = [
        column
        for column in columns
        if any((value := row.get(column.name)) is not None and column.form(value) for row in rows)
    ] or columns[:1]
    cells = [
        _cells(column, [row.get(column.name) for row in rows], links, limit) for column in columns
    ]
    head = "".join(
        f'<th scope="col" aria-sort="none"{_kind(column)}><button type="button">'
        f"{escape(column.title)}</button></th>"
        for column in columns
    )
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    field = ""
    name = escape(label or caption)
    if len(rows) >= FILTERED_FROM:
        field = (
            f'<input type="search" class="filter" placeholder="Filter" aria-label="Filter {name}">'
            '<output class="matches" aria-live="polite"></output>'
        )
    note_html = f'<p class="about">{escape(note)}</p>' if note else ""
    return (
        f'<div class="sortable"><div class="tools"><h3>{escape(caption)}</h3>{field}</div>'
        f'<div class="table" role="region" tabindex="0" aria-label="{name}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{note_html}</div>"
    )


def beside(*tables: str) -> str:
    """Tables beside each other, where there is room."""
    return f'<div class="beside">{"".join(tables)}</div>'


def _kind(column: Column) -> str:
    kind = "number" if column.number else "wide" if column.wide else ""
    return f' class="{kind}"' if kind else ""


def _cells(column: Column, values: list[Any], links: frozenset[str], limit: int) -> Iterator[str]:
    """The cells of a column; of most columns many are alike."""
    kind, escaped = _kind(column), {"": "–"}
    for value in values:
        shown = column.form(value)
        text = escaped.get(shown)
        if text is None:
            text = escaped[shown] = escape(shortened(shown, limit))
        if column.link and value in links:
            text = f'<a href="#conversation" data-conversation="{escape(str(value))}">{text}</a>'
        sorted_by = ""
        if column.number and isinstance(value, (int, float)):
            sorted_by = f' data-v="{value}"'
        yield f"<td{kind}{sorted_by}>{text}</td>"
