"""Functions of `amqpsniff.archive` on the workers of a Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from pyspark import SparkContext

LOOK_SECONDS = 0.5
"""Time between two looks at how far the tasks are, at least."""

LOOK_PART = 0.02
"""Part of the time that is spent on looking, at most: a look lists what all tasks have left, and of
20,000 that takes 0.05 s of a processor, and 20 requests of object storage."""


def pause(seconds: float) -> float:
    """Time until the next look, where one took so long."""
    return max(LOOK_SECONDS, seconds / LOOK_PART)


class SparkRunner:
    """Calls a function for each item in a Spark task of its own."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context

    @property
    def cores(self) -> int:
        """Tasks that Spark does at a time."""
        return int(self._context.defaultParallelism)

    def __call__(
        self, function: Callable[[Any], Any], items: Sequence[Any], watch: Callable[[], None]
    ) -> list[Any]:
        """Results in the order of the items. Raises what a task raised in the end."""
        if not items:
            return []
        results: list[Any] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                results.extend(self._context.parallelize(items, len(items)).map(function).collect())
            except BaseException as error:  # noqa: BLE001 (raised below, in the thread that waits)
                errors.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        wait = LOOK_SECONDS
        while thread.is_alive():
            thread.join(wait)
            began = time.monotonic()
            watch()
            wait = pause(time.monotonic() - began)
        if errors:
            raise errors[0]
        return results
