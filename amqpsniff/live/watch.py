"""One live run: packets from a source through the pipeline, to a file, and into rows.

`Watch` is stepped by a loop that has the clock and the terminal; it waits for nothing itself. Time
is that of the monotonic clock here: packets carry the time of day, which may jump.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from amqpsniff.analysis.clients import Introductions
from amqpsniff.capture.packets import NO_TIME, PacketBatch
from amqpsniff.capture.pcapng_interface import InterfaceStatistics
from amqpsniff.findings import KINDS, Finding
from amqpsniff.live.final_rows import FinalRows
from amqpsniff.live.finding_updates import FindingUpdates
from amqpsniff.live.peers import HINT_COLUMNS
from amqpsniff.options import Options
from amqpsniff.pipeline import LATEST_NS, Pipeline
from amqpsniff.session.counts import Histogram
from amqpsniff.tables.batches import Maker, plan_for
from amqpsniff.tables.values import values

SETTLE_SECONDS = 10.0
"""Default time that a row waits for its reply or outcome. Most acknowledgements take milliseconds;
of a consumer that was there before, it is not known whether it acknowledges at all."""

ROWS_SECONDS = 0.1
"""Interval at which rows are made: each time costs some 0.2 ms, however few they are."""

SETTLED_SECONDS = 0.25
"""Interval at which settled rows are looked for: some 0.1 ms for every batch that changed."""

QUIET_SECONDS = 0.1
"""A packet that an interface saw is here after this time: its ring gives packets every 40 ms."""

MAX_LATEST = 200
"""Latest findings of each severity kept to be shown: many of one do not hide those of another."""

PUBLISHED = "published_ns"
"""The column with the time from a publish to its delivery."""

Batches = Iterator[tuple[str, Any]]


class PacketSource(Protocol):
    """A source of packets: `amqpsniff.capture.live_capture`, `.tail`."""

    capture: str
    findings: list[Finding]
    notes: list[str]
    ended: bool
    live: bool
    """True if packets are captured now, so that their times are those of this machine's clock."""

    @property
    def packets(self) -> int:
        """Packets taken so far."""

    def take(self, most: int) -> Iterator[tuple[PacketBatch, Sequence[int]]]:
        """Batches of the packets that wait, and each packet's interface."""

    def fileno(self) -> int | None:
        """A descriptor to wait for; None if the source has to be polled."""

    def held(self) -> bool:
        """True if packets were seen that cannot be taken yet."""

    def name_of(self, index: int, /) -> str:
        """The name of an interface."""

    def take_secrets(self) -> list[tuple[int, bytes]]:
        """Secrets for TLS that were read since the last call, as (type, bytes)."""

    def statistics(self) -> InterfaceStatistics | None:
        """The kernel's counts; None for files and pipes."""

    def finish(self) -> None:
        """There will be no more."""

    def close(self) -> None:
        """Let go of everything."""


class PacketWriter(Protocol):
    """A file for packets: `amqpsniff.capture.writer`, `amqpsniff.wireshark.extcap`."""

    trouble: str | None

    @property
    def octets(self) -> int:
        """Bytes written so far."""

    def write(self, batch: PacketBatch, interfaces: Sequence[int], /) -> None:
        """Write the packets of a batch, with each one's interface."""

    def close(self) -> None:
        """End what is written."""


class Watch:
    """A live run.

    Args:
        source: The source of packets.
        options: Options of decoding.
        tables: Tables whose rows are returned.
        census: Counts every row, as in a `Pipeline`; None for none.
        judge: True if rules look for findings even if their rows are not returned.
        writer: Writes the packets; None to write none.
        packets: Number of packets to take; None for any number.
        settle_seconds: Maximum wait of rows; None for no limit.
        columns: Columns to return, by table; those of links are made if they are named.
        time_deliveries: True to count the times from publishes to their deliveries.
        name_clients: True if the census takes what messages show of their clients, by their
            `HINT_COLUMNS`.

    Attributes:
        lock: Held while anything changes that another thread may want to read.
        found: All findings, once the run is finished; before, the latest ones.
        judged: True if rules look for findings.
        census: As it was given.
        delivery_times: The times from publishes to their deliveries; None if they are not counted.
        introductions: Handshakes of the clients whose connections are over.
    """

    def __init__(
        self,
        source: PacketSource,
        options: Options,
        tables: Sequence[str] = (),
        *,
        census: Any = None,
        judge: bool = False,
        writer: PacketWriter | None = None,
        packets: int | None = None,
        settle_seconds: float | None = SETTLE_SECONDS,
        columns: Mapping[str, Collection[str]] | None = None,
        time_deliveries: bool = False,
        name_clients: bool = False,
    ) -> None:
        columns = columns or {}
        self.source = source
        self.writer = writer
        self.lock = threading.Lock()
        self.found: list[Finding] = []
        self._makers = [Maker(table, encoded=True, columns=columns.get(table)) for table in tables]
        self.introductions = Introductions()
        self.judged = judge or "findings" in tables
        self.delivery_times = Histogram() if time_deliveries else None
        self.census = census
        self._message_readers: list[tuple[Maker, Callable[[Any], None]]] = []
        if self.delivery_times is not None:
            count = partial(_count_deliveries, self.delivery_times)
            self._message_readers.append((Maker("messages", columns=(PUBLISHED,)), count))
        if name_clients:
            self._message_readers.append(
                (Maker("messages", columns=HINT_COLUMNS), census.add_hints)
            )
        plan = plan_for(
            [*self._makers, *(maker for maker, _ in self._message_readers)],
            ("findings",) if judge else (),
            census=census,
            on_connection_end=self.introductions.add,
        )
        self.pipeline = Pipeline(options, plan)
        self.pipeline.log.watch()
        self.finished = False
        self._packets_left = packets
        settle_ns = None if settle_seconds is None else int(settle_seconds * 1e9)
        self._givers = [
            FinalRows(table, settle_ns, columns.get(table))
            for table in tables
            if table in ("frames", "messages")
        ]
        self._updates = FindingUpdates()
        self._rows_at = self._settled_at = 0.0
        self._quiet_seconds = QUIET_SECONDS if source.statistics() is not None else settle_seconds
        self._packet_ns = NO_TIME
        self._packet_at = 0.0
        self._until_ns = LATEST_NS
        self._past_end = False

    @property
    def done(self) -> bool:
        """True if no further packets will be taken."""
        return self.source.ended or self._packets_left == 0 or self._past_end

    def end_in(self, seconds: float) -> None:
        """Take no packet that is captured later than `seconds` from now.

        Packets of a pipe or a file may be of any time, and all that are read are taken.
        """
        if self.source.live:
            self._until_ns = time.time_ns() + int(seconds * 1e9)

    def step(self) -> int:
        """Take the packets that wait; gives their number."""
        count = 0
        limit = 1 << 62 if self._packets_left is None else self._packets_left
        for taken, interfaces in self.source.take(limit):
            batch = taken
            if batch.ts_ns[batch.end - 1] > self._until_ns:
                end = bisect_right(batch.ts_ns, self._until_ns, batch.begin, batch.end)
                batch = batch.slice(batch.begin, end)
                self._past_end = True
                if not len(batch):
                    break
            count += len(batch)
            if self.writer is not None:
                self.writer.write(batch, interfaces)
            with self.lock:
                self.pipeline.feed(batch, self.source.take_secrets())
            self._packet_ns = batch.ts_ns[batch.end - 1]
            if self._past_end:
                break
        if count:
            self._packet_at = time.monotonic()
        elif quiet_ns := self.quiet_ns():  # what waits for missing ones does not wait for the next
            with self.lock:
                self.pipeline.wait(min(self._packet_ns + quiet_ns, LATEST_NS))
        if self._packets_left is not None:
            self._packets_left -= count
        return count

    def quiet_ns(self) -> int:
        """The time behind the last packet in which there was none, none that is on its way either.

        Packets of a pipe or a file may be late by an unknown time: rows wait for replies as long.
        """
        if self._quiet_seconds is None or self._packet_ns == NO_TIME:
            return 0
        seconds = time.monotonic() - self._packet_at
        if seconds <= max(self._quiet_seconds, QUIET_SECONDS):
            return 0
        return int((seconds - self._quiet_seconds) * 1e9)

    def rows(self) -> Batches:
        """Rows that can be returned now, as (table, batch)."""
        now = time.monotonic()
        if now - self._rows_at < ROWS_SECONDS:
            return
        self._rows_at = now
        now_ns = time.monotonic_ns()
        for taken in self.pipeline.take_open():
            yield from self._made(taken, now_ns)
        if now - self._settled_at >= SETTLED_SECONDS:
            self._settled_at = now
            for giver in self._givers:
                yield from ((giver.table, batch) for batch in giver.settled(now_ns))
        yield from self.pipeline.record_batches(self._makers)
        with self.lock:
            updates = self._updates.add(self.pipeline.log.news(), now_ns)
        if updates:
            self.found = _latest(self.found, updates)
            yield from self._findings(updates)

    def finish(self) -> Batches:
        """End the run; gives all rows that were not given."""
        self.source.finish()
        with self.lock:
            self.pipeline.finish()
        self.finished = True
        now_ns = time.monotonic_ns()
        for taken in self.pipeline.take_open():
            yield from self._made(taken, now_ns)
        for giver in self._givers:
            yield from ((giver.table, batch) for batch in giver.settled(now_ns))
            yield from ((giver.table, batch) for batch in giver.rest())
        yield from self.pipeline.record_batches(self._makers)
        others = self.source.findings
        self.found = [*others, *self.pipeline.findings(others)]
        yield from self._findings(self._updates.rest(self.found))

    def counted_findings(self) -> Counter[tuple[str, str]]:
        """Numbers of cases so far, by code and severity."""
        return Counter(
            {(code, KINDS[code].severity): count for code, count in self._updates.counts.items()}
        )

    def severities(self) -> Counter[str]:
        """Rows of the findings table so far, by severity."""
        counted: Counter[str] = Counter()
        for code, number in self._updates.rows.items():
            counted[KINDS[code].severity] += number
        return counted

    def summary(self, top: int, zone: str | None = None) -> dict[str, Any]:
        """The summary of a run with a census, with `top` rows of each section.

        As that of `amqpsniff.Capture`; if rules look for findings, the verdict is that of its
        `diagnose`. Times of day in it are those of the `zone`, None for UTC.
        """
        from amqpsniff.analysis.diagnosis import diagnosis_of
        from amqpsniff.analysis.summary import summary

        pipeline = self.pipeline
        made: dict[str, Any] = {
            **summary(
                self.census.facts(),
                pipeline.totals,
                captures=[self.source.capture],
                tls=pipeline.encrypted,
                outcomes=pipeline.outcomes(),
                replies=pipeline.replies(),
                findings=self.found,
                zone=zone,
                top=top,
            )
        }
        if self.judged:
            found = diagnosis_of(self.found, pipeline.totals, self.introductions, zone=zone)
            made["verdict"] = found.verdict.plain()
        return made

    def close(self) -> None:
        """Let go of the source and end the file."""
        if self.writer is not None:
            self.writer.close()
        self.source.close()

    def _made(self, taken: Any, now_ns: int) -> Batches:
        frames, messages, *_ = taken
        for maker, read in self._message_readers:
            read(maker.make(taken))
        for giver in self._givers:
            yield from ((giver.table, batch) for batch in giver.add(taken, now_ns))
        tables = {giver.table for giver in self._givers}
        frames.given = frames.given or "frames" not in tables
        messages.given = messages.given or "messages" not in tables

    def _findings(self, findings: list[Finding]) -> Batches:
        for maker in self._makers:
            if maker.table == "findings" and findings:
                yield maker.table, maker.make(findings)


def _count_deliveries(times: Histogram, batch: Any) -> None:
    """Count the times from publishes to their deliveries."""
    for published_ns in values(batch, PUBLISHED):
        times.add(-1 if published_ns is None else published_ns)


def _latest(found: list[Finding], updates: list[Finding]) -> list[Finding]:
    """The latest findings of each severity, each once, as it was found last, if it still is."""
    by_key = {finding.key: finding for finding in (*found, *updates)}
    current = [finding for finding in by_key.values() if finding.count]
    counts = Counter[str]()
    latest: list[Finding] = []
    for finding in reversed(current):
        counts[finding.kind.severity] += 1
        if counts[finding.kind.severity] <= MAX_LATEST:
            latest.append(finding)
    return latest[::-1]
