"""The topology as rows, one an edge of the graph: the report `topology`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from amqpsniff.session.counts import MAX_NAMES, TopCounts, amounts

from .topology import Topology

if TYPE_CHECKING:
    import pyarrow as pa

ORDER = ("packet_number", "stream_offset")
"""Columns by which the rows of `reports/topology.sql` are sorted: frames in the order of capture,
then counts of messages, in which both are null."""

_TEXTS = ("vhost", "source_kind", "source", "target_kind", "target", "label")


def schema() -> Any:
    """The schema of the edges."""
    import pyarrow as pa

    return pa.schema(
        [
            *((name, pa.string()) for name in _TEXTS),
            ("removed", pa.bool_()),
            ("messages", pa.int64()),
            ("bytes", pa.int64()),
        ]
    )


def edges(batches: Iterable[Any]) -> pa.Table:
    """The edges of the graph that the rows of `reports/topology.sql` show, sorted by `ORDER`."""
    import pyarrow as pa

    topology = Topology()
    for batch in batches:
        topology.add_frames(batch)
        topology.add_counts(batch.filter(batch.column("messages").is_valid()))
    names = schema().names
    rows = [dict(zip(names, row, strict=True)) for row in _edges(topology)]
    return pa.Table.from_pylist(sorted(rows, key=_place), schema())


def _place(row: dict[str, Any]) -> Any:
    """The place of an edge: those with most messages first, bindings last."""
    names = [(row[name] is not None, row[name] or "") for name in _TEXTS]
    return row["messages"] is None, -(row["messages"] or 0), names


def _edges(topology: Topology) -> Iterator[tuple[Any, ...]]:
    published, by_key, received = TopCounts(), TopCounts(), TopCounts()
    for (client, exchange), counts in topology.published.counts.items():
        published.add((client.vhost, "client", client.host, "exchange", exchange), counts)
    for (client, exchange, key), counts in topology.keys.counts.items():
        if exchange == "":  # its routing keys are names of queues
            by_key.add((client.vhost, "exchange", "", "queue", key), counts)
    for (client, queue), counts in topology.received.counts.items():
        if queue is not None:
            received.add((client.vhost, "queue", queue, "client", client.host), counts)
    for tally in (published, by_key, received):
        for ends, counts in tally.counts.items():
            sent, sent_bytes, came, came_bytes = amounts(counts)
            yield *ends, None, None, *((came, came_bytes) if came else (sent, sent_bytes))
    seen = set()
    for one in topology.result(MAX_NAMES)["bindings"]:
        ends = one["vhost"], "exchange", one["exchange"], one["destination_type"]
        edge = *ends, one["destination"], one["routing_key"], one["removed"]
        if edge not in seen:  # bindings may differ by their arguments alone
            seen.add(edge)
            yield *edge, None, None
