# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Stages that take a layer off: events of reassembly in, events without TLS or WebSocket out.

A conversation is TLS when a side's first bytes are a record and, where the other side was
captured, its first bytes are one too; until that is clear the events wait. A proxy's header may
stand before. It is WebSocket if a client requests that, with AMQP in it. All other conversations
pass as they are, and a batch without such a layer is returned untouched.
"""

from __future__ import annotations

from array import array
from importlib import import_module

import cython

from .records import is_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OPEN = cython.declare(cython.int, 0)
_DATA = cython.declare(cython.int, 1)
_GAP = cython.declare(cython.int, 2)
_CLOSE = cython.declare(cython.int, 3)

# States of a half-stream.
_NEW = cython.declare(cython.int, 0)
_PLAIN = cython.declare(cython.int, 1)
_TLS = cython.declare(cython.int, 2)

MAX_UNDECIDED = 64
"""Events that wait until it is clear whether a conversation is TLS; a ClientHello has three."""

MAX_HELD_BYTES = 1 << 26
"""Bytes of all conversations that are kept until keys or the rest of a record come."""


@cython.cclass
class Rows:
    """Events that are written, as the columns of a batch; `extra` holds bytes.

    One object serves all batches: conversations refer to it, and must not keep a batch's bytes.
    """

    first = cython.declare(cython.Py_ssize_t, visibility="public")
    extra = cython.declare(list, visibility="public")
    columns = cython.declare(tuple, visibility="public")

    def __init__(self) -> None:
        self.first = 0
        self.begin([])

    def begin(self, extra: Any) -> None:
        """Begin with another batch."""
        self.extra = extra
        self.columns = ([], [], [], [], [], [], [], [])

    @cython.ccall
    @cython.exceptval(-1, check=True)
    def add(self, event: tuple[Any, ...]) -> cython.int:
        """One event; the columns are those of `StreamBatch`."""
        i: cython.Py_ssize_t
        column: list[Any]
        for i in range(8):
            column = self.columns[i]
            column.append(event[i])
        return 0

    def put(self, direction: Any, octets: Any, offset: Any, number: Any, ts_ns: Any) -> None:
        """Bytes of a direction of the conversation whose first half-stream is `first`."""
        self.extra.append(octets)
        half = self.first + direction
        self.add((_DATA, half, len(self.extra) - 1, 0, len(octets), offset, number, ts_ns))

    def miss(self, direction: Any, missing: Any, offset: Any, number: Any, ts_ns: Any) -> None:
        """Bytes that the capture has not."""
        self.add((_GAP, self.first + direction, -1, 0, missing, offset, number, ts_ns))

    def arrays(self) -> Any:
        """The columns as arrays."""
        return tuple(
            array("i" if at < 3 else "q", column) for at, column in enumerate(self.columns)
        )


class TlsFlow:
    """A conversation that is TLS, or may be.

    `undecided` are its events until that is clear, `heard` the sides that sent something, `held`
    the number of its bytes that are kept.
    """

    def __init__(self, conversation: Any, tls: Any) -> None:
        self.conversation = conversation
        self.tls = tls
        self.undecided: list[Any] = []
        self.heard = [False, False]
        self.held = 0


@cython.cclass
class Stage:
    """Batches of events in, batches of events out: `feed` for each, `finish` for the last.

    `flows` are the conversations that have the layer, or may have it, by slot; `waiting` those
    that have to be looked at before the next batch.
    """

    states: Any
    flows: dict[Any, Any]
    rows: Rows
    waiting: dict[Any, Any]

    def __init__(self) -> None:
        self.states = array("b")
        self.flows = {}
        self.rows = Rows()
        self.waiting = {}

    def feed(self, batch: Any) -> Any:
        """The events of a `StreamBatch` with TLS taken off."""
        kinds: cython.const[cython.int][::1] = batch.kind
        halves: cython.const[cython.int][::1] = batch.half
        sources: cython.const[cython.int][::1] = batch.source
        starts: cython.const[cython.longlong][::1] = batch.start
        lengths: cython.const[cython.longlong][::1] = batch.length
        count: cython.Py_ssize_t = batch.count
        row: cython.Py_ssize_t
        half: cython.int
        block: bytes
        kind: cython.int
        states: cython.char[::1] = self.states
        if self.waiting:
            return self._rewritten(batch, 0)
        for row in range(count):
            half = halves[row]
            kind = kinds[row]
            if kind == _OPEN:
                if half >= len(states):
                    self._grow(half | 1)
                    states = self.states
                states[half | 1] = _NEW
                states[half & ~1] = _NEW
            elif states[half] != _PLAIN or (kind == _CLOSE and self.flows):
                if kind == _DATA and states[half] == _NEW:
                    block = batch.octets if sources[row] < 0 else batch.extra[sources[row]]
                    if self._plain(half, block, starts[row], lengths[row]):
                        states[half] = _PLAIN
                        continue
                if kind == _DATA or half >> 1 in self.flows:
                    return self._rewritten(batch, row)
        return batch

    finish = feed

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _grow(self, half: cython.Py_ssize_t) -> cython.int:
        """Have states for this half-stream."""
        states = array("b", self.states)
        states.frombytes(bytes(2 * half + 64 - len(states)))  # zero is new
        self.states = states
        return 0

    def _rewritten(self, batch: Any, row: Any) -> Any:
        """The events of a batch, those before `row` as they are."""
        rows = self.rows
        rows.begin(list(batch.extra))
        columns = (
            batch.kind,
            batch.half,
            batch.source,
            batch.start,
            batch.length,
            batch.stream_offset,
            batch.number,
            batch.ts_ns,
        )
        for column, values in zip(rows.columns, columns, strict=True):
            column.extend(values[:row])
        if self.waiting:
            self._look_again()
        late_by_row = {event[0]: event[1:] for event in batch.late}
        late = [event for event in batch.late if event[0] < row]
        for event in zip(*(values[row : batch.count] for values in columns), strict=True):
            first = len(rows.columns[0])
            self._event(batch, event)
            if row in late_by_row:
                late += [
                    (new_row, *late_by_row[row]) for new_row in range(first, len(rows.columns[0]))
                ]
            row += 1
        batch = batch.with_events(rows.arrays(), rows.extra)
        batch.late = late
        rows.begin([])
        return batch

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _plain(
        self, half: cython.int, block: bytes, start: cython.Py_ssize_t, length: cython.Py_ssize_t
    ) -> cython.bint:
        """True if a half-stream's first bytes show that it has not the layer."""
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _event(self, batch: Any, event: tuple[Any, ...]) -> cython.int:
        """One event."""
        return 0

    @cython.cfunc
    def _look_again(self) -> Any:
        """Go on with what waits."""

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _release(self, undecided: list[Any], first: cython.Py_ssize_t) -> cython.int:
        """A conversation has not the layer: give its events as they came."""
        self.flows.pop(first >> 1, None)
        self.states[first] = self.states[first | 1] = _PLAIN
        for event, octets in undecided:
            kind, half, _, _, length, offset, number, ts_ns = event
            self.rows.first = first
            if kind == _GAP:
                self.rows.miss(half - first, length, offset, number, ts_ns)
            else:
                self.rows.put(half - first, octets, offset, number, ts_ns)
        return 0


@cython.cclass
class TlsStage(Stage):
    """Takes TLS off.

    Args:
        secrets: What opens conversations.
        header_bytes: Length of the proxy header at the begin of bytes, 0 without one.
        claims: Collect claims of records for `take_claims`.
    """

    secrets: Any
    header_bytes: Any
    held: cython.longlong
    claims: Any
    ended: list[Any]
    parts: Any

    def __init__(self, secrets: Any, header_bytes: Any, claims: Any = False) -> None:
        Stage.__init__(self)
        self.secrets = secrets
        self.header_bytes = header_bytes
        self.parts = None
        self.held = 0
        self.claims = [] if claims else None
        self.ended = []

    def take_claims(self) -> Any:
        """Since the last call: claims of records, and the conversations that ended."""
        result = self.claims, self.ended
        self.claims, self.ended = [], []
        return result

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _plain(
        self, half: cython.int, block: bytes, start: cython.Py_ssize_t, length: cython.Py_ssize_t
    ) -> cython.bint:
        """True if a half-stream's first bytes are neither a record's nor a proxy's header."""
        if self.flows and half >> 1 in self.flows:
            return False
        first: cython.int = block[start]
        if 20 <= first <= 23:
            return not is_header(block[start : start + min(5, length)])
        return first not in b"\rP" or not self.header_bytes(block[start : start + length])

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _event(self, batch: Any, event: tuple[Any, ...]) -> cython.int:
        """One event."""
        kind: cython.int = event[0]
        half: cython.Py_ssize_t = event[1]
        slot = half >> 1
        states = self.states
        if kind == _OPEN:
            if half >= len(states):
                self._grow(half | 1)
                states = self.states
            states[half | 1] = states[half & ~1] = _NEW
            self.rows.add(event)
            return 0
        flow = self.flows.get(slot)
        if kind == _CLOSE:
            if flow is not None:
                self._end(flow, half & ~1)
                del self.flows[slot]
                self.waiting.pop(slot, None)
            self.rows.add(event)
            return 0
        if states[half] == _PLAIN:
            self.rows.add(event)
            return 0
        octets = None
        if kind == _DATA:
            start, length = event[3], event[4]
            block = batch.octets if event[2] < 0 else batch.extra[event[2]]
            octets = bytes(block[start : start + length])
            if states[half] == _NEW:
                event, octets = self._after_proxy(event, octets)
                if not octets:
                    return 0
                if not is_header(octets[:5]):
                    if flow is not None:
                        self._contradict(flow, half, event, octets)
                    else:
                        states[half] = _PLAIN
                        self.rows.add(event)
                    return 0
        elif flow is None:
            self.rows.add(event)
            return 0
        if flow is None:
            conversation = batch.conversations[slot]
            if self.parts is None:  # most captures have no TLS
                self.parts = import_module("amqpsniff.tls.conversation")
            tls = self.parts.TlsConversation(self.secrets, self.rows)
            flow = self.flows[slot] = TlsFlow(conversation, tls)
            if self.claims is not None:
                flow.tls.claims, flow.tls.serial = [], conversation.serial
        states[half] = _TLS
        self._pass(flow, event, octets)
        return 0

    def _after_proxy(self, event: Any, octets: Any) -> Any:
        """An event and its bytes without the proxy's header they begin with."""
        count = self.header_bytes(octets) if octets[:1] in b"\rP" else 0
        if not 0 < count <= len(octets):
            return event, octets
        kind, half, source, start, length, offset, number, ts_ns = event
        self.rows.add((kind, half, source, start, count, offset, number, ts_ns))
        shortened = (
            kind,
            half,
            source,
            start + count,
            length - count,
            offset + count,
            number,
            ts_ns,
        )
        return shortened, octets[count:]

    def _pass(self, flow: Any, event: Any, octets: Any) -> Any:
        """An event of a conversation that is TLS, or may be."""
        kind, half, _, _, length, offset, number, ts_ns = event
        tls = flow.tls
        direction = tls.directions[half & 1]
        first = half & ~1
        self.rows.first = first
        if not flow.heard[half & 1]:
            flow.heard[half & 1] = True
            direction.offset = direction.end = offset
        if flow.undecided is not None:
            flow.undecided.append((event, octets))
        if kind == _GAP:
            direction.gap(length, number, ts_ns)
        else:
            direction.data(octets, number, ts_ns)
        if tls.denied:
            return self._deny(flow, first)
        if flow.undecided is not None:
            self._decide(flow)
        self._account(flow, first >> 1)
        return self._claim(flow)

    def _claim(self, flow: Any) -> None:
        """Take the claims of a conversation that is TLS for sure."""
        claims = flow.tls.claims
        if claims and flow.undecided is None:
            self.claims.extend(claims)
            claims.clear()

    def _decide(self, flow: Any) -> None:
        """True if it is clear by now that a conversation is TLS."""
        tls = flow.tls
        both_sent = all(direction.records for direction in tls.directions)
        if both_sent or tls.state != self.parts.CLEAR or len(flow.undecided) > MAX_UNDECIDED:
            flow.undecided = None
            flow.conversation.tls = tls

    def _account(self, flow: Any, slot: Any) -> None:
        """Count the held bytes; check for new secrets from time to time if some are missing."""
        tls = flow.tls
        self.held += tls.held - flow.held
        flow.held = tls.held
        if self.held > MAX_HELD_BYTES:
            tls.give_up("too many conversations wait for keys")
            self.held -= flow.held
            flow.held = 0
        if tls.needs_keys:
            self.waiting[slot] = flow
        else:
            self.waiting.pop(slot, None)

    @cython.cfunc
    def _look_again(self) -> Any:
        """Open what waited for secrets that have come."""
        self.secrets.refresh()
        for slot, flow in list(self.waiting.items()):
            self.rows.first = 2 * slot
            flow.tls.look_again()
            if not flow.tls.needs_keys:
                del self.waiting[slot]

    def _contradict(self, flow: Any, half: Any, event: Any, octets: Any) -> None:
        """The other side of what looked like TLS begins with no record."""
        begins_here = flow.conversation.syn_seen or octets[:4] == b"AMQP"
        if flow.undecided is None or not begins_here:
            flow.conversation.tls = flow.tls  # its first bytes were not captured
            flow.undecided = None
            self.states[half] = _TLS
            flow.tls.directions[half & 1].silence()
            return
        flow.undecided.append((event, octets))
        self._deny(flow, half & ~1)

    def _deny(self, flow: Any, first: Any) -> None:
        """It is not TLS."""
        events, flow.undecided = flow.undecided or [], None
        flow.tls.claims = None
        self.held -= flow.held
        self.waiting.pop(first >> 1, None)
        self._release(events, first)

    def _end(self, flow: Any, first: Any) -> None:
        """A conversation is over."""
        self.secrets.refresh()
        self.rows.first = first
        flow.tls.look_again()
        flow.tls.finish()
        self.held -= flow.held
        flow.undecided = None
        flow.conversation.tls = flow.tls
        self._claim(flow)
        if self.claims is not None:
            self.ended.append(flow.conversation)


MAX_HELD_HEADS = 4096
"""Conversations whose server has not answered a request yet; further ones are ignored."""


@cython.cclass
class WebSocketStage(Stage):
    """Takes WebSocket off.

    `unwrapped` are the serial numbers of the conversations that had it, None unless `claims` says
    to remember them.
    """

    open: cython.int
    unwrapped = cython.declare(object, visibility="public")

    def __init__(self, claims: Any = False) -> None:
        Stage.__init__(self)
        self.open = 0
        self.unwrapped = set() if claims else None

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _plain(
        self, half: cython.int, block: bytes, start: cython.Py_ssize_t, length: cython.Py_ssize_t
    ) -> cython.bint:
        """True if a half-stream's first bytes are no request, and no request was made before."""
        if self.flows and half >> 1 in self.flows:
            return False
        if block[start] == 0x82:
            return False
        return block[start] != 71 or not _REQUEST.startswith(block[start : start + 4][:length])

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _event(self, batch: Any, event: tuple[Any, ...]) -> cython.int:
        """One event."""
        kind: cython.int = event[0]
        half: cython.Py_ssize_t = event[1]
        slot = half >> 1
        flow = self.flows.get(slot)
        states = self.states
        if kind == _OPEN:
            if half >= len(states):
                self._grow(half | 1)
                states = self.states
            states[half | 1] = states[half & ~1] = _NEW
        elif kind == _CLOSE and flow is not None:
            if flow.undecided is not None:
                self._let_go(flow, half & ~1)
            self.flows.pop(slot, None)
        elif states[half] != _PLAIN and (flow is not None or kind == _DATA):
            octets = None
            if kind == _DATA:
                block = batch.octets if event[2] < 0 else batch.extra[event[2]]
                octets = bytes(block[event[3] : event[3] + event[4]])
            if flow is not None or self._begins(batch, half, octets):
                return self._pass(self.flows[slot], batch, event, octets)
            states[half] = _PLAIN
        self.rows.add(event)
        return 0

    def _begins(self, batch: Any, half: Any, octets: Any) -> Any:
        """True if a possible request for WebSocket begins here, or WebSocket continues."""
        from .websocket import BINARY, WebSocketFlow, is_joined  # most captures have none

        if octets[:1] == BINARY and is_joined(octets):
            client = half & 1 if octets[1] & 0x80 else 1 - (half & 1)
            self.flows[half >> 1] = WebSocketFlow(self.rows, client, joined=True)
            self._remember(batch, half >> 1)
            self.states[half ^ 1] = _NEW  # it may have begun inside a frame
            return True
        if not _REQUEST.startswith(octets[:4]) or self.open >= MAX_HELD_HEADS:
            return False
        self.open += 1
        self.flows[half >> 1] = WebSocketFlow(self.rows, half & 1)
        return True

    def _remember(self, batch: Any, slot: Any) -> None:
        """A conversation is WebSocket."""
        if self.unwrapped is not None:
            self.unwrapped.add(batch.conversations[slot].serial)

    def _let_go(self, flow: Any, first: Any) -> None:
        """It is not WebSocket."""
        self.open -= 1
        events, flow.undecided = flow.undecided, None
        self._release(events, first)

    def _pass(self, flow: Any, batch: Any, event: Any, octets: Any) -> Any:
        """An event of a conversation that is WebSocket, or may be."""
        first = event[1] & ~1
        events = [(event, octets)]
        if flow.undecided is not None:
            answer = flow.decide(event, octets)
            if answer is None:
                return 0
            if not answer:
                self._let_go(flow, first)
                return 0
            self.open -= 1
            events, flow.undecided = flow.undecided, None
            self._remember(batch, first >> 1)
        self.rows.first = first
        for (kind, half, _, _, length, offset, number, ts_ns), held in events:
            way = flow.ways[half & 1]
            if way.offset < 0:
                way.offset = offset
            if kind == _GAP:
                way.gap(length, number, ts_ns)
            else:
                way.data(held, number, ts_ns)
        return 0


_REQUEST = b"GET "
