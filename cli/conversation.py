"""Which connection is meant, and what is known of it before its frames are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from amqpsniff.errors import UsageError

from .options import Scope

if TYPE_CHECKING:
    from .reading import Reading

MOST_NAMED = 5
"""Connections named in an error."""

MOST_HELD = 10_000
"""Connections remembered so that an error can name them, and as many that match; some 25 MB."""


class Conversation(NamedTuple):
    """One connection: its row of `connections`, and its rows of `findings` in the order of time."""

    row: dict[str, Any]
    findings: list[dict[str, Any]]


class _Known:
    """Connections by id, `MOST_HELD` of them, and how many there are in all."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.number = 0

    def add(self, batch: Any) -> None:
        self.number += batch.num_rows
        some = batch.slice(0, MOST_HELD - len(self.rows)).to_pylist()
        self.rows.update((row["connection_id"], row) for row in some)

    def names(self) -> str:
        """The connections, each by as much of its id as tells it from the others."""
        ids = sorted(self.rows)
        length = 8 if len({one[:8] for one in ids}) == len(ids) else 16
        names = [
            f"{one[:length]} ({self.rows[one]['client'] or 'client not known'})"
            for one in ids[:MOST_NAMED]
        ]
        more = f" and {self.number - MOST_NAMED} more" if self.number > MOST_NAMED else ""
        return ", ".join(names) + more


def find(reading: Reading, scope: Scope) -> Conversation | None:
    """The connection that `scope` names, or the only one; null when there is no AMQP.

    Reads the captures. Raises UsageError when none or several are meant.
    """
    from .selection import Selection

    timed = Selection(Scope(from_=scope.from_, to=scope.to), "findings", reading.started)
    chosen = Selection(Scope(connection=scope.connection), "connections", reading.started)
    every, meant = _Known(), _Known()
    findings: list[dict[str, Any]] = []
    for table, batch in reading.rows("connections", "findings", progress=True):
        if table == "findings":
            findings += timed.of(batch).to_pylist()
        else:
            every.add(batch)
            meant.add(chosen.of(batch))
    if not every.number:
        return None
    row = _one(meant, every, scope.connection)
    return Conversation(row, [one for one in findings if _concerns(one, row, scope.channel)])


def _one(meant: _Known, every: _Known, wanted: str | None) -> dict[str, Any]:
    if len(meant.rows) == 1:
        return next(iter(meant.rows.values()))
    if not meant.number:
        raise UsageError(f"no connection `{wanted}`; there are {every.names()}")
    if wanted is None:
        raise UsageError(f"{meant.number} connections; give --connection: {meant.names()}")
    raise UsageError(f"{meant.number} connections are `{wanted}`; give more of it: {meant.names()}")


def _concerns(finding: dict[str, Any], row: dict[str, Any], channel: int | None) -> bool:
    if finding["connection_id"] != row["connection_id"]:
        return False
    return channel is None or finding["channel"] in (None, channel)
