# cython: language_level=3, boundscheck=True, nonecheck=True
"""Connections that a capture shows twice: on both sides of a proxy that passes bytes on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.session.entities import Session
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.peers import Client, client_of
from cython.cimports.amqpsniff.session.rules.shared_state import remembered

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_frame import ALIKE
from amqpsniff.session.rules.context import Place, Rule
from amqpsniff.session.rules.shared_state import contribute, report_at

WITHIN_NS = SECOND_NS
"""Time between the beginnings of both: a proxy opens its connection when it has the client's."""

MAX_ALIKE = 64
"""Connections that log in with the same bytes and are remembered, the latest ones."""


def opened(context: RuleContext) -> None:
    """connection.open-ok: tell who connects to whom, and says what as it logs in."""
    client: Client = client_of(context)
    session: Session = context.session
    connection: Connection = session.connection
    conversation, server = connection.conversation, client.server_host
    start_ns = conversation.start_ns
    if client.start_ok and server and start_ns > 0 and client.host != server:
        where = (
            session.capture,
            conversation.first_packet_number or None,
            start_ns,
            *connection.name(),
        )
        contribute(context, judge_passed_on, _digest(client.start_ok), client.host, server, where)


@lru_cache(ALIKE)
def _digest(said: bytes) -> str:
    return blake2b(said, digest_size=16).hexdigest()


def judge_passed_on(
    context: RuleContext, digest: str, client: str, server: str, where: Sequence[Any]
) -> None:
    """One more connection: its client or its server may be a proxy of one that is alike."""
    latest: list[tuple[tuple[str, str], bool, Any]] = remembered(context, "logins", digest, list)
    alone = True
    hosts = client, server
    apart = bool(latest) and latest[-1][0] == hosts and latest[-1][1]  # none before it has them
    for (other_client, other_server), _, there in () if apart else latest:
        if other_server != client and other_client != server:
            continue
        alone = False
        place, other = Place(*where), Place(*there)
        if abs((other.ts_ns or 0) - (place.ts_ns or 0)) > WITHIN_NS:
            continue
        front, behind = (other, place) if other_server == client else (place, other)
        detail = f"{behind.client} passes on to {behind.server} what {front.client} sends to "
        report_at(context, behind, "proxy-on-both-sides", f"{detail}{front.server}")
        break
    latest.append((hosts, alone, where))
    if len(latest) > MAX_ALIKE:
        del latest[0]


RULES: dict[str, tuple[Rule, ...]] = {"connection.open-ok": (opened,)}
