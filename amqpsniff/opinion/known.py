"""Known disagreements: differences between tshark and us with a known reason.

A row has the differences that it explains, tshark's reading of the traffic, and the right one with
the reason; the first row that explains a difference names it. All were found with tshark 4.0.17 on
captures of the test-suite, which also fails if a row explains no difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from amqpsniff.capture.tshark_frames import TsharkField
from amqpsniff.opinion import difference as about
from amqpsniff.opinion.difference import FIELD_PREFIXES, FILTER, Difference
from amqpsniff.opinion.sighting import DATA_OFFSET, KINDS_1_0, PROTOCOL_HEADER, TRANSFER
from amqpsniff.opinion.traffic import Ends, Traffic
from amqpsniff.opinion.values import seconds_of

Explains = Callable[[Difference, Traffic], bool]

_IDS_OF_0_8_CLOSE = ((10, 60), (10, 61))
_CLOSING = ("connection.close", "connection.close-ok")
_WHOLE_FRAMES = (about.ONLY_OURS, about.ONLY_THEIRS, about.KIND)
_READ_HERE = re.compile(r": unknown type [0-9a-f]+ \([LU]\)$|^Type: Unknown \('[LU]'\)$")
_UNREAD = re.compile(r": unknown type [0-9a-f]+ \(|^Type: Unknown \('")
_OTHER_NAMES = {"arguments": FILTER}


class Known(NamedTuple):
    """A known disagreement.

    `traffic` describes the traffic, `tshark` tshark's reading, `here` this package's reading and
    its reason; `explains` returns True for a difference of this kind.
    """

    name: str
    traffic: str
    tshark: str
    here: str
    explains: Explains


def _ends(difference: Difference) -> Ends:
    frame = difference.our_frame or difference.their_frame
    return frame.ends if frame is not None else frozenset()


def _within(traffic_of: str, *whats: str) -> Explains:
    """Differences of these kinds in conversations that a field of `Traffic` names."""

    def explains(difference: Difference, traffic: Traffic) -> bool:
        return difference.what in whats and _ends(difference) in getattr(traffic, traffic_of)

    return explains


def _protocol_header(difference: Difference, _: Traffic) -> bool:
    return (
        difference.what == about.ONLY_OURS
        and difference.our_frame is not None
        and difference.our_frame.kind == PROTOCOL_HEADER
    )


def _close_of_0_8(difference: Difference, _: Traffic) -> bool:
    frame = difference.their_frame
    return difference.method in _CLOSING and frame is not None and frame.ids in _IDS_OF_0_8_CLOSE


def _open_ok_of_0_8(difference: Difference, _: Traffic) -> bool:
    frame = difference.our_frame
    return (
        difference.what == about.MALFORMED
        and difference.method == "channel.open-ok"
        and frame is not None
        and frame.size == 4
    )


def _consume_of_0_8(difference: Difference, _: Traffic) -> bool:
    frame = difference.our_frame
    return (
        difference.what == about.MALFORMED
        and difference.method == "basic.consume"
        and frame is not None
        and "arguments" not in dict(frame.arguments or ())
    )


def _method(*methods: str) -> Explains:
    """Everything about frames of these methods for which tshark has no name."""

    def explains(difference: Difference, _: Traffic) -> bool:
        frame = difference.their_frame
        if difference.method not in methods or frame is None or frame.method is None:
            return False
        return frame.method.endswith("?")

    return explains


def _confirm_in_0_8(difference: Difference, _: Traffic) -> bool:
    return difference.method in ("85.10", "85.11")


def _class_unknown(difference: Difference, _: Traffic) -> bool:
    frame = difference.their_frame
    return (
        difference.what == about.METHOD
        and frame is not None
        and frame.method == "?.?"
        and f"{frame.ids[0]}." == f"{difference.method}"[: len(f"{frame.ids[0]}.")]
    )


def _tags(pattern: re.Pattern[str]) -> Explains:
    """All differences of a table in which tshark met an unknown tag: it misreads the rest."""

    def explains(difference: Difference, _: Traffic) -> bool:
        prefix = FIELD_PREFIXES.get(difference.what)
        frame = difference.their_frame
        if prefix is None or frame is None or difference.name is None:
            return False
        table = re.split(r"[.\[]", difference.name, maxsplit=1)[0]
        return any(
            _shows(field.fields, pattern)
            for field in (*frame.arguments, *frame.properties)
            if field.name.removeprefix(prefix) in (table, _OTHER_NAMES.get(table))
        )

    return explains


_has_array = _tags(re.compile(r"^Type: array \('A'\)$"))


def _array_values(difference: Difference, traffic: Traffic) -> bool:
    """A value of an array that tshark shows."""
    is_inside = difference.theirs is None and str(difference.name).endswith("]")
    return is_inside and _has_array(difference, traffic)


def _shows(fields: list[TsharkField], pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(field.label) or _shows(field.fields, pattern) for field in fields)


def _negative_decimal(difference: Difference, _: Traffic) -> bool:
    if difference.what not in FIELD_PREFIXES or not isinstance(difference.ours, float):
        return False
    match = re.fullmatch(r"\(decimal\) (\d+\.\d+)", str(difference.theirs))
    if match is None or difference.ours >= 0:
        return False
    # a 32-bit number read without its sign is 2^32 more, divided by a power of ten
    deviation = float(match[1]) - difference.ours
    return any(abs(deviation * 10**scale - 2**32) < max(1, 10**scale) for scale in range(10))


def _bit_past_the_end(difference: Difference, _: Traffic) -> bool:
    return (
        difference.what == about.ARGUMENT
        and difference.ours is None
        and difference.theirs in ("0", "1", "False", "True")
        and difference.our_frame is not None
        and difference.their_frame is not None
        and len(difference.our_frame.arguments or ()) < len(difference.their_frame.arguments)
    )


def _message_sections(difference: Difference, traffic: Traffic) -> bool:
    if difference.what == about.MALFORMED:
        return difference.method == TRANSFER
    return difference.what == about.ONLY_OURS and _ends(difference) in traffic.malformed


def _long_descriptor(difference: Difference, _: Traffic) -> bool:
    frames = difference.our_frame, difference.their_frame
    return (
        difference.what == about.METHOD
        and frames[0] is not None
        and frames[0].kind in KINDS_1_0.values()
        and frames[1] is not None
        and frames[1].method == "?"
    )


def _data_offset(difference: Difference, traffic: Traffic) -> bool:
    frame = difference.their_frame
    return (
        frame is not None and frame.kind.startswith(DATA_OFFSET) and frame.ends in traffic.amqp_1_0
    )


def _type_of_1_0(difference: Difference, _: Traffic) -> bool:
    frame = difference.our_frame
    return (
        difference.what == about.KIND
        and frame is not None
        and frame.kind in KINDS_1_0.values()
        and f"{difference.theirs}".startswith("type-")
    )


def _not_amqp(difference: Difference, traffic: Traffic) -> bool:
    only_theirs = difference.what == about.ONLY_THEIRS
    return only_theirs and _ends(difference) in traffic.found["not-amqp"]


def _timestamp(difference: Difference, _: Traffic) -> bool:
    frame = difference.their_frame
    if difference.what != about.PROPERTY or difference.name != "timestamp" or frame is None:
        return False
    octets = next(
        (field.octets for field in frame.properties if field.name.endswith(".timestamp")), None
    )
    number = int.from_bytes(octets or b"", "big")
    if difference.ours is None:
        return number >= 1 << 63
    return seconds_of(difference.ours) == number // 1000


def _cut_header(difference: Difference, traffic: Traffic) -> bool:
    frame = difference.our_frame
    if difference.what == about.MALFORMED and frame is not None and frame.kind == "header":
        return frame.ends in traffic.found["properties-malformed"]
    if difference.ours is not None or difference.what not in FIELD_PREFIXES:
        return False
    if difference.theirs == "":
        return f"{difference.name}".endswith(".")
    is_cut = frame is not None and any(
        frame.ends in traffic.found[code]
        for code in ("properties-malformed", "field-table-malformed")
    )
    return is_cut and f"{difference.theirs}".endswith(")")  # a name and a type, and no value


KNOWN: tuple[Known, ...] = (
    Known(
        "websocket",
        "AMQP inside WebSocket",
        "shown as the payload of WebSocket",
        "decoded; the upgrade names the subprotocol `amqp`",
        _within("websockets", about.ONLY_OURS),
    ),
    Known(
        "protocol-header",
        "the protocol header of 0-8, 0-9 and 0-9-1",
        "shown as TCP payload",
        "a row of `frames`",
        _protocol_header,
    ),
    Known(
        "close-of-0-8",
        "0-8 `connection.close` and `.close-ok` (10/60, 10/61)",
        "shown as Connection.Blocked and .Unblocked, which RabbitMQ gave these numbers in 0-9-1",
        "decoded by the dialect of the connection",
        _close_of_0_8,
    ),
    Known(
        "open-ok-of-0-8",
        "0-8 `channel.open-ok`",
        "malformed: it expects the argument that 0-9 added",
        "decoded; in 0-8 it has none",
        _open_ok_of_0_8,
    ),
    Known(
        "consume-of-0-8",
        "0-8 `basic.consume`",
        "malformed: it expects the table that 0-9 added",
        "decoded; in 0-8 it has none",
        _consume_of_0_8,
    ),
    Known(
        "confirm-in-0-8",
        "class 85 in a connection of 0-8",
        "shown as Confirm.Select",
        "shown by its numbers: RabbitMQ has the class only in 0-9-1, and closes such a connection",
        _confirm_in_0_8,
    ),
    Known(
        "unbind-ok-51",
        "`exchange.unbind-ok` (40/51)",
        "Unknown (51): it knows 40/41",
        "`exchange.unbind-ok`, as RabbitMQ sends it",
        _method("exchange.unbind-ok"),
    ),
    Known(
        "update-secret",
        "`connection.update-secret` and `.update-secret-ok` (10/70, 10/71)",
        "unknown method",
        "decoded; the secret is redacted unless `--show-secrets` is given",
        _method("connection.update-secret", "connection.update-secret-ok"),
    ),
    Known(
        "credit",
        "`basic.credit` and its replies (60/200 to 60/202)",
        "unknown method",
        "decoded; RabbitMQ has them up to 3.13",
        _method("basic.credit", "basic.credit-ok", "basic.credit-drained"),
    ),
    Known(
        "class-unknown",
        "a method of an unknown class",
        "its method number is not shown",
        "shown by both numbers",
        _class_unknown,
    ),
    Known(
        "table-tags",
        "field-table tags `L` and `U`",
        "unknown type: that value and the rest of the table are lost or misread",
        "64-bit and 16-bit integers, as clients write them",
        _tags(_READ_HERE),
    ),
    Known(
        "tags-of-nobody",
        "field-table tags unknown to both, such as Qpid's `c`, `C` and `k`",
        "reads on after the tag, as if the value had no bytes",
        "the rest of the table as bytes, because the length of the value is unknown",
        _tags(_UNREAD),
    ),
    Known(
        "array-values",
        "arrays in field tables, by tshark 4.6",
        "shows that there is one, and nothing that is in it",
        "the values",
        _array_values,
    ),
    Known(
        "negative-decimal",
        "negative decimals (tag `D`)",
        "shown without their sign, 2^32 too large before the decimal point is set",
        "signed, as clients write them",
        _negative_decimal,
    ),
    Known(
        "bit-past-the-end",
        "a method whose arguments end before their last bits",
        "reads the missing bits from the frame's end byte",
        "the arguments that are there, and the finding `arguments-truncated`",
        _bit_past_the_end,
    ),
    Known(
        "message-sections",
        "AMQP 1.0 transfers with a part of a message or with an empty section",
        "reads each transfer as a whole message: calls it malformed, and may lose those after it",
        "decoded; a message is assembled from its transfers, and may have an empty section",
        _message_sections,
    ),
    Known(
        "long-descriptor",
        "AMQP 1.0 performatives whose descriptor is a symbol or a number of eight bytes",
        "Unknown",
        "decoded; the standard allows both",
        _long_descriptor,
    ),
    Known(
        "data-offset",
        "AMQP 1.0 frames whose data would begin inside their header",
        "reads a performative there",
        "the finding `frame-type-unknown`: the beginning of the data is unknown",
        _data_offset,
    ),
    Known(
        "type-of-1-0",
        "AMQP 1.0 frames of another type than AMQP and SASL",
        "only their type is shown",
        "read as a performative, with the finding `frame-type-unknown`",
        _type_of_1_0,
    ),
    Known(
        "timestamp",
        "the property `timestamp` in milliseconds, or of 2^63 and more",
        "a date in the far future, or none",
        "milliseconds are read as such, what is no date is null; a finding says so",
        _timestamp,
    ),
    Known(
        "cut-header",
        "a content header or field table that ends before its last value",
        "malformed, or a field that is cut off",
        "what comes before, and the finding `properties-malformed` or `field-table-malformed`",
        _cut_header,
    ),
    Known(
        "not-amqp",
        "a client that speaks another protocol to an AMQP server, such as TLS to port 5672",
        "its bytes are read as a frame",
        "the finding `not-amqp`",
        _not_amqp,
    ),
    Known(
        "other-protocol",
        "AMQP 0-10",
        "decoded",
        "frames with the names of controls and commands, and the finding `protocol-not-decoded`",
        _within("undecoded", about.ONLY_THEIRS, about.ONLY_OURS),
    ),
    Known(
        "other-numbers",
        "endpoints used again by a connection whose SYN was not captured, with lower sequence "
        "numbers; a SYN of other numbers, which TCP ignores",
        "takes what follows for retransmissions",
        "content and acknowledgements decide which numbers count",
        _within("renumbered", about.ONLY_OURS),
    ),
    Known(
        "joined-in-a-frame",
        "connections whose first captured bytes are inside a frame",
        "takes the bytes for the header of a frame, or for AMQP 1.0, and may show no frame at all",
        "begins at the first plausible chain of frames",
        _within("inside", *_WHOLE_FRAMES),
    ),
    Known(
        "snap-length",
        "connections with packets that a snap length cut",
        "gives up frames that were cut, and may lose its place after them",
        "goes on after the missing bytes, because the sizes of frames are known",
        _within("cut", *_WHOLE_FRAMES),
    ),
    Known(
        "lost-packets",
        "connections with packets that are not in the capture",
        "loses its place at a gap, and may find it again at a later packet",
        "goes on inside a body, else at the first plausible chain of frames",
        _within("lossy", *_WHOLE_FRAMES),
    ),
)
"""The rows, the more particular ones first."""


def explain(difference: Difference, traffic: Traffic) -> str | None:
    """The name of the known disagreement that explains a difference, or None."""
    return next(
        (disagreement.name for disagreement in KNOWN if disagreement.explains(difference, traffic)),
        None,
    )
