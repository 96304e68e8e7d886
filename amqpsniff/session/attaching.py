# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""What is known of a message from its method on, until its row is there.

A message's row is written when its content ends, its method's frame long before. The decoder
numbers contents; `Attacher` holds what is known of each of them under that number.
"""

import cython

from amqpsniff.session import kinds

if cython.compiled:
    from cython.cimports.amqpsniff.decode.octets import (  # type: ignore[import-not-found]
        OctetReader,
    )
    from cython.cimports.amqpsniff.decode.rows import (  # type: ignore[import-not-found]
        Vocabularies,
    )
    from cython.cimports.amqpsniff.session.event import Said  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.settling import (  # type: ignore[import-not-found]
        Settler,
    )
    from cython.cimports.amqpsniff.session.state import (  # type: ignore[import-not-found]
        Channel,
        Consumer,
        Entry,
    )
    from cython.cimports.amqpsniff.session.watcher import (  # type: ignore[import-not-found]
        Watcher,
    )
else:
    from amqpsniff.decode.octets import OctetReader
    from amqpsniff.decode.rows import Vocabularies
    from amqpsniff.session.event import Said
    from amqpsniff.session.settling import Settler
    from amqpsniff.session.state import Channel, Consumer, Entry
    from amqpsniff.session.watcher import Watcher

_PUBLISH = cython.declare(cython.int, kinds.PUBLISH)
_RETURN = cython.declare(cython.int, kinds.RETURN)

# Contents whose rows are not there yet, beyond which they are kept apart from new ones.
_MOST_OPENED = cython.declare(cython.int, 131_072)
# Different handshakes that new ones are compared with.
_MOST_ALIKE = cython.declare(cython.int, 8)
# Contents after which it is worth while to forget those that have their rows.
_MANY_OPENED = cython.declare(cython.int, 4_096)


class Attacher(Watcher):
    """Gives messages' rows what their methods told."""

    def __init__(self, limits, log):
        Watcher.__init__(self, log)
        self.use_limits(limits)
        self.settler = Settler(limits)
        self.settler.watcher = self if self.judges else None
        self.reader = OctetReader()
        self.consumers_known = 0
        self.facts_octets = 0
        self.said = {}
        self.batch_words = None
        self.batch = 0
        self.opened = []
        self.first_opened = 0
        self.late = {}

    def use_limits(self, limits):
        """Remember so much from now on."""
        self.limits = limits
        self.most_fact = limits.fact
        self.most_facts = limits.facts

    def remember(self, name, octets, whole):
        """What was `Said` in a handshake; most connections say what others said before."""
        latest: list = self.said.setdefault(name, [])
        said: Said
        for said in latest:
            if said.octets == octets and said.whole == whole:
                break
        else:
            if len(octets) > self.most_fact or self.facts_octets >= self.most_facts:
                self.settler.hit("handshakes")
                return Said(b"", False)
            said = Said(octets, whole)
            latest.append(said)
            if len(latest) > _MOST_ALIKE:
                del latest[0]
        if said.uses == 0:
            self.facts_octets += len(said.octets)
        said.uses += 1
        return said

    def forget(self, said):
        """A connection that said so is over."""
        said.uses -= 1
        if said.uses == 0:
            self.facts_octets -= len(said.octets)
        return 0

    def open(self, known):
        """The next content begins: `known` is its entry, only its channel or consumer, or None."""
        self.opened.append(known)
        if len(self.opened) > _MOST_OPENED:
            self._put_late()
        return 0

    def meet(self, messages, row, peers):
        """A message's row is there: see what became of it, and what it belongs to."""
        self.meeting = self.moments is not None and self.moments.meet()
        self.attach(messages, row)
        if self.journeys is not None:
            if self.journeys.written is not None:
                self.date(self.journeys.written, peers[messages.connection.values[row]])
            self.journeys.look(messages, row, peers)
        self.meeting = False
        return 0

    def attach(self, messages, row):
        """A message's row is there: give it what is known of its method."""
        ordinal: cython.longlong = messages.ordinal.values[row] - self.first_opened
        opened: object
        if ordinal < 0:
            opened = self.late.pop(messages.ordinal.values[row], None)
        else:
            opened = self.opened[ordinal]
            self.opened[ordinal] = None
        if len(self.opened) > _MANY_OPENED and ordinal == len(self.opened) - 1:
            self._put_late()
        if opened is None:
            return 0
        size: cython.longlong = messages.body_size.values[row]
        if type(opened) is Channel:
            return self.weigh(opened, None, messages, row, size)
        if type(opened) is Consumer:
            return self._name_queue(messages, row, opened)
        entry: Entry = opened
        entry.mark = max(messages.mark.values[row], 0)
        entry.body_mark = messages.body_mark.values[row]
        if entry.kind == _RETURN:
            words = messages.vocabularies
            exchange = words.exchange.text(messages.exchange.values[row])
            entry.route = (exchange, words.routing_key.text(messages.routing_key.values[row]))
            publish: Entry = self.settler.give_back(entry)
            if self.judges:
                facts = {"entry": publish, "rows": messages, "row": row}
                self.tell("returned", entry.channel, entry.packet_number, entry.ts_ns, facts)
            return 0
        if entry.kind == _PUBLISH:
            if entry.number > 0:
                messages.publish_number.values[row] = entry.number
        elif entry.consumer is not None:
            self._name_queue(messages, row, entry.consumer)
        self.settler.attach(entry, messages, row)
        return self.weigh(entry.channel, entry, messages, row, size)

    def _name_queue(self, messages, row, consumer):
        """Give a delivery the queue of its consumer, where that is known."""
        if consumer.queue is None:
            return 0
        words: Vocabularies = messages.vocabularies
        batch: cython.longlong = self.batch_of(words)
        if consumer.batch != batch:
            octets: bytes = consumer.queue.encode()
            self.reader.read_from(octets)
            consumer.batch = batch
            consumer.code = self.reader.code_in(words.queue, 0, len(octets))
        messages.queue.values[row] = consumer.code
        return 0

    def batch_of(self, words):
        """The number of the batch that has these vocabularies; codes in them hold for it only."""
        if self.batch_words is not words:
            self.batch_words = words
            self.batch += 1
        return self.batch

    def _put_late(self):
        """Keep contents whose rows are long in coming apart."""
        place: cython.longlong
        known: object
        for place in range(len(self.opened)):
            known = self.opened[place]
            if known is not None:
                self.late[self.first_opened + place] = known
        self.first_opened += len(self.opened)
        self.opened.clear()
        return 0
