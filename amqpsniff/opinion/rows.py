"""Our side: rows of `frames`, each content header with the properties of its message's row."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterator
from typing import Any

from amqpsniff.opinion.sighting import Ours
from amqpsniff.opinion.values import Table, parsed
from amqpsniff.reader import Capture
from amqpsniff.spec import METHODS

FRAMES = (
    "packet_number", "connection_id", "client", "server", "sender", "channel", "frame_type", "size",
    "method", "arguments",
)  # fmt: skip
PROPERTIES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id",
    "reply_to", "expiration", "message_id", "message_timestamp", "type", "user_id", "app_id",
    "cluster_id",
)  # fmt: skip
MESSAGES = ("packet_number", "connection_id", "sender", "channel", "body_size", *PROPERTIES)

_CONTENT = {method.name for method in METHODS if method.content}


def our_frames(capture: Capture) -> Iterator[list[Ours]]:
    """Batches of our frames, none of them empty; properties are there when their message ended."""
    columns: dict[str, Collection[str]] = {"frames": FRAMES, "messages": MESSAGES}
    headers = _Headers()
    for table, batch in capture.tables("frames", "messages", columns=columns):
        rows = batch.select(list(columns[table])).to_pylist()
        if table == "messages":
            for row in rows:
                headers.ended(row)
            continue
        frames = [_frame(row) for row in rows]
        headers.saw(rows, frames)
        if frames:
            yield frames


def _frame(row: dict[str, Any]) -> Ours:
    return Ours(
        row["packet_number"],
        row["connection_id"],
        frozenset((row["client"], row["server"])),
        row["frame_type"],
        row["channel"],
        row["size"],
        row["method"],
        parsed(row["arguments"]),
        [],
    )


class _Headers:
    """Content headers that wait for the row of their message."""

    def __init__(self) -> None:
        self._opened: dict[Any, int] = {}
        self._waiting: dict[Any, deque[list[Any]]] = defaultdict(deque)

    def saw(self, rows: list[dict[str, Any]], frames: list[Ours]) -> None:
        for row, frame in zip(rows, frames, strict=True):
            place = (row["connection_id"], row["sender"], row["channel"])
            if row["method"] in _CONTENT:
                self._opened[place] = row["packet_number"]
            elif row["frame_type"] == "header" and place in self._opened:
                key = (*place, self._opened.pop(place))
                self._waiting[key].append(frame.properties)

    def ended(self, row: dict[str, Any]) -> None:
        if row["body_size"] is None:
            return  # it has no header
        place = (row["connection_id"], row["sender"], row["channel"], row["packet_number"])
        waiting = self._waiting.get(place)
        if not waiting:
            return
        waiting.popleft().append(_properties(row))
        if not waiting:
            del self._waiting[place]


def _properties(row: dict[str, Any]) -> Table:
    found = []
    for name in PROPERTIES:
        value = row[name]
        if value is None:
            continue
        if name == "headers":
            value = parsed(value)
        elif name == "message_timestamp":
            name, value = "timestamp", value.isoformat()  # noqa: PLW2901
        found.append((name, value))
    return Table(found)
