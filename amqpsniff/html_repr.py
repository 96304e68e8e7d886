"""Objects as text: one line in a console, a small table in a notebook.

The values come from captured traffic: HTML and control characters in them are escaped, and long
values are shortened. Rows have `[redacted]` in place of secrets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

MAX_CHARACTERS = 200
"""Characters of a value that are shown: two lines of a notebook."""

MAX_BYTES = 32
"""Bytes of a body that are shown, in hex."""

MAX_ROWS = 80
"""Rows of a table, more than there are columns of any table: a mapping may have any number."""

ROWS_SHOWN = 20
"""Rows of a result that are shown."""

_TABLE = '<table style="text-align:left"><caption style="text-align:left">'
_LEFT = ' style="text-align:left"'


def line(value: object) -> str:
    """A value in one printable line of bounded length."""
    if isinstance(value, bytes):
        ellipsis = " …" if len(value) > MAX_BYTES else ""
        return f"{value[:MAX_BYTES].hex(' ')}{ellipsis} ({len(value):,} bytes)"
    if isinstance(value, datetime):
        return value.isoformat()
    text = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_plain)
    )
    # an escape is as long as ten characters
    shown = "".join(map(_printable, text[: MAX_CHARACTERS + 1]))
    return shown if len(shown) <= MAX_CHARACTERS else f"{shown[:MAX_CHARACTERS]}…"


def _plain(value: object) -> object:
    """Text of a value that JSON cannot represent."""
    return sorted(value) if isinstance(value, frozenset) else str(value)


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


def _escaped(value: object) -> str:
    """A value in one line of HTML, whose names of characters are imported for notebooks alone."""
    from html import escape

    return escape(line(value))


def table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """Names and values as an HTML table; those that are None are left out."""
    shown = [(name, value) for name, value in rows if value is not None]
    lines = [f"{_TABLE}<b>{_escaped(title)}</b></caption>"]
    for name, value in shown[:MAX_ROWS]:
        cell = f"<code>{_escaped(value)}</code>"
        lines.append(f"<tr><th{_LEFT}>{_escaped(name)}</th><td{_LEFT}>{cell}</td></tr>")
    if len(shown) > MAX_ROWS:
        lines.append(f"<tr><td{_LEFT}>… and {len(shown) - MAX_ROWS:,} more</td></tr>")
    return "\n".join([*lines, "</table>"])


def grid(
    title: str, names: Iterable[str], rows: Iterable[Iterable[object]], *, more: bool = False
) -> str:
    """Rows under headings as an HTML table; with `more`, there are others that are not shown."""
    lines = [f"{_TABLE}<b>{_escaped(title)}</b></caption>"]
    headings = "".join(f"<th{_LEFT}>{_escaped(name)}</th>" for name in names)
    lines.append(f"<tr>{headings}</tr>")
    for row in rows:
        cells = ("" if cell is None else f"<code>{_escaped(cell)}</code>" for cell in row)
        lines.append("<tr>" + "".join(f"<td{_LEFT}>{cell}</td>" for cell in cells) + "</tr>")
    if more:
        lines.append(f"<tr><td{_LEFT}>…</td></tr>")
    return "\n".join([*lines, "</table>"])
