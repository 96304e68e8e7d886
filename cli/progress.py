"""The progress of a long run, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

PATIENCE_SECONDS = 1.0
"""A run shorter than this shows no progress: it would only flicker."""

LOOK_SECONDS = 0.1


class Progress:
    """A line on standard error that counts packets; it goes away at the end.

    It is written beside the run, which may go on for long without giving a row.

    Args:
        enabled: True to write it, on a terminal.
        packets: Says how many packets were read; without it, `at` does.
    """

    def __init__(self, enabled: bool, packets: Callable[[], int] | None = None) -> None:
        self._count = 0
        self._packets = packets if packets is not None else lambda: self._count
        self._finished = Event()
        self._thread: Thread | None = None
        if enabled and sys.stderr.isatty():
            self._thread = Thread(target=self._show, daemon=True)

    def __enter__(self) -> Progress:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Take the line away."""
        self._finished.set()
        if self._thread is not None:
            self._thread.join()

    def at(self, packets: int) -> None:
        """Say that this many packets were read."""
        self._count = packets

    def _show(self) -> None:
        if self._finished.wait(PATIENCE_SECONDS):
            return
        with _bar() as bar:
            task = bar.add_task("packets", total=None)
            while not self._finished.wait(LOOK_SECONDS):
                bar.update(task, completed=self._packets())


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        BarColumn(),
        TextColumn("{task.completed:,} packets"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
