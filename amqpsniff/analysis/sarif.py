"""Findings as SARIF 2.1.0, which code hosts and viewers read.

One result for each row of the findings table, and a rule for each code among them. A capture is the
artifact, a connection and a channel are logical locations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from amqpsniff.analysis.finding_tree import Row
from amqpsniff.findings import KINDS
from amqpsniff.findings.catalogue import described
from amqpsniff.wire_text import ends

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
LEVELS = {"info": "note", "warning": "warning", "error": "error"}


def log(
    rows: Sequence[Row], captures: Sequence[str], *, version: str, successful: bool = True
) -> dict[str, Any]:
    """The log of one run, to be written as JSON.

    Args:
        rows: Rows of the findings table, as `amqpsniff.analysis.diagnosis.Diagnosis` has them.
        captures: Names of the captures.
        version: The version of the product that found them.
        successful: False if a capture could not be read.
    """
    codes = list(dict.fromkeys(row["code"] for row in rows))
    driver = {
        "name": "amqpsniff",
        "semanticVersion": version,
        "rules": [_rule(code) for code in codes],
    }
    places = [_place(row) for row in rows]
    results = [
        _result(row, codes, captures, place)
        for row, place in zip(rows, _unique(places), strict=True)
    ]
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": successful}],
        "artifacts": [{"location": {"uri": _uri(name)}} for name in captures],
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    kind = described(KINDS[code])
    advice = kind["advice"]
    if kind["false_alarms"]:
        advice += f" Possible false alarms: {kind['false_alarms']}"
    return {
        "id": code,
        "shortDescription": {"text": f"{kind['title']}."},
        "fullDescription": {"text": kind["evidence"]},
        "help": {"text": advice},
        "defaultConfiguration": {"level": LEVELS[kind["severity"]]},
        "properties": {"tags": [kind["subject"]], "confidence": kind["confidence"]},
    }


def _result(row: Row, codes: list[str], captures: Sequence[str], place: str) -> dict[str, Any]:
    text = f"{row['title']}: {row['detail']}" if row["detail"] else f"{row['title']}."
    return {
        "ruleId": row["code"],
        "ruleIndex": codes.index(row["code"]),
        "level": LEVELS[row["severity"]],
        "message": {"text": text},
        "locations": [_location(row, captures)],
        "occurrenceCount": row["count"],
        "partialFingerprints": {"place/v1": place},
        "properties": _properties(row),
    }


def _location(row: Row, captures: Sequence[str]) -> dict[str, Any]:
    location: dict[str, Any] = {}
    name = row["capture"]
    if name is not None:
        artifact: dict[str, Any] = {"uri": _uri(name)}
        if name in captures:
            artifact["index"] = captures.index(name)
        location["physicalLocation"] = {"artifactLocation": artifact}
    connection, channel = row["connection_id"], row["channel"]
    logical = []
    if connection is not None:
        addresses = ends(row["client"], row["server"])
        logical.append({"name": addresses, "fullyQualifiedName": connection, "kind": "connection"})
    if connection is not None and channel is not None:
        full_name = f"{connection}/{channel}"
        logical.append(
            {"name": f"channel {channel}", "fullyQualifiedName": full_name, "kind": "channel"}
        )
    if logical:
        location["logicalLocations"] = logical
    return location


def _place(row: Row) -> str:
    """A text that is the same when the capture is read again."""
    place = row["connection_id"] or Path(row["capture"] or "").name
    return "/".join(str(part) for part in (row["code"], place, row["channel"]) if part is not None)


def _unique(places: Iterable[str]) -> Iterator[str]:
    """Places, numbered from the second one on where several are the same."""
    seen: Counter[str] = Counter()
    for place in places:
        seen[place] += 1
        yield place if seen[place] == 1 else f"{place}#{seen[place]}"


def _properties(row: Row) -> dict[str, Any]:
    """Values that SARIF has no place for; unknown ones are left out."""
    values = {
        "packetNumber": row["packet_number"],
        "lastPacketNumber": row["last_packet_number"],
        "tsNs": row["ts_ns"],
        "client": row["client"],
        "server": row["server"],
        "connectionId": row["connection_id"],
        "channel": row["channel"],
        "causeCode": row["cause_code"],
        "causePacketNumber": row["cause_packet_number"],
    }
    return {name: value for name, value in values.items() if value is not None}


def _uri(name: str) -> str:
    """A path as a URI, relative as it was given."""
    path = quote(name.encode(errors="surrogateescape"))
    return f"file://{path}" if name.startswith("/") else path
