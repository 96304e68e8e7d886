# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Frames: what one frame means, as rows.

`FrameHandler` is given frames that are whole (or whose missing octets are known) by the framer, in
the order of their half-stream. It writes the frame's row, reads methods, hands content to the
assembler, and learns about the connection: which side is the client, the dialect, frame-max.

Who is the client: the side that sent the SYN, the side that sent a protocol header first, or the
side that a method may only come from; before there is proof, the side that is not on a well-known
AMQP port. The dialect comes from the protocol header, then from the server's `connection.start`,
else from the first method whose payload no other dialect could mean.
"""

import cython

from amqpsniff.decode import plan
from amqpsniff.decode.claims import END, Claim
from amqpsniff.decode.login import LONG_LOGIN_OCTETS, shortened
from amqpsniff.decode.oddities import oddity_codes
from amqpsniff.decode.rows import FIRST_ROWS, as_many

if cython.compiled:
    from cython.cimports.amqpsniff.decode.arguments import (  # type: ignore[import-not-found]
        ArgumentDecoder,
    )
    from cython.cimports.amqpsniff.decode.contents import (  # type: ignore[import-not-found]
        ContentAssembler,
    )
    from cython.cimports.amqpsniff.decode.facts import (  # type: ignore[import-not-found]
        MethodFacts,
    )
    from cython.cimports.amqpsniff.decode.method_memory import (  # type: ignore[import-not-found]
        MethodMemory,
        RememberedMethod,
    )
    from cython.cimports.amqpsniff.decode.rows import (  # type: ignore[import-not-found]
        FrameRows,
        MessageRows,
        Vocabularies,
    )
    from cython.cimports.amqpsniff.decode.state import (  # type: ignore[import-not-found]
        Connection,
    )
    from cython.cimports.amqpsniff.decode.values import (  # type: ignore[import-not-found]
        ValueReader,
    )
else:
    from amqpsniff.decode.arguments import ArgumentDecoder
    from amqpsniff.decode.contents import ContentAssembler
    from amqpsniff.decode.facts import MethodFacts
    from amqpsniff.decode.method_memory import MethodMemory, RememberedMethod
    from amqpsniff.decode.rows import FrameRows, MessageRows, Vocabularies
    from amqpsniff.decode.state import Connection
    from amqpsniff.decode.values import ValueReader

_METHOD = cython.declare(cython.int, 1)
_HEADER = cython.declare(cython.int, 2)
_BODY = cython.declare(cython.int, 3)
_HEARTBEAT = cython.declare(cython.int, 8)
PROTOCOL_HEADER = 256
"""The frame-type code of a protocol header, which has no type octet."""

AMQP_PORTS = frozenset((5671, 5672))

MAX_METHOD_NAMES = 4096
"""Names made for unknown class and method numbers; an attacker has 2^32 of them."""

_TUNE = cython.declare(cython.int, 30)
_OPEN_OK = cython.declare(cython.int, 41)
"""After connection.tune and .open-ok: the server has taken the credentials (a client may not
wait)."""

_EXACT = cython.declare(cython.int, 0)
_UNKNOWN = cython.declare(cython.int, 1)
_TOO_SHORT = cython.declare(cython.int, 2)


class FrameHandler:
    """Turns frames into rows.

    Args:
        reading: The reading of field-value tags.
        show_secrets: Write secrets as they are.
        new_hash: Makes a hash object for bodies, or None.
        keep_bodies: Whether bodies are kept.
        ports: Ports that servers listen on, beside the well-known ones.
        report: Called with (code, half, channel, packet number, ts_ns, detail) for a finding.
        wanted: What of the rows somebody looks at.
    """

    def __init__(self, reading, show_secrets, new_hash, keep_bodies, ports, report, wanted):
        words = Vocabularies()
        self.frames = FrameRows(words, FIRST_ROWS, wanted.frames)
        self.messages = MessageRows(words, FIRST_ROWS, wanted.messages, unmade=wanted.unmade)
        self.decoder = ArgumentDecoder(show_secrets, wanted.quiet)
        self.memory = MethodMemory()
        self.block = ValueReader(self.frames.arguments, reading)
        self.scratch = ValueReader(self.frames.arguments, reading)
        self.contents = ContentAssembler(
            self.frames, self.messages, reading, report, new_hash, keep_bodies
        )
        self.contents.unread = wanted.unread
        self.report = report
        self.ports = AMQP_PORTS | frozenset(ports or ())
        self.content = bytes(plan.content)
        self.senders = bytes(plan.senders)
        self.dialects = bytes(plan.dialects)
        self.known_methods = len(self.content)
        self.serial = 0
        self.connections = []
        self.peers = []
        self.captures = []
        self.method_names = {}
        self.claims = None

    def claim(self, half, kind, offset, channel, size, payload, method, exact):
        """Say what the octets at `offset` are, to who asked for claims; see `claims`."""
        serial = half.connection.conversation.serial
        self.claims.append(
            Claim(serial, half.direction, kind, offset, channel, size, payload, method, exact)
        )
        return 0

    def claim_body(self, half):
        """A body frame begins: its header is claimed, its payload is not."""
        if self.claims is not None:
            self.claim(
                half, _BODY, half.frame_offset, half.frame_channel, half.frame_size, b"", -1, True
            )
        return 0

    def claim_end(self, half, offset):
        """An end octet is right."""
        if self.claims is not None:
            self.claim(half, END, offset, 0, 0, b"", -1, True)
        return 0

    def use_capture(self, name):
        """Rows from now on are of this capture."""
        last: cython.Py_ssize_t = len(self.captures) - 1
        if last < 0 or self.captures[last] != name:
            self.captures.append(name)
        self.frames.capture_code = len(self.captures) - 1
        self.contents.writer.capture_code = len(self.captures) - 1
        self.contents.writer.captures = self.captures
        self.contents.writer.capture = self.captures[len(self.captures) - 1]

    def refresh(self, connection):
        """Make sure that the connection has a code in the rows being made."""
        if connection.row_serial != self.serial:
            self._register(connection)
        return 0

    def _register(self, connection):
        if connection.client_direction < 0:
            self._guess_role(connection)
        connection.row_code = len(self.connections)
        connection.row_serial = self.serial
        self.connections.append(connection.name())
        self.peers.append(connection)
        return 0

    def _guess_role(self, connection):
        """Take the side off a well-known port for the client, until there is proof."""
        a_known: cython.bint = connection.conversation.ports[0] in self.ports
        b_known: cython.bint = connection.conversation.ports[1] in self.ports
        if a_known != b_known:
            connection.client_direction = 1 if a_known else 0

    def set_client(self, connection, direction):
        """There is proof which direction the client sends."""
        if connection.role_proved:
            return 0
        connection.role_proved = True
        if connection.client_direction != direction:
            connection.client_direction = direction
            connection.row_serial = -1
        return 0

    def take(self):
        """Give away what was made: (frames, messages, connections, captures, method names)."""
        taken = (self.frames, self.messages, self.connections, self.captures)
        names = sorted(self.method_names, key=self.method_names.get)
        words = Vocabularies()
        frames, messages = self.frames, self.messages
        self.frames = FrameRows(
            words, as_many(frames.rows), frames.wanted, as_many(frames.arguments.used)
        )
        room = as_many(messages.rows), messages.wanted, as_many(messages.headers.used)
        self.messages = MessageRows(words, *room, messages.unmade)
        self.block.out = self.scratch.out = self.frames.arguments
        self.contents.frames = self.frames
        self.contents.writer.use(self.messages)
        self.connections = []
        self.peers = []
        self.captures = []
        self.method_names = {}
        self.serial += 1
        return (*taken, names)

    # frames

    def _begin(self, half, number, ts_ns, channel, frame_type, size):
        connection: Connection = half.connection
        if connection.row_serial != self.serial:
            self._register(connection)
        if self.frames.rows >= self.frames.capacity:
            self.frames.reserve()
        sender: cython.int = -1
        if connection.client_direction >= 0:
            sender = half.direction ^ connection.client_direction
        return self.frames.begin(
            connection.row_code, sender, number, ts_ns, half.frame_offset, channel, frame_type, size
        )

    def frame(self, half, reader, frame_type, channel, size, at, end, whole, number, ts_ns):
        """A frame of any type but body, with payload `at`..`end` of the reader's data.

        `whole` is false when the payload was captured only up to `end`.
        """
        if frame_type == _METHOD:
            return self._method(half, reader, channel, size, at, end, whole, number, ts_ns)
        if self.claims is not None:
            payload: bytes = reader.octets_at(at, end - at)
            self.claim(half, frame_type, half.frame_offset, channel, size, payload, -1, whole)
        self._begin(half, number, ts_ns, channel, frame_type, size)
        self.frames.rows += 1
        if frame_type == _HEADER:
            return self.contents.header(half, channel, reader, at, end, whole, number, ts_ns)
        if frame_type == _HEARTBEAT:
            if size or channel:
                detail = f"{size} octets on channel {channel}"
                self.report("heartbeat-malformed", half, channel, number, ts_ns, detail)
        elif 0 < frame_type < 11:
            detail = f"type {frame_type}"
            self.report("frame-type-unusual", half, channel, number, ts_ns, detail)
        else:
            detail = f"type {frame_type}"
            self.report("frame-type-unknown", half, channel, number, ts_ns, detail)
        return 0

    def body_end(self, half, number, ts_ns):
        """The body frame under way ended."""
        channel: cython.int = half.frame_channel
        self._begin(half, number, ts_ns, channel, _BODY, half.frame_size)
        self.frames.rows += 1
        return self.contents.body_end(half, channel, number, ts_ns)

    def protocol_header(self, half, number, ts_ns):
        """Eight octets `AMQP…` at the begin of a half-stream."""
        self._begin(half, number, ts_ns, 0, 256, 8)
        self.frames.channel.values[self.frames.rows] = 0
        self.frames.rows += 1
        return 0

    def _method(self, half, reader, channel, size, at, end, whole, number, ts_ns):
        connection: Connection = half.connection
        decoder: ArgumentDecoder = self.decoder
        if self.frames.rows >= self.frames.capacity:
            self.frames.reserve()
        payload: bytes = b""
        if self.claims is not None:
            payload = reader.octets_at(at, end - at)
        if end - at < 4:
            if self.claims is not None:
                self.claim(half, _METHOD, half.frame_offset, channel, size, payload, -1, False)
            self._begin(half, number, ts_ns, channel, _METHOD, size)
            if whole:
                detail = f"method frame of {size} octets"
                self.report("arguments-truncated", half, channel, number, ts_ns, detail)
            else:
                self.contents.unsure(half, channel)
            self.frames.rows += 1
            return 0
        reader.oddities = 0
        decoder.past_login = connection.past_login
        self.frames.arguments.begin(self.frames.rows)
        facts: MethodFacts = decoder
        known: RememberedMethod = None
        answer: cython.int = _EXACT
        if whole and connection.dialect:
            known = self.memory.recall(decoder, reader, connection.dialect, at, end)
        if known is None:
            mark: cython.longlong = reader.out.used
            answer = decoder.decode(reader, connection.dialect, at, end, size)
            if answer == _EXACT and reader.oddities == 0 and whole and connection.dialect:
                known = self.memory.learn(decoder, reader, connection.dialect, at, end, mark)
        if known is not None:
            facts = known
        if self.claims is not None:
            shown: cython.bint = known is not None or not decoder.secret_anywhere
            self.claim(
                half, _METHOD, half.frame_offset, channel, size, payload,
                facts.method if shown else -1, whole and answer == _EXACT,
            )  # fmt: skip
        if answer == _UNKNOWN:
            return self._unknown_method(half, reader, channel, size, at, number, ts_ns)
        method: cython.int = facts.method
        if not connection.role_proved and 0 < self.senders[method] < 3:
            self.prove_role(half, reader, at, end)
        self._begin(half, number, ts_ns, channel, _METHOD, size)
        if known is not None:
            self.memory.end_row(self.frames, known, reader, at, self.serial)
        else:
            self.frames.end_method(facts, reader, at)
        if answer != _EXACT:
            self._complain(half, answer, channel, whole, method, number, ts_ns)
        elif connection.dialect == 0:
            self._vote(connection, reader, at, end)
        if reader.oddities:
            for oddity in oddity_codes(reader.oddities):
                self.report(oddity, half, channel, number, ts_ns, f"arguments of {name_of(method)}")
        if self.content[method]:
            return self.contents.method(half, channel, facts, reader, at, end, number, ts_ns)
        self.contents.other_method(half, channel, number, ts_ns)
        if facts.class_id == 10:
            self._learn(half, facts, reader, at, end)
        return 0

    def prove_role(self, half, reader, at, end):
        """A method that only one side may send tells who is the client."""
        connection: Connection = half.connection
        sides: cython.int = self.weigh(plan.senders, reader, connection.dialect, at, end)
        if 0 < sides < 3:
            self.set_client(connection, half.direction ^ (sides - 1))
        return 0

    def _learn(self, half, facts, reader, at, end):
        """Take what connection.start, start-ok and tune-ok say about the connection."""
        connection: Connection = half.connection
        if facts.method_id == _TUNE or facts.method_id == _OPEN_OK:
            connection.past_login = True
        if facts.method_id == 11:
            connection.login = reader.octets_at(at, end - at)
            if end - at > LONG_LOGIN_OCTETS:
                connection.login = shortened(connection.login)
        elif facts.method_id == 31 and facts.frame_max >= 0:
            connection.frame_max = facts.frame_max
        elif facts.method_id == 10 and connection.dialect == 0:
            if facts.version_major == 8:
                connection.dialect = plan.DIALECT_CODES["0-8"]
            elif facts.version_major == 0 and facts.version_minor == 9:
                connection.dialect = plan.DIALECT_CODES["0-9-1"]
        return 0

    def _vote(self, connection, reader, at, end):
        """A payload that only one dialect could have sent tells the dialect."""
        mask: cython.int = self.dialects[self.decoder.method]
        if mask & (mask - 1) == 0:
            mask = self.weigh(plan.dialects, reader, 0, at, end)
            if mask & (mask - 1) == 0:
                connection.dialect = _bit(mask)
        return 0

    def weigh(self, facts, reader, dialect, at, end):
        """What the rows that a method's payload fits say together: a union of bits in `facts`.

        Of all rows with its numbers where it fits none; 0 when there is no row.
        """
        decoder: ArgumentDecoder = self.decoder
        choice: cython.int = decoder.find(dialect, reader.u16(at), reader.u16(at + 2))
        fitting: cython.int = 0
        every: cython.int = 0
        while choice >= 0 and plan.choices[choice] >= 0:
            every |= facts[plan.choices[choice]]
            if decoder.fits(reader, plan.choices[choice], at + 4, end):
                fitting |= facts[plan.choices[choice]]
            choice += 1
        return fitting or every

    def _complain(self, half, answer, channel, whole, method, number, ts_ns):
        """Report arguments that did not fit their payload."""
        if not whole:
            code = "arguments-cut"
        else:
            code = "arguments-truncated" if answer == _TOO_SHORT else "arguments-trailing"
        self.report(code, half, channel, number, ts_ns, name_of(method))

    def _unknown_method(self, half, reader, channel, size, at, number, ts_ns):
        """Write the row of a method that no dialect knows, named by its numbers."""
        decoder: ArgumentDecoder = self.decoder
        name = f"{decoder.class_id}.{decoder.method_id}"
        self._begin(half, number, ts_ns, channel, _METHOD, size)
        code: cython.int = -1
        if name in self.method_names or len(self.method_names) < MAX_METHOD_NAMES:
            code = self.method_names.setdefault(name, self.known_methods + len(self.method_names))
        decoder.method = code
        self.frames.end_method(decoder, reader, at)
        self.report("method-unknown", half, channel, number, ts_ns, f"class.method {name}")
        return self.contents.other_method(half, channel, number, ts_ns)


@cython.cfunc
def _bit(mask: cython.int) -> cython.int:
    """The number of the only bit that is set, from 1."""
    place: cython.int = 0
    while mask:
        mask >>= 1
        place += 1
    return place


def name_of(method):
    """Name of a method by its index."""
    return plan.METHODS[method].name
