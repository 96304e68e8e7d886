"""Words for lines: harmless on a terminal, quoted where they must be, cut where they may be.

Whatever came from the wire passes through `harmless` before it is shown: a queue's name may hold
escape sequences, line ends or characters that turn the direction of writing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from amqpsniff import quantities

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
MOST_NAMED = 3
"""Names of a list that are written out."""
ELLIPSIS = "…"
BEFORE = "before"
"""When a connection began that is older than its capture."""
UNKNOWN = quantities.UNKNOWN
"""Written for what is not known."""
NONE = "-"
"""Written where there is nothing."""
DEFAULT_EXCHANGE = "(default)"
"""Written for the exchange without a name."""


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def harmless(text: str) -> str:
    """The text with every character that is not printable written as an escape."""
    return text if text.isprintable() else "".join(map(_escape, text))


def word(text: str) -> str:
    """The text as one word of a line: harmless, and in quotes when it is empty or has blanks."""
    safe = harmless(text)
    if safe and " " not in safe and '"' not in safe:
        return safe
    return quoted(safe)


def named(name: str | None) -> str:
    """A name from the wire for a table: null is not known, and an empty one is told apart."""
    if name is None:
        return UNKNOWN
    return harmless(name) if name else '""'


def exchange_name(name: str | None) -> str:
    """The name of an exchange for a table; the default one has none."""
    return DEFAULT_EXCHANGE if name == "" else named(name)


def quoted(safe: str) -> str:
    """A text that is harmless already, in quotes."""
    return '"' + safe.replace('"', '\\"') + '"'


def cells(text: str) -> int:
    """Columns of a terminal that a harmless text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """The text, its end replaced by an ellipsis when it takes more than `width` columns."""
    if cells(text) <= width:
        return text
    if width < 1:
        return ""
    room, end = width - 1, 0
    for character in text:
        room -= cells(character)
        if room < 0:
            break
        end += 1
    return text[:end] + ELLIPSIS


def cut_middle(text: str, width: int) -> str:
    """The text, its middle replaced by an ellipsis: names of a kind often differ at their ends."""
    if cells(text) <= width:
        return text
    if width < 3 or not text.isascii():
        return cut(text, width)
    tail = (width - 1) // 2
    return text[: width - 1 - tail] + ELLIPSIS + text[len(text) - tail :]


def folded(text: str, width: int, indent: str = "") -> Iterator[str]:
    """A text as lines of at most so many columns, after the first with an indent."""
    room, head = max(width, 1), ""
    while cells(text) > room:
        fits = max(1, len(cut(text, room + 1)) - 1)
        blank = text.rfind(" ", 0, fits + 1)
        end = blank if blank > 0 else fits
        yield head + text[:end].rstrip()
        text = text[end:].lstrip()
        room, head = max(width - len(indent), 1), indent
    yield head + text


def folded_at(text: str, width: int) -> Iterator[tuple[str, int]]:
    """The same lines, and where each begins in the text."""
    at = 0
    for line in folded(text, width):
        at = text.index(line, at)
        yield line, at
        at += len(line)


def count(number: int | None) -> str:
    """A number with its thousands apart; None is not known."""
    return UNKNOWN if number is None else f"{number:,}"


def of_severity(number: int, severity: str) -> str:
    """So many findings of a severity: `2 errors`, `1 warning`, `3 info`."""
    return f"{count(number)} info" if severity == "info" else plural(number, severity)


def plural(number: int | None, noun: str) -> str:
    """A number with a noun: `1 packet`, `2,000 packets`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def some(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {count(more)} more" if more > 0 else "")
