"""The times of lines: relative to the capture's start, absolute, or since the line before."""

from __future__ import annotations

from amqpsniff.analysis.times import absolute, seconds

FORMS = ("relative", "absolute", "delta")
"""How lines write times: `--time`."""


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
        return (15 if self.short else 27) if self.form == "absolute" else 10

    def show(self, time_ns: int | None) -> str:
        """The time of a line; `-` where the capture has none."""
        if time_ns is None:
            return "-"
        if self.form == "absolute":
            return absolute(time_ns)[11:-1] if self.short else absolute(time_ns)
        if self.start_ns is None:
            self.start_ns = self._before_ns = time_ns
        before = self.start_ns if self.form == "relative" else self._before_ns
        self._before_ns = time_ns
        assert before is not None
        return seconds(time_ns - before)
