"""TLS conversations for people: which there were, and whether they could be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.in_full import Raw
from amqpsniff.spec import SIDES
from amqpsniff.tls.conversation import NO_KEYS
from amqpsniff.units import UNKNOWN, count, lasted, octets, plural
from amqpsniff.wire_text import ends, harmless

from ..output import Output
from .clock import date_and_time
from .grid import ID, Grid, or_unknown, table
from .text import NONE, Paint, Words, folded
from .tree import tree

if TYPE_CHECKING:
    from amqpsniff.pipeline import Totals


NAMES_SHOWN = 2


def grid(rows: list[dict[str, Any]], *, narrow: bool) -> Grid:
    """TLS conversations, one a line: addresses, version, cipher, and why they could not be read.

    Values that were offered and not answered stand in parentheses.
    """

    def client(name: str | None) -> str:
        shown = or_unknown(name)
        return f":{shown.rpartition(':')[2]}" if narrow else shown

    return table(
        rows,
        ID,
        ("client", "client", client),
        ("server", "server", or_unknown),
        ("version", "", _version),
        ("??cipher", "cipher", lambda name: (name or UNKNOWN).removeprefix("TLS_")),
        ("*?name", "server_name", lambda name: harmless(name or NONE)),
        ("*????certificate", "certificate", _certificate),
        ("???alpn", "", _protocol),
        (">???lasted", "", lambda row: lasted(row["start_ns"], row["end_ns"])),
        (">????sent", "client_bytes", octets),
        (">????received", "server_bytes", octets),
        ("~~read", "", _read),
    )


def blocks(rows: Iterable[dict[str, Any]], paint: Paint) -> Iterator[str]:
    """Each conversation in full, one field a line."""
    for row in rows:
        yield f"{paint('connection', row['connection_id'])} {ends(row['client'], row['server'])}"
        yield from tree({name: value for name, value in _fields(row) if value}, paint, 1)


def _fields(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and values; unknown ones are empty."""
    chosen = row["version"] is not None
    yield "read", Raw(_read(row).plain)
    yield "server_name", row["server_name"]
    yield ("version", row["version"]) if chosen else ("version_offered", row["version_offered"])
    yield ("cipher", row["cipher"]) if chosen else ("ciphers_offered", _in_a_line(row, "ciphers"))
    yield "protocol", row["protocol"]
    yield "protocols_offered", "" if row["protocol"] else _in_a_line(row, "protocols")
    yield "resumed", row["resumed"]
    yield "certificate", _non_empty(row["certificate"])
    yield "client_certificate", _non_empty(row["client_certificate"])
    yield "alerts", [_alert(alert) for alert in row["alerts"]]
    for name in ("start", "end"):
        time_ns = row[f"{name}_ns"]
        yield name, None if time_ns is None else Raw(date_and_time(time_ns))
    yield "lasted", Raw(lasted(row["start_ns"], row["end_ns"]))
    yield "packets", Raw(f"{row['first_packet_number']} to {row['last_packet_number']}")
    for side in SIDES:
        packets = plural(row[f"{side}_packets"], "packet")
        yield f"{side}_sent", Raw(f"{count(row[f'{side}_bytes'])} B in {packets}")
    yield "ended", row["ended"]


def _in_a_line(row: dict[str, Any], name: str) -> Raw:
    return Raw(", ".join(map(harmless, row[f"{name}_offered"])))


def _non_empty(certificate: dict[str, Any] | None) -> dict[str, Any]:
    values = {name: value for name, value in (certificate or {}).items() if value}
    if "names" in values:
        values["names"] = Raw(", ".join(map(harmless, values["names"])))
    return values


def _alert(alert: dict[str, Any]) -> Raw:
    sender, number = alert["sender"], alert["packet_number"]
    return Raw(f"{alert['description']}, sent by the {sender} in packet {number}")


def _version(row: dict[str, Any]) -> str:
    offered = row["version_offered"]
    return row["version"] or (f"({offered})" if offered else UNKNOWN)


def _certificate(certificate: dict[str, Any] | None) -> str:
    return harmless(", ".join((certificate or {}).get("names", ())[:NAMES_SHOWN])) or NONE


def _protocol(row: dict[str, Any]) -> str:
    offered = ", ".join(row["protocols_offered"])
    return harmless(row["protocol"] or (f"({offered})" if offered else NONE))


def _read(row: dict[str, Any]) -> Words:
    """`yes`, or why it could not be read: an alert says more than missing keys."""
    if row["opened"]:
        return Words("yes")
    if row["alerts"]:
        first = row["alerts"][0]
        return Words(f"{first['sender']} sent {first['description']}", "error")
    return Words(harmless(row["why"] or "the server did not answer"), "warning")


HOW = (
    "keys come from --tls-keylog FILE (as programs write it for SSLKEYLOGFILE), a pcapng with "
    "secrets inside, or --tls-key FILE (the broker's RSA key)"
)


def unread(totals: Totals, encrypted: list[dict[str, Any]]) -> str:
    """A sentence about what could not be read; empty when all could."""
    if not totals.sealed:
        return ""
    reasons = {row["why"] or NO_KEYS for row in encrypted if not row["opened"]}
    reason = reasons.pop() if len(reasons) == 1 else NO_KEYS
    hint = HOW if reason == NO_KEYS else harmless(reason)
    return f"{plural(totals.sealed, 'TLS conversation')} could not be read; {hint}"


def show(
    encrypted: list[dict[str, Any]],
    totals: Totals,
    output: Output,
    limit: int | None = None,
    *,
    below: bool = False,
    verbose: bool = False,
) -> None:
    """Write the conversations that could not be read, with a heading; `below` something else."""
    sealed = [row for row in encrypted if not row["opened"]][:limit]
    if not sealed:
        return
    heading = folded(unread(totals, encrypted), output.room)
    lead = [""] if below else []
    output.lines([*lead, *(output.paint("heading", line) for line in heading)])
    laid_out = grid(sealed, narrow=output.narrow)
    if verbose:
        output.lines(blocks(sealed, output.paint))
    else:
        output.lines(laid_out.lines(output.room, output.paint))
