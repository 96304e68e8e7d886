"""Dates, times and intervals that Python or Arrow has no text for, as text.

SQL alone makes them: what tables hold ends with the year 9999. Years beyond are as ISO 8601 has
them, with a sign and six digits; infinite dates and intervals are in DuckDB's words.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

DAY_SECONDS = 86_400
ERA_YEARS, ERA_DAYS = 400, 146_097
"""After so many years the calendar is the same."""

FIRST_DAY, LAST_DAY = -719_528, 2_932_896
"""Days since 1970 of the first day of the year 0 and the last one of 9999."""

_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_INFINITE_DAY, _INFINITE = 2**31 - 1, 2**63 - 1


def has_far(array: Any) -> bool:
    """Whether dates or times of an array are out of the years 0 to 9999, or 24:00."""
    import pyarrow as pa

    kind = array.type
    is_date = kind == pa.date32()
    if not (is_date or pa.types.is_timestamp(kind) or pa.types.is_time64(kind)):
        return False
    if array.null_count == len(array):
        return False
    from pyarrow import compute

    ends = compute.min_max(array.view(pa.int32() if is_date else pa.int64())).as_py()
    day = 1 if is_date else DAY_SECONDS * _PER_SECOND[kind.unit]
    if pa.types.is_time64(kind):
        return bool(ends["max"] >= day)
    first = max(FIRST_DAY * day, 1 - _INFINITE)
    return bool(ends["min"] < first or ends["max"] >= min((LAST_DAY + 1) * day, _INFINITE))


def moment_text(scalar: Any) -> str:
    """A date, time or timestamp of Arrow as text; a timestamp has microseconds at least."""
    import pyarrow as pa

    number, kind = scalar.value, scalar.type
    if kind == pa.date32():
        return _infinite(number, _INFINITE_DAY) or _date(number)
    per_second = _PER_SECOND[kind.unit]
    if not pa.types.is_timestamp(kind):
        if number >= DAY_SECONDS * per_second:
            return "24:00:00"
        return _short(str(scalar.cast(pa.string()))).removesuffix(".000000")
    seconds, part = divmod(number, per_second)
    days, second = divmod(seconds, DAY_SECONDS)
    digits = 9 if kind.unit == "ns" else 6
    part = part * 10**digits // per_second
    text = f"{_date(days)}T{datetime.min + timedelta(seconds=second):%H:%M:%S}.{part:0{digits}}"
    return _infinite(number, _INFINITE) or _short(text) + ("Z" if kind.tz else "")


def interval_text(months: int, days: int, nanoseconds: int) -> str:
    """An interval as DuckDB writes it: `1 year 2 months 3 days 04:05:06.789`."""
    sign = -1 if months < 0 else 1
    years, months = divmod(abs(months), 12)
    named = ((sign * years, "year"), (sign * months, "month"), (days, "day"))
    words = [f"{count} {name}{'' if abs(count) == 1 else 's'}" for count, name in named if count]
    if nanoseconds or not words:
        seconds, part = divmod(abs(nanoseconds) // 1000, 10**6)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        fraction = f".{part:06}".rstrip("0") if part else ""
        words.append(f"{'-' if nanoseconds < 0 else ''}{clock}{fraction}")
    return " ".join(words)


def _date(days: int) -> str:
    eras, day = divmod(days, ERA_DAYS)
    at = datetime(1970, 1, 1) + timedelta(days=day)
    year = at.year + ERA_YEARS * eras
    return f"{year:04}-{at:%m-%d}" if 0 <= year <= 9999 else f"{year:+07}-{at:%m-%d}"


def _infinite(number: int, infinite: int) -> str:
    return {infinite: "infinity", -infinite: "-infinity"}.get(number, "")


def _short(text: str) -> str:
    """Nanoseconds that are whole microseconds are written as those."""
    return text[:-3] if text.endswith("000") and text[-10:-9] == "." else text
