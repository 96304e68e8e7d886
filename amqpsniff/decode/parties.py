# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Who speaks: which side of a connection is the client, and in which dialect they talk.

Who is the client: the side that sent the SYN, the side that sent a protocol header first, or the
side that a method may only come from; before there is proof, the side that is not on a well-known
AMQP port. The dialect comes from the client's protocol header, until the server's
`connection.start` names another version, which is final; without either from the first method
whose payload no other dialect could mean.
"""

import cython
from cython.cimports.amqpsniff.decode.arguments import ArgumentDecoder
from cython.cimports.amqpsniff.decode.state import Connection

from amqpsniff.decode import plan
from amqpsniff.decode.login import LONG_LOGIN_OCTETS, shortened, with_secrets

AMQP_PORTS = frozenset((5671, 5672))

_TUNE = cython.declare(cython.int, 30)
_OPEN_OK = cython.declare(cython.int, 41)
"""After connection.tune and .open-ok: the server has taken the credentials (a client may not
wait)."""

_DIALECT_08 = cython.declare(cython.int, plan.DIALECT_CODES["0-8"])
_DIALECT_091 = cython.declare(cython.int, plan.DIALECT_CODES["0-9-1"])


class Parties:
    """Knows the connections of the rows being made, by code, and learns about them.

    `connections` are their names, null until somebody asks for `names`: there may be many.
    `dialect` is the one to take for every connection, 0 to find out.

    Args:
        decoder: Reads the payloads of methods.
        ports: Ports that servers listen on, beside the well-known ones.
    """

    def __init__(self, decoder, ports):
        self.decoder = decoder
        self.ports = AMQP_PORTS | frozenset(ports or ())
        self.serial = self.dialect = 0
        self.connections = []
        self.peers = []

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
        self.connections.append(None)
        self.peers.append(connection)
        return 0

    def names(self):
        """The names of the connections of the rows made, by code."""
        code: cython.Py_ssize_t
        peer: Connection
        for code in range(len(self.peers)):
            if self.connections[code] is None:
                peer = self.peers[code]
                self.connections[code] = peer.name()
        return self.connections

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
            if connection.row_serial == self.serial:  # its rows so far keep their sides
                self.connections[connection.row_code] = connection.name()
            connection.client_direction = direction
            connection.row_serial = -1
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
        if self.decoder.secrets[facts.method] and not self.decoder.show_secrets:
            payload: bytes = reader.octets_at(at, end - at)
            connection.sent_secrets = with_secrets(connection.sent_secrets, facts.method, payload)
        if facts.method_id == 11:
            connection.login = reader.octets_at(at, end - at)
            if end - at > LONG_LOGIN_OCTETS:
                connection.login = shortened(connection.login)
        elif facts.method_id == 31 and facts.frame_max >= 0:
            connection.frame_max = facts.frame_max
        elif facts.method_id == 10 and self.dialect == 0:
            self._agree(connection, facts)
        return 0

    def _agree(self, connection, facts):
        """Take the version in connection.start; that of 0-9 is 0-9-1's."""
        if facts.version_major == 8:
            connection.dialect = _DIALECT_08
        elif facts.version_major == 0 and facts.version_minor == 9:
            if connection.dialect == 0 or connection.dialect == _DIALECT_08:
                connection.dialect = _DIALECT_091
        return 0

    def _vote(self, connection, reader, at, end):
        """A payload that only one dialect could have sent tells the dialect."""
        mask: cython.int = plan.dialects[self.decoder.method]
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


@cython.cfunc
def _bit(mask: cython.int) -> cython.int:
    """The number of the only bit that is set, from 1."""
    place: cython.int = 0
    while mask:
        mask >>= 1
        place += 1
    return place
