# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The decoder's state: one `Connection` per conversation, one `Half` per direction of it,
one `Content` per channel on which a message is under way.

A `Content` is in one of three states, as in RabbitMQ's command assembler: no content is open;
a method that carries content was seen and its header is awaited; the header was seen and `body_size
- body_seen` bytes of body are awaited. There are no other flags about where it is.
"""

from __future__ import annotations

from functools import lru_cache

import cython
from cython.cimports.amqpsniff.columns import Octets
from cython.cimports.amqpsniff.decode.codes import AWAIT_HEADER, AWAIT_METHOD, START
from cython.cimports.amqpsniff.null import NULL

from amqpsniff.decode import method_layout
from amqpsniff.decode.redaction import login_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.values import ValueReader

TENTATIVE_BYTES = 128 * 1024
"""Bytes behind a search for which framing is tentative: a body that holds frames looks like them,
and ends after as many at most, the usual frame-max. What is wrong with frames until then is not the
traffic's fault, and who the client is, as they tell, is not proved."""


MAX_KEPT_BYTES = 16_384
"""Buffers of a finished half-stream are used again up to this size."""

MAX_UNFINISHED_BYTES = 64 * 1024 * 1024
"""Bytes that all half-streams hold of frames and contents that are not whole, and of what may turn
out to be frames while framing is searched: each may be of 1 MiB, on each of 65,535 channels of each
connection. Beyond half of it, empty buffers are released at once."""

FIRST_STORE_BYTES = 256
"""Bytes that an empty store has room for."""

_MAX_UNFINISHED = cython.declare(cython.longlong, MAX_UNFINISHED_BYTES)
_MAX_KEPT = cython.declare(cython.longlong, MAX_KEPT_BYTES)
_FIRST_STORE = cython.declare(cython.longlong, FIRST_STORE_BYTES)


MAX_IDLE_BUFFERS = 1_024
"""Stores beyond which one with nothing in it is given back: each takes 800 bytes, and of tens of
thousands of connections that are open few have a frame or a content under way."""

_MAX_IDLE_BUFFERS = cython.declare(cython.longlong, MAX_IDLE_BUFFERS)


@cython.cclass
class MemoryBudget:
    """Bytes `held` of incomplete frames and contents, the number of their `stores`, and their
    bound; `refused` counts, by kind, those that were not kept because of it."""

    held: cython.longlong
    stores: cython.longlong

    refused: dict[Any, Any]

    def __init__(self) -> None:
        self.held = self.stores = 0
        self.refused = {}

    def allows(self, octets: cython.longlong) -> cython.bint:
        """True if this many bytes more may be held."""
        return self.held + octets <= _MAX_UNFINISHED

    @cython.exceptval(check=False)
    def has_plenty(self) -> cython.bint:
        """True if less than half is held: buffers may be large for the time that this saves."""
        return self.held <= _MAX_UNFINISHED >> 1

    @cython.ccall
    @cython.exceptval(-1)
    def refuse(self, kind: str) -> cython.int:
        """Count an item of this kind that is not kept."""
        self.refused[kind] = self.refused.get(kind, 0) + 1
        return 0


@cython.cclass
class StreamBuffer(Octets):
    """Bytes that count in a budget, except for the few that each buffer has room for."""

    budget: MemoryBudget

    def __init__(self, budget: Any) -> None:
        Octets.__init__(self)
        self.budget = budget
        self.budget.stores += 1

    def _grow(self, count: Any) -> Any:
        before: cython.longlong = self.size
        Octets._grow(self, count)
        self.budget.held += self.size - before
        return 0

    def fits(self, count: cython.longlong) -> cython.bint:
        """True if `count` bytes more may be kept."""
        return self.used + count <= self.size or self.budget.allows(2 * (self.used + count))

    def should_release(self) -> cython.bint:
        """True if a store is too large, or stores are too many, to be kept when it is empty."""
        if self.size > _MAX_KEPT or self.budget.stores > _MAX_IDLE_BUFFERS:
            return True
        return self.size > _FIRST_STORE and not self.budget.has_plenty()

    def __del__(self) -> None:
        self.budget.held -= self.size - _FIRST_STORE
        self.budget.stores -= 1


@lru_cache(256)
def _alike(text: str | None) -> str | None:
    """One object for texts that are equal: very many connections have one user and one server."""
    return text


NAMED = 4_096
"""Connections whose names are remembered, as many as a batch has: each is named ten times, by rows
and rules. None keeps its names, as very many may be open; its id, which the conversation keeps too,
tells which are its own."""

_LAST_NAMED = cython.declare(cython.int, NAMED - 1)
_NAMED: list[tuple[int, tuple[Any, ...]]] = cython.declare(list, [(-1, (None, None, None))] * NAMED)


@cython.cclass
class Connection:
    """The decoder's state of a conversation; `began`: its first bytes are in the capture.

    `login` has the parts of connection.start-ok for `login_name`, including the secret, until
    `user` is read: then it is the name, or False without one. `sent_secrets` are the secrets in its
    methods so far, or None. `requested_protocol` has the four bytes after `AMQP` in the client's
    protocol header; without one, those of an undecoded version that frames or the server's header
    show, else None. `capture` is its first capture, None for bytes without one; `ended_capture`
    that of the packet that ended TCP, `last_capture` that of the last, if there are several.
    `reads_bodies`: bits of `decode.meanings`, if packs know the client's framework, so that rules
    read the beginnings of bodies. `session` and `volume` belong to the tracker and the census, and
    so does `greeted_ns`: the time of the protocol header, 0 if unknown.
    """

    conversation: Any
    is_amqp: cython.bint
    is_amqp10: cython.bint
    is_amqp010: cython.bint
    reads_bodies: cython.int
    began: cython.bint
    role_proved: cython.bint
    past_login: cython.bint
    client_direction: cython.int
    dialect: cython.int
    row_serial: cython.int
    row_code: cython.int
    frame_max: cython.longlong
    greeted_ns: cython.longlong

    id: str
    session: Any
    volume: Any
    login: Any
    requested_protocol: Any
    capture: Any
    ended_capture: Any
    last_capture: Any
    sent_secrets: tuple[Any, ...]

    def __init__(self, conversation: Any) -> None:
        self.conversation = conversation
        self.id = None
        self.session = None
        self.volume = None
        self.login = None
        self.sent_secrets = None
        self.requested_protocol = None
        self.is_amqp = self.is_amqp10 = self.is_amqp010 = False
        self.reads_bodies = 0
        self.began = conversation.syn_seen
        self.client_direction = -1
        self.role_proved = False
        self.past_login = False
        self.dialect = 0
        self.frame_max = -1
        self.greeted_ns = 0
        self.capture = self.ended_capture = self.last_capture = None
        self.row_serial = -1
        self.row_code = -1

    @property
    def user(self) -> Any:
        """The user name of the login, or None."""
        if isinstance(self.login, bytes):
            name = login_name(self.login)
            self.login = False if name is None else _alike(name)
        return None if self.login is False else self.login

    @property
    def dialect_name(self) -> Any:
        """The dialect, None while unknown."""
        if self.is_amqp10 or self.is_amqp010:
            return "1.0" if self.is_amqp10 else "0-10"
        return method_layout.DIALECT_NAMES[self.dialect]

    @cython.ccall
    def name(self) -> tuple[Any, ...]:
        """(id, client, server); if the client is unknown, it is the side with the higher port."""
        conversation = self.conversation
        if self.id is None:
            self.id = conversation.connection_id
        cell: cython.int = self.row_code & _LAST_NAMED
        direction, names = _NAMED[cell]
        if names[0] is not self.id or direction != self.client_direction:
            client = 1 if self.client_direction == 1 else 0
            if self.client_direction < 0 and conversation.ports[0] < conversation.ports[1]:
                client = 1
            ends = (conversation.a, conversation.b)
            names = self.id, ends[client], _alike(ends[1 - client])
            _NAMED[cell] = self.client_direction, names
        return names


@cython.cclass
class Repeated:
    """A logged finding of a direction and channel: `count` repetitions are not in the log yet, the
    last in packet `last`. Objects with a count are in the list `unreported`."""

    connection: Connection
    code: str
    detail: str
    channel: cython.int
    count: cython.longlong
    last: cython.longlong
    unreported: list[Any]

    def __init__(self, half: Any, code: Any, detail: Any, unreported: Any) -> None:
        self.connection = half.connection
        self.code, self.detail, self.unreported = code, detail, unreported
        self.channel = half.frame_channel
        self.count = self.last = 0


_NO_CONTENTS: dict[int, Any] = cython.declare(dict, {})
"""Contents of a direction without a second one under way: shared, and never added to."""


@cython.cclass
class Half:
    """One direction of a connection: its framing state.

    `offset` is the stream offset of the next byte. An incomplete frame is kept in `store` (`stored`
    bytes so far, `expected` in all once its header is complete). A body frame is only counted:
    `remaining` bytes of it, with the end byte, are still to come. After a hole in a kept frame the
    rest of it is counted in the same way (`skipping`).

    `number` and `ts_ns` are those of the current packet, `frame_…` the place, type, channel and
    size of the current frame.

    `first_bytes` are those of a direction that is not AMQP, `first_…` their packet and time.
    `content` is the latest content, None before the first, `other_contents` are those of other
    channels. `search` is the search for the next boundary; after one, the stream offset up to which
    framing is tentative; else None. `amqp10`: state of its framer for AMQP 1.0, else None.
    `repeated`: repeated findings by code, None before the first.

    `lossy`: unidentified bytes were missing; `opened_since`: channels on which a content was opened
    after that, so that their state is certain again.
    """

    connection: Connection
    direction: cython.int
    mode: cython.int
    number: cython.longlong
    ts_ns: cython.longlong
    offset: cython.longlong
    lossy: cython.bint
    skipping: cython.bint
    budget: MemoryBudget
    store: StreamBuffer
    stored: cython.longlong
    expected: cython.longlong
    remaining: cython.longlong
    frame_offset: cython.longlong
    frame_size: cython.longlong
    frame_channel: cython.int
    frame_type: cython.int
    content: Content
    other_contents: dict[Any, Any]
    search: Any
    opened_since: Any
    amqp10: Any
    repeated: dict[Any, Any]
    first_bytes: bytes
    first_number: cython.longlong
    first_ns: cython.longlong

    def __init__(self, connection: Any, direction: Any, budget: Any) -> None:
        self.budget = budget
        self.store = None
        self.content = None
        self.other_contents = _NO_CONTENTS
        self.begin(connection, direction)

    def begin(self, connection: Connection, direction: cython.int) -> cython.int:
        """A direction of another connection begins; buffers are used again."""
        self.connection = connection
        self.direction = direction
        self.mode = START
        self.number = 0
        self.ts_ns = NULL
        self.offset = 0
        self.lossy = False
        self.opened_since = None
        self.first_bytes = b""
        self.first_number = 0
        self.first_ns = NULL
        self.forget_frame()
        if self.content is not None:
            self.content.forget()
        self.other_contents = _NO_CONTENTS
        self.search = self.amqp10 = None
        self.repeated = None
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def repeats(self, code: str) -> cython.bint:
        """Count a finding about the frame under way if its channel had it twice, else False."""
        if self.repeated is None:
            return False
        repeated: Repeated = self.repeated.get(code)
        if repeated is None or repeated.channel != self.frame_channel:
            return False
        if repeated.count == 0:
            repeated.unreported.append(repeated)
        repeated.count += 1
        repeated.last = self.number
        return True

    def contents(self) -> list[Any]:
        """The contents of all channels that had one, open or not."""
        return [] if self.content is None else [self.content, *self.other_contents.values()]

    def has_grown(self) -> cython.bint:
        """True if buffers are large enough to be released."""
        size: cython.longlong = 0 if self.store is None else self.store.size
        if self.content is not None:
            for buffer in (self.content.store, self.content.body):
                if buffer is not None:
                    size += buffer.size
        return size > _MAX_KEPT or not self.budget.has_plenty()

    def forget_frame(self) -> cython.int:
        """No frame is under way."""
        self.stored = 0
        self.expected = 0
        self.skipping = False
        self.remaining = 0
        self.frame_offset = 0
        self.frame_size = 0
        self.frame_channel = 0
        self.frame_type = 0
        return 0

    def keep(
        self, reader: ValueReader, start: cython.longlong, count: cython.longlong
    ) -> cython.longlong:
        """Append bytes of a reader to the frame under way; how many there was room for.

        If there was not room for all, the frame is cut: the rest is only counted.
        """
        if self.store is None:
            self.store = StreamBuffer(self.budget)
        self.store.used = self.stored
        if self.expected and not self.store.fits(count):
            self.budget.refuse("frames")
            count = min(count, self.store.size - self.stored)
            self.skipping = True
            self.remaining = self.expected - self.stored - count
        reader.copy_to(self.store, start, count)
        self.stored += count
        return count

    def empty(self) -> cython.int:
        """Forget the bytes of a frame that was kept."""
        if self.store is not None and self.store.should_release():
            self.store = None
        return 0


@cython.cclass
class Content:
    """A message under way on one channel of one half-stream.

    `lossy`: bytes of unknown meaning are missing from stream offset `lost_at` on, and nothing of
    it came since. `lost` counts such bytes after which more of it came; `sound` bytes of the body
    came before the first of them. `body_size` is null when the header declares more than a signed
    number holds. `body` has its bytes while one is `keeping` them; `body_mark` is their hash so
    far while one is `body_marking` them.
    """

    state: cython.int
    channel: cython.int
    method: cython.int
    class_id: cython.int
    store: StreamBuffer
    body: Octets
    hash: Any
    safe_text: Any
    capture: Any
    keeping: cython.bint
    body_marking: cython.bint
    lossy: cython.bint
    body_mark: cython.ulonglong
    number: cython.longlong
    ts_ns: cython.longlong
    last_number: cython.longlong
    delivery_tag: cython.longlong
    reply_code: cython.int
    flags: cython.int
    batch: cython.longlong
    ordinal: cython.longlong
    mark: cython.longlong
    exchange: cython.int
    routing_key: cython.int
    consumer_tag: cython.int
    header_start: cython.longlong
    header_end: cython.longlong
    located: cython.longlong
    body_size: cython.longlong
    body_seen: cython.longlong
    body_missing: cython.longlong
    exchange_start: cython.longlong
    exchange_length: cython.longlong
    key_start: cython.longlong
    key_length: cython.longlong
    tag_start: cython.longlong
    tag_length: cython.longlong
    text_start: cython.longlong
    text_length: cython.longlong
    lost_at: cython.longlong
    lost: cython.longlong
    sound: cython.longlong

    def __init__(self) -> None:
        self.store = self.body = None
        self.capture = None
        self.forget()

    def forget(self) -> cython.int:
        """Reset to the state without a message; the buffer is reused."""
        self.state = AWAIT_METHOD
        self.channel = -1
        self.method = -1
        self.hash = None
        self.keeping = self.body_marking = False
        self.safe_text = None
        self.lossy = False
        self.batch = -1
        self.lost_at = 0
        self.lost = 0
        self.sound = 0
        self.number = 0
        self.last_number = 0
        return 0

    def open(self, channel: cython.int, budget: MemoryBudget) -> cython.int:
        """Begin a content on a channel."""
        self.state = AWAIT_HEADER
        self.channel = channel
        self.lossy = False
        self.lost = 0
        if self.store is None:
            self.store = StreamBuffer(budget)
        self.store.used = 0
        self.header_start = -1
        self.header_end = -1
        self.located = -1
        self.body_size = NULL
        self.body_seen = 0
        self.body_missing = 0
        self.body_mark = 0
        self.hash = None
        self.keeping = self.body_marking = False
        return 0

    def close(self) -> cython.int:
        """The content is over, and its row is written."""
        if self.store.should_release():
            self.store = None
        return 0

    def begin_body(self) -> cython.int:
        """Keep the bytes of the body from now on."""
        if self.body is None:
            self.body = Octets(max(256, min(self.body_size, _MAX_KEPT)))
        self.body.used = 0
        self.keeping = True
        return 0

    def end_body(self) -> cython.int:
        """Drop the kept bytes of a body; only a small buffer is reused."""
        self.keeping = False
        if self.body.size > _MAX_KEPT:
            self.body = None
        return 0

    @cython.cfunc
    def place(self) -> tuple[Any, ...]:
        """Position of its method, for a finding: (channel, packet number, ts_ns)."""
        return self.channel, self.number, self.ts_ns

    def body_rest(self) -> cython.longlong:
        """Bytes of the body still to come; negative when more came than were declared."""
        if self.body_size == NULL:
            return 0x7FFFFFFFFFFFFFFF
        return self.body_size - self.body_seen
