# cython: language_level=3, boundscheck=True, nonecheck=True
"""The opening of connections: its order and duration, tuning, the client's capabilities."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import UNOPENED

from amqpsniff.decode.json_objects import table_of
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_flags import HANDSHAKE, OF_CLIENT
from amqpsniff.session.method_frame import ALIKE, read
from amqpsniff.session.rules.access import report_refused_login
from amqpsniff.session.rules.context import Rule, requires, where
from amqpsniff.session.rules.format import in_packet, number_of
from amqpsniff.session.rules.peers import (
    Client,
    began_ns,
    end_ns,
    ended_by_server,
    handshake,
    release,
)
from amqpsniff.session.rules.shared_state import Alike, Verdict
from amqpsniff.session.state_machine import CONNECTION
from amqpsniff.spec import peer_property
from amqpsniff.units import duration

_PLACES = {name: 2 * place for place, name in enumerate(HANDSHAKE)}

SLOW_STEP_NS = SECOND_NS
"""Time beyond the quickest step of the same side from which on a step is slow. A broker takes
some ms for each; ten such steps reach the handshake timeout."""

LOGIN_GIVEN_UP_NS = 5_000_000_000
"""Time from start-ok within which a broker that refuses a login without a word closes TCP: measured
on RabbitMQ 3.10.8 up to 3 s, and for a mechanism that it does not offer the same."""

HANDSHAKE_GIVEN_UP_NS = 8_000_000_000
"""Age from which on a broker that ends an unopened connection lost patience; 10 s by default."""

MIN_FRAME_MAX = 4096
MIN_FRAME_MAX_SINCE = (4, 1)
MIN_FRAME_MAX_NOW = 8192
"""frame-max below the first is refused, since RabbitMQ 4.1 below the last."""

CAPABILITIES = {
    "connection.blocked": "an alarm that stops publishing looks like silence",
    "consumer_cancel_notify": "a consumer that the broker cancels looks like an empty queue",
    "authentication_failure_close": "a refused login looks like a broken connection",
    "basic.nack": "it may not understand that a publish is refused",
    "publisher_confirms": "it may not know confirms",
}
"""Capabilities that a client should announce, each with the cost of not doing so. RabbitMQ acts on
the first three only: it sends basic.nack and confirms to any client that chose confirms (read in
its source, v3.10.8 and v4.3)."""


# time


def step(context: RuleContext, name: str) -> tuple[int | None, int | None]:
    """Time and packet of a step of the handshake; None where it has no time, or was not seen."""
    found: tuple[int | None, int | None] = context.session.step(_PLACES[name])
    return found


def _opened(context: RuleContext) -> None:
    """connection.open-ok: report the step that took long."""
    began = began_ns(context)
    if began is None or context.ts_ns is None or context.ts_ns - began < SLOW_STEP_NS:
        return
    times = _durations(context)
    if times is None or not context.certain:
        return
    spent = dict(zip(HANDSHAKE, times, strict=True))
    least = {
        of_client: min(
            time
            for name, time in spent.items()
            if (name in OF_CLIENT) is of_client and name != "connection.open"  # no answer
        )
        for of_client in (True, False)
    }
    extra = {name: time - least[name in OF_CLIENT] for name, time in spent.items()}
    greeted_ns, started_ns = (
        context.session.connection.greeted_ns,
        step(context, HANDSHAKE[0])[0] or 0,
    )
    late_ns = started_ns - greeted_ns if greeted_ns > 0 else 0
    if min(late_ns, extra.pop(HANDSHAKE[0])) >= SLOW_STEP_NS:
        detail = f"connection.start came {duration(late_ns)} after the client's protocol header"
        context.report("connection-start-delayed", detail)
    worst = max(extra, key=extra.__getitem__)
    whose = "the client's" if worst in OF_CLIENT else "the broker's"
    waits = [f"{duration(spent[worst])} of it for {whose} {worst}"] * (extra[worst] >= SLOW_STEP_NS)
    waits += filter(None, [connecting_text(context)])
    if waits:
        steps = " and ".join(waits)
        detail = f"{duration(sum(times))} until connection.open-ok, {steps}"
        context.report("handshake-slow", detail, until_ns=context.ts_ns)


def connecting_text(context: RuleContext) -> str:
    """The duration of a slow TCP handshake with SYNs that were sent again; else an empty text."""
    connection: Connection = context.session.connection
    conversation = connection.conversation
    syns, answers = conversation.syns_again, conversation.answers_again
    if not syns + answers or conversation.connecting_ns < SLOW_STEP_NS:
        return ""
    again = number_of(syns, "SYN") if syns else number_of(answers, "answer") + " to the SYN"
    was = "was" if (syns or answers) == 1 else "were"
    took = duration(conversation.connecting_ns)
    return f"{took} of it until TCP was connected: {again} {was} sent again"


def _durations(context: RuleContext) -> list[int] | None:
    """Duration of each step since the one before; None if one was not captured."""
    times = [began_ns(context), *(step(context, name)[0] for name in HANDSHAKE)]
    known = [time for time in times if time is not None]
    return [b - a for a, b in pairwise(known)] if len(known) == len(times) else None


# order


def _out_of_order(context: RuleContext) -> None:
    """A method that is not the next one: the directions may only seem to be out of step."""
    facts = context.facts
    if facts["state"] in CONNECTION.closed or not context.certain:
        return
    numbers = [step(context, name)[1] for name in HANDSHAKE]
    if (
        numbers[0] is None
        or max(number for number in numbers if number is not None) > context.number
    ):
        context.memory["disorder"] = None  # one direction was understood before the other
        return
    rows = (row for row in CONNECTION.rows if row.state == facts["state"])
    next_one = " or ".join(row.method for row in rows if row.method != "connection.close")
    who = ("client", "broker")[facts["side"]]
    detail = f"the {who} sent {facts['method']} where {next_one} was to come"
    context.memory.setdefault("disorder", (detail, context.number, context.ts_ns))


@requires("disorder")
def _refused(context: RuleContext) -> None:
    """A connection is over that the broker closed for it, and nothing was missing after all."""
    disorder = context.memory.pop("disorder")
    refused = context.session.closed_by == "server" or ended_by_server(context)
    if disorder and context.certain and refused:
        detail, number, ts_ns = disorder
        context.report("handshake-out-of-order", detail, number=number, ts_ns=ts_ns)


# a broker that hangs up


@where(UNOPENED)
def _ended(context: RuleContext) -> None:
    """A connection that the broker ended without a word before it was open."""
    facts = context.session.handshake
    if "connection.open-ok" in facts or "connection.start" not in facts:
        return
    if not context.certain:
        return
    steps = ("connection.tune-ok", "connection.tune", "connection.start")
    detail = _overstated(*map(context.session.handshake_json, steps))
    if detail and (context.session.closed_by == "server" or ended_by_server(context)):
        ts_ns, number = step(context, "connection.tune-ok")
        context.memory["failure"] = "the tuning was refused"
        context.report("tuning-rejected", detail, number=number, ts_ns=ts_ns)
    elif context.session.closed_by is None and ended_by_server(context):
        _hung_up(context)


def _hung_up(context: RuleContext) -> None:
    last = _last_step(context)
    now, began = end_ns(context), began_ns(context)
    if now is None or began is None or last is None:
        return
    name, then, number = last
    if name == "connection.start-ok" and now - then <= LOGIN_GIVEN_UP_NS:
        start_ok = context.session.handshake_json("connection.start-ok")
        unannounced = "authentication_failure_close" in _missing(start_ok)
        if context.session.handshake_whole("connection.start-ok") and unannounced:
            _refuse_login(context, number, then, now - then)
            return
    if now - began >= HANDSHAKE_GIVEN_UP_NS:
        waiting = HANDSHAKE[HANDSHAKE.index(name) + 1]
        whose = "the client's" if waiting in OF_CLIENT else "its own"
        detail = f"the broker gave up after {duration(now - began)}, waiting for {whose} {waiting}"
        context.memory["failure"] = "the handshake was given up"
        context.report("handshake-slow", detail)


def _last_step(context: RuleContext) -> tuple[str, int, int] | None:
    """Name, time and packet of the last step of a handshake; None without a time."""
    for name in reversed(HANDSHAKE):
        ts_ns, number = step(context, name)
        if number is not None:
            return None if ts_ns is None else (name, ts_ns, number)
    return None


def _refuse_login(context: RuleContext, number: int, then: int, waited: int) -> None:
    mechanism = handshake(context, "connection.start-ok").get("mechanism")
    how = f" with {mechanism}{in_packet(number)}"
    reason = f"the broker ended TCP {duration(waited)} later without an answer"
    report_refused_login(context, how, reason, number, then)


# what the client says


@lru_cache(ALIKE)
def _overstated(tune_ok: bytes | None, tune: bytes | None, start: bytes | None) -> str:
    """Faults of the arguments of tune-ok, compared with those of tune and start; may be empty."""
    chosen, offered = read(tune_ok), read(tune)
    wrong = [
        f"{name.replace('_', '-')} {_limit(chosen[name])} where the broker offers {offered[name]}"
        for name in ("channel_max", "frame_max")
        if _exceeds(chosen.get(name), offered.get(name))
    ]
    least = _least_frame_max(table_of(read(start), "server_properties"))
    frame_max = chosen.get("frame_max")
    if isinstance(frame_max, int) and 0 < frame_max < least:
        wrong.append(f"frame-max {frame_max} where {least} is the least")
    return "tune-ok has " + " and ".join(wrong) if wrong else ""


def _limit(value: int) -> str:
    return str(value) if value else "0 (no limit)"


def _exceeds(chosen: Any, offered: Any) -> bool:
    if not isinstance(chosen, int) or not isinstance(offered, int) or not offered:
        return False
    return chosen == 0 or chosen > offered


def _least_frame_max(server: dict[str, Any]) -> int:
    version = release(peer_property(server, "version"))
    newer = peer_property(server, "product") == "RabbitMQ" and version >= MIN_FRAME_MAX_SINCE
    return MIN_FRAME_MAX_NOW if newer else MIN_FRAME_MAX


@lru_cache(ALIKE)
def _missing(start_ok: bytes | None) -> tuple[str, ...]:
    """The names in `CAPABILITIES` that the client's properties do not announce."""
    announced = table_of(table_of(read(start_ok), "client_properties"), "capabilities")
    return tuple(name for name in CAPABILITIES if announced.get(name) is not True)


def _unsaid(client: Client) -> Iterator[Verdict]:
    """start-ok: report missing properties of the client."""
    key = (client.host, client.server, client.text("product"))
    name, missing = client.application or client.words, _missing(client.start_ok)
    if missing:
        words = f"{name} does not announce {_listed(missing)}"
        yield "capabilities-missing", (key, missing), words
    if client.text("connection_name") is None:
        yield "connection-unnamed", key, f"{name} sets no connection_name"


@lru_cache(ALIKE)
def _listed(missing: tuple[str, ...]) -> str:
    """Capabilities, and what each costs that is not announced."""
    return ", ".join(f"{name} ({CAPABILITIES[name]})" for name in missing)


RULES: dict[str, tuple[Rule, ...]] = {
    "connection.start-ok": (Alike(_unsaid, whole=True),),
    "connection.open-ok": (_opened,),
    "out-of-order": (_out_of_order,),
    "connection-ends": (_refused, _ended),
}
