"""Forms of values: what the `as` of a source makes of a number or a text.

A form is given the value and the time of the message in nanoseconds, None for unknown. Times come
out as microseconds since 1970. A value that does not fit is None, as is what cannot be known.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

MAX_US = 1 << 62
"""Times beyond this, in microseconds, are no times."""

DELAY_LEVELS = 28
"""Bits of the delay that Celery and NServiceBus write before a routing key, one a word, the highest
first; the number is seconds."""


def whole(value: object) -> int | None:
    """A whole number, also where it is written as a text."""
    if isinstance(value, str) and len(value) < 20 and value.lstrip("-").isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if abs(value) < 1 << 63 else None


def instant(value: object) -> int | None:
    """A text of ISO 8601 with its zone as microseconds; without a zone nobody knows the time."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        return round(time.timestamp() * 1_000_000) if time.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _time(value: object, scale: int, start_us: int = 0) -> int | None:
    number = value if isinstance(value, float) else whole(value)
    if number is None or not 0 <= number * scale < MAX_US:
        return None
    return start_us + int(number * scale)


def _after(value: object, scale: int, ts_ns: int | None) -> int | None:
    """A time after that of the message; a delay that the broker has made negative is over."""
    return None if ts_ns is None else _time(value, scale, ts_ns // 1000)


def _delay_bits(value: object, ts_ns: int | None) -> int | None:
    bits = str(value).replace(".", "")
    return _after(int(bits, 2), 1_000_000, ts_ns) if len(bits) == DELAY_LEVELS else None


def _hex64(value: object, _: int | None) -> str | None:
    """A number of 64 bits, decimal on the wire, as 16 hexadecimal digits."""
    text = str(value)
    number = int(text) if text.isdecimal() and len(text) <= 20 else 1 << 64
    return f"{number:016x}" if number < 1 << 64 else None


def _shovelled_twice(value: object, _: int | None) -> str | None:
    """Of the list that shovels write, the name of one that is there twice, in words."""
    listed = value if isinstance(value, list) else []
    names = [one.get("shovel-name") for one in listed if isinstance(one, dict)]
    twice = next((one for one in names if one and names.count(one) > 1), None)
    return f"shovel {twice} moved it twice" if twice else None


def _visited(value: object, _: int | None) -> str | None:
    """A count of visits from two on, in words."""
    visits = whole(value)
    return f"{visits} visits to the same queue" if visits is not None and visits > 1 else None


FORMS: dict[str, Callable[[object, int | None], object]] = {
    "unix_s": lambda value, _: _time(value, 1_000_000),
    "unix_ms": lambda value, _: _time(value, 1_000),
    "after_s": lambda value, ts_ns: _after(value, 1_000_000, ts_ns),
    "after_ms": lambda value, ts_ns: _after(value, 1_000, ts_ns),
    "delay_bits": _delay_bits,
    "hex64": _hex64,
    "shovelled_twice": _shovelled_twice,
    "visited": _visited,
}
"""Forms by name."""

ABSOLUTE = (None, "unix_s", "unix_ms")
"""Forms of times that do not count from the message's own."""
