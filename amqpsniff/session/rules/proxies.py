# cython: language_level=3, boundscheck=True, nonecheck=True
"""Connections that a capture shows twice: on both sides of a proxy, or of address translation."""

from __future__ import annotations

from typing import Any

from cython.cimports.amqpsniff.session.both_sides import Logins, login_of
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.peers import Client, client_of
from cython.cimports.amqpsniff.session.rules.shared_state import remembered

from amqpsniff.session.rules.context import Place, Rule
from amqpsniff.session.rules.shared_state import contribute, first_place, report_at


def opened(context: RuleContext) -> None:
    """connection.open-ok: contribute the login: from where to where, and when each step was."""
    client: Client = client_of(context)
    login = login_of(context.session, client.host, client.server_host, first_place(context))
    if login is not None:
        contribute(context, judge_login, *login)


def judge_login(
    context: RuleContext,
    digest: str,
    client: str,
    server: str,
    port: int,
    where: Any,
    isn: int | None,
    times: tuple[int, ...],
) -> None:
    """One more connection: report what is behind a proxy or address translation."""
    logins: Logins = remembered(context, "logins", digest, Logins)
    doubled = getattr(context.tracker, "doubled", None)
    for behind, detail in logins.add(client, server, port, where, isn, times):
        if doubled is not None:
            doubled.found(behind[3])
        report_at(context, Place(*behind), "proxy-on-both-sides", detail)


RULES: dict[str, tuple[Rule, ...]] = {"connection.open-ok": (opened,)}
