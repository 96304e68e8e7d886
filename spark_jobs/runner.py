"""Runs functions of `amqpsniff.archive` as Spark tasks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any

from pyspark import SparkContext

LOOK_SECONDS = 0.5
"""Shortest time between two looks at the progress of tasks."""

LOOK_PART = 0.02
"""Largest share of the time that is spent on looking: a look lists the files of all tasks, which
takes 0.05 s of a processor for 20,000 tasks, and 20 requests of object storage."""


def pause(seconds: float) -> float:
    """Time until the next look, after one that took `seconds`."""
    return max(LOOK_SECONDS, seconds / LOOK_PART)


class SparkRunner:
    """Calls a function for each item in a Spark task of its own."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context

    @property
    def cores(self) -> int:
        """Number of tasks that Spark runs at a time."""
        return int(self._context.defaultParallelism)

    def __call__(
        self, function: Callable[[Any], Any], items: Sequence[Any], watch: Callable[[], None]
    ) -> list[Any]:
        """Results in the order of the items. Raises the error of a task that failed for good."""
        if not items:
            return []
        label = function.__name__.strip("_").replace("_", " ")
        job: Future[list[Any]] = Future()

        def work() -> None:
            try:
                self._context.setJobDescription(f"amqpsniff: {label}, {len(items)} tasks")
                rows = self._context.parallelize(items, len(items))
                job.set_result(rows.map(function).collect())
            except BaseException as error:  # noqa: BLE001 (raised in the thread that waits)
                job.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        pause_seconds = LOOK_SECONDS
        while not wait([job], pause_seconds).done:
            began = time.monotonic()
            watch()
            pause_seconds = pause(time.monotonic() - began)
        watch()
        return job.result()
