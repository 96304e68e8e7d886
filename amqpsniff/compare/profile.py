"""The profile of a capture: all that a comparison with another one needs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis import topology
from amqpsniff.analysis.quality import flaws, quality
from amqpsniff.analysis.topology import Topology, TopologyResult
from amqpsniff.compare.names import lasting, subjects
from amqpsniff.spec import DELIVERIES, PUBLISHES, SIDES
from amqpsniff.tables.values import rows_of

if TYPE_CHECKING:
    from amqpsniff.findings import Finding
    from amqpsniff.pipeline import Totals

Row = dict[str, Any]
FindingKey = tuple[str, str | None, tuple[str, ...]]

TABLES = ("frames", "messages", "connections", "channels", "links", "findings")
COLUMNS = topology.COLUMNS | {
    "connections": (
        "midstream", "client_bytes", "server_bytes", "client_product", "client_version",
        "client_platform", "server_product", "server_version", "closed_by", "close_code",
        "close_text",
    ),
    "channels": ("opened_packet_number", "closed_by", "close_code", "close_text"),
}  # fmt: skip
"""Tables that a profile is made of, and their columns."""

MAX_KINDS = 10_000
"""Kinds of ends, and of clients and servers, that are counted apart; further ones together."""


@dataclass
class CaptureProfile:
    """One capture, or several as one, as far as a comparison needs it.

    Attributes:
        names: The captures.
        span_ns: Time from the first packet to the last; None where no packet has a time.
        start_ns: Time of the first packet.
        packets: How many.
        connections: AMQP connections, and `midstream` those that began before the capture.
        counts: Things by name: `published`, `frames`, `connections opened` and so on.
        events: How many things those counts are of that are not counts of things themselves.
        latencies: A `session.counts.Histogram` by (`outcome` or `reply`, its name).
        findings: All findings by what they are about: code, client, names in the detail.
        products: Connections by (`client` or `server`, product, version, platform).
        closes: Ends by (`connection` or `channel`, who closed it, code), each with a text of one.
        topology: All of the topology.
        flaws: What is wrong with the capture itself, in words.
    """

    names: list[str]
    span_ns: int | None = None
    start_ns: int | None = None
    packets: int = 0
    connections: int = 0
    midstream: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    events: dict[str, int] = field(default_factory=dict)
    latencies: dict[tuple[str, str], Any] = field(default_factory=dict)
    findings: dict[FindingKey, Row] = field(default_factory=dict)
    products: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    closes: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    close_texts: dict[tuple[Any, ...], str] = field(default_factory=dict)
    topology: TopologyResult = field(default_factory=lambda: Topology().result())
    flaws: list[str] = field(default_factory=list)
    _topology: Topology = field(default_factory=Topology, repr=False)

    def add(self, table: str, batch: Any) -> None:
        """Take a batch of one of `TABLES`, with `COLUMNS` at least."""
        self._topology.add(table, batch)
        if table == "connections":
            for row in rows_of(batch):
                self.add_connection(row)
        elif table == "channels":
            for row in rows_of(batch):
                self.add_channel(row)

    def finish(
        self, totals: Totals, statistics: Row, outcomes: Row, replies: Row, found: list[Finding]
    ) -> None:
        """Take the results of a pass at its end.

        Args:
            totals: Counts of the pass.
            statistics, outcomes, replies: As in `add_census`.
            found: All findings of the pass.
        """
        self.add_census(statistics, outcomes, replies)
        self.packets, self.connections = totals.packets, totals.connections
        self.midstream, self.start_ns = totals.midstream, totals.span[0]
        self.span_ns = totals.lasted_ns
        for finding in found:
            self.add_finding(finding)
        self.topology, self._topology = self._topology.result(), Topology()
        codes = {finding.code for finding in found}
        self.flaws = flaws(quality(totals) | {"messages": statistics["statuses"]}, codes)

    def add_connection(self, row: Row) -> None:
        """Take a row of the connections table."""
        self.counts["connections opened"] += not row["midstream"]
        if row["closed_by"] is not None:
            self.counts["connections closed"] += 1
            self._closed("connection", row)
        self.counts["bytes"] += (row["client_bytes"] or 0) + (row["server_bytes"] or 0)
        for side in SIDES:
            parts = (row[f"{side}_product"], row[f"{side}_version"], row.get(f"{side}_platform"))
            if any(parts):
                self._count(self.products, (side, *parts))

    def add_channel(self, row: Row) -> None:
        """Take a row of the channels table."""
        self.counts["channels opened"] += row["opened_packet_number"] is not None
        if (row["close_code"], row["close_text"]) != (None, None):
            # else it ended with its connection, or did not, or a session without an error
            self._closed("channel", row)

    def add_finding(self, finding: Finding) -> None:
        """Count a finding with those that are about the same."""
        client = self._topology.client_name(finding.connection_id)
        about = subjects(finding.detail or "")
        counted = self.findings.setdefault(
            (finding.code, None if client is None else lasting(client), about),
            {
                "places": 0,
                "count": 0,
                "capture": finding.capture,
                "packet_number": finding.packet_number,
                "connection_id": finding.connection_id,
                "detail": finding.detail,
            },
        )
        counted["places"] += 1
        counted["count"] += finding.count

    def add_census(self, counted: Row, outcomes: dict[str, Any], replies: dict[str, Any]) -> None:
        """Take what `session.Census.facts` counted, and `reader.Capture` knows with it."""
        kinds = dict.fromkeys(PUBLISHES, "published") | dict.fromkeys(DELIVERIES, "delivered")
        kinds["basic.return"] = "returned"
        self.counts["frames"] = sum(counted["frames"].values())
        for method, sizes in counted["sizes"].items():
            kind = kinds.get(method)
            if kind is None:
                continue
            number, octets, _ = sizes.facts()
            self.counts[kind] += counted["rates"][method].facts()[0]
            if kind != "returned":
                self.counts[f"{kind} bytes"] += octets
                self.events[f"{kind} bytes"] = self.events.get(f"{kind} bytes", 0) + number
        self.events["bytes"] = self.counts["frames"]
        for name, (number, spread) in outcomes.items():
            if name != "returned":
                self.counts[_OUTCOMES.get(name, name)] += number
            if spread is not None and spread.facts()[0]:
                self.latencies["outcome", name] = spread
        for name, spread in replies.items():
            self.latencies["reply", name] = spread

    def _closed(self, kind: str, row: Row) -> None:
        key: tuple[Any, ...] = (kind, row["closed_by"], row["close_code"])
        if self._count(self.closes, key) and row["close_text"]:
            self.close_texts.setdefault(key, row["close_text"])

    def _count(self, counts: Counter[tuple[Any, ...]], key: tuple[Any, ...]) -> bool:
        """Count one, among others of its sort where there are too many kinds."""
        if key not in counts and len(counts) >= MAX_KINDS:
            counts[key[:1] + (None,) * (len(key) - 1)] += 1
            return False
        counts[key] += 1
        return True


_OUTCOMES = {"acked": "acknowledged"}
"""Outcomes that a person calls by another name where they are counted."""
