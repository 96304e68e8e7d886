"""The loop of a live run: waits for packets and keys, until the run is to end."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator

from amqpsniff.live.watch import Watch

TICK_SECONDS = 0.05
"""Longest time without a look at the clock and at files that grow."""

LAST_SECONDS = 0.1
"""Wait for packets that are on their way to an interface or into a pipe when the run is asked to
end."""

MAX_LAST_SECONDS = 5
"""Longest time for taking the packets that are left, if they never cease."""


class Steps:
    """An iterator that takes what packets there are at each step, until the run is to end.

    Args:
        watch: What is stepped.
        seconds: How long; None for as long as packets come.
        out: Where rows are written; the run ends when they are no longer read. None for nowhere.

    Attributes:
        keys: A descriptor that is readable when a key was pressed; None for none.
        stopped: True once `stop` was called.
    """

    def __init__(
        self, watch: Watch, seconds: float | None = None, *, out: int | None = None
    ) -> None:
        self.watch = watch
        self.keys: int | None = None
        self._out = out
        self._end = None if seconds is None else time.monotonic() + seconds
        self.stopped = False

    def __iter__(self) -> Iterator[int]:
        poll = select.poll()
        source = self.watch.source.fileno()
        for descriptor in {source, self.keys} - {None}:
            poll.register(descriptor, select.POLLIN)  # type: ignore[arg-type]
        if self._out is not None and self._out not in (source, self.keys):
            poll.register(self._out, 0)  # says when its reader is gone, though nothing is written
        count = 0
        while not self.stopped and not self.watch.done:
            seconds_left = self._seconds_left()
            if seconds_left <= 0:
                break
            growing = count and source is None  # a file that has grown is read without a pause
            happened = poll.poll(0 if growing else 1000 * min(seconds_left, TICK_SECONDS))
            if any(descriptor == self._out for descriptor, _ in happened):
                break
            count = self.watch.step()
            yield count
        yield from self._last()

    def _seconds_left(self) -> float:
        """Seconds until the run is to end; without an end, those of one step."""
        if self._end is None:
            return TICK_SECONDS
        seconds_left = self._end - time.monotonic()
        self.watch.end_in(seconds_left)
        return seconds_left

    def _last(self) -> Iterator[int]:
        """Take what was there when the run was told to end.

        A pipe may be filled as quickly as it is read: when the time is over, it is read once more.
        """
        source = self.watch.source
        timed_out = self._end is not None and self._end <= time.monotonic()
        if timed_out and not source.live:
            if not self.watch.done:
                yield self.watch.step()
            return
        if not timed_out:
            self.watch.end_in(0)
        end = time.monotonic() + MAX_LAST_SECONDS
        if source.fileno() is not None and not self.watch.done:
            time.sleep(LAST_SECONDS)
        while not self.watch.done and time.monotonic() < end:
            count = self.watch.step()
            if count:
                yield count
            elif source.held():
                time.sleep(TICK_SECONDS)
            else:
                return

    def stop(self) -> None:
        """End after this step."""
        self.stopped = True
