"""A frame as one of the two sees it: the common form in which they are compared."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from amqpsniff.capture.tshark_frames import Dissected, TsharkField
from amqpsniff.spec import FRAME_OVERHEAD_BYTES, FRAME_TYPES

KINDS = {row.code: row.name for row in FRAME_TYPES}
KINDS_1_0 = {0: "performative", 1: "sasl"}
MIN_DATA_OFFSET = 2
"""Words of four bytes in the header of an AMQP 1.0 frame."""

DATA_OFFSET = "data-offset-"
"""Prefix of the kind of an AMQP 1.0 frame whose data would begin inside its header."""

PROTOCOL_HEADER = "protocol-header"
TRANSFER = "transfer"

_WORD = re.compile(r"\w[\w -]*: ([\w.-]+) \(\d+\)")


class Ours(NamedTuple):
    """A row of `frames`: `ends` are its connection's as `address:port`, `arguments` parsed JSON.

    `properties` holds those of the message whose content header this is, once its row is there;
    nothing for other frames. Objects are tuples of (name, value), for names may repeat.
    """

    packet_number: int
    connection_id: str
    ends: frozenset[str]
    kind: str
    channel: int
    size: int
    method: str | None
    arguments: Any
    properties: list[Any]


class Theirs(NamedTuple):
    """A frame of tshark. `ids` are the numbers of class and method, None if it shows none;
    `method` is made of its words for them, with a question mark for a missing one."""

    packet_number: int
    ends: frozenset[str]
    kind: str
    channel: int
    size: int
    ids: tuple[int | None, int | None]
    method: str | None
    arguments: list[TsharkField]
    properties: list[TsharkField]
    body_size: int | None
    malformed: bool


def theirs(dissected: Dissected) -> Theirs:
    """A frame of tshark in the form in which frames are compared."""
    top = dissected.fields
    location = (dissected.packet_number, dissected.ends)
    kind = top.below("amqp.type")
    if kind is None:
        return Theirs(
            *location, PROTOCOL_HEADER, 0, 8, (None, None), None, [], [], None, dissected.malformed
        )
    data_offset = top.below("amqp.doff")
    if data_offset is not None:
        return _frame_of_1_0(dissected, _number(kind), _number(data_offset))
    class_field, method_field = top.below("amqp.method.class"), top.below("amqp.method.method")
    arguments = top.below("amqp.method.arguments")
    properties = top.below("amqp.header.properties")
    code = _number(kind)
    return Theirs(
        *location,
        KINDS.get(code, f"type-{code}"),
        _number(top.below("amqp.channel")),
        _number(top.below("amqp.length")),
        (None if class_field is None else _number(class_field),
         None if method_field is None else _number(method_field)),
        f"{_word(class_field)}.{_word(method_field)}" if class_field is not None else None,
        arguments.fields if arguments is not None else [],
        properties.fields if properties is not None else [],
        _number(top.below("amqp.header.body-size")) if code == 2 else None,
        dissected.malformed,
    )  # fmt: skip


def _frame_of_1_0(dissected: Dissected, code: int, data_offset: int) -> Theirs:
    """A frame of AMQP 1.0: tshark gives the size of all of it, and where its data begin."""
    top = dissected.fields
    performative = top.below("amqp.performative") or top.below("amqp.sasl.method")
    size = _number(top.below("amqp.length")) - FRAME_OVERHEAD_BYTES
    if data_offset < MIN_DATA_OFFSET:
        kind = f"{DATA_OFFSET}{data_offset}"
    else:
        kind = "heartbeat" if size == 0 else KINDS_1_0.get(code, f"type-{code}")
    return Theirs(
        dissected.packet_number,
        dissected.ends,
        kind,
        _number(top.below("amqp.channel")),
        size,
        (None, None if performative is None else _number(performative)),
        None if performative is None else _word(performative).replace(".", "-"),
        [],
        [],
        None,
        dissected.malformed,
    )


def _number(field: TsharkField | None) -> int:
    """The number that a field shows; -1 without the field or a number in it."""
    try:
        return int(field.show, 0) if field is not None else -1
    except ValueError:
        return -1


def _word(field: TsharkField | None) -> str:
    """The word in `Method: Close-Ok (51)`; a question mark if tshark has no word."""
    match = _WORD.fullmatch(field.label) if field is not None else None
    return "?" if match is None or match[1].startswith("Unknown") else match[1].lower()
