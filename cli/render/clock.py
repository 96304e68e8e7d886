"""The times of lines: relative to the capture's start, absolute, or since the line before."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from amqpsniff.analysis.times import absolute, seconds, time_zone

from ..output import settings

FORMS = ("relative", "absolute", "delta")
"""How lines write times: `--time`."""


def date_and_time(time_ns: int) -> str:
    """An instant in the time zone of the command's options."""
    return absolute(time_ns, settings.zone)


def in_zone(text: str) -> str:
    """The time of an instant in UTC in the form of `amqpsniff.analysis`."""
    instant = zoned(datetime.fromisoformat(text))
    return instant.isoformat(timespec="microseconds").replace("+00:00", "Z")


def zoned(instant: datetime) -> datetime:
    """An instant in that time zone; one that is of no zone stays as it is."""
    plain = settings.zone is None or instant.tzinfo is None
    return instant if plain else instant.astimezone(time_zone(settings.zone))


class LineClock:
    """Writes the times of lines in one of `FORMS`.

    `started` says when the capture began, or null, once the first time is to be written. A `short`
    absolute time leaves out the day.
    """

    def __init__(
        self, form: str, started: Callable[[], int | None], *, short: bool = False
    ) -> None:
        self.form = form
        self.short = short
        self._started = started
        self._start_ns: int | None = None
        self._before_ns: int | None = None

    @property
    def width(self) -> int:
        """Columns that a time commonly takes."""
        if self.form != "absolute":
            return 10
        return 15 if self.short else len(date_and_time(0))

    def show(self, time_ns: int | None) -> str:
        """The time of a line; `-` where the capture has none."""
        if time_ns is None:
            return "-"
        if self.form == "absolute":
            text = date_and_time(time_ns)
            return text[11:26] if self.short else text
        if self._start_ns is None:
            start_ns = self._started()
            self._start_ns = self._before_ns = time_ns if start_ns is None else start_ns
        before = self._start_ns if self.form == "relative" else self._before_ns
        self._before_ns = time_ns
        assert before is not None
        return seconds(time_ns - before)
