"""How far a long run is, on a terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

PATIENCE_SECONDS = 1.0
"""A run shorter than this shows no progress: it would only flicker."""


class Progress:
    """A line on standard error that counts packets; it goes away at the end."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted and sys.stderr.isatty()
        self._began = time.monotonic()
        self._shown: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._shown.stop()

    def at(self, packets: int) -> None:
        """Say that this many packets were read."""
        if not self._wanted:
            return
        if self._shown is None:
            if time.monotonic() - self._began < PATIENCE_SECONDS:
                return
            self._shown = _bar()
            self._shown.start()
            self._shown.add_task("packets", total=None)
        self._shown.update(self._shown.task_ids[0], completed=packets)


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
