"""What rules say of a script or of packets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from amqpsniff import Engine
from tests.session.script import Script, feed
from tests.tcp.wire import Packet

Row = dict[str, Any]


def told(text: str, *codes: str) -> list[Row]:
    """Findings of a script with these codes; packets have the script's numbers."""
    fed = feed(Script(text))
    rows: list[Row] = fed.engine.take("findings").to_pylist()
    for row in rows:
        for column in ("packet_number", "last_packet_number"):
            row[column] = fed.numbers.get(row[column])
    return [row for row in rows if row["code"] in codes]


def one(text: str, code: str) -> Row:
    """The only finding of a script with this code."""
    (row,) = told(text, code)
    return row


def told_of(packets: Iterable[Packet], *codes: str) -> list[Row]:
    """Findings of packets with these codes."""
    engine = Engine()
    for packet in packets:
        engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type)
    engine.finish()
    rows: list[Row] = engine.take("findings").to_pylist()
    return [row for row in rows if row["code"] in codes]


def several(text: str, count: int) -> str:
    """A script of some connections: `{n}` is the number of each."""
    return "\n".join(text.replace("{n}", str(number)) for number in range(count))
