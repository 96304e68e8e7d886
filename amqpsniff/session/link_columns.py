# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Columns of messages that name other messages: where a delivery was published, what a reply is to.

They exist only if links are requested, as an attribute of their rows (`MessageRows.links`).
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Codes, Integers, Vocabulary
from cython.cimports.amqpsniff.decode.amqp10.columns import SideColumns
from cython.cimports.amqpsniff.decode.octets import code_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


MATCHES = ("exact", "likely", "ambiguous")
"""Confidence that a delivery is of a publish, by code."""

EXACT, LIKELY, AMBIGUOUS = range(3)


def id_number(connection_id: Any) -> Any:
    """A connection's id, 16 hex digits, as a signed number."""
    number = int(connection_id, 16)
    return number - (1 << 64) if number >> 63 else number


def id_text(number: Any) -> Any:
    """The opposite of `id_number`."""
    return f"{number & 0xFFFFFFFFFFFFFFFF:016x}"


@cython.cclass
class LinkColumns(SideColumns):
    """Links of the rows of one batch of messages; null without a link."""

    connections: Vocabulary
    codes: dict[Any, Any]
    link_confidence: Codes
    published_connection_id: Codes
    request_connection_id: Codes
    reply_late: Codes
    published_packet_number: Integers
    published_ns: Integers
    delivery_number: Integers
    request_packet_number: Integers
    request_ns: Integers

    INTEGERS = tuple(
        "published_packet_number published_ns delivery_number request_packet_number "
        "request_ns".split()
    )
    CODES = tuple(
        "link_confidence published_connection_id request_connection_id reply_late".split()
    )

    def __init__(self) -> None:
        SideColumns.__init__(self)
        self.connections = Vocabulary()
        self.codes = {}

    def by_name(self) -> Any:
        """Vocabularies by the name of their columns."""
        names = ("published_connection_id", "request_connection_id")
        return dict.fromkeys(names, self.connections)

    def published(
        self,
        row: cython.longlong,
        number: cython.longlong,
        connection_id: cython.longlong,
        ns: cython.longlong,
        link_confidence: cython.int,
        delivery_number: cython.longlong,
    ) -> cython.int:
        """Write the publish of a delivery; `delivery_number` is negative for a redelivery."""
        self.published_packet_number.values[row] = number
        self.published_connection_id.values[row] = self._code(connection_id)
        self.published_ns.values[row] = ns
        self.link_confidence.values[row] = link_confidence
        if delivery_number > 0:
            self.delivery_number.values[row] = delivery_number
        return 0

    def replies(
        self,
        row: cython.longlong,
        number: cython.longlong,
        connection_id: cython.longlong,
        ns: cython.longlong,
        reply_late: cython.bint,
    ) -> cython.int:
        """Write the request that a message answers."""
        self.request_packet_number.values[row] = number
        self.request_connection_id.values[row] = self._code(connection_id)
        self.request_ns.values[row] = ns
        self.reply_late.values[row] = reply_late
        return 0

    def _code(self, connection_id: cython.longlong) -> cython.int:
        """The code of a connection's id, which is given as a number."""
        code = self.codes.get(connection_id)
        if code is None:
            code = code_of(self.connections, id_text(connection_id).encode())
            self.codes[connection_id] = code
        return code
