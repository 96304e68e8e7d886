# cython: language_level=3
"""Several captures as one input, in the order of time.

Captures wait in the order of their first packets' times and are opened when the merge reaches that
time, so files of a rotation follow each other with one file open, and files that overlap are merged
packet by packet. The order within a capture is never changed: of the captures that are open, the
one whose next packet is earliest goes on, as far as it stays the earliest; at the same time the one
named first goes. A packet without a time has the time of the packet before it. What comes out are
slices of the captures' own batches; nothing is copied.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import cython

from amqpsniff.capture.file import BLOCK_BYTES, Opener
from amqpsniff.capture.open import OWN, AnyCapture, opened
from amqpsniff.capture.packets import NO_TIME, PacketBatch
from amqpsniff.errors import CaptureError
from amqpsniff.findings import Finding

# Enough to find the first packet of nearly every capture in one read.
GLANCE_BYTES = 1 << 14

# Captures that overlap share this much for their blocks, so that memory does not grow with their
# number until blocks have reached their least size, below which reads cost more than they bring.
MERGED_BYTES = 1 << 25
MIN_BLOCK_BYTES = 1 << 14

# Past this many captures open at once, files are closed between reads: a process may
# commonly have 1024, and other parts of it need some.
MAX_OPEN_FILES = 128

_FOREVER = 2**63 - 1


class _Lane:
    """One capture in the merge: `time` is that of its next packet.

    `secrets` of the file's secrets have been taken.
    """

    __slots__ = ("name", "index", "time", "file", "batch", "secrets")

    def __init__(self, name: str, index: int) -> None:
        self.name = name
        self.index = index
        self.time = NO_TIME
        self.file: AnyCapture | None = None
        self.batch: PacketBatch | None = None
        self.secrets = 0

    def __lt__(self, other: _Lane) -> bool:
        if self.time != other.time:
            return self.time < other.time
        return self.index < other.index

    def glance(self, before: int, open_file: Callable[[str, int], AnyCapture]) -> int:
        """Find the time of the first packet that has one, else `before`, in the first batch.

        A stream that cannot be opened again stays open, with that batch.
        """
        file = open_file(self.name, GLANCE_BYTES)
        self.time = before
        batch = next(file, None)
        if batch is not None:
            times = (batch.order_ns[row] for row in range(batch.begin, batch.end))
            self.time = next((time for time in times if time != NO_TIME), before)
        if file.regular:
            file.close()
        else:
            self.file = file
            self.batch = batch
        return self.time

    def load(self) -> bool:
        """Take the next batch of the file; False at its end."""
        self.batch = next(self.file, None) if self.file is not None else None
        if self.batch is None:
            return False
        first = self.batch.order_ns[self.batch.begin]
        if first != NO_TIME:
            self.time = first
        return True

    def run(self, rival: _Lane | None) -> PacketBatch:
        """The packets from the next one on that come before the rival's next, at least one."""
        batch = self.batch
        assert batch is not None
        if rival is None:
            limit, inclusive = _FOREVER, True
        else:
            limit, inclusive = rival.time, self.index < rival.index
        row = _run_end(batch.order_ns, batch.begin + 1, batch.end, limit, inclusive)
        if row < batch.end:
            self.time = batch.order_ns[row]
            self.batch = batch.slice(row, batch.end)
            return batch.slice(batch.begin, row)
        self.batch = None
        times = (batch.order_ns[back] for back in range(batch.end - 1, batch.begin - 1, -1))
        self.time = next((time for time in times if time != NO_TIME), self.time)
        return batch


class CaptureSet:
    """An iterator over the packets of several captures, named in the order that breaks ties.

    `findings`, `secrets`, `link_types` and `comments` are those of all captures so far. A capture
    that cannot be read is a finding `capture-unreadable`; raises CaptureError if none can be read.
    `opener` is that of `CaptureFile`; `reader` chooses the reader, see `amqpsniff.capture.open`.
    `open_file` opens what stands for a capture in their place, and `begins` has the times of first
    packets that are known, so that nothing is opened to find them.
    """

    def __init__(
        self,
        names: list[str],
        *,
        block_bytes: int = BLOCK_BYTES,
        opener: Opener | None = None,
        reader: str = OWN,
        open_file: Callable[[str, int], Any] | None = None,
        begins: Mapping[str, int] | None = None,
    ) -> None:
        self._open_file = open_file or partial(opened, reader=reader, opener=opener)
        self._begins = begins or {}
        self._block_bytes = block_bytes
        self._findings: list[Finding] = []
        self._secrets: list[tuple[int, bytes]] = []
        self._new_secrets: list[tuple[int, bytes]] = []
        self._link_types: list[int] = []
        self._comments: list[str] = []
        self._open: list[_Lane] = []
        self._waiting: list[_Lane] = []
        if len(names) == 1:
            lane = _Lane(names[0], 0)
            lane.file = self._open_file(names[0], block_bytes)
            self._waiting.append(lane)
        else:
            self._line_up(names)
        self._last: AnyCapture | None = None
        self._batches = self._merged()

    @property
    def findings(self) -> list[Finding]:
        """Findings about the captures so far."""
        return [*self._findings, *(finding for file in self._files() for finding in file.findings)]

    @property
    def secrets(self) -> list[tuple[int, bytes]]:
        """Secrets type and bytes of every Decryption Secrets Block so far."""
        return [*self._secrets, *(secret for file in self._files() for secret in file.secrets)]

    def take_secrets(self) -> list[tuple[int, bytes]]:
        """Those that were read since the last call."""
        secrets, self._new_secrets = self._new_secrets, []
        return secrets

    @property
    def link_types(self) -> list[int]:
        """LINKTYPE_ values of the captures opened so far, each once."""
        present = (link_type for file in self._files() for link_type in file.link_types)
        return list(dict.fromkeys([*self._link_types, *present]))

    @property
    def comments(self) -> list[str]:
        """Comments of the sections begun so far."""
        return [*self._comments, *(comment for file in self._files() for comment in file.comments)]

    def __iter__(self) -> Iterator[PacketBatch]:
        return self

    def __next__(self) -> PacketBatch:
        return next(self._batches)

    def __enter__(self) -> CaptureSet:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Let go of every file."""
        self._batches = iter(())
        for lane in [*self._open, *self._waiting]:
            self._close(lane)
        self._waiting = []

    def file(self) -> AnyCapture:
        """The capture that the batch given last is of."""
        assert self._last is not None
        return self._last

    def at_rest(self) -> bool:
        """True if one of the captures that are open is being written, and all so far was read."""
        return any(file.at_rest() for file in self._files())

    def _files(self) -> Iterator[AnyCapture]:
        return (lane.file for lane in self._open if lane.file is not None)

    def _line_up(self, names: list[str]) -> None:
        """Find where each capture begins, and put them in that order."""
        time = NO_TIME
        first_error: CaptureError | None = None
        for index, name in enumerate(names):
            lane = _Lane(name, index)
            try:
                if name in self._begins:
                    lane.time = time = self._begins[name]
                else:
                    time = lane.glance(time, self._open_file)
            except CaptureError as error:
                first_error = first_error or error
                self._unreadable(name, error)
                continue
            self._waiting.append(lane)
        if not self._waiting:
            raise CaptureError(
                f"none of {len(names)} files could be read; the first: {first_error}"
            )
        self._waiting.sort(reverse=True)

    def _unreadable(self, name: str, error: CaptureError) -> None:
        finding = Finding("capture-unreadable", str(error), name)
        self._findings.append(finding)

    def _merged(self) -> Iterator[PacketBatch]:
        heap: list[_Lane] = []
        while heap or self._waiting:
            while self._waiting and (not heap or self._waiting[-1].time <= heap[0].time):
                lane = self._waiting.pop()
                if self._enter(lane):
                    heapq.heappush(heap, lane)
            if not heap:
                continue
            lane = heapq.heappop(heap)
            self._last = lane.file
            yield lane.run(self._rival(heap))
            if lane.batch is not None or self._more(lane):
                heapq.heappush(heap, lane)

    def _rival(self, heap: list[_Lane]) -> _Lane | None:
        """The lane that continues when the present one stops being the earliest."""
        if heap and self._waiting:
            return min(heap[0], self._waiting[-1])
        if heap:
            return heap[0]
        return self._waiting[-1] if self._waiting else None

    def _enter(self, lane: _Lane) -> bool:
        """Open a lane's capture; whether it has packets."""
        if lane.file is None:
            try:
                lane.file = self._open_file(lane.name, MIN_BLOCK_BYTES)
            except CaptureError as error:
                self._unreadable(lane.name, error)
                return False
        self._open.append(lane)
        return lane.batch is not None or self._more(lane)

    def _more(self, lane: _Lane) -> bool:
        """Read a lane's next batch; at its end, close the file and return False."""
        assert lane.file is not None
        share = max(MIN_BLOCK_BYTES, MERGED_BYTES // len(self._open))
        lane.file.block_bytes = min(self._block_bytes, share)
        loaded = lane.load()
        if len(lane.file.secrets) > lane.secrets:
            self._new_secrets += lane.file.secrets[lane.secrets :]
            lane.secrets = len(lane.file.secrets)
        if loaded:
            if len(self._open) > MAX_OPEN_FILES:
                lane.file.park()
            return True
        self._close(lane)
        return False

    def _close(self, lane: _Lane) -> None:
        if lane in self._open:
            self._open.remove(lane)
        file = lane.file
        if file is None:
            return
        file.close()
        lane.file = None
        self._findings += file.findings
        self._secrets += file.secrets
        self._link_types = list(dict.fromkeys([*self._link_types, *file.link_types]))
        self._comments += file.comments


def _run_end(
    ts_ns: cython.longlong[::1],
    row: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    limit: cython.longlong,
    inclusive: cython.bint,
) -> int:
    """The first of rows `row` to `end - 1` whose time is past the limit, else `end`.

    Times are nanoseconds; a row without a time is past no limit, and one at the limit is past it
    unless `inclusive`.
    """
    no_time: cython.longlong = NO_TIME
    time: cython.longlong
    while row < end:
        time = ts_ns[row]
        if time != no_time and (time > limit or (time == limit and not inclusive)):
            break
        row += 1
    return row
