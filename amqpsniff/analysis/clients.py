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
"""Connections whose clients are remembered; the later ones have their addresses."""


class Introductions:
    """Handshakes of clients, for a pass that makes no rows of connections.

    To make a row of each connection takes 16 % longer on a capture of short connections.
    """

    def __init__(self) -> None:
        self._said: list[tuple[str, bytes | None, str | None, int, int]] = []

    def add(self, connection: Any) -> None:
        """Take an `amqpsniff.decode.state.Connection` that is over."""
        session = connection.session
        if session is None or len(self._said) >= MAX_KEPT:
            return
        said = _alike(session.handshake_json("connection.start-ok"))
        packets = connection.conversation.packets
        self._said.append((connection.name()[0], said, connection.user, *packets))

    def rows(self, wanted: Collection[str | None]) -> Iterator[Row]:
        """Rows with `CONNECTION_COLUMNS` of the connections with these ids."""
        names: dict[bytes | None, Row] = {}
        for connection_id, said, user, from_client, from_server in self._said:
            if connection_id not in wanted:
                continue
            if said not in names:
                properties = read_object(said).get("client_properties")
                told = properties if isinstance(properties, dict) else {}
                names[said] = {
                    "client_product": peer_property(told, "product"),
                    "connection_name": peer_property(told, "connection_name"),
                }
            yield {
                "connection_id": connection_id,
                "user": user,
                **names[said],
                "client_packets": from_client,
                "server_packets": from_server,
            }


@lru_cache(256)
def _alike(said: bytes | None) -> bytes | None:
    """One object for equal handshakes: most clients send the same as others."""
    return said


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
        one = self._rows.get(connection_id, {})
        name = given_name(one.get("connection_name"), one.get("client_product")) or ""
        return shortened(harmless(name), MAX_NAME)

    def one_sided(self, connection_id: str | None) -> bool:
        """True if only one direction of a connection was captured."""
        one = self._rows.get(connection_id, {})
        return 0 in (one.get("client_packets"), one.get("server_packets"))

    def short(self, findings: Iterable[Finding]) -> str:
        """The first client of some findings, and how many more there are: `web-1 +14`."""
        ends = dict.fromkeys((one.connection_id, one.client) for one in findings)
        first, *others = dict.fromkeys(self.name(one) or harmless(end or "") for one, end in ends)
        return f"{first} +{len(others)}" if others else first

    def who(self, findings: Iterable[Finding]) -> str:
        """The clients of findings: `billing (user app, 10.0.0.2)`; of many the first ones."""
        connections = dict.fromkeys(one.connection_id for one in findings)
        addresses = {one.client for one in findings if one.client}
        names = [one for one in dict.fromkeys(map(self.name, connections)) if one]
        users = {user for one in connections if (user := self._rows.get(one, {}).get("user"))}
        hosts = sorted({_host(one) for one in addresses} - {""})
        more = len(names) - MAX_NAMES
        who = ", ".join(names[:MAX_NAMES]) + (f" and {plural(more, 'other')}" if more > 0 else "")
        if not names:
            one = len(addresses) < 2
            who = harmless("".join(addresses)) if one else plural(len(addresses), "client")
            hosts = [] if one else hosts
        login = [f"user {harmless(user)}" for user in users if len(users) == 1]
        login += [some(hosts)] if hosts else []
        return f"{who} ({', '.join(login)})" if login and who else who

    def named_in(self, row: Row) -> bool:
        """True if the detail of a finding names its client and its host itself."""
        parts = (self.name(row["connection_id"]), _host(row["client"] or ""))
        return all(part in (row["detail"] or "") for part in parts)


def _host(address: str) -> str:
    return harmless(address.rpartition(":")[0])
