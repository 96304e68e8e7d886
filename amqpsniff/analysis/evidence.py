"""A diagnosis with its evidence, for programs: findings as a tree of causes, each with frames.

A further reading finds the frames: those in the packets that a finding and its cause name, and a
few methods of the same connection around them. All is bounded, so that a program (or a person, or a
language model) can read the whole document; omitted items are counted. Its form is
`evidence.schema.json`, next to this module: keys are added within a version, never changed.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.timeline import FOLDED
from amqpsniff.findings import KINDS
from amqpsniff.tables.values import values

if TYPE_CHECKING:
    from amqpsniff.analysis.diagnosis import Diagnosis
    from amqpsniff.analysis.finding_tree import Case, Row

VERSION = 1
"""Of the document's form."""

SCHEMA = Path(__file__).with_name("evidence.schema.json")
"""The form of the document, as JSON Schema (draft 2020-12)."""

MAX_CASES = 100
"""Cases of the whole tree."""
MAX_PLACES = 3
"""Places of a case: enough to see what they have in common."""
MAX_SHOWN = 8
"""Frames of a place in the packets that its finding names."""
BEFORE, AFTER = 3, 2
"""Methods of the same connection before and after these."""
MAX_CHARACTERS = 200
"""Characters of a text in arguments."""
MAX_ITEMS = 20
"""Entries of a table or an array in arguments."""

_PLACE = (
    "capture", "connection_id", "client", "server", "channel", "packet_number", "ts_ns", "count",
    "last_packet_number", "detail", "cause_code", "cause_packet_number",
)  # fmt: skip
COLUMNS = (
    "capture", "connection_id", "packet_number", "ts_ns", "sender", "channel", "frame_type", "size",
    "method", "arguments", "response_packet_number", "response_ns",
)  # fmt: skip
"""Columns of frames that are read."""


@dataclass
class _Place:
    """A place of a finding, and the frames that show it."""

    row: Row
    frames: list[Row] = field(default_factory=list)
    shown: int = 0
    after: int = 0
    last: int = -1

    def take(self, number: int, frame: Row, role: str) -> None:
        """Add a frame unless it is among them; `number` frames were read before it."""
        if number > self.last and self.concerns(frame):
            self.frames.append(_shown(frame, role))
            self.last = number

    def packets(self) -> Iterator[tuple[str, str, int]]:
        """The packets that the finding and its cause name."""
        row = self.row
        for name in ("packet_number", "last_packet_number", "cause_packet_number"):
            if row["connection_id"] is not None and row[name] is not None:
                yield row["capture"], row["connection_id"], row[name]

    def concerns(self, frame: Row) -> bool:
        """True if a frame is of the finding's channel, or of none."""
        return self.row["channel"] is None or frame["channel"] in (0, self.row["channel"])


class Evidence:
    """The document of a diagnosis: `add` batches of frames, then take the `document`."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        self._diagnosis = diagnosis
        self._cases: dict[int, list[_Place]] = {}
        self._by_packet: dict[tuple[str, str, int], list[_Place]] = defaultdict(list)
        self._waiting: dict[str, list[_Place]] = defaultdict(list)
        self._before: dict[str, deque[tuple[int, Row]]] = {}
        self._read = 0
        cases = [case for root in diagnosis.cases for case in root.walk()]
        self._left_out = max(len(cases) - MAX_CASES, 0)
        for case in cases[:MAX_CASES]:
            places = self._cases[id(case)] = [_Place(row) for row in case.places(MAX_PLACES)]
            for place in places:
                for packet in dict.fromkeys(place.packets()):
                    self._by_packet[packet].append(place)
                    self._before.setdefault(packet[1], deque(maxlen=BEFORE))

    def add(self, batch: Any) -> None:
        """Look through a batch of `frames`."""
        for row in zip(*(values(batch, name) for name in COLUMNS), strict=True):
            before = self._before.get(row[1])
            if before is not None:
                self._frame(dict(zip(COLUMNS, row, strict=True)), before)

    def _frame(self, frame: Row, before: deque[tuple[int, Row]]) -> None:
        self._read += 1
        connection = frame["connection_id"]
        folded = frame["frame_type"] in FOLDED
        packet = (frame["capture"], connection, frame["packet_number"])
        showing = [place for place in self._by_packet.get(packet, ()) if place.concerns(frame)]
        for place in showing:
            if place.shown < MAX_SHOWN:
                for earlier in before:
                    place.take(*earlier, "before")
                place.take(self._read, frame, "shown")
            place.shown += 1
            place.after = AFTER
            if place not in self._waiting[connection]:
                self._waiting[connection].append(place)
        if folded:
            return
        for place in list(self._waiting.get(connection, ())):
            if place not in showing and place.concerns(frame):
                place.take(self._read, frame, "after")
                place.after -= 1
                if not place.after:
                    self._waiting[connection].remove(place)
        before.append((self._read, frame))

    def document(self) -> dict[str, Any]:
        """The diagnosis and its evidence, for JSON."""
        diagnosis = self._diagnosis
        return {
            "version": VERSION,
            "verdict": diagnosis.verdict.plain(),
            "cases": [self._case(case) for case in diagnosis.cases if id(case) in self._cases],
            "cases_left_out": self._left_out,
            "finding_count": diagnosis.finding_count,
            "packets": diagnosis.packets,
            "connection_count": diagnosis.connections,
            "start_ns": diagnosis.start_ns,
            "quality": diagnosis.quality,
        }

    def _case(self, case: Case) -> dict[str, Any]:
        kind, places = KINDS[case.code], self._cases[id(case)]
        return {
            "code": case.code,
            "category": kind.category,
            **{name: case.first[name] for name in ("severity", "confidence", "title", "advice")},
            "count": case.count,
            "places": [self._place(place) for place in places],
            "places_left_out": len(case.findings) - len(places),
            "consequences": [
                self._case(consequence)
                for consequence in case.consequences
                if id(consequence) in self._cases
            ],
        }

    def _place(self, place: _Place) -> dict[str, Any]:
        client = self._diagnosis.clients.name(place.row["connection_id"]) or None
        return {
            **{name: place.row[name] for name in _PLACE},
            "client_name": client,
            "frames": place.frames,
            "frames_left_out": max(place.shown - MAX_SHOWN, 0),
        }


def _shown(frame: Row, role: str) -> Row:
    """A frame as it stands in the document."""
    shown = {name: frame[name] for name in COLUMNS if name not in ("capture", "connection_id")}
    arguments = frame["arguments"]
    shown["arguments"] = None if arguments is None else _bounded(json.loads(arguments))
    return {"role": role, **shown}


def _bounded(value: Any) -> Any:
    """A value of JSON with long texts cut, and few entries of tables and arrays."""
    if isinstance(value, str) and len(value) > MAX_CHARACTERS:
        return f"{value[:MAX_CHARACTERS]}… ({len(value)} characters)"
    if isinstance(value, dict):
        items = list(value.items())
        entries = {_bounded(name): _bounded(item) for name, item in items[:MAX_ITEMS]}
        return entries | ({"…": len(items) - MAX_ITEMS} if len(items) > MAX_ITEMS else {})
    if isinstance(value, list):
        rest = [f"… ({len(value)} items)"] if len(value) > MAX_ITEMS else []
        return [*map(_bounded, value[:MAX_ITEMS]), *rest]
    return value
