"""Connections of a capture by their volume, and what is known of the largest.

What every frame adds is summed up by Arrow. The rows that open and close connections are kept as
they are; only those of the connections that are shown in the end are looked at.
"""

from __future__ import annotations

import json
from typing import Any

from .counting import codes, is_one_of
from .facts import FACTS, LESSONS

MOST_CONNECTIONS = 50_000
"""Connections and senders whose volume is kept; of more, the ones with the most."""

MOST_TELLING_OCTETS = 32 * 1024 * 1024
"""Octets of rows kept that open and close connections; of later ones nothing but volume is known.
A capture of nothing but logins has 400 octets of them a connection."""

FRAME_OVERHEAD_OCTETS = 8
_WHOSE = ("connection_id", "client", "server")
_SUMS = ("frames", "octets", "channels")


class Connections:
    """Sums up batches of the frames table."""

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._rows = 0
        self._telling: list[Any] = []
        self._telling_octets = 0

    def add(self, batch: Any) -> None:
        """Count a batch."""
        import pyarrow as pa

        part = _part(batch)
        self._parts.append(part)
        self._rows += part.num_rows
        if self._rows > 2 * MOST_CONNECTIONS:
            self._parts = [self._summed().slice(0, MOST_CONNECTIONS)]
            self._rows = self._parts[0].num_rows
        if self._telling_octets < MOST_TELLING_OCTETS:
            names = ("connection_id", "sender", "method", "arguments")
            rows = batch.select(names).filter(is_one_of(batch.column("method"), frozenset(LESSONS)))
            if rows.num_rows:
                kept = pa.table({name: _plain(rows.column(name)) for name in names})
                self._telling.append(kept)
                self._telling_octets += kept.nbytes

    def top(self, most: int) -> list[dict[str, Any]]:
        """The connections with the most octets, with all that is known of them."""
        found: dict[str, dict[str, Any]] = {}
        for row in self._summed().to_pylist() if self._parts else ():
            known = found.get(row["connection_id"])
            if known is None:
                known = found[row["connection_id"]] = dict.fromkeys(FACTS)
                known |= {name: row[name] for name in _WHOSE}
                known |= dict.fromkeys(("frames", "channels", "client_octets", "server_octets"), 0)
            for name in ("frames", "channels"):
                known[name] += row[name]
            known[f"{row['sender'] or 'client'}_octets"] += row["octets"]
        ranked = sorted(
            found.values(), key=lambda one: -one["client_octets"] - one["server_octets"]
        )
        shown = {one["connection_id"]: one for one in ranked[:most]}
        self._learn(shown)
        return list(shown.values())

    def _learn(self, shown: dict[str, dict[str, Any]]) -> None:
        """Learn about connections from the rows that open and close them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = pa.array(shown, pa.string())
        for part in self._telling:
            rows = part.filter(pc.is_in(part.column("connection_id"), value_set=wanted))
            for row in rows.to_pylist():
                arguments = json.loads(row["arguments"]) if row["arguments"] else {}
                LESSONS[row["method"]](shown[row["connection_id"]], arguments, row["sender"])

    def _summed(self) -> Any:
        """All that was added, one row for a connection and sender, the largest first."""
        import pyarrow as pa

        names = (*_WHOSE, "sender")
        table = pa.concat_tables(self._parts)
        summed = table.group_by(list(names), use_threads=False).aggregate(
            [(name, "sum") for name in _SUMS]
        )
        summed = summed.select([*names, *(f"{name}_sum" for name in _SUMS)])
        return summed.rename_columns([*names, *_SUMS]).sort_by([("octets", "descending")])


def _part(batch: Any) -> Any:
    """Frames, octets and opened channels of a batch by connection and sender."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from .counting import row_numbers

    bare = is_one_of(batch.column("frame_type"), frozenset(("protocol-header",)))
    opened = is_one_of(batch.column("method"), frozenset(("channel.open",)))
    columns = {
        "connection": codes(batch.column("connection_id")),
        "sender": codes(batch.column("sender")),
        "octets": pc.add(batch.column("size"), pc.if_else(bare, 0, FRAME_OVERHEAD_OCTETS)),
        "channels": pc.cast(opened, pa.int64()),
        "row": row_numbers(batch.num_rows),
    }
    summed = (
        pa.table(columns)
        .group_by(["connection", "sender"], use_threads=False)
        .aggregate([([], "count_all"), ("octets", "sum"), ("channels", "sum"), ("row", "min")])
    )
    first = summed.column("row_min").combine_chunks()
    whose = {name: _plain(batch.column(name).take(first)) for name in (*_WHOSE, "sender")}
    sums = (summed.column(name) for name in ("count_all", "octets_sum", "channels_sum"))
    return pa.table({**whose, **dict(zip(_SUMS, sums, strict=True))})


def _plain(column: Any) -> Any:
    """A column of strings, not encoded."""
    import pyarrow as pa

    return column.cast(pa.string())
