"""Work that is done by a thread beside the one that has it to do."""

from __future__ import annotations

from collections.abc import Callable
from queue import Queue
from threading import Thread
from typing import Any

MAX_WAITING = 4
"""Calls that wait, at most: batches of rows, some 10 MB each."""


class BackgroundWriter:
    """Makes calls of a function in a thread, one after the other in the order in which they come.

    Use it as a context manager: at its end all calls are made. What one of them raised is raised by
    the next call, or at the end, and no further call is made.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function
        self._waiting: Queue[tuple[Any, ...] | None] = Queue(MAX_WAITING)
        self._error: BaseException | None = None
        self._thread = Thread(target=self._work, daemon=True)

    def __call__(self, *arguments: Any) -> None:
        """Make a call soon; waits while too many do."""
        if self._error is not None:
            raise self._error
        self._waiting.put(arguments)

    def __enter__(self) -> BackgroundWriter:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._waiting.put(None)
        self._thread.join()
        if kind is None and self._error is not None:
            raise self._error

    def _work(self) -> None:
        while (arguments := self._waiting.get()) is not None:
            if self._error is not None:
                continue
            try:
                self._function(*arguments)
            except BaseException as error:  # noqa: BLE001 (raised in the thread that calls)
                self._error = error
