"""Topologies of two captures compared: parts that are new, gone, or declared otherwise.

A name is compared within its virtual host. Where a connection began before the capture its virtual
host and its client are not known; such a row is taken for the one of the other capture that is
otherwise the same, if there is just one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from amqpsniff.compare.names import lasting
from amqpsniff.compare.noise import direction, per_second
from amqpsniff.compare.profile import CaptureProfile, Row

MAX_KEYS = 100
"""Routing keys of a publisher that are compared: more of them are data, not topology."""


@dataclass(frozen=True)
class TopologySection:
    """A section of the topology, and how its rows are compared.

    Attributes:
        name: In the topology's report.
        one: What one of them is called.
        key: Columns that say which it is.
        made_up: Those of them that may hold names made up anew in every run.
        open: Those of them that are null where they are not known.
        facts: Columns that are compared where both captures know them.
        counted: The column that counts messages; empty for none.
    """

    name: str
    one: str
    key: tuple[str, ...]
    made_up: tuple[str, ...]
    open: tuple[str, ...]
    facts: tuple[str, ...]
    counted: str


SECTIONS = (
    TopologySection(
        "exchanges", "exchange", ("vhost", "exchange"), ("exchange",), ("vhost",),
        ("type", "durable", "auto_delete", "internal", "arguments"), "published",
    ),
    TopologySection(
        "queues", "queue", ("vhost", "queue"), ("queue",), ("vhost", "queue"),
        ("durable", "exclusive", "auto_delete", "arguments"), "delivered",
    ),
    TopologySection(
        "bindings", "binding",
        ("vhost", "exchange", "destination_type", "destination", "routing_key", "arguments"),
        ("exchange", "destination", "routing_key"), ("vhost", "destination"), ("removed",), "",
    ),
    TopologySection(
        "publishers", "publisher", ("vhost", "name", "exchange"), ("name", "exchange"),
        ("vhost", "name"), ("routing_keys",), "published",
    ),
    TopologySection(
        "consumers", "consumer", ("vhost", "name", "queue"), ("name", "queue"),
        ("vhost", "name", "queue"), ("prefetch_count", "no_ack"), "delivered",
    ),
)  # fmt: skip

Key = tuple[Any, ...]


def compared(before: CaptureProfile, after: CaptureProfile) -> dict[str, Any]:
    """The rows of each section of `SECTIONS`, what did not change left out, and `forgotten`.

    A row has the columns of its key, `change` (`new`, `gone`, `changed`, or `traffic` where only
    the number of messages did), `fields` (a mapping to [before, after]), `messages` (the same of
    messages, `per_second`, null where they are not counted) and `notable` (`new`, `gone`,
    `changed`, `more`, `fewer`).
    """
    found: dict[str, Any] = {section.name: _section(section, before, after) for section in SECTIONS}
    sides = (before.topology, after.topology)
    found["forgotten"] = any(bool(side.get("forgotten")) for side in sides)
    return found


def _section(section: TopologySection, before: CaptureProfile, after: CaptureProfile) -> list[Row]:
    sides: tuple[Mapping[str, Any], ...] = (before.topology, after.topology)
    old, new = (_by_key(section, side[section.name]) for side in sides)
    old, new = _known(section, old, new), _known(section, new, old)
    spans = (before.span_ns, after.span_ns)
    rows = []
    for key in dict.fromkeys((*new, *old)):
        row = _row(section, key, old.get(key), new.get(key), spans)
        if row is not None:
            rows.append(row)
    return sorted(rows, key=lambda row: (_CHANGES.index(row["change"]), row["change"]))


_CHANGES = ("new", "gone", "changed", "traffic")


def _by_key(section: TopologySection, rows: Iterable[Row]) -> dict[Key, Row]:
    """Rows by their key, those that differ in made-up names alone as one."""
    found: dict[Key, Row] = {}
    for row in rows:
        key = tuple(_part(section, row, name) for name in section.key)
        known = found.get(key)
        count = row[section.counted] if section.counted else 0
        if known is None:
            found[key] = {name: row[name] for name in section.facts} | {"count": count}
            continue
        known["count"] += count
        for name in section.facts:
            known[name] = _merged(known[name], row[name])
    return found


def _part(section: TopologySection, row: Row, name: str) -> Any:
    value = row[name]
    if isinstance(value, str) and name in section.made_up:
        return lasting(value)
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else value


def _merged(one: Any, other: Any) -> Any:
    """A fact of two rows that are taken for one: null where they differ, keys of both."""
    if isinstance(one, list) and isinstance(other, list):
        return one + other
    if one is None or other is None:
        return one if other is None else other
    return one if one == other else None


def _known(
    section: TopologySection, rows: dict[Key, Row], others: dict[Key, Row]
) -> dict[Key, Row]:
    """The rows with what is not known of their keys filled in from rows that are alike."""
    if not any(None in key for key in rows):
        return rows
    places = [section.key.index(name) for name in section.open]
    indexes: dict[tuple[int, ...], dict[Key, set[Key]]] = {}
    found: dict[Key, Row] = {}
    for key, row in rows.items():
        whole = key
        if None in key:
            unknown = tuple(at for at in places if key[at] is None)
            if unknown not in indexes:
                indexes[unknown] = _indexed((*rows, *others), unknown)
            alike = indexes[unknown][_without(key, unknown)]
            if len(alike) == 2:  # itself, and one more
                (whole,) = alike - {key}
        if whole in found:
            found[whole]["count"] += row["count"]
        else:
            found[whole] = dict(row)
    return found


def _indexed(keys: Iterable[Key], places: tuple[int, ...]) -> dict[Key, set[Key]]:
    """Keys by what they are without their fields at some places."""
    found: dict[Key, set[Key]] = {}
    for key in keys:
        found.setdefault(_without(key, places), set()).add(key)
    return found


def _without(key: Key, places: tuple[int, ...]) -> Key:
    return tuple(None if at in places else part for at, part in enumerate(key))


def _row(
    section: TopologySection,
    key: Key,
    old: Row | None,
    new: Row | None,
    spans: tuple[int | None, int | None],
) -> Row | None:
    """What became of one; None where nothing did."""
    before, after = (side["count"] if side is not None else 0 for side in (old, new))
    counts = (before, after)
    notable = direction(before, after, spans) if section.counted else None
    fields = {}
    if old is None or new is None:
        unknown = any(key[section.key.index(name)] is None for name in section.open)
        if unknown:
            return None  # it may well be one of those that are known on the other side
        change = "new" if old is None else "gone"
        side: Row = new if old is None else old  # type: ignore[assignment]
        fields = {
            name: [None, side[name]] if old is None else [side[name], None]
            for name in section.facts
            if side[name] is not None and name != "routing_keys"
        }
        notable = change
    else:
        fields = _changed(section, old, new)
        change = "changed" if fields else "traffic"
        if fields:
            notable = "changed"
    if change == "traffic" and notable is None:
        return None
    rates = tuple(per_second(*one) for one in zip(counts, spans, strict=True))
    named = {
        name: json.loads(part) if name == "arguments" else part
        for name, part in zip(section.key, key, strict=True)
    }
    return {
        "change": change,
        **named,
        "fields": fields,
        "messages": list(counts) if section.counted else None,
        "per_second": list(rates) if section.counted else None,
        "notable": notable,
    }


def _changed(section: TopologySection, old: Row, new: Row) -> dict[str, list[Any]]:
    """The facts that both captures know and that differ, as [before, after]."""
    found: dict[str, list[Any]] = {}
    for name in section.facts:
        one, other = old[name], new[name]
        if one is None or other is None:
            continue
        if name == "routing_keys":
            keys = [set(map(lasting, filter(None, side))) for side in (one, other)]
            if max(map(len, keys)) > MAX_KEYS:
                continue
            gone, came = sorted(keys[0] - keys[1]), sorted(keys[1] - keys[0])
            if gone or came:
                found[name] = [gone, came]
        elif one != other:
            found[name] = [one, other]
    return found
