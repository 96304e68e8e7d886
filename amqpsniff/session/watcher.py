# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""What rules want to know, told while rows are followed: only where somebody asked for findings.

`Watcher` is the part of the tracker that counts for the rules and asks them on their occasions.
With `sightings`, what takes the messages of all connections is written down there and not judged.
"""

from array import array

import cython

from amqpsniff.columns import NULL
from amqpsniff.decode import rows
from amqpsniff.session import kinds
from amqpsniff.session.rules.foreseeing import LOOK_BITS, look
from amqpsniff.session.rules.scene import LARGE_OCTETS, PAUSED_NS, STALLED_NS, Scene

if cython.compiled:
    from cython.cimports.amqpsniff.decode.rows import FrameRows  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.decode.state import Connection  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.headers import (  # type: ignore[import-not-found]
        occasions_of,
    )
    from cython.cimports.amqpsniff.session.repeats import (  # type: ignore[import-not-found]
        Repeats,
    )
    from cython.cimports.amqpsniff.session.sent import Sent  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.sightings import (  # type: ignore[import-not-found]
        Sightings,
    )
    from cython.cimports.amqpsniff.session.state import (  # type: ignore[import-not-found]
        Lane,
        Session,
    )
    from cython.cimports.amqpsniff.session.witness import Witness  # type: ignore
else:
    from amqpsniff.decode.rows import FrameRows
    from amqpsniff.decode.state import Connection
    from amqpsniff.session.headers import occasions_of
    from amqpsniff.session.repeats import Repeats
    from amqpsniff.session.sent import Sent
    from amqpsniff.session.sightings import Sightings
    from amqpsniff.session.state import Lane, Session
    from amqpsniff.session.witness import Witness  # noqa: F401 (a type of arguments)

_NULL = cython.declare(cython.longlong, NULL)
_METHOD_FRAME = cython.declare(cython.int, 1)
_PUBLISH = cython.declare(cython.int, kinds.PUBLISH)
_INCOMPLETE = cython.declare(cython.int, rows.INCOMPLETE)
_TRUNCATED = cython.declare(cython.int, rows.TRUNCATED)
_PAUSED = cython.declare(cython.longlong, PAUSED_NS[0])
_PAUSED_MOST = cython.declare(cython.longlong, PAUSED_NS[1])
_LOOK_BITS = cython.declare(cython.int, LOOK_BITS)

MOST_EXCHANGES = 4_096
"""Exchanges whose messages are counted; a client may make up names."""


def _ask(rules, scene, memory):
    """Ask rules about one scene, which they share; `memory` is what was noted of its connection."""
    for noted, rule in rules:
        if noted is None or noted in memory:
            rule(scene)


class Watcher:
    """Asks the rules.

    Args:
        log: Collects what they find; None asks none.
    """

    def __init__(self, log):
        self.log = log
        self.judges = log is not None
        self.rules = {}
        self.memory = {}
        self.names = kinds.NAMES
        self.kinds = kinds.KINDS
        self.large = LARGE_OCTETS
        self.repeats = Repeats() if self.judges else None
        if self.judges:
            from amqpsniff.session.rules.asking import RULES

            self.rules = RULES
        self.stalled = STALLED_NS
        self.sightings = None
        self.journeys = None
        self.moments = None
        self.meeting = False
        self.frames = None
        self.captures = []
        self.now_row = -1
        self.words = None
        self.exchanges = {}
        self.tallies = array("q")

    def hear(self, frames, row, peers):
        """A frame of any type: its side is not silent."""
        peer: Connection = peers[frames.connection.values[row]]
        side: cython.int = frames.sender.values[row]
        now: cython.longlong = frames.ts_ns.values[row]
        session: Session = peer.session
        if session is None or side < 0 or now == _NULL:
            return 0
        session.frames += 1
        last: cython.longlong = max(session.last_client_ns, session.last_server_ns)
        if side == 0:
            if session.last_client_ns != _NULL and (
                now - session.last_client_ns > session.silence_client_ns
            ):
                session.silence_client_ns = now - session.last_client_ns
            session.last_client_ns = now
            self._note_sent(session, frames, row)
        else:
            if session.last_server_ns != _NULL and (
                now - session.last_server_ns > session.silence_server_ns
            ):
                session.silence_server_ns = now - session.last_server_ns
            session.last_server_ns = now
        if last != _NULL and now >> _LOOK_BITS > last >> _LOOK_BITS:
            look(self, session, frames.packet_number.values[row], now)
        return 0

    def _note_sent(self, session, frames, row):
        """A frame of the client, which the broker may object to."""
        kind: cython.int = -1
        method: cython.int = frames.method.values[row]
        channel: cython.int = frames.channel.values[row]
        number: cython.longlong = frames.packet_number.values[row]
        lane: Lane = session.last
        sent: Sent = session.sent
        if 0 <= method < len(self.kinds):
            kind = self.kinds[method]
        if sent is None:
            sent = session.sent = Sent()
        sent.note(kind, method, number)
        if channel == 0:
            return 0
        if lane is None or lane.number != channel:
            lane = session.lanes.get(channel)
        if lane is not None:
            if lane.sent is None:
                lane.sent = Sent()
            sent = lane.sent
            sent.note(kind, method, number)
        return 0

    def tell(self, occasion, channel, number, ts_ns, facts):
        """Ask the rules of an occasion on a channel."""
        rules = self.rules.get(occasion, ())
        if rules:
            session: Session = channel.session
            scene = Scene(self, session, channel, number, ts_ns, None, None, facts)
            _ask(rules, scene, session.memory)

    def tell_of(self, occasion, session, number, ts_ns, facts):
        """Ask the rules of an occasion of a connection."""
        rules = self.rules.get(occasion, ())
        if rules:
            memory = {} if session is None else session.memory
            _ask(rules, Scene(self, session, None, number, ts_ns, None, None, facts), memory)

    def tell_method(self, session, channel, event, request):
        """Ask the rules of a method, and those of a reply."""
        rules = self.rules.get(event.name, ())
        if not rules and request is None:
            return
        scene = Scene(self, session, channel, event.number, event.ts_ns, event, request)
        _ask(rules, scene, session.memory)
        if request is not None:
            _ask(self.rules.get("replied", ()), scene, session.memory)

    def witness(self, session):
        """Where what concerns several connections is written down, as of now; None: nowhere."""
        if self.sightings is not None:
            self.date(self.sightings, session.peer)
        return self.sightings

    def date(self, witness, peer):
        """What is written down next is of now, on a connection."""
        if witness.over:
            return witness.at_end(peer.conversation)
        now = self.now()
        if now is not None:
            witness.at(now[0], now[1], now[2])
        return 0

    def now(self):
        """What brought about what is seen now (see `amqpsniff.decode.moments`).

        None where nobody asked for it, and at the end of the capture.
        """
        frames: FrameRows = self.frames
        row: cython.longlong = self.now_row
        if self.moments is None:
            return None
        if self.meeting:
            return self.moments.of_message()
        if not 0 <= row < frames.rows:
            return None
        return self.moments.of_frame(row) or (
            self.captures[frames.capture.values[row]],
            frames.packet_number.values[row],
            frames.ts_ns.values[row],
        )

    def see_closed(self, channel):
        """Write down that a channel is over."""
        if self.sightings is not None:
            self.witness(channel.session).close(channel)
        return 0

    def see_shut(self, session):
        """A connection was closed."""
        if self.journeys is not None:
            self.journeys.close(session)

    def see_over(self, session):
        """Write down that a connection is over."""
        if self.sightings is not None:
            self.sightings.end(session)
        if self.journeys is not None:
            self.journeys.end(session)
        return 0

    def begin_end(self):
        """There are no more packets: what comes until `finish` is brought about by that."""
        for witness in self.witnesses():
            witness.over = True

    def witnesses(self):
        """Who writes down what happens, for others to judge."""
        written = None if self.journeys is None else self.journeys.written
        return [one for one in (self.sightings, written) if one is not None]

    def misplaced(self, frames, row, peers, occasion):
        """Ask the rules about a method that may not come from its side, or on its channel."""
        peer: Connection = peers[frames.connection.values[row]]
        if peer.session is None:
            return 0
        number: cython.longlong = frames.packet_number.values[row]
        ts_ns: cython.longlong = frames.ts_ns.values[row]
        self.tell_of(occasion, peer.session, number, ts_ns, self._describe(frames, row))
        return 0

    def unopened(self, frames, row, channel):
        """Ask the rules about a method on a channel that is not open."""
        number: cython.longlong = frames.packet_number.values[row]
        ts_ns: cython.longlong = frames.ts_ns.values[row]
        self.tell("channel-not-open", channel, number, ts_ns, self._describe(frames, row))
        return 0

    def _describe(self, frames, row):
        """What is told of a method that is out of place."""
        return {
            "method": self.names[frames.method.values[row]],
            "channel": frames.channel.values[row],
            "side": frames.sender.values[row],
        }

    def weigh(self, channel, entry, messages, row, size):
        """Count a message's octets, and ask the rules about messages that stand out; `size` is what
        its header announces.
        """
        publish: cython.bint = entry is None or entry.kind == _PUBLISH
        sent: cython.longlong = messages.sent(row)
        if sent > 0:
            if publish:
                channel.publish_octets += sent
            else:
                channel.deliver_octets += sent
        if not self.judges:
            return 0
        self._tally(messages, row, publish, sent)
        facts: dict
        number: cython.longlong = messages.packet_number.values[row]
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        sightings: Sightings = self.witness(channel.session)
        if sightings is not None and publish:
            sightings.publish(channel, messages, row)
        elif sightings is not None and messages.redelivered.values[row] != 1:
            sightings.deliver(channel, messages, row)
        elif publish:
            first: cython.longlong = self.repeats.first(messages, row)
            if first >= 0:
                channel.repeats += 1
                channel.last_repeat = number
                if channel.repeats == 1:
                    facts = {"first": first, "rows": messages, "row": row}
                    self.tell("published-again", channel, number, ts_ns, facts)
        elif messages.redelivered.values[row] != 1:
            self._queued(channel, messages, row)
        if size > self.large:
            facts = {"entry": entry, "rows": messages, "row": row}
            self.tell("large", channel, number, ts_ns, facts)
        if messages.redelivered.values[row] == 1:
            channel.redelivered += 1
            facts = {"entry": entry, "rows": messages, "row": row}
            self.tell("redelivered", channel, number, ts_ns, facts)
        if messages.headers.has(row):
            self._look_at_headers(channel, entry, messages, row)
        if publish:
            return self._look(channel, entry, messages, row)
        if channel.session.calls > 0 and (
            messages.correlation_id.has(row) or messages.status.values[row] == _TRUNCATED
        ):
            facts = {"entry": entry, "rows": messages, "row": row}
            self.tell("answered", channel, number, ts_ns, facts)
        return 0

    def _queued(self, channel, messages, row):
        """Count how long a delivery was in its queue, if its publish is known."""
        slot: cython.longlong = self.repeats.slot_of(messages, row)
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        if slot < 0 or ts_ns == _NULL:
            return 0
        waited: cython.longlong = ts_ns - self.repeats.since.values[slot]
        if waited < 0:
            return 0
        channel.queued += 1
        channel.queued_ns += waited
        if waited > channel.queued_ns_max:
            channel.queued_ns_max = waited
            number: cython.longlong = messages.packet_number.values[row]
            queue = messages.vocabularies.queue.text(messages.queue.values[row])
            channel.longest = (number, ts_ns, queue, self.repeats.numbers.values[slot])
        return 0

    def _look(self, channel, entry, messages, row):
        """See whether a publish is a call, or stood still on its way."""
        facts: dict
        number: cython.longlong = messages.packet_number.values[row]
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        frames: FrameRows = self.frames
        after: cython.longlong = messages.ended_at.values[row]
        if messages.reply_to.values[row] >= 0 and messages.correlation_id.has(row):
            facts = {"entry": entry, "rows": messages, "row": row}
            self.tell("called", channel, number, ts_ns, facts)
        if messages.status.values[row] == _INCOMPLETE:
            if 0 < after <= frames.rows and (
                frames.connection.values[after - 1] == messages.connection.values[row]
                and frames.channel.values[after - 1] == messages.channel.values[row]
                and frames.frame_type.values[after - 1] == _METHOD_FRAME
                and frames.packet_number.values[after - 1] != number
            ):
                return 0  # another method stands where more of it should be
            facts = {"rows": messages, "row": row, "took_ns": None}
            self.tell("half-sent", channel, number, ts_ns, facts)
        elif ts_ns != _NULL and 0 < after <= frames.rows:
            took: cython.longlong = frames.ts_ns.values[after - 1]
            if took != _NULL and took - ts_ns >= _PAUSED:
                facts = {"rows": messages, "row": row, "took_ns": took - ts_ns}
                if took - ts_ns <= _PAUSED_MOST:
                    self.tell("paused", channel, number, ts_ns, facts)
                elif took - ts_ns > self.stalled:
                    self.tell("half-sent", channel, number, ts_ns, facts)
        return 0

    def _look_at_headers(self, channel, entry, messages, row):
        """Ask the rules about headers that stand out."""
        for occasion in occasions_of(messages.headers, row):
            facts = {"entry": entry, "rows": messages, "row": row}
            number: cython.longlong = messages.packet_number.values[row]
            self.tell(occasion, channel, number, messages.ts_ns.values[row], facts)
        return 0

    def _tally(self, messages, row, publish, size):
        """Count a message and its octets for its exchange, but not when it comes again."""
        code: cython.longlong = messages.exchange.values[row]
        if code < 0 or messages.redelivered.values[row] == 1:
            return 0
        if messages.vocabularies is not self.words or 4 * code + 4 > len(self.tallies):
            self.count_exchanges()
            self.words = messages.vocabularies
            self.tallies = array("q", [0]) * (8 * (code + 16))
        at: cython.longlong = 4 * code + (0 if publish else 2)
        self.tallies[at] += 1
        if size > 0:
            self.tallies[at + 1] += size
        return 0

    def count_exchanges(self):
        """Enter the tallies so far in `exchanges`: name → publishes and their octets, deliveries
        and theirs.
        """
        code: cython.Py_ssize_t
        for code in range(len(self.tallies) // 4):
            counts = list(self.tallies[4 * code : 4 * code + 4])
            if not any(counts):
                continue
            name = self.words.exchange.text(code)
            if name not in self.exchanges and len(self.exchanges) >= MOST_EXCHANGES:
                continue
            before = self.exchanges.get(name, (0, 0, 0, 0))
            self.exchanges[name] = tuple(a + b for a, b in zip(before, counts, strict=True))
        self.tallies = array("q")
        return 0
