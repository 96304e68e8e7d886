"""Times as people type and read them: absolute in UTC, or counted from the capture's start."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from amqpsniff.errors import UsageError

SECOND_NS = 1_000_000_000
DAY_NS = 86_400 * SECOND_NS

MIN_EPOCH_NS = 3650 * DAY_NS
"""A number without a unit is an offset below this, and since 1970 from here on: no capture lasts
for ten years, and none is of the seventies."""

MAX_TIME_NS = (1 << 63) - 1
"""The last time that a table can hold, in the year 2262."""

_SPAN_PART = r"(\d{1,12})(?:\.(\d{1,9}))?\s*(ms|min|s|m|h|d)"
_SPAN = re.compile(rf"(?:{_SPAN_PART}\s*)+", re.ASCII)
_NUMBER = re.compile(r"(\d{1,12})(?:\.(\d{1,9}))?", re.ASCII)
_UNITS = {
    "d": DAY_NS,
    "h": 3600 * SECOND_NS,
    "m": 60 * SECOND_NS,
    "min": 60 * SECOND_NS,
    "s": SECOND_NS,
    "ms": SECOND_NS // 1000,
}
_CLOCK = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)", re.ASCII)
_INSTANT = r"(\d{4}-\d\d-\d\d)[T t](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?(Z|z|[+-]\d\d:?\d\d)?"

_STARTS_NS = (0, DAY_NS - 1, 1 << 62)
"""When a capture may have begun: two times that are of different kinds are in both orders then."""

Time = str | float | datetime | timedelta
"""A time as callers give it: seconds, too, and a time without a zone."""

Moment = Callable[[int], int]
"""A function of the time at which the capture began; gives nanoseconds since 1970."""


def nanoseconds(text: str) -> int | None:
    """A span of time: a number of seconds, or numbers with units, larger units first.

    None for any other text.
    """
    word = text.strip()
    if match := _NUMBER.fullmatch(word):
        return _amount(match[1], match[2], "s")
    if not _SPAN.fullmatch(word):
        return None
    parts = re.findall(_SPAN_PART, word)
    sizes = [_UNITS[unit] for *_, unit in parts]
    if sizes != sorted(set(sizes), reverse=True):
        return None
    return sum(_amount(*part) for part in parts)


def _amount(integer: str, digits: str | None, unit: str) -> int:
    return int(integer) * _UNITS[unit] + _fraction(digits, _UNITS[unit])


def _fraction(digits: str | None, unit_ns: int) -> int:
    """The nanoseconds of the digits after a decimal point."""
    return int((digits or "0").ljust(9, "0")) * unit_ns // SECOND_NS


def time_zone(name: str | None) -> tzinfo | None:
    """A time zone by its name or its offset; None, as `astimezone` takes it, for `local`.

    UTC without a name. Raises UsageError for an unknown zone.
    """
    if name is None:
        return UTC
    if name == "local":
        return None
    if match := _OFFSET.fullmatch(name):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        if offset < timedelta(days=1):
            return timezone(-offset if match[1] == "-" else offset)
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise UsageError(
            f"`tz` {name!r} is not a time zone; write Europe/Berlin, +01:00, UTC or local", "tz"
        ) from None


def _written(time: Time) -> str:
    """A time as text, as commands take it."""
    if isinstance(time, datetime):
        return time.isoformat()
    if isinstance(time, timedelta):
        time = time.total_seconds()
    return (time if isinstance(time, str) else f"{time:.9f}").strip()


def parse(text: Time, parameter: str, zone: str | None = None) -> Moment:
    """A time of the forms that the error lists; raises UsageError for any other.

    `zone` is the time zone of a text that names none, None for UTC.
    """
    tz = time_zone(zone)
    word = _written(text)
    if (amount_ns := nanoseconds(word.removeprefix("+"))) is not None:
        bare = word.replace(".", "", 1).isdigit()
        if bare and amount_ns >= MIN_EPOCH_NS:
            return lambda _: min(amount_ns, MAX_TIME_NS)
        return lambda start_ns: min(start_ns + amount_ns, MAX_TIME_NS)
    if match := re.fullmatch(_CLOCK, word):
        hours, minutes, seconds, digits = match.groups()
        of_day_ns = (int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)) * SECOND_NS
        of_day_ns += _fraction(digits, SECOND_NS)
        if of_day_ns < DAY_NS and int(minutes) < 60 and int(seconds or 0) < 60:
            return lambda start_ns: _midnight(start_ns, tz) + of_day_ns
    elif (match := re.fullmatch(_INSTANT, word)) and (found := _instant(match, tz)) is not None:
        return lambda _: found
    raise UsageError(
        f"`{parameter}` {text!r} is not a time; write 3.5 or 1m30s (since the capture began), "
        "12:00:00, 2026-01-31T12:00:00Z or seconds since 1970",
        parameter,
    )


def span(
    from_: Time | None, to: Time | None, zone: str | None = None
) -> tuple[Moment | None, Moment | None]:
    """The times of `from_` and `to`, each a function of the time at which the capture began.

    Raises UsageError if nothing can lie between them.
    """
    first, last = (
        parse(time, name, zone) if time else None for time, name in ((from_, "from_"), (to, "to"))
    )
    if first and last and all(last(start_ns) <= first(start_ns) for start_ns in _STARTS_NS):
        text = f"`to` {to} is not after `from_` {from_}; nothing lies between them"
        raise UsageError(text, "to", "from_")
    return first, last


def outside(
    from_: Time | None,
    to: Time | None,
    first_ns: int | None,
    last_ns: int | None,
    zone: str | None = None,
) -> str:
    """A sentence where no packet of a capture lies between `from_` and `to`, else empty.

    `first_ns` and `last_ns` are the times of the capture's first and last packet.
    """
    if first_ns is None or last_ns is None:
        return ""
    first, last = span(from_, to, zone)
    if not (first and first(first_ns) > last_ns) and not (last and last(first_ns) <= first_ns):
        return ""
    given = [f"{word} {time}" for word, time in (("from", from_), ("to", to)) if time]
    return (
        f"no packet lies in the time {' '.join(given)}; the capture is from "
        f"{absolute(first_ns, zone)} to {absolute(last_ns, zone)} ({seconds(last_ns - first_ns)} s)"
    )


def _midnight(time_ns: int, zone: tzinfo | None) -> int:
    """The beginning of the day of a moment, in nanoseconds since 1970."""
    if zone is UTC:
        return time_ns - time_ns % DAY_NS
    day = datetime.fromtimestamp(time_ns // SECOND_NS, UTC).astimezone(zone)
    return int(_aware(datetime(day.year, day.month, day.day), zone).timestamp()) * SECOND_NS


def _aware(instant: datetime, zone: tzinfo | None) -> datetime:
    """A date and a time of day in a zone."""
    return instant.astimezone() if zone is None else instant.replace(tzinfo=zone)


def _instant(match: re.Match[str], zone: tzinfo | None) -> int | None:
    """Nanoseconds since 1970 of a date and a time of day, in this zone if it does not name one."""
    day, clock, digits, offset = match.groups()
    try:
        instant = datetime.fromisoformat(f"{day}T{clock}")
        if offset is None:
            instant = _aware(instant, zone)
        else:
            named = "+0000" if offset in "Zz" else offset.replace(":", "")
            instant = instant.replace(tzinfo=datetime.strptime(named, "%z").tzinfo)
        seconds = int(instant.timestamp())
    except (ValueError, OverflowError):
        return None
    return seconds * SECOND_NS + _fraction(digits, SECOND_NS)


def seconds(time_ns: int) -> str:
    """A time span as seconds with six digits behind the point."""
    sign, time_ns = ("-", -time_ns) if time_ns < 0 else ("", time_ns)
    whole, rest = divmod(time_ns, SECOND_NS)
    return f"{sign}{whole}.{rest // 1000:06}"


def absolute(time_ns: int, zone: str | None = None) -> str:
    """An instant as RFC 3339 with microseconds, in UTC or another time zone."""
    if zone is None:
        return f"{exact(time_ns)[:-4]}Z"
    whole, rest = divmod(time_ns, SECOND_NS)
    instant = datetime.fromtimestamp(whole, UTC).astimezone(time_zone(zone))
    return instant.replace(microsecond=rest // 1000).isoformat(timespec="microseconds")


def of_day(time_ns: int, *, days: bool, zone: str | None = None) -> str:
    """An instant as the time of day to the millisecond; with `days`, as date and second."""
    text = absolute(time_ns, zone)
    return text[:19].replace("T", " ") if days else text[11:23]


def offset_ns(time_ns: int, zone: str | None) -> int:
    """The offset of a time zone from UTC at an instant, in nanoseconds; positive if ahead."""
    instant = datetime.fromtimestamp(time_ns // SECOND_NS, UTC).astimezone(time_zone(zone))
    return int((instant.utcoffset() or timedelta()).total_seconds()) * SECOND_NS


def moment(time_ns: int, zone: str | None = None) -> str:
    """An instant as the time of day to the second, with its time zone."""
    return f"{absolute(time_ns, zone)[11:19]} {zone_name(zone)}"


def zone_name(zone: str | None) -> str:
    """The name of a time zone for times that are written without it."""
    return "local time" if zone == "local" else zone or "UTC"


def exact(time_ns: int) -> str:
    """An instant as RFC 3339 in UTC, with nanoseconds."""
    whole, rest = divmod(time_ns, SECOND_NS)
    instant = datetime.fromtimestamp(whole, UTC)
    return f"{instant:%Y-%m-%dT%H:%M:%S}.{rest:09}Z"
