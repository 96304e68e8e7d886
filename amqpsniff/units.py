"""Amounts as a person reads them: in lines, tables, pages and findings.

Bytes have prefixes that are powers of 1000, as for networks and disks. A bound that is a power of
two, such as a broker's limit, keeps its binary prefix: 16 MiB.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

UNKNOWN = "?"
"""Written for an amount that is not known: None, a null of the tables."""

BEFORE = "before"
"""Written for the time of what began before its capture."""

MAX_LISTED = 3
"""Names of a list that are written out."""

_PREFIXES = ("", "k", "M", "G", "T", "P")
_SPANS = (("d", "h", 86400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1))

_RAREST = 1e-6
"""Less than once in eleven days is never."""


def octets(number: float | None) -> str:
    """A number of octets: `241 B`, `24.1 kB`, `3.20 GB`."""
    return UNKNOWN if number is None else f"{scaled(number)}B"


def limit(number: int) -> str:
    """A limit in octets: `16 MiB` where it is a power of two of them, else as `octets`."""
    for power, name in enumerate(("KiB", "MiB", "GiB", "TiB"), 1):
        count, rest = divmod(number, 1024**power)
        if not rest and 0 < count < 1024 and count.bit_count() == 1:
            return f"{count} {name}"
    return octets(number)


def scaled(number: float) -> str:
    """A number with three digits and a prefix, to stand before its unit: `24.1 k`."""
    if abs(number) < 1000:
        return f"{round(number)} "
    for prefix in _PREFIXES:
        if abs(number) < 999.5 or prefix == _PREFIXES[-1]:
            break
        number /= 1000
    return f"{_three(number)} {prefix}"


def rate(per_second: float | None) -> str:
    """A rate per second: `0`, `0.042`, `4.20`, `42.0`, `4,200`, `120 k`."""
    if per_second is None:
        return UNKNOWN
    if per_second >= 99_999.5:
        return scaled(per_second)
    if per_second >= 999.5:
        return f"{round(per_second):,}"
    if per_second >= 0.0995:
        return _three(per_second)
    if per_second < _RAREST:
        return "0"
    return f"{per_second:.{1 - floor(log10(per_second))}f}"


def lasted(start_ns: int | None, end_ns: int | None) -> str:
    """The time span between two moments."""
    is_known = start_ns is not None and end_ns is not None
    return duration(end_ns - start_ns) if is_known else UNKNOWN  # type: ignore[operator]


def duration(time_ns: float | None) -> str:
    """A time span: `812 ns`, `8.1 ms`, `1.25 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`."""
    if time_ns is None:
        return UNKNOWN
    if time_ns < 1000:
        return f"{round(time_ns)} ns"
    for unit, size in (("µs", 1e3), ("ms", 1e6), ("s", 1e9)):
        value = time_ns / size
        if value < 999.5 and (unit != "s" or value < 99.5):
            return f"{_three(value)} {unit}"
    seconds = round(time_ns / 1e9)
    first, second, size, part = next(row for row in _SPANS if seconds >= row[2])
    number, rest = divmod(seconds, size)
    return f"{number} {first} {rest // part} {second}" if rest >= part else f"{number} {first}"


def _three(number: float) -> str:
    """Three digits of a number from 0.1 to 999."""
    digits = 0 if abs(number) >= 99.95 else 1 if abs(number) >= 9.995 else 2
    return f"{number:.{digits}f}"


def count(number: int | None) -> str:
    """A number with thousands separators; None is unknown."""
    return UNKNOWN if number is None else f"{number:,}"


def plural(number: int | None, noun: str) -> str:
    """A number with a noun: `1 packet`, `2,000 packets`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def of_severity(number: int, severity: str) -> str:
    """A number of findings of a severity: `2 errors`, `1 warning`, `3 info`."""
    return f"{count(number)} info" if severity == "info" else plural(number, severity)


def listed(names: Sequence[str]) -> str:
    """A sentence that lists values: `there are text, json`, `there is operation`."""
    return f"there {'is' if len(names) == 1 else 'are'} {', '.join(names)}"


def some(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    others = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {count(others)} more" if others > 0 else "")
