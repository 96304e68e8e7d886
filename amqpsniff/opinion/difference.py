"""Differences between the two readings of a frame that both have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from amqpsniff.capture.tshark_frames import TsharkField
from amqpsniff.opinion.sighting import KINDS_1_0, PROTOCOL_HEADER, Ours, Theirs
from amqpsniff.opinion.values import Table, compare, plain
from amqpsniff.spec import METHODS

ONLY_OURS, ONLY_THEIRS = "only-ours", "only-theirs"
KIND, CHANNEL, SIZE, METHOD = "kind", "channel", "size", "method"
ARGUMENT, PROPERTY, MALFORMED = "argument", "property", "malformed"
"""Subjects of differences; `malformed`: tshark calls a frame so, and amqpsniff reads it."""


class Difference(NamedTuple):
    """A disagreement: its subject, and both values.

    `name` is that of the argument or property, with the path into a table (`headers.retries[1]`);
    None for other kinds. `ours` and `theirs` are the two values, None if absent. `known` is the
    name of the known disagreement that explains it, or None.
    """

    packet_number: int
    channel: int
    method: str | None
    what: str
    name: str | None = None
    ours: Any = None
    theirs: Any = None
    our_frame: Ours | None = None
    their_frame: Theirs | None = None
    known: str | None = None

    def row(self) -> dict[str, Any]:
        """The difference as a row: plain values only."""
        ids = self.their_frame.ids if self.their_frame is not None else (None, None)
        return {
            "packet_number": self.packet_number,
            "connection_id": self.our_frame.connection_id if self.our_frame else None,
            "channel": self.channel,
            "method": self.method,
            "tshark_class_id": ids[0],
            "tshark_method_id": ids[1],
            "what": self.what,
            "name": self.name,
            "ours": self.ours,
            "tshark": self.theirs,
            "known": self.known,
        }


IDS: dict[str, set[tuple[int, int]]] = defaultdict(set)
"""Class and method numbers of each name: some names have other numbers in another dialect."""

SHAPES: dict[str, list[list[str]]] = defaultdict(list)
"""Names of the arguments of each method: several lists where dialects differ."""

for _method in METHODS:
    IDS[_method.name].add((_method.class_id, _method.method_id))
    SHAPES[_method.name].append([argument.name for argument in _method.arguments])

RENAMED = {"nowait": "no_wait"}
"""Arguments that tshark spells another way."""

FILTER = "filter"
"""The name of the table of `basic.consume` in tshark, which is that of 0-9."""

FIELD_PREFIXES = {
    ARGUMENT: "amqp.method.arguments.",
    PROPERTY: "amqp.method.properties.",
}
"""Prefixes of the names of tshark's fields, by the kind of a difference."""

_NOT_ARGUMENTS = ("publish_number",)
"""Fields among the arguments that tshark counted itself."""


_WITH_METHOD = ("method", *KINDS_1_0.values())


def only_ours(frame: Ours) -> Difference:
    """A frame that tshark does not show."""
    label = frame.method or frame.kind
    location = frame.packet_number, frame.channel, frame.method
    return Difference(*location, ONLY_OURS, ours=label, our_frame=frame)


def only_theirs(frame: Theirs) -> Difference:
    """A frame that we do not see."""
    label = frame.method or frame.kind
    location = frame.packet_number, frame.channel, frame.method
    return Difference(*location, ONLY_THEIRS, theirs=label, their_frame=frame)


def differences(ours: Ours, theirs: Theirs) -> Iterator[Difference]:
    """All in which two sightings of a frame differ."""

    def differ(
        what: str, our_value: object, their_value: object, name: str | None = None
    ) -> Difference:
        location = (ours.packet_number, ours.channel, ours.method)
        return Difference(*location, what, name, our_value, their_value, ours, theirs)

    if ours.kind != theirs.kind:
        yield differ(KIND, ours.kind, theirs.kind)
        return
    if ours.channel != theirs.channel and ours.kind != PROTOCOL_HEADER:
        yield differ(CHANNEL, ours.channel, theirs.channel)
    if ours.size != theirs.size:
        yield differ(SIZE, ours.size, theirs.size)
    if theirs.malformed and not _is_cut(ours):
        yield differ(MALFORMED, ours.method or ours.kind, "malformed")
    if ours.kind in _WITH_METHOD and not _same_method(ours, theirs):
        yield differ(METHOD, ours.method, theirs.method)
    if isinstance(ours.arguments, Table) and (ours.method in IDS or theirs.arguments):
        for pair in _unequal(ours.arguments, theirs.arguments):
            yield differ(ARGUMENT, pair[1], pair[2], pair[0])
    for properties in ours.properties:
        for pair in _unequal(properties, theirs.properties):
            yield differ(PROPERTY, pair[1], pair[2], pair[0])


def _is_cut(frame: Ours) -> bool:
    """True if we too miss arguments of a method or performative."""
    if frame.method is None or frame.arguments is None:
        return frame.kind in _WITH_METHOD
    return frame.method in IDS and [name for name, _ in frame.arguments] not in SHAPES[frame.method]


def _same_method(ours: Ours, theirs: Theirs) -> bool:
    """True if both give it the same numbers and, where they know one, the same name."""
    if ours.method is None or theirs.method is None:
        return ours.method is None and theirs.method in (None, "?")
    ids = IDS.get(ours.method)
    if ids is None and ours.kind != "method":
        return theirs.method == ours.method
    if ids is None:
        return ours.method == f"{theirs.ids[0]}.{theirs.ids[1]}" and theirs.method.endswith("?")
    return theirs.ids in ids and theirs.method == ours.method


def _unequal(ours: Table, fields: list[TsharkField]) -> Iterator[tuple[str, object, object]]:
    """(name, ours, theirs) of the arguments or properties that differ."""
    our_fields = dict(ours)
    their_fields = {}
    for field in fields:
        prefix = next(
            (start for start in FIELD_PREFIXES.values() if field.name.startswith(start)), None
        )
        name = field.name[len(prefix) :] if prefix else ""
        if name and name not in _NOT_ARGUMENTS:
            their_fields[_ours(name, our_fields)] = field
    for name, value in our_fields.items():
        field_of = their_fields.pop(name, None)
        if field_of is None:
            yield name, plain(value), None
            continue
        for pair in compare(name, value, field_of):
            yield pair.name, pair.ours, pair.theirs
    for name, field in their_fields.items():
        yield name, None, field.show or field.label


def _ours(name: str, our_fields: dict[str, object]) -> str:
    """Our name of an argument of tshark's."""
    if name == FILTER and FILTER not in our_fields:
        return "arguments"
    return RENAMED.get(name, name)
