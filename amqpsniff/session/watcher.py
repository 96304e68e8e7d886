# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""What rules want to know, told while rows are followed: only where somebody asked for findings.

`Watcher` is the part of the tracker that counts for the rules and asks them on their occasions.
"""

import cython

from amqpsniff.columns import NULL
from amqpsniff.session import kinds
from amqpsniff.session.rules import RULES, Scene
from amqpsniff.session.rules.scene import LARGE_OCTETS

if cython.compiled:
    from cython.cimports.amqpsniff.decode.state import Connection  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.repeats import (  # type: ignore[import-not-found]
        Repeats,
    )
    from cython.cimports.amqpsniff.session.state import Session  # type: ignore[import-not-found]
else:
    from amqpsniff.decode.state import Connection
    from amqpsniff.session.repeats import Repeats
    from amqpsniff.session.state import Session

_NULL = cython.declare(cython.longlong, NULL)
_PUBLISH = cython.declare(cython.int, kinds.PUBLISH)


class Watcher:
    """Asks the rules.

    Args:
        log: Collects what they find; None asks none.
    """

    def __init__(self, log):
        self.log = log
        self.judges = log is not None
        self.memory = {}
        self.names = kinds.NAMES
        self.large = LARGE_OCTETS
        self.repeats = Repeats() if self.judges else None

    def hear(self, frames, row, peers):
        """A frame of any type: its side is not silent."""
        peer: Connection = peers[frames.connection.values[row]]
        side: cython.int = frames.sender.values[row]
        now: cython.longlong = frames.ts_ns.values[row]
        session: Session = peer.session
        if session is None or side < 0 or now == _NULL:
            return 0
        if side == 0:
            if session.last_client_ns != _NULL and (
                now - session.last_client_ns > session.silence_client_ns
            ):
                session.silence_client_ns = now - session.last_client_ns
            session.last_client_ns = now
        else:
            if session.last_server_ns != _NULL and (
                now - session.last_server_ns > session.silence_server_ns
            ):
                session.silence_server_ns = now - session.last_server_ns
            session.last_server_ns = now
        return 0

    def tell(self, occasion, channel, number, ts_ns, facts):
        """Ask the rules of an occasion on a channel."""
        for rule in RULES.get(occasion, ()):
            rule(Scene(self, channel.session, channel, number, ts_ns, facts=facts))

    def tell_of(self, occasion, session, number, ts_ns, facts):
        """Ask the rules of an occasion of a connection."""
        for rule in RULES.get(occasion, ()):
            rule(Scene(self, session, None, number, ts_ns, facts=facts))

    def tell_method(self, session, channel, event, request):
        """Ask the rules of a method, and those of a reply."""
        rules = RULES.get(event.name, ())
        if request is not None:
            rules = (*rules, *RULES.get("replied", ()))
        if rules:
            scene = Scene(self, session, channel, event.number, event.ts_ns, event, request)
            for rule in rules:
                rule(scene)

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
        """Count a message's octets, and ask the rules about messages that stand out."""
        publish: cython.bint = entry is None or entry.kind == _PUBLISH
        if size > 0:
            if publish:
                channel.publish_octets += size
            else:
                channel.deliver_octets += size
        if not self.judges:
            return 0
        number: cython.longlong = messages.packet_number.values[row]
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        if publish:
            first: cython.longlong = self.repeats.first(messages, row)
            if first >= 0:
                facts = {"first": first, "rows": messages, "row": row}
                self.tell("published-again", channel, number, ts_ns, facts)
        if size > self.large:
            facts = {"entry": entry, "rows": messages, "row": row}
            self.tell("large", channel, number, ts_ns, facts)
        if messages.redelivered.values[row] == 1:
            channel.redelivered += 1
            facts = {"entry": entry, "rows": messages, "row": row}
            self.tell("redelivered", channel, number, ts_ns, facts)
        if messages.headers.has(row) and b'"x-death"' in messages.headers.octets_of(row):
            facts = {"entry": entry, "rows": messages, "row": row}
            self.tell("dead-lettered", channel, number, ts_ns, facts)
        return 0
