"""Connections that a capture shows twice: on both sides of a proxy that passes bytes on."""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import Any

from amqpsniff.session.counts import SECOND_NS
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
    place, server = first_place(context), host_of(server_end(context))
    if said and server and place.ts_ns is not None and client_host(context) != server:
        digest = blake2b(said, digest_size=16).hexdigest()
        contribute(context, judge_passed_on, digest, client_host(context), server, place)


def judge_passed_on(
    context: RuleContext, digest: str, client: str, server: str, where: tuple[Any, ...]
) -> None:
    """One more connection: its client or its server may be a proxy of one that is alike."""
    place = Place(*where)
    alike: deque[tuple[str, str, Place]] = remembered(
        context, "logins", digest, lambda: deque(maxlen=MAX_ALIKE)
    )
    for other_client, other_server, other in alike:
        if abs((other.ts_ns or 0) - (place.ts_ns or 0)) > WITHIN_NS:
            continue
        front, behind = (other, place) if other_server == client else (place, other)
        if other_server == client or other_client == server:
            detail = f"{behind.client} passes on to {behind.server} what {front.client} sends to "
            report_at(context, behind, "proxy-on-both-sides", f"{detail}{front.server}")
            break
    alike.append((client, server, place))


RULES: dict[str, tuple[Rule, ...]] = {"connection.open-ok": (opened,)}
