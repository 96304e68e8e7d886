"""Amounts as a person types them: sizes in octets, spans of time."""

from __future__ import annotations

import re

from amqpsniff.errors import UsageError

_SIZE = re.compile(r"(\d{1,15})(?:\.(\d{1,6}))?\s*([kMGT]?)(i?)B?", re.IGNORECASE)
_PART = r"(\d{1,12})(?:\.(\d{1,9}))?\s*(ms|min|s|m|h|d)"
_SPAN = re.compile(rf"(?:{_PART}\s*)+", re.ASCII)
_NUMBER = re.compile(r"(\d{1,12})(?:\.(\d{1,9}))?", re.ASCII)
_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SECOND_NS = 1_000_000_000
_UNITS = {
    "d": 86_400 * _SECOND_NS,
    "h": 3600 * _SECOND_NS,
    "m": 60 * _SECOND_NS,
    "min": 60 * _SECOND_NS,
    "s": _SECOND_NS,
    "ms": _SECOND_NS // 1000,
}


def size(text: str, option: str) -> int:
    """Octets: `500000`, `100MB`, `1.5G`, `64MiB`; raises UsageError for what is none."""
    match = _SIZE.fullmatch(text.strip())
    if match:
        whole, digits, prefix, binary = match.groups()
        base = 1024 if binary else 1000
        octets = round(float(f"{whole}.{digits or 0}") * float(base ** _PREFIXES[prefix.lower()]))
        if octets > 0:
            return octets
    raise UsageError(f"--{option} {text!r} is no size; write 500kB, 100MB or 2GB")


def span(text: str, option: str) -> float:
    """Seconds: `30`, `30s`, `1m30s`, `1.5h`; raises UsageError for what is none."""
    found = nanoseconds(text)
    if found is None:
        raise UsageError(f"--{option} {text!r} is no span of time; write 30s, 5m or 1h")
    return found / _SECOND_NS


def nanoseconds(text: str) -> int | None:
    """A span of time: a number of seconds, or numbers with units, larger units first.

    Null for any other text.
    """
    word = text.strip()
    if match := _NUMBER.fullmatch(word):
        return _amount(match[1], match[2], "s")
    if not _SPAN.fullmatch(word):
        return None
    parts = re.findall(_PART, word)
    sizes = [_UNITS[unit] for *_, unit in parts]
    if sizes != sorted(set(sizes), reverse=True):
        return None
    return sum(_amount(*part) for part in parts)


def _amount(whole: str, digits: str | None, unit: str) -> int:
    fraction = int((digits or "0").ljust(9, "0"))
    return int(whole) * _UNITS[unit] + fraction * _UNITS[unit] // _SECOND_NS
