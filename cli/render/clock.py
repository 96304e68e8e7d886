"""The times of lines: relative to the capture's start, absolute, or since the line before."""

from __future__ import annotations

from amqpsniff.analysis.times import absolute, seconds, time_zone

from ..output import settings

FORMS = ("relative", "absolute", "delta")
"""How lines write times: `--time`."""


def date_and_time(time_ns: int) -> str:
    """An instant in the time zone of the command's options."""
    return absolute(time_ns, settings.zone)


def in_zone(text: str) -> str:
    """The same for an instant in UTC as `amqpsniff.analysis` writes it."""
    if settings.zone is None:
        return text
    from datetime import datetime

    instant = datetime.fromisoformat(f"{text[:-1]}+00:00")
    return instant.astimezone(time_zone(settings.zone)).isoformat(timespec="microseconds")


class Clock:
    """Writes the times of lines in one of `FORMS`; `start_ns` is when the capture began.

    A `short` absolute time leaves out the day.
    """

    def __init__(self, form: str, start_ns: int | None, *, short: bool = False) -> None:
        self.form = form
        self.short = short
        self.start_ns = start_ns
        self._before_ns = start_ns

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
        if self.start_ns is None:
            self.start_ns = self._before_ns = time_ns
        before = self.start_ns if self.form == "relative" else self._before_ns
        self._before_ns = time_ns
        assert before is not None
        return seconds(time_ns - before)
