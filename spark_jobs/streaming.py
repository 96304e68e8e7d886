"""Captures as a stream: those in a folder that are closed and were not there before.

A file is closed when nobody has written to it for a while. Files are taken in the order of their
last change; an offset is how far that went, and goes back for nothing: files that are away for a
while are not new when they are there again. Each batch is read as one capture: a connection that
goes on from a file of an earlier batch is met in its middle. Read the folder as a whole, or with
`amqpsniff batch`, where that matters.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from amqpsniff.archive.listing import Listed, list_captures
from amqpsniff.capture.formats import is_remote
from amqpsniff.errors import CaptureError

from .source import Reading, Share

if TYPE_CHECKING:
    import pyarrow as pa

UNTIL = "until_ns"
"""The offset: the time of the last change up to which files were taken."""


class AmqpStreamReader(DataSourceStreamReader):
    """Reads the captures that have come since."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.reading = Reading(options, schema)
        self._taken_ns = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {UNTIL: 0}

    def latestOffset(self, start: dict[str, int] | None = None, *_: Any) -> dict[str, int]:  # noqa: N802
        """How far there are closed files, from `start` on, which Spark before 4.2 does not say."""
        closed = time.time_ns() - self.reading.options.close_after_ns
        times = [when for when, _ in self._listed() if when <= closed]
        self._taken_ns = max([*times, self._taken_ns, start[UNTIL] if start else 0])
        return {UNTIL: self._taken_ns}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        if start[UNTIL] >= end[UNTIL]:
            return []
        new = [one for when, one in self._listed() if start[UNTIL] < when <= end[UNTIL]]
        return self.reading.shares(new) if new else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        yield from self.reading.rows(partition)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing is kept beside the offset."""

    def _listed(self) -> list[tuple[int, Listed]]:
        """The files there are, with the time of their last change or move."""
        options = self.reading.options
        try:
            listed = list_captures(options.paths, options.storage)
        except CaptureError:  # none has come yet
            return []
        return [(_changed_ns(one), one) for one in listed]


def _changed_ns(one: Listed) -> int:
    """When a file was changed last; a file that was moved here counts from then on."""
    if one.modified_ns is None or is_remote(one.path):
        return one.modified_ns or 0
    try:
        return max(one.modified_ns, Path(one.path).stat().st_ctime_ns)
    except OSError:
        return one.modified_ns
