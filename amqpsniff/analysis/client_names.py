"""Names of clients: that of their connection where it was given, else the address."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from amqpsniff.spec import given_name
from amqpsniff.tables.values import texts_of, values

COLUMNS = ("connection_id", "client", "sender", "method", "arguments")
"""Columns of frames that are read."""

NAMING = frozenset(("connection.start-ok", "open"))
"""Methods in which a client says its name; `open` is one of AMQP 1.0, which both sides send."""

MAX_NAMES = 100_000
"""Names that are kept, some 20 MB."""


class ClientNames:
    """Learns from batches of frames.

    Attributes:
        names: Names of connections by id, as sent by the client.
        hosts: Addresses of clients.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.hosts: set[str] = set()

    def add(self, batch: Any) -> None:
        """Look through a batch of frames."""
        clients = texts_of(batch.column("client"))
        for client in set(batch.column("client").to_pylist() if clients is None else clients):
            self.see(client)
        methods = texts_of(batch.column("method"))
        if methods is not None and NAMING.isdisjoint(methods):
            return
        for at, method in enumerate(values(batch, "method")):
            if method not in NAMING:  # Arrow's functions would find it, but take long to import
                continue
            if batch.column("sender")[at].as_py() != "client":
                continue
            connection_id = batch.column("connection_id")[at].as_py()
            arguments = json.loads(batch.column("arguments")[at].as_py() or "{}")
            name = arguments.get("container_id")
            if method != "open":
                name = (arguments.get("client_properties") or {}).get("connection_name")
            if isinstance(name, str):
                self._name(connection_id, name)

    def learn(self, connections: Iterable[dict[str, Any]]) -> None:
        """Take the names in rows of connections."""
        for row in connections:
            self._name(row["connection_id"], row["connection_name"])

    def _name(self, connection_id: str, text: str | None) -> None:
        name = given_name(text)
        if name and len(self.names) < MAX_NAMES:
            self.names[connection_id] = name

    def see(self, client: str | None) -> None:
        """Note the address of a client."""
        if client and len(self.hosts) < 2:
            self.hosts.add(client.rpartition(":")[0])

    @property
    def several_hosts(self) -> bool:
        """True if a port alone does not identify a client."""
        return len(self.hosts) > 1
