# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""What a client sent last: the frames that a broker may say it objects to."""

import cython

from amqpsniff.session import kinds

_OTHER = cython.declare(cython.int, kinds.OTHER)
_PUBLISH = cython.declare(cython.int, kinds.PUBLISH)
_ACK = cython.declare(cython.int, kinds.ACK)
_NAMES = cython.declare(list, kinds.NAMES)


class Sent:
    """Packets of a client's last frames, -1 for none: of any, and of each method.

    The two methods that come with every message have their own numbers, which costs no time.
    """

    def __init__(self):
        self.last = self.publish = self.ack = -1
        self.others = {}

    def note(self, kind, method, number):
        """A frame in packet `number`; `kind` is its method's, -1 of a frame that has none."""
        self.last = number
        if kind == _PUBLISH:
            self.publish = number
        elif kind == _ACK:
            self.ack = number
        elif kind >= _OTHER:
            self.others[_NAMES[method]] = number
        return 0

    def packet(self, method):
        """The packet of the last frame with a method, by its name; of any with None."""
        number: cython.longlong = self.last
        if method == "basic.publish":
            number = self.publish
        elif method == "basic.ack":
            number = self.ack
        elif method is not None:
            return self.others.get(method)
        return number if number >= 0 else None
