"""TLS conversations as a table."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from .grid import Grid
from .text import duration, harmless, octets

UNKNOWN = "?"
NONE = "-"

NAMES_SHOWN = 2


def grid(rows: list[dict[str, Any]]) -> Grid:
    """TLS conversations, one a line: who, which version and cipher, and why it does not open."""
    table = Grid(
        "id|client|server|version|??cipher|*?name|*????certificate|???alpn|>???lasted|>????sent|"
        ">????received|*read"
    )
    for one in rows:
        table.add(
            one["connection_id"][:8],
            harmless(one["client"] or UNKNOWN),
            harmless(one["server"] or UNKNOWN),
            one["version"] or UNKNOWN,
            (one["cipher"] or UNKNOWN).removeprefix("TLS_"),
            harmless(one["server_name"] or NONE),
            _certificate(one),
            harmless(_protocol(one)),
            _lasted(one),
            octets(one["client_octets"]),
            octets(one["server_octets"]),
            _read(one),
        )
    return table


def _certificate(one: dict[str, Any]) -> str:
    certificate = one["certificate"]
    if certificate is None or not certificate["names"]:
        return NONE
    return harmless(", ".join(certificate["names"][:NAMES_SHOWN]))


def _protocol(one: dict[str, Any]) -> str:
    offered = ", ".join(one["protocols_offered"])
    return one["protocol"] or (f"({offered})" if offered else NONE)


def _lasted(one: dict[str, Any]) -> str:
    if one["start_ns"] is None or one["end_ns"] is None:
        return UNKNOWN
    return duration(one["end_ns"] - one["start_ns"])


def _read(one: dict[str, Any]) -> Text:
    """Whether it could be read, and else why not: an alert says more than missing keys."""
    if one["opened"]:
        return Text("yes")
    if one["alerts"]:
        first = one["alerts"][0]
        return Text(f"no: {first['sender']} sent {first['description']}", "error")
    return Text(f"no: {harmless(one['why'] or 'the server did not answer')}", "warning")
