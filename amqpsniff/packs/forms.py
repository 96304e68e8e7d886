"""Forms of values: what the `as` of a source makes of a number or a text.

A form is given the value and the time of the message in nanoseconds, None for unknown. Times come
out as microseconds since 1970. A value that does not fit is None, as is what cannot be known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

MAX_US = 1 << 62
"""Times beyond this, in microseconds, are no times."""

AHEAD_US = 1_000_000
"""A clock that is less than that ahead is taken for right: NTP keeps clocks within milliseconds."""

DAY_US = 86_400 * 1_000_000
"""A delay that the delayed message exchange is not made for is longer."""

MAX_LISTED = 10
"""Entries of a list; the length of a longer one is kept."""

_PASSWORD = re.compile("^amqps?://[^/@:]*:[^/@]+@")

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
    """A text of ISO 8601 with its zone as microseconds; without a zone the time is unknown."""
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


def _hops(value: object) -> list[dict[str, object]]:
    """The entries of a list of tables."""
    return [hop for hop in value if isinstance(hop, dict)] if isinstance(value, list) else []


def _shovelled_twice(value: object, _: int | None) -> str | None:
    """A text with the name of a shovel that is twice in the list that shovels write."""
    names = [hop.get("shovel-name") for hop in _hops(value)]
    repeated = next((name for name in names if name and names.count(name) > 1), None)
    return f"shovel {repeated} moved it twice" if repeated else None


def _with_password(value: object, _: int | None) -> str | None:
    """Of the list that shovels write, the name of a URI that has a password."""
    fields = ((name, uri) for hop in _hops(value) for name, uri in hop.items())
    names = (name for name, uri in fields if isinstance(uri, str) and _PASSWORD.search(uri))
    return next(names, None)


def _visited(value: object, _: int | None) -> str | None:
    """A count of visits from two on, in words."""
    visits = whole(value)
    return f"{visits} visits to the same queue" if visits is not None and visits > 1 else None


def _past(value: object, ts_ns: int | None) -> int | None:
    """Microseconds from a time until the message; None for a time that is still to come."""
    time_us = instant(value)
    ago_us = ts_ns // 1000 - time_us if ts_ns and time_us else 0
    return ago_us if ago_us > 0 else None


def _ahead(value: object, ts_ns: int | None) -> int | None:
    """How far ahead a time in milliseconds lies, in microseconds, from `AHEAD_US` on."""
    time_us = _time(value, 1_000)
    ahead_us = time_us - ts_ns // 1000 if ts_ns and time_us else 0
    return ahead_us if ahead_us >= AHEAD_US else None


def _over_a_day(value: object, _: int | None) -> int | None:
    """Milliseconds that are more than a day, in microseconds."""
    time_us = _time(value, 1_000) or 0
    return time_us if time_us > DAY_US else None


def _many(value: object, _: int | None) -> int | None:
    """The length of a list of more than `MAX_LISTED`."""
    return len(value) if isinstance(value, list) and len(value) > MAX_LISTED else None


def _several(value: object, _: int | None) -> int | None:
    """The length of a list of two or more tables."""
    count = len(_hops(value))
    return count if count > 1 else None


SCALES = {None: 1, "unix_s": 1_000_000, "unix_ms": 1_000}
"""Factors of whole numbers, by form, for the forms that only multiply."""

FORMS: dict[str, Callable[[object, int | None], object]] = {
    "unix_s": lambda value, _: _time(value, SCALES["unix_s"]),
    "unix_ms": lambda value, _: _time(value, SCALES["unix_ms"]),
    "after_s": lambda value, ts_ns: _after(value, 1_000_000, ts_ns),
    "after_ms": lambda value, ts_ns: _after(value, 1_000, ts_ns),
    "delay_bits": _delay_bits,
    "hex64": _hex64,
    "several": _several,
    "shovelled_twice": _shovelled_twice,
    "visited": _visited,
    "with_password": _with_password,
    "past": _past,
    "ahead": _ahead,
    "over_a_day": _over_a_day,
    "many": _many,
    "listed": lambda value, _: len(value) if isinstance(value, list) else 0,
}
"""Forms by name."""

RELATIVE = ("after_s", "after_ms", "delay_bits", "past", "ahead")
"""Forms that depend on the message's own time."""
