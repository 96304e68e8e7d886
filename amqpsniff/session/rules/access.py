"""Logins: mechanisms, credentials in clear, shared accounts, repeated refusals, old software."""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import Any

from amqpsniff.decode.json_objects import read_object
from amqpsniff.session.method_frame import ALIKE
from amqpsniff.session.rules.context import Place, Rule, RuleContext
from amqpsniff.session.rules.peers import (
    client_host,
    client_property,
    client_text,
    handshake,
    on_network,
    release,
    server_end,
    table,
    user_of,
)
from amqpsniff.session.rules.shared_state import contribute, remembered, report_at, report_once
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


def _logs_in(context: RuleContext) -> None:
    mechanism = handshake(context, "connection.start-ok").get("mechanism")
    user = user_of(context)
    login = (client_host(context), server_end(context), user)
    if mechanism in CLEAR and on_network(context):
        report_once(context, "credentials-in-clear", login, lambda: _in_clear(context))
    if mechanism == "ANONYMOUS":
        report_once(context, "login-anonymous", login, lambda: _login(context))
    if user == "guest":
        report_once(context, "account-default", login, lambda: _login(context))
    elif user is not None:
        _shares(context, user)


def _login(context: RuleContext) -> str:
    return f"{client_text(context)} to {server_end(context)}"


def _in_clear(context: RuleContext) -> str:
    mechanism = handshake(context, "connection.start-ok").get("mechanism")
    return f"{_login(context)}, mechanism {mechanism} without TLS"


class _Users:
    """Products and addresses that used a user name, as many as are needed to judge it."""

    def __init__(self) -> None:
        self.products: set[str] = set()
        self.hosts: set[str] = set()
        self.reported = False


def _shares(context: RuleContext, user: str) -> None:
    """True if applications share a user."""
    who = (server_end(context), user, client_property(context, "product"), client_host(context))
    contribute(context, judge_shared, *who, context.place)


def judge_shared(
    context: RuleContext,
    server: str,
    user: str,
    product: str | None,
    host: str,
    place: tuple[Any, ...],
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


def _server_says(context: RuleContext) -> None:
    """connection.start: report a broker whose version is not supported."""
    outdated = _outdated_server(context.session.handshake_json("connection.start"))
    if outdated is not None:
        product, version, supported = outdated
        server = server_end(context)
        report_once(
            context,
            "software-outdated",
            (server, version),
            lambda: f"{product} {version} at {server}; supported from {supported} on",
        )


@lru_cache(ALIKE)
def _outdated_server(start: bytes | None) -> tuple[str, str | None, str] | None:
    """Product and version in a start's arguments, and the oldest series with support."""
    properties = table(read_object(start), "server_properties")
    product, version = (peer_property(properties, name) for name in ("product", "version"))
    oldest = OLDEST_SERIES.get(product or "")
    if product is None or oldest is None or not (0, 0) < release(version) < oldest:
        return None
    return product, version, _dotted(oldest)


def _client_says(context: RuleContext) -> None:
    """start-ok: report a client version with a known fault."""
    product, version = client_property(context, "product"), client_property(context, "version")
    mended = FAULTY_BEFORE.get(product or "")
    if mended is not None and (0, 0) < release(version) < mended[0]:
        key = (client_host(context), product, version)
        detail = f"{product} {version} {mended[1]}, until {_dotted(mended[0])}"
        report_once(context, "software-outdated", key, lambda: detail)


def _dotted(numbers: tuple[int, int]) -> str:
    return f"{numbers[0]}.{numbers[1]}"


REFUSALS = 5
"""Refused logins within `WINDOW_NS` of one address, or user names refused, that are no accident."""

WINDOW_NS = 60_000_000_000


class _Refusals:
    """The last refused logins of an address, and its first user names."""

    def __init__(self) -> None:
        self.times: deque[int] = deque(maxlen=REFUSALS)
        self.users: set[str] = set()


def note_refused_login(context: RuleContext) -> None:
    """A login was refused; many from one address are a finding."""
    context.memory["failure"] = "the login was refused"
    client = (client_host(context), server_end(context))
    contribute(context, judge_refused, client, context.ts_ns, user_of(context), context.place)


def judge_refused(
    context: RuleContext,
    client: tuple[str, str],
    ts_ns: int | None,
    user: str | None,
    place: tuple[Any, ...],
) -> None:
    """One more login of an address that was refused."""
    refusals = remembered(context, "refusals", client, _Refusals)
    if ts_ns is not None:
        refusals.times.append(ts_ns)
    here = Place(*place)
    if user is not None and len(refusals.users) < REFUSALS:
        refusals.users.add(user)
    times = refusals.times
    spread_ns = max(times) - min(times) if times else 0
    if len(refusals.users) == REFUSALS:
        names = f"logins refused under {REFUSALS} user names or more"
        detail = f"{client[0]}: {names}"
        report_once(context, "password-guessing", client, lambda: detail, here, REFUSALS)
    elif len(times) == REFUSALS and spread_ns <= WINDOW_NS:
        often = f"{REFUSALS} logins refused in {duration(spread_ns)}"
        detail = f"{client[0]}: {often}"
        report_once(context, "password-guessing", client, lambda: detail, here, REFUSALS)


RULES: dict[str, tuple[Rule, ...]] = {
    "connection.start": (_server_says,),
    "connection.start-ok": (_logs_in, _client_says),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {
    "amqp10-opened": (_server_says, _logs_in, _client_says)
}
