"""Which connection is meant, and what is known of it before its frames are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from amqpsniff.errors import UsageError

from .options import Scope

if TYPE_CHECKING:
    from .reading import Reading

MOST_NAMED = 5
"""Connections named in an error."""

MOST_HELD = 100_000
"""Connections among which one is looked for; more than a person can mean."""


class Conversation(NamedTuple):
    """One connection: its row of `connections`, and its rows of `findings` in the order of time."""

    row: dict[str, Any]
    findings: list[dict[str, Any]]


def find(reading: Reading, scope: Scope) -> Conversation | None:
    """The connection that `scope` names, or the only one; null when there is no AMQP.

    Reads the captures. Raises UsageError when none or several are meant.
    """
    from .selection import Selection

    timed = Selection(Scope(from_=scope.from_, to=scope.to), "findings", reading.started)
    chosen = Selection(Scope(connection=scope.connection), "connections", reading.started)
    meant: dict[str, dict[str, Any]] = {}
    others: dict[str, dict[str, Any]] = {}
    findings: list[dict[str, Any]] = []
    for table, batch in reading.rows("connections", "findings", progress=True):
        if table == "findings":
            findings += timed.of(batch).to_pylist()
            continue
        for rows, kept in ((batch, others), (chosen.of(batch), meant)):
            if len(kept) < MOST_HELD:
                kept.update((row["connection_id"], row) for row in rows.to_pylist())
    if not others:
        return None
    row = _one(meant, others, scope.connection)
    return Conversation(row, [one for one in findings if _concerns(one, row, scope.channel)])


def _one(
    meant: dict[str, dict[str, Any]], others: dict[str, dict[str, Any]], wanted: str | None
) -> dict[str, Any]:
    if len(meant) == 1:
        return next(iter(meant.values()))
    if not meant:
        raise UsageError(f"no connection `{wanted}`; there are {_named(others)}")
    if wanted is None:
        raise UsageError(f"{len(meant)} connections; give --connection: {_named(meant)}")
    raise UsageError(f"{len(meant)} connections are `{wanted}`; give more of it: {_named(meant)}")


def _named(rows: dict[str, dict[str, Any]]) -> str:
    """The connections, each by as much of its id as tells it from the others."""
    ids = sorted(rows)
    length = next(n for n in (8, 16) if n == 16 or len({one[:n] for one in ids}) == len(ids))
    names = [f"{one[:length]} ({rows[one]['client'] or 'client not known'})" for one in ids]
    more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _concerns(finding: dict[str, Any], row: dict[str, Any], channel: int | None) -> bool:
    if finding["connection_id"] != row["connection_id"]:
        return False
    return channel is None or finding["channel"] in (None, channel)
