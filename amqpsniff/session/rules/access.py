# cython: language_level=3, boundscheck=True, nonecheck=True
"""Logins: mechanisms, credentials in clear, shared accounts, repeated refusals, old software."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.peers import Client, client_of

from amqpsniff.decode.json_objects import table_of
from amqpsniff.session.method_frame import ALIKE, read
from amqpsniff.session.rules.context import Place, Rule
from amqpsniff.session.rules.peers import release
from amqpsniff.session.rules.shared_state import (
    Alike,
    Verdict,
    contribute,
    remembered,
    report_at,
    report_once,
)
from amqpsniff.spec import peer_property
from amqpsniff.units import duration

CLEAR = ("PLAIN", "AMQPLAIN")
"""Mechanisms that carry the password as it is."""

SHARING_PRODUCTS = 2
SHARING_HOSTS = 10
"""Client products, or addresses, from which on a user is taken to be shared by applications. Some
copies of one application have one product and a few addresses."""

OLDEST_SERIES = {"RabbitMQ": (4, 0)}
"""Brokers' oldest series with support: that for RabbitMQ 3 has ended."""

FAULTY_BEFORE = {
    "Pika Python Client Library": ((1, 4), "reads and writes signed and unsigned bytes swapped"),
}
"""Client products with a known fault on the wire, and the release that mended it."""


def _login_verdicts(client: Client) -> Iterator[Verdict]:
    """start-ok: report how the client logs in, and a version of it with a known fault."""
    mechanism = read(client.start_ok).get("mechanism")
    host, server, user = client.host, client.server, client.user
    product, version = client.text("product"), client.text("version")
    login, words = (host, server, user, product), f"{client.words} to {server}"
    if mechanism in CLEAR and client.on_network:
        in_clear = f"{words}, mechanism {mechanism} without TLS"
        yield "credentials-in-clear", login, in_clear
    if mechanism == "ANONYMOUS":
        yield "login-anonymous", login, words
    if user == "guest":
        yield "account-default", login, words
    mended = FAULTY_BEFORE.get(product or "")
    if mended is not None and (0, 0) < release(version) < mended[0]:
        detail = f"{product} {version} {mended[1]}, until {_dotted(mended[0])}"
        yield "software-outdated", (host, product, version), detail


class _Users:
    """Products and addresses that used a user name, as many as are needed to judge it."""

    def __init__(self) -> None:
        self.products: set[str] = set()
        self.hosts: set[str] = set()
        self.reported = False


def _shares(context: RuleContext) -> None:
    """start-ok: one more login of a user, which applications may share."""
    client: Client = client_of(context)
    server, user, known = client.server, client.user, client.verdicts
    if user is None or user == "guest" or (known is not None and "logged in" in known):
        return
    if known is not None:
        known["logged in"] = ()
    product = client.text("product")
    contribute(context, judge_shared, server, user, product, client.host, context.place)


def judge_shared(
    context: RuleContext,
    server: str,
    user: str,
    product: str | None,
    host: str,
    place: Sequence[Any],
) -> None:
    """One more login of a user."""
    users = remembered(context, "users", (server, user), _Users)
    if users.reported:
        return
    if product is not None:
        users.products.add(product)
    users.hosts.add(host)
    if len(users.products) >= SHARING_PRODUCTS:
        who = " and ".join(sorted(users.products))
    elif len(users.hosts) >= SHARING_HOSTS:
        who = f"{len(users.hosts)} addresses"
    else:
        return
    users.reported = True
    report_at(context, Place(*place), "account-shared", f"user '{user}' is used by {who}")


def _broker_verdicts(server: str, start: bytes | None) -> Iterator[Verdict]:
    """connection.start: report a broker whose version is not supported."""
    outdated = _outdated_server(start)
    if outdated is not None:
        product, version, supported = outdated
        words = f"{product} {version} at {server}; supported from {supported} on"
        yield "software-outdated", (server, version), words


@lru_cache(ALIKE)
def _outdated_server(start: bytes | None) -> tuple[str, str | None, str] | None:
    """Product and version in a start's arguments, and the oldest series with support."""
    properties = table_of(read(start), "server_properties")
    product, version = (peer_property(properties, name) for name in ("product", "version"))
    oldest = OLDEST_SERIES.get(product or "")
    if product is None or oldest is None or not (0, 0) < release(version) < oldest:
        return None
    return product, version, _dotted(oldest)


def _dotted(numbers: tuple[int, int]) -> str:
    return f"{numbers[0]}.{numbers[1]}"


REFUSALS = 5
"""Refused logins within `WINDOW_NS` of one address, or user names refused, that are no accident:
those of users who had logged in from there are none, and of clients with a name only the users
count."""

WINDOW_NS = 60_000_000_000


_DELETED = re.compile(r"(vhost|user) '(.*)' is deleted")
"""The text of a close of RabbitMQ after a deletion: the kind and the name of the deleted thing."""

_EXPIRED = "credential expired"
"""The text of a close of RabbitMQ after the token of the login has expired."""


def note_lost(context: RuleContext, code: str, text: str | None) -> None:
    """The broker closed a connection, with a finding `code`: what it logged in with may be over."""
    client, deleted = client_of(context), _DELETED.search(text or "")
    if deleted is not None:
        contribute(context, judge_lost, client.server, *deleted.groups(), code, context.number)
    elif client.user is not None and _EXPIRED in (text or ""):
        contribute(context, judge_lost, client.server, "user", client.user, code, context.number)


def judge_lost(
    context: RuleContext, server: str, what: str, name: str, code: str, number: int | None
) -> None:
    """The broker closed a connection because its virtual host, user or credential is no more."""
    finding: list[Any] = remembered(context, "lost", (server, what, name), list)
    finding[:] = [code, number]


def loss_of(
    context: RuleContext, server: str, what: str, name: str | None
) -> tuple[str | None, int | None]:
    """The finding about the loss of the same subject, as a cause of `report_at`."""
    code, number = context.shared.get("lost", {}).get((server, what, name), (None, None))
    return code, number


class _Refusals:
    """The last refused logins of an address, and its first user names."""

    def __init__(self) -> None:
        self.times: deque[int] = deque(maxlen=REFUSALS)
        self.users: set[str] = set()


def _note_accepted(context: RuleContext) -> None:
    """connection.tune, amqp10-opened: a user's login was accepted."""
    client: Client = client_of(context)
    if client.user is not None and context.ts_ns is not None:
        contribute(context, judge_accepted, client.key, context.ts_ns)


def judge_accepted(context: RuleContext, client: Sequence[Any], ts_ns: int) -> None:
    """One more login that was accepted; the last one of a user from an address counts."""
    latest: list[int] = remembered(context, "accepted", tuple(client), list)
    latest[:] = [ts_ns]
    _, server, user = client
    context.shared.get("lost", {}).pop((server, "user", user), None)


def report_refused_login(
    context: RuleContext, how: str, reason: str, number: int | None = None, ts_ns: int | None = None
) -> None:
    """A login was refused, with `how` it was tried and the broker's text; many are a finding."""
    context.memory["failure"] = "the login was refused"
    client: Client = client_of(context)
    words, name = client.words + how, client.text("connection_name")
    place = context.place if number is None else context.place_of(number, ts_ns)
    contribute(context, judge_refused, client.key, context.ts_ns, name, words, reason, place)


def judge_refused(
    context: RuleContext,
    client: Sequence[Any],
    ts_ns: int | None,
    name: str | None,
    words: str,
    reason: str,
    place: Sequence[Any],
) -> None:
    """One more login of a user from an address that was refused.

    An attacker who guesses passwords has no successful login of that account from there, and does
    not name the connections.
    """
    host, server, user = client
    here = Place(*place)
    (accepted_ns,) = context.shared.get("accepted", {}).get(tuple(client), (None,))
    was_accepted = ts_ns is not None and accepted_ns is not None
    if was_accepted:
        since = duration(max(0, ts_ns - accepted_ns))
        words += f", accepted from there until {since} before"
    cause = loss_of(context, server, "user", user)
    report_at(context, here, "authentication-failed", f"{words}: {reason}", cause=cause)
    if was_accepted:
        return
    refusals = remembered(context, "refusals", (host, server), _Refusals)
    if ts_ns is not None and name is None:
        refusals.times.append(ts_ns)
    if user is not None and len(refusals.users) < REFUSALS:
        refusals.users.add(user)
    times = refusals.times
    spread_ns = max(times) - min(times) if times else 0
    if len(refusals.users) == REFUSALS:
        often = f"logins refused under {REFUSALS} user names or more"
    elif len(times) == REFUSALS and spread_ns <= WINDOW_NS and name is None:
        often = f"logins refused, {REFUSALS} of them in {duration(spread_ns)}"
    else:
        return
    key, detail = (host, server), f"{host}: {often}"
    report_once(context, "password-guessing", key, lambda: detail, here, REFUSALS)


_SERVER_SAYS = Alike(_broker_verdicts, "connection.start", of_server=True)
_LOGS_IN: tuple[Rule, ...] = (Alike(_login_verdicts), _shares)

RULES: dict[str, tuple[Rule, ...]] = {
    "connection.start": (_SERVER_SAYS,),
    "connection.start-ok": _LOGS_IN,
    "connection.tune": (_note_accepted,),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {
    "amqp10-opened": (_SERVER_SAYS, *_LOGS_IN, _note_accepted)
}
