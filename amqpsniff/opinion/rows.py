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

AT_ONCE = 2_048
"""Frames made into objects at once, 2 kB each with their arguments."""

_CONTENT = {method.name for method in METHODS if method.content}


def our_frames(capture: Capture) -> Iterator[list[Ours]]:
    """Our frames, some `AT_ONCE` of them at a time; properties are there once their message ended.

    Rows of messages come behind those of the frames with which they ended, so frames wait for them,
    as columns.
    """
    columns: dict[str, Collection[str]] = {"frames": FRAMES, "messages": MESSAGES}
    headers = _Headers()
    held = None
    for table, batch in capture.tables("frames", "messages", columns=columns):
        if table == "messages":
            for row in batch.select(list(MESSAGES)).to_pylist():
                headers.ended(row)
        if held is not None:
            yield from _frames(held, headers)
        held = batch if table == "frames" else None
    if held is not None:
        yield from _frames(held, headers)


def _frames(batch: Any, headers: _Headers) -> Iterator[list[Ours]]:
    chosen = batch.select(list(FRAMES))
    for begin in range(0, chosen.num_rows, AT_ONCE):
        rows = chosen.slice(begin, AT_ONCE).to_pylist()
        frames = [_frame(row) for row in rows]
        headers.saw(rows, frames)
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
    """Content headers and the rows of their messages, whichever comes first."""

    def __init__(self) -> None:
        self._opened: dict[Any, int] = {}
        self._waiting: dict[Any, deque[list[Any]]] = defaultdict(deque)
        self._ended: dict[Any, deque[Table]] = defaultdict(deque)

    def saw(self, rows: list[dict[str, Any]], frames: list[Ours]) -> None:
        for row, frame in zip(rows, frames, strict=True):
            place = (row["connection_id"], row["sender"], row["channel"])
            if row["method"] in _CONTENT:
                self._opened[place] = row["packet_number"]
            elif row["frame_type"] == "header" and place in self._opened:
                key = (*place, self._opened.pop(place))
                ended = _next(self._ended, key)
                if ended is None:
                    self._waiting[key].append(frame.properties)
                else:
                    frame.properties.append(ended)

    def ended(self, row: dict[str, Any]) -> None:
        if row["body_size"] is None:
            return  # it has no header
        key = (row["connection_id"], row["sender"], row["channel"], row["packet_number"])
        waiting = _next(self._waiting, key)
        if waiting is None:
            self._ended[key].append(_properties(row))
        else:
            waiting.append(_properties(row))


def _next(queues: dict[Any, deque[Any]], key: Any) -> Any:
    """The first of a queue, which goes away with the last one; null where there is none."""
    queue = queues.get(key)
    if queue is None:
        return None
    first = queue.popleft()
    if not queue:
        del queues[key]
    return first


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
