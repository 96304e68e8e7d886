"""Words for lines: harmless on a terminal, quoted where they must be, cut where they may be.

Whatever came from the wire passes through `harmless` before it is shown: a queue's name may hold
escape sequences, line ends or characters that turn the direction of writing.
"""

from __future__ import annotations

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_PREFIXES = ("", "k", "M", "G", "T", "P")
_SPANS = (("d", "h", 86400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1))
ELLIPSIS = "…"
UNKNOWN = "?"
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
    if len(text) <= width and cells(text) <= width:
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
    if len(text) <= width and cells(text) <= width:
        return text
    if width < 3 or not text.isascii():
        return cut(text, width)
    tail = (width - 1) // 2
    return text[: width - 1 - tail] + ELLIPSIS + text[len(text) - tail :]


def count(number: int) -> str:
    """A number with its thousands apart."""
    return f"{number:,}"


def plural(number: int, noun: str) -> str:
    """A number with a noun: `1 packet`, `2,000 packets`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def octets(number: float) -> str:
    """A number of octets: `241 B`, `24.1 kB`, `3.20 GB`; prefixes are powers of 1000."""
    return f"{scaled(number)}B"


def scaled(number: float) -> str:
    """A number with three digits and a prefix, to stand before its unit: `24.1 k`."""
    if abs(number) < 1000:
        return f"{round(number)} "
    for prefix in _PREFIXES:
        if abs(number) < 999.5 or prefix == _PREFIXES[-1]:
            break
        number /= 1000
    digits = 0 if abs(number) >= 99.95 else 1 if abs(number) >= 9.995 else 2
    return f"{number:.{digits}f} {prefix}"


def duration(time_ns: float) -> str:
    """A time span: `812 ns`, `8.1 ms`, `1.25 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`."""
    if time_ns < 1000:
        return f"{round(time_ns)} ns"
    for unit, size in (("µs", 1e3), ("ms", 1e6), ("s", 1e9)):
        value = time_ns / size
        if value < 999.5 and (unit != "s" or value < 99.5):
            digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
            return f"{value:.{digits}f} {unit}"
    seconds = round(time_ns / 1e9)
    first, second, size, part = next(row for row in _SPANS if seconds >= row[2])
    whole, rest = divmod(seconds, size)
    return f"{whole} {first} {rest // part} {second}" if rest >= part else f"{whole} {first}"
