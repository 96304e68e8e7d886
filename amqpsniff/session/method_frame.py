# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""One method frame: a `MethodFrame` for handlers, a `Request` while its reply is awaited."""

from __future__ import annotations

from functools import lru_cache

import cython
from cython.cimports.amqpsniff.decode.method_layout import CUT, FLAGS_CUT
from cython.cimports.amqpsniff.decode.rows import FrameRows

from amqpsniff.decode.json_objects import read_object
from amqpsniff.spec import METHODS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ALIKE = 256
"""Different handshakes, closes and addresses that are read once: most connections say what others
said, and arguments are no longer than a frame."""

MAX_READ_BYTES = 2_048
"""Length of arguments that are remembered when they were read: declarations and handshakes have
less, and what is made of a longer one may take megabytes."""

Reason = tuple[int | None, str | None, str | None]
"""Reply code and text of a close, and the method that it blames."""


_FIRST = tuple(method for method in METHODS if "0-9-1" in method.dialects)
_NAMES = {(one.class_id, one.method_id): one.name for one in reversed((*_FIRST, *METHODS))}
"""Methods by their numbers; where dialects differ, that of 0-9-1."""


_read = lru_cache(ALIKE)(read_object)


def read(octets: Any) -> Any:
    """Arguments of a method as a dict, of many that are alike read once; not to be changed."""
    known = octets is None or len(octets) <= MAX_READ_BYTES
    return _read(octets) if known else read_object(octets)


@lru_cache(ALIKE)
def read_reason(octets: Any) -> Any:
    """The code, text and blamed method of a close, from its arguments' JSON."""
    arguments = read_object(octets)
    code, text = arguments.get("reply_code"), arguments.get("reply_text")
    blamed = (arguments.get("class_id"), arguments.get("method_id"))
    return code, text if isinstance(text, str) else None, _NAMES.get(blamed)


@lru_cache(ALIKE)
def read_close(octets: Any) -> Any:
    """The same, and True if the blamed method was captured; None where there are no arguments."""
    return octets and (*read_reason(octets), "method_id" in read_object(octets))


@cython.cclass
class HandshakeArguments:
    """The arguments of a method of the handshake as JSON, which `uses` connections have; `whole` is
    whether all were captured.
    """

    whole: cython.bint
    uses: cython.longlong

    json: bytes

    def __init__(self, json: Any, whole: Any) -> None:
        self.json = json
        self.whole = whole
        self.uses = 0


@cython.freelist(64)
@cython.cclass
class Request:
    """A request that waits for its reply; `rows` and `row` are its frame's.

    `subject` is a value that the request's handler keeps for the handler of the reply. `sure`: it
    wants a reply, by its captured bits.
    """

    method: cython.int
    side: cython.int
    rows: FrameRows
    row: cython.longlong
    number: cython.longlong
    ts_ns: cython.longlong
    subject: Any
    sure: cython.bint

    if not cython.compiled:
        subject = None


@cython.cfunc
def request_of(rows: FrameRows, row: cython.longlong) -> Request:
    """The request that a frame is."""
    request: Request = Request.__new__(Request)
    request.method = rows.method.values[row]
    request.side = rows.sender.values[row]
    request.rows = rows
    request.row = row
    request.number = rows.packet_number.values[row]
    request.ts_ns = rows.ts_ns.values[row]
    request.sure = rows.flags.values[row] & FLAGS_CUT == 0
    return request


@cython.freelist(8)
@cython.cclass
class MethodFrame:
    """A method, for a handler; `side` is its sender, 0 for the client."""

    name: str
    method: cython.int
    side: cython.int
    flags: cython.int
    reply_code: cython.int
    rows: FrameRows
    row: cython.longlong
    number: cython.longlong
    ts_ns: cython.longlong

    @property
    def arguments_json(self) -> Any:
        """The arguments as JSON, or None."""
        return self.rows.arguments.bytes_of(self.row)

    @property
    def arguments(self) -> Any:
        """The arguments as a dict, not to be changed; empty when they were not captured."""
        return read(self.arguments_json)

    @property
    def whole(self) -> Any:
        """True if all arguments were captured: an absent one was not sent."""
        return self.flags & CUT == 0

    @property
    def queue(self) -> Any:
        """The argument of that name; None where the method has none or it was not captured."""
        return self.rows.vocabularies.queue.text(self.rows.queue.values[self.row])

    @property
    def consumer_tag(self) -> Any:
        """The argument of that name; None where the method has none or it was not captured."""
        return self.rows.vocabularies.consumer_tag.text(self.rows.consumer_tag.values[self.row])


@cython.cfunc
def frame_of(name: str, rows: FrameRows, row: cython.longlong) -> MethodFrame:
    """The frame of a method of this name, in a row."""
    frame: MethodFrame = MethodFrame.__new__(MethodFrame)
    frame.name = name
    frame.method = rows.method.values[row]
    frame.side = rows.sender.values[row]
    frame.rows = rows
    frame.row = row
    frame.number = rows.packet_number.values[row]
    frame.ts_ns = rows.ts_ns.values[row]
    frame.flags = rows.flags.values[row]
    frame.reply_code = rows.reply_code.values[row]
    return frame
