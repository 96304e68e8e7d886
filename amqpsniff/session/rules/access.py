"""Who logs in, how, and what of it others can read."""

from __future__ import annotations

from typing import Any

from amqpsniff.session.rules.opening import release
from amqpsniff.session.rules.peers import (
    client_host,
    client_says,
    on_network,
    said,
    server_end,
    shown,
    table,
    user_of,
)
from amqpsniff.session.rules.remembering import across, kept, report_at, report_once
from amqpsniff.session.rules.scene import Place, Rule, Scene
from amqpsniff.spec import peer_property

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


def _logs_in(scene: Scene) -> None:
    mechanism = said(scene, "connection.start-ok").get("mechanism")
    user = user_of(scene)
    login = (client_host(scene), server_end(scene), user)
    if mechanism in CLEAR and on_network(scene):
        report_once(scene, "credentials-in-clear", login, lambda: _in_clear(scene))
    if mechanism == "ANONYMOUS":
        report_once(scene, "login-anonymous", login, lambda: _login(scene))
    if user == "guest":
        report_once(scene, "account-default", login, lambda: _login(scene))
    elif user is not None:
        _shares(scene, user)


def _login(scene: Scene) -> str:
    return f"{shown(scene)} to {server_end(scene)}"


def _in_clear(scene: Scene) -> str:
    mechanism = said(scene, "connection.start-ok").get("mechanism")
    return f"{_login(scene)}, mechanism {mechanism} without TLS"


class _Users:
    """Products and addresses that used a user name, as many as are needed to judge it."""

    def __init__(self) -> None:
        self.products: set[str] = set()
        self.hosts: set[str] = set()
        self.said = False


def _shares(scene: Scene, user: str) -> None:
    """Whether applications share a user."""
    who = (server_end(scene), user, client_says(scene, "product"), client_host(scene))
    across(scene, judge_shared, *who, scene.place)


def judge_shared(
    scene: Scene, server: str, user: str, product: str | None, host: str, place: tuple[Any, ...]
) -> None:
    """One more login of a user."""
    users = kept(scene, "users", (server, user), _Users)
    if users.said:
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
    users.said = True
    report_at(scene, Place(*place), "account-shared", f"user '{user}' is used by {who}")


def _server_says(scene: Scene) -> None:
    """connection.start: is the broker's version supported?"""
    properties = table(said(scene, "connection.start"), "server_properties")
    product, version = (peer_property(properties, name) for name in ("product", "version"))
    oldest = OLDEST_SERIES.get(product or "")
    if oldest is not None and (0, 0) < release(version) < oldest:
        server = server_end(scene)
        report_once(
            scene,
            "software-outdated",
            (server, version),
            lambda: f"{product} {version} at {server}; supported from {_dotted(oldest)} on",
        )


def _client_says(scene: Scene) -> None:
    """start-ok: does the client's version have a known fault?"""
    product, version = client_says(scene, "product"), client_says(scene, "version")
    mended = FAULTY_BEFORE.get(product or "")
    if mended is not None and (0, 0) < release(version) < mended[0]:
        key = (client_host(scene), product, version)
        detail = f"{product} {version} {mended[1]}, until {_dotted(mended[0])}"
        report_once(scene, "software-outdated", key, lambda: detail)


def _dotted(numbers: tuple[int, int]) -> str:
    return f"{numbers[0]}.{numbers[1]}"


RULES: dict[str, tuple[Rule, ...]] = {
    "connection.start": (_server_says,),
    "connection.start-ok": (_logs_in, _client_says),
}
"""The rules of this module by occasion."""
