"""Text from the wire, made safe to show: escaped, quoted, or replaced by a name for nothing.

A queue's name may hold escape sequences, line ends or characters that turn the direction of
writing. Every text shown to a person passes through `harmless`.
"""

from __future__ import annotations

from amqpsniff.units import UNKNOWN

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}

DEFAULT_EXCHANGE = "(default)"
"""Written for the exchange without a name."""


def harmless(text: str) -> str:
    """The text with every character that is not printable written as an escape."""
    return text if text.isprintable() else "".join(map(_escape, text))


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def word(text: str) -> str:
    """The text as one word of a line: harmless, and in quotes when it is empty or has blanks."""
    safe = harmless(text)
    if safe and " " not in safe and '"' not in safe:
        return safe
    return quoted(safe)


def quoted(safe: str) -> str:
    """A text that is harmless already, in quotes."""
    return '"' + safe.replace('"', '\\"') + '"'


def shortened(text: str, width: int) -> str:
    """The text, its end replaced by an ellipsis when it has more than `width` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"


def in_a_sentence(text: str, width: int) -> str:
    """The text with one blank for every gap between words, shortened: a reason may be a stack trace
    of many lines."""
    return shortened(harmless(" ".join(text.split())), width)


def named(name: str | None) -> str:
    """A name from the wire for a table: `?` for an unknown one, quotes for an empty one."""
    if name is None:
        return UNKNOWN
    return harmless(name) if name else '""'


def ends(client: str | None, server: str | None) -> str:
    """The addresses of both ends of a connection: `10.0.0.7:40512 → 10.0.0.1:5672`."""
    return f"{named(client)} → {named(server)}"


def exchange_name(name: str | None) -> str:
    """The name of an exchange for a table; the default exchange has no name of its own."""
    return DEFAULT_EXCHANGE if name == "" else named(name)
