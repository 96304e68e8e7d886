"""Connections that a capture shows twice: on both sides of a proxy that passes bytes on."""

from __future__ import annotations

from collections import Counter, deque
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_frame import ALIKE
from amqpsniff.session.rules.context import Place, Rule, RuleContext
from amqpsniff.session.rules.peers import client_host, host_of, server_end
from amqpsniff.session.rules.shared_state import contribute, first_place, remembered, report_at

WITHIN_NS = SECOND_NS
"""Time between the beginnings of both: a proxy opens its connection when it has the client's."""

MAX_ALIKE = 64
"""Connections that log in with the same bytes and are remembered, the latest ones."""


def opened(context: RuleContext) -> None:
    """connection.open-ok: tell who connects to whom, and says what as it logs in."""
    said = context.session.handshake_json("connection.start-ok")
    place, server, client = (
        first_place(context),
        _host_of(server_end(context)),
        client_host(context),
    )
    if said and server and place.ts_ns is not None and client != server:
        contribute(context, judge_passed_on, _digest(said), client, server, place)


@lru_cache(ALIKE)
def _digest(said: bytes) -> str:
    return blake2b(said, digest_size=16).hexdigest()


_host_of = lru_cache(ALIKE)(host_of)


class _Alike:
    """Connections that log in alike, the latest, and how many of them have a host as client and as
    server: few ever have one as both."""

    def __init__(self) -> None:
        self.latest: deque[tuple[str, str, tuple[Any, ...]]] = deque()
        self.clients: Counter[str] = Counter()
        self.servers: Counter[str] = Counter()

    def add(self, client: str, server: str, place: tuple[Any, ...]) -> None:
        """One more."""
        if len(self.latest) == MAX_ALIKE:
            before = self.latest.popleft()
            _drop(self.clients, before[0])
            _drop(self.servers, before[1])
        self.latest.append((client, server, place))
        self.clients[client] += 1
        self.servers[server] += 1


def _drop(hosts: Counter[str], host: str) -> None:
    """One less."""
    hosts[host] -= 1
    if not hosts[host]:
        del hosts[host]


def judge_passed_on(
    context: RuleContext, digest: str, client: str, server: str, where: tuple[Any, ...]
) -> None:
    """One more connection: its client or its server may be a proxy of one that is alike."""
    alike = remembered(context, "logins", digest, _Alike)
    passes = client in alike.servers or server in alike.clients
    for other_client, other_server, there in alike.latest if passes else ():
        place, other = Place(*where), Place(*there)
        if abs((other.ts_ns or 0) - (place.ts_ns or 0)) > WITHIN_NS:
            continue
        front, behind = (other, place) if other_server == client else (place, other)
        if other_server == client or other_client == server:
            detail = f"{behind.client} passes on to {behind.server} what {front.client} sends to "
            report_at(context, behind, "proxy-on-both-sides", f"{detail}{front.server}")
            break
    alike.add(client, server, where)


RULES: dict[str, tuple[Rule, ...]] = {"connection.open-ok": (opened,)}
