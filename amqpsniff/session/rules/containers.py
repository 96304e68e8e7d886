"""Connections of AMQP 1.0 as wholes: logins, idle time-outs, closes with errors.

Handshake arguments are kept in the form of 0-9-1 methods (`amqpsniff.session.amqp10.handshake_of`),
so that rules about logins and products are those of 0-9-1. Idle time-outs are not: each side
demands frames of the other (§2.4.5).
"""

from __future__ import annotations

from typing import Any

from amqpsniff.session.codes import CLIENT, SERVER
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.access import note_lost, report_refused_login
from amqpsniff.session.rules.context import Rule, RuleContext
from amqpsniff.session.rules.heartbeats import TOO_SHORT_S
from amqpsniff.session.rules.links import (
    CONNECTION_FORCED,
    UNAUTHORIZED,
    WINDOW,
    closed_by_client,
    is_limit,
    reason_of,
)
from amqpsniff.session.rules.occasions import SILENCES
from amqpsniff.session.rules.opening import HANDSHAKE_GIVEN_UP_NS, connecting_text
from amqpsniff.session.rules.peers import began_ns, client_of, end_ns, ender, handshake
from amqpsniff.session.rules.shared_state import report_once
from amqpsniff.units import duration

MS = 1_000_000

SLOW_NS = SECOND_NS
"""Time until both sides have opened that is long: four or five round trips, and a login."""

VHOST = "vhost:"
"""What a hostname begins with that names a virtual host of RabbitMQ."""

_SIDES = ("client", "broker")
_CODES = {1: "refused it", 2: "had an error", 3: "had an error that stays", 4: "was not ready"}
"""Meanings of the codes of sasl-outcome (§5.3.3.6)."""

_FORCED_TEXT = "connection forced"
"""The description in a close that an operator or a shutdown asked for. RabbitMQ 4 sends it with
amqp:internal-error."""
_IDLE = ("idle", "inactive", "timeout")


def opened(context: RuleContext) -> None:
    """amqp10-opened: idle time-outs that are very short, and a handshake that took long."""
    for side, opening in enumerate(context.facts["state"].opens):
        idle = (opening or {}).get("idle_time_out")
        if isinstance(idle, int) and 0 < idle < TOO_SHORT_S * 1000:
            client = client_of(context)
            key = (client.host, client.server, client.application), idle
            detail = f"{client.words}: idle-time-out {idle} ms of the {_SIDES[side]}"
            report_once(context, "heartbeat-too-short", key, detail.__str__)
    began = began_ns(context)
    if began is None or context.ts_ns is None or "opened" in context.memory:
        return
    context.memory["opened"] = True
    took = context.ts_ns - began
    if took >= SLOW_NS and context.certain:
        words = (f"{duration(took)} until both sides had opened", connecting_text(context))
        detail = ", ".join(filter(None, words))
        context.report("handshake-slow", detail, until_ns=context.ts_ns)


def login_offered(context: RuleContext) -> None:
    """login-offered: how the broker lets clients log in, for a client that does not try."""
    offered = context.facts.get("sasl_server_mechanisms")
    names = offered if isinstance(offered, list) else [offered]
    context.memory["offered"] = (", ".join(map(str, names)), context.number, context.ts_ns)


def not_opened(context: RuleContext) -> None:
    """connection-ends: TCP ended before the broker's open, without a close of either side."""
    session = context.session
    state = session.amqp10
    if state is None or state.opens[SERVER] or session.closed_by or not context.complete:
        return
    now_ns, side = end_ns(context), ender(context)
    names, number, ts_ns = context.memory.get("offered", (None, None, None))
    who, began = client_of(context).words, began_ns(context)
    waited = None if now_ns is None or ts_ns is None else now_ns - ts_ns
    age = None if now_ns is None or began is None else now_ns - began
    if side == CLIENT:
        if names is not None and not state.init and not state.opens[CLIENT]:
            took = "" if waited is None else f" {duration(waited)} later"
            detail = f"{who}: the broker offers {names}, and the client ended TCP{took}"
            context.memory["failure"] = "the client did not log in"
            context.report("login-not-tried", detail, number=number, ts_ns=ts_ns)
    elif side == SERVER and age is not None:
        if state.init and waited is not None and session.last_server_ns <= ts_ns:
            detail = f"the broker ended TCP {duration(waited)} after it had named {names}"
            report_refused_login(context, "", f"{detail}, without a sasl-outcome")
        elif age >= HANDSHAKE_GIVEN_UP_NS and not state.opens[CLIENT]:
            awaited = "open" if state.init or names is None else "sasl-init"
            context.memory["failure"] = "the handshake was given up"
            detail = f"the broker gave up after {duration(age)}, waiting for the client's {awaited}"
            context.report("handshake-slow", detail)
        elif state.opens[CLIENT]:
            host = state.opens[CLIENT].get("hostname") or ""
            detail = f"the broker ended TCP after {duration(age)} and did not answer open"
            if host.startswith(VHOST):
                context.memory["failure"] = f"no answer to open of '{host}'"
                context.report("vhost-refused", f"{who}: {detail} of '{host}'")
            else:
                if state.init:
                    detail += ", as RabbitMQ does if the user may not use the virtual host"
                context.report("disconnect-unclean", detail)


def login_refused(context: RuleContext) -> None:
    """login-refused: the broker's sasl-outcome is not ok."""
    code = context.facts.get("code")
    mechanism = handshake(context, "connection.start-ok").get("mechanism")
    how = _CODES.get(code, "refused it") if isinstance(code, int) else "refused it"
    by = f" with {mechanism}" if mechanism else ""
    report_refused_login(context, by, f"the broker {how} (code {code})")


def closed(context: RuleContext) -> None:
    """amqp10-closed: a side closed the connection with an error."""
    found, side = context.facts["found"], context.facts["side"]
    if found.condition is None:
        return
    condition, description = found.condition, found.description
    reason = reason_of(condition, description)
    words = (description or "").lower()
    if any(word in words for word in _IDLE) and condition != CONNECTION_FORCED:
        context.memory["silent"] = _SIDES[1 - side]
        silence = _silence_ns(context, 1 - side)
        detail = f"the {_SIDES[side]} closed the connection: {reason}"
        if silence:
            detail += f"; nothing from the {_SIDES[1 - side]} for {duration(silence)}"
        context.report("heartbeat-missed", detail, until_ns=context.ts_ns)
    if side != SERVER:
        if "silent" not in context.memory:
            closed_by_client(context, "the connection", condition, description)
        return
    context.memory["failure"] = reason
    session = context.session
    opens = session.connection.began and session.handshake.get("connection.open-ok") is None
    if condition == UNAUTHORIZED and opens:
        report_refused_login(context, "", reason)
    elif is_limit(condition, description):
        context.report("link-limit-reached", reason)
    elif condition == WINDOW:
        context.report("session-window-violated", f"the broker closed the connection: {reason}")
    elif condition == CONNECTION_FORCED or words.startswith(_FORCED_TEXT):
        context.report("connection-forced-closed", reason)
        note_lost(context, "connection-forced-closed", description)
    elif "silent" not in context.memory:
        context.report("connection-closed-by-broker", reason)
        note_lost(context, "connection-closed-by-broker", description)


def oversized(context: RuleContext) -> None:
    """frame-oversized: a frame exceeds its receiver's max-frame-size."""
    side, size, limit = (context.facts[name] for name in ("side", "size", "limit"))
    detail = f"a frame of {size} bytes of the {_SIDES[side]}; the other side takes {limit}"
    context.report("frame-too-large", detail)


def _silence_ns(context: RuleContext, side: int) -> int:
    """The time since a side's last frame; 0 if unknown."""
    session, now_ns = context.session, context.ts_ns or end_ns(context)
    last = session.last_client_ns if side == CLIENT else session.last_server_ns
    return max(0, now_ns - last) if now_ns and last > 0 else 0


def ended(context: RuleContext) -> None:
    """connection-ends: a side that was silent for longer than the other allows."""
    state = context.session.amqp10
    memory = context.memory
    if state is None or not context.certain or "silent" in memory or "interrupted" in memory:
        return
    session, now_ns = context.session, end_ns(context)
    cut_by = ender(context) if session.closed_by is None else None
    for side in (CLIENT, SERVER):
        allowed = (state.opens[1 - side] or {}).get("idle_time_out")
        if not isinstance(allowed, int) or not allowed:
            continue
        longest = session.silence_client_ns if side == CLIENT else session.silence_server_ns
        last = session.last_client_ns if side == CLIENT else session.last_server_ns
        rest = 0
        if now_ns is not None and last > 0 and session.closed_by is None:
            rest = now_ns - last
        silence, cut = max(longest, rest), cut_by == 1 - side and rest >= longest
        if silence > 2 * allowed * MS or (cut and silence > allowed * MS):
            then = "; then TCP was ended by the other side" if cut else ""
            detail = (
                f"nothing from the {_SIDES[side]} for {duration(silence)}, idle-time-out of the "
                f"{_SIDES[1 - side]} {duration(allowed * MS)}{then}"
            )
            number, ts_ns = context.number, context.ts_ns
            if rest < longest:
                number, ts_ns = context.memory.get(SILENCES[side], (number, ts_ns))
            at: Any = {"number": number, "ts_ns": ts_ns, "until_ns": ts_ns}
            context.report("heartbeat-missed", detail, **at)


AMQP10_RULES: dict[str, tuple[Rule, ...]] = {
    "amqp10-opened": (opened,),
    "login-offered": (login_offered,),
    "login-refused": (login_refused,),
    "amqp10-closed": (closed,),
    "frame-oversized": (oversized,),
    "connection-ends": (not_opened, ended),
}
