"""How rules put numbers, and what they read from a message's row, into words."""

from __future__ import annotations

import struct
from typing import Any

_UNITS = ((3_600_000_000_000, "h"), (60_000_000_000, "min"), (1_000_000_000, "s"))


def duration(ns: int) -> str:
    """A time with its unit, to two digits or more: `1.5 s`, `30 min`."""
    for octave, unit in _UNITS:
        if ns >= octave:
            return f"{ns / octave:.3g} {unit}"
    return f"{ns / 1_000_000:.3g} ms"


def number_of(count: int, one: str, many: str = "") -> str:
    """A count with its noun."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def code_at(column: Any, row: int) -> int:
    """A number of a row in a column of codes; -1 for null."""
    code: int = struct.unpack_from("=i", column.storage, 4 * row)[0]
    return code


def name_at(rows: Any, column: str, row: int) -> str | None:
    """An exchange, routing key or queue of a row; None for null."""
    code = code_at(getattr(rows, column), row)
    name: str | None = getattr(rows.vocabularies, column).text(code)
    return name


def route(exchange: str | None, routing_key: str | None) -> str:
    """Where a message was published to."""
    named = f"exchange '{exchange}'" if exchange else "the default exchange"
    return f"{named}, routing key '{routing_key or ''}'"


def packets_text(first: int, last: int) -> str:
    """One packet, or from one to another."""
    return f"packets {first} to {last}" if last > first else f"packet {first}"
