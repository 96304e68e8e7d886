"""Readable names of the clients in findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any

from amqpsniff.analysis.finding_tree import Row
from amqpsniff.decode.json_objects import read_object
from amqpsniff.findings import Finding
from amqpsniff.spec import given_name, peer_property
from amqpsniff.units import plural, some
from amqpsniff.wire_text import harmless, shortened

CONNECTION_COLUMNS = (
    "connection_id", "user", "client_product", "connection_name", "client_packets",
    "server_packets",
)  # fmt: skip
"""Columns of the connections table that name clients."""

MAX_NAME = 80
"""Characters of a client's name that are shown: a name may be as long as a frame."""

MAX_NAMES = 3
"""Clients that are named of a finding."""

MAX_KEPT = 65_536
"""Connections whose clients are remembered; later ones are shown by their addresses."""


class Introductions:
    """Handshakes of clients, for a pass that makes no rows of connections.

    To make a row of each connection takes 16 % longer on a capture of short connections.
    """

    def __init__(self) -> None:
        self._handshakes: list[tuple[str, bytes | None, str | None, int, int]] = []

    def add(self, connection: Any) -> None:
        """Add an `amqpsniff.decode.state.Connection` that ended."""
        session = connection.session
        if session is None or len(self._handshakes) >= MAX_KEPT:
            return
        handshake = _shared(session.handshake_json("connection.start-ok"))
        packets = connection.conversation.packets
        self._handshakes.append((connection.name()[0], handshake, connection.user, *packets))

    def rows(self, connection_ids: Collection[str | None]) -> Iterator[Row]:
        """Rows with `CONNECTION_COLUMNS` of the connections with these ids."""
        names: dict[bytes | None, Row] = {}
        for connection_id, handshake, user, from_client, from_server in self._handshakes:
            if connection_id not in connection_ids:
                continue
            if handshake not in names:
                value = read_object(handshake).get("client_properties")
                properties = value if isinstance(value, dict) else {}
                names[handshake] = {
                    "client_product": peer_property(properties, "product"),
                    "connection_name": peer_property(properties, "connection_name"),
                }
            yield {
                "connection_id": connection_id,
                "user": user,
                **names[handshake],
                "client_packets": from_client,
                "server_packets": from_server,
            }


@lru_cache(256)
def _shared(handshake: bytes | None) -> bytes | None:
    """One object for equal handshakes: most clients send the same as others."""
    return handshake


class Clients:
    """Names of clients by connection.

    Args:
        connections: Rows of the connections table with `CONNECTION_COLUMNS`.
    """

    def __init__(self, connections: Iterable[Row] = ()) -> None:
        self._rows = {row["connection_id"]: row for row in connections}

    def name(self, connection_id: str | None) -> str:
        """The name that a client gives its connection, else its product; empty if unknown.

        A name longer than `MAX_NAME` ends in an ellipsis.
        """
        row = self._rows.get(connection_id, {})
        name = given_name(row.get("connection_name"), row.get("client_product")) or ""
        return shortened(harmless(name), MAX_NAME)

    def one_sided(self, connection_id: str | None) -> bool:
        """True if only one direction of a connection was captured."""
        row = self._rows.get(connection_id, {})
        return 0 in (row.get("client_packets"), row.get("server_packets"))

    def short(self, findings: Iterable[Finding]) -> str:
        """The first client of some findings, and how many more there are: `web-1 +14`."""
        ends = dict.fromkeys((finding.connection_id, finding.client) for finding in findings)
        first, *others = dict.fromkeys(
            self.name(connection_id) or harmless(end or "") for connection_id, end in ends
        )
        return f"{first} +{len(others)}" if others else first

    def describe(self, findings: Iterable[Finding]) -> str:
        """The clients of findings: `billing (user app, 10.0.0.2)`; of many the first ones."""
        connections = dict.fromkeys(finding.connection_id for finding in findings)
        addresses = {finding.client for finding in findings if finding.client}
        names = [name for name in dict.fromkeys(map(self.name, connections)) if name]
        users = {
            user
            for connection in connections
            if (user := self._rows.get(connection, {}).get("user"))
        }
        hosts = sorted({_host(address) for address in addresses} - {""})
        others = len(names) - MAX_NAMES
        text = ", ".join(names[:MAX_NAMES]) + (
            f" and {plural(others, 'other')}" if others > 0 else ""
        )
        if not names:
            single = len(addresses) < 2
            text = harmless("".join(addresses)) if single else plural(len(addresses), "client")
            hosts = [] if single else hosts
        login = [f"user {harmless(user)}" for user in users if len(users) == 1]
        login += [some(hosts)] if hosts else []
        return f"{text} ({', '.join(login)})" if login and text else text

    def named_in(self, row: Row) -> bool:
        """True if the detail of a finding names its client and its host itself."""
        parts = (self.name(row["connection_id"]), _host(row["client"] or ""))
        return all(part in (row["detail"] or "") for part in parts)


def _host(address: str) -> str:
    return harmless(address.rpartition(":")[0])
