"""Functions of `amqpsniff.archive` on the workers of a Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from pyspark import SparkContext

LOOK_SECONDS = 0.5
"""Time between two looks at how far the tasks are."""


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
        while thread.is_alive():
            thread.join(LOOK_SECONDS)
            watch()
        if errors:
            raise errors[0]
        return results
