"""What happens on a connection, as the reference is told it, and rows as it gives them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from amqpsniff.spec import METHODS, Method, methods_for

Row = dict[str, Any]
NOTHING: Mapping[str, Any] = MappingProxyType({})

LOSS, FIN, RST = "loss", "fin", "rst"
"""Events that are not methods."""

DEFINED: dict[str, Method] = {
    row.name: row
    for row in METHODS
    if "0-9-1" in row.dialects and methods_for("0-9-1", row.class_id, row.method_id)[0] is row
}
"""The methods of 0-9-1 as its usual broker reads them, by name."""

OTHER = {"client": "server", "server": "client"}


class Event(NamedTuple):
    """One method with its content, or a loss in the sender's direction, or its end of TCP.

    Strings of `arguments` are text, tables are dicts. `body` is null where there is no content.
    """

    packet: int
    ts_ns: int
    connection: str
    sender: str
    channel: int
    method: str
    arguments: Mapping[str, Any] = NOTHING
    body: bytes | None = None
    properties: Mapping[str, Any] = NOTHING


class Rows(NamedTuple):
    """Rows of the session columns, each with what it takes to find the row elsewhere.

    Frames are those of methods only. Rows are in the order of the events that began them.
    """

    frames: list[Row]
    messages: list[Row]
    channels: list[Row]
    connections: list[Row]
