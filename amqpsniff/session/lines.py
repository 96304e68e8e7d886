# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Publishes that are remembered, alike ones in one line, and how far queues are with them.

A line is in the order of its publishes; a queue hands them on in that order. Publishes are
forgotten from the oldest on, of all lines.
"""

import cython

from amqpsniff.columns import NULL

if cython.compiled:
    from cython.cimports.amqpsniff.session.likeness import mixed  # type: ignore[import-not-found]
else:
    from amqpsniff.session.likeness import mixed

_NULL = cython.declare(cython.longlong, NULL)
_AGAIN = cython.declare(cython.ulonglong, 0x9E6C63D0876A9A35)


class Publish:
    """A publish that is remembered; `later` is the next alike, `younger` the next of all.

    `asks` is the request it makes, `answers` the request it is a reply to.
    """

    def __init__(self):
        self.key = None
        self.packet_number = 0
        self.ts_ns = _NULL
        self.connection_id = 0
        self.later = None
        self.younger = None
        self.asks = None
        self.answers = None
        self.place = 0
        self.deliveries = 0
        self.identified = False


class Line:
    """Publishes that are alike, in their order, and how far each queue is with them.

    The first queue's position stands in `queue` and `reached`, those of others in `more`.
    """

    def __init__(self):
        self.first = None
        self.last = None
        self.queue = 0
        self.reached = None
        self.more = None

    def position(self, queue):
        """The last publish that a queue handed on; None for none."""
        if self.queue == queue:
            return self.reached
        return None if self.more is None else self.more.get(queue)


class Lines:
    """Every line by the hash of what its publishes are.

    After `meant`: `candidates` says among how many the publish was chosen, `advanced` whether its
    queue hands it on for the first time. `hits` counts by name what a limit kept from being
    remembered.
    """

    def __init__(self, memory):
        self.memory = memory
        self.most = memory.publishes
        self.age_ns = memory.age_ns
        self.lines = {}
        self.oldest = None
        self.youngest = None
        self.count = 0
        self.positions = 0
        self.candidates = 0
        self.advanced = False
        self.hits = {}

    def __del__(self):
        """Free publishes one by one: each would free the next inside itself, to any depth."""
        publish: Publish = self.oldest
        self.oldest = None
        while publish is not None:
            following: Publish = publish.younger
            publish.later = None
            publish.younger = None
            publish = following

    def get(self, hash_):
        """The line of a hash; None when there is none."""
        return self.lines.get(hash_)

    def remember(self, publish):
        """Put a publish at the end of its line, and forget what is too old or too much."""
        line: Line = self.lines.get(publish.key)
        while self.oldest is not None and self._is_old(self.oldest, publish.ts_ns):
            self._forget(line)
        if self.count >= self.most:
            self._forget(line)
            self._hit("publishes")
        if line is None:
            line = self.lines[publish.key] = Line()
        if line.first is None:
            line.first = publish
        else:
            publish.place = line.last.place + 1
            line.last.later = publish
        line.last = publish
        if self.youngest is None:
            self.oldest = publish
        else:
            self.youngest.younger = publish
        self.youngest = publish
        self.count += 1
        return 0

    def _is_old(self, publish, ts_ns):
        return publish.ts_ns != _NULL and ts_ns != _NULL and ts_ns - publish.ts_ns > self.age_ns

    def _forget(self, kept):
        """Forget the oldest publish, and its line if it was the only one and not `kept`."""
        publish: Publish = self.oldest
        line: Line = self.lines[publish.key]
        self.oldest = publish.younger
        if self.oldest is None:
            self.youngest = None
        self.count -= 1
        line.first = publish.later
        if line.first is None:
            line.last = None
            line.reached = None
            if line.more is not None:
                self.positions -= len(line.more)
                line.more = None
            line.queue = 0
            if line is not kept:
                del self.lines[publish.key]
        publish.later = None
        publish.younger = None
        return 0

    def meant(self, line, queue, again):
        """The publish that a queue hands on; None when it handed on all there were."""
        first: Publish = line.first
        reached: Publish = line.position(queue)
        before: cython.longlong = 0
        if reached is not None and reached.place >= first.place:
            before = reached.place - first.place + 1
        after: cython.longlong = line.last.place - first.place + 1 - before
        self.advanced = False
        if again and before:
            self.candidates = before
            return first if before == 1 else self._again(line, queue, reached)
        if after == 0:
            self.candidates = 1
            return line.last if line.last.identified and line.last is first else None
        chosen: Publish = reached.later if before else first
        self.candidates = after
        self.advanced = True
        self._put(line, queue, chosen)
        return chosen

    def _again(self, line, queue, reached):
        """The next of the publishes that a queue hands on once more: from the oldest, in order."""
        key: cython.ulonglong = mixed(queue, _AGAIN)
        last: Publish = line.position(key)
        chosen: Publish = line.first
        if last is not None and line.first.place <= last.place < reached.place:
            chosen = last.later
        self._put(line, key, chosen)
        return chosen

    def _put(self, line, queue, publish):
        """Note how far a queue is."""
        if line.queue == queue or line.reached is None:
            line.queue = queue
            line.reached = publish
            return 0
        if line.more is None:
            line.more = {}
        if queue not in line.more:
            if self.positions >= self.memory.positions:
                return self._hit("positions")
            self.positions += 1
        line.more[queue] = publish
        return 0

    def _hit(self, name):
        """A limit was reached."""
        self.hits[name] = self.hits.get(name, 0) + 1
        return 0
