# cython: language_level=3, boundscheck=True, nonecheck=True
"""Errors with which a side closes a connection or channel, and the frame that it objects to."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from cython.cimports.amqpsniff.session.entities import Channel, Closeable, Session
from cython.cimports.amqpsniff.session.method_frame import MethodFrame
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import BY_BROKER, UNCLEAN
from cython.cimports.amqpsniff.session.rules.peers import Client, client_of
from cython.cimports.amqpsniff.session.rules.shared_state import remembered

from amqpsniff.session.codes import CLIENT, SERVER
from amqpsniff.session.method_flags import NAMES
from amqpsniff.session.rules.access import loss_of, note_lost, report_refused_login
from amqpsniff.session.rules.context import Place, Rule, requires, where
from amqpsniff.session.rules.format import (
    in_packet,
    number_of,
    queue_text,
    reply_text,
    subject_of_text,
)
from amqpsniff.session.rules.opening import step
from amqpsniff.session.rules.peers import rabbitmq_release, vhost_of
from amqpsniff.session.rules.queues import Key, owner_words
from amqpsniff.session.rules.remedies import fault, is_exclusive, remedy
from amqpsniff.session.rules.shared_state import contribute, report_at
from amqpsniff.spec import FIRST_ERROR_CODE, SIDES

_QUEUE = re.compile(r"queue '(.*)' in vhost '(.*?)'")
"""A queue in a reply text of RabbitMQ."""

_DEPRECATED = re.compile(r"Feature (`\w+`) is deprecated")
"""What RabbitMQ 4 says of a deprecated feature that it does not permit, first in its text."""

LAST_DECLARE = "last queue.declare"
"""Name in `RuleContext.memory` of the last one of the connection: its packet and its queue."""

_LIMITS = ("limit", "channel_max")
"""Words of the reply texts that name a limit; measured on RabbitMQ 3.10.8."""


_FORCED = 320
"""CONNECTION_FORCED: somebody told the side to close."""


_EXCEPTION = "Closed due to exception from "
"""With code 200, the text of RabbitMQ's client for Java after an exception in a consumer."""


@where(BY_BROKER)
def _connection_closed(context: RuleContext) -> None:
    if not is_first_close(context, SERVER):
        return
    code = _code_of(context)
    _note_failure(context, context.session.close_text)
    if code == "authentication-failed":
        _, number = step(context, "connection.start-ok")
        answer = reply_text(context.frame.reply_code, context.session.close_text)
        report_refused_login(context, in_packet(number), answer)
    elif code == "feature-deprecated":
        context.report(code, _deprecated(context))
    else:
        reply_code, text = context.frame.reply_code, context.session.close_text
        method = context.session.close_method or _last_method(context)
        what = remedy(reply_code, text)[0]
        what = what or fault(reply_code, method, rabbitmq_release(context))
        if code == "vhost-refused":
            where = client_of(context).server, vhost_of(context)
            contribute(context, judge_vhost, *where, objection(context) + what, context.place)
            return
        context.report(code, objection(context) + what)
        note_lost(context, code, text)


def judge_vhost(
    context: RuleContext, server: str, vhost: str | None, detail: str, place: Sequence[Any]
) -> None:
    """A client may not use a virtual host, or it is not there: was it deleted?"""
    cause = loss_of(context, server, "vhost", vhost)
    report_at(context, Place(*place), "vhost-refused", detail, cause=cause)


def _code_of(context: RuleContext) -> str:
    """The code of the most specific finding for the broker's close of the connection."""
    session = context.session
    code, method = session.close_code, session.close_method
    text = (session.close_text or "").lower()
    if code == _FORCED:
        return "connection-forced-closed"
    if code == 541 and _DEPRECATED.search(session.close_text or ""):
        return "feature-deprecated"
    if code == 530 and "reached" in text and any(word in text for word in _LIMITS):
        return "limit-reached"
    if code in (403, 530) and method == "connection.open":
        return "vhost-refused"
    if code == 403 and "connection.open" not in session.handshake and session.connection.began:
        return "authentication-failed"
    return "connection-closed-by-broker"


def _declared(context: RuleContext) -> None:
    """queue.declare: note it, for a refusal names only the method."""
    context.memory[LAST_DECLARE] = context.number, context.frame.queue


def _deprecated(context: RuleContext) -> str:
    """The feature that the broker refused, the request that used it, and what to do instead."""
    code, session = context.frame.reply_code, context.session
    text, method = session.close_text or "", session.close_method
    feature = "".join(_DEPRECATED.findall(text)[:1])
    detail = f"{code} feature {feature}"
    if method is not None:
        number = request_packet(context, method)
        declared, queue = context.memory.get(LAST_DECLARE, (None, None))
        named = method == "queue.declare" and declared == number and queue
        detail += f", used by {method}{f' of {queue_text(queue)}' if named else ''}"
        detail += in_packet(number)
    return detail + remedy(code, text)[0]


@where(BY_BROKER)
def _channel_closed(context: RuleContext) -> None:
    if not is_first_close(context, SERVER):
        return
    code, text = context.frame.reply_code, context.channel.close_text or ""
    _note_failure(context, context.channel.close_text)
    if code == 406 and "user_id property set to" in text:
        context.report("user-id-refused", objection(context), subject=subject_of_text(text))
    elif is_exclusive(code, text):
        what = (objection(context), _queue_of(context, text), context.channel.number)
        contribute(context, judge_locked, client_of(context).key, *what, context.place)


def _queue_of(context: RuleContext, text: str) -> Key | None:
    """The queue that a broker's text names; None if it names none."""
    found = _QUEUE.search(text)
    return None if found is None else (client_of(context).server, found[2], found[1])


def _closed_by_client(context: RuleContext) -> None:
    """connection.close, channel.close: the client reports an error."""
    frame: MethodFrame = context.frame
    code = frame.reply_code
    if frame.side != CLIENT or code == _FORCED or not is_first_close(context, CLIENT):
        return
    what = "connection" if context.channel is None else "channel"
    closed: Any = context.session if context.channel is None else context.channel
    objects = f"; it objects to {closed.close_method}" if closed.close_method else ""
    reply = reply_text(code, closed.close_text)
    detail = f"the client closed the {what}: {reply}{objects}"
    context.report("closed-by-client", detail, subject=subject_of_text(reply + objects))
    context.memory["failure"] = f"the client said {reply}"


def _note_failure(context: RuleContext, text: str | None) -> None:
    """Note the reason of a failed connection; without a text the reason is unknown."""
    if text is not None:
        context.memory["failure"] = reply_text(context.frame.reply_code, text)


def judge_locked(
    context: RuleContext,
    client: Sequence[Any],
    objected: str,
    queue: Key | None,
    channel: int,
    where: Sequence[Any],
) -> None:
    """A queue that belongs to another connection: which, or may it be one of the same client?"""
    place = Place(*where)
    more = owner_words(context, queue, place)
    if not more:
        others = context.shared.get("open", {}).get(client, set())
        count = len(others - {place.connection_id})
        more = f"this client has {number_of(count, 'other connection')} open" if count else ""
    detail = f"{objected}; {more}" if more else objected
    about = objected if queue is None else queue[2]
    report_at(context, place, "exclusive-queue-locked", detail, channel=channel, subject=about)


def _opened(context: RuleContext) -> None:
    if "counted" not in context.memory:
        context.memory["counted"] = True
        _contribute(context, judge_opened)


def _contribute(context: RuleContext, judge: Callable[..., None]) -> None:
    client: Client = client_of(context)
    contribute(context, judge, client.key, context.session.connection.name()[0])


def judge_opened(context: RuleContext, client: Any, connection_id: str) -> None:
    """One more connection of a client is open."""
    connections: set[str] = remembered(context, "open", client, set)
    connections.add(connection_id)


@where(UNCLEAN)
@requires("counted")
def _ended(context: RuleContext) -> None:
    if context.memory["counted"]:
        context.memory["counted"] = False
        _contribute(context, judge_ended)


def judge_ended(context: RuleContext, client: Any, connection_id: str) -> None:
    """One connection of a client less is open."""
    clients = context.shared.get("open", {})
    connections = clients.get(client)
    if connections:
        connections.discard(connection_id)
        if not connections:
            del clients[client]


def request_packet(context: RuleContext, method: str | None) -> int | None:
    """The packet of the client's last frame before a context's event, or None.

    With a method, the last frame with that method; on the event's channel unless that is 0. In a
    capture that begins midstream a side's frames may be read late: after later ones of the other.
    """
    if context.ts_ns is not None and context.session.last_client_ns > context.ts_ns:
        return None
    where: Any = context.session
    if context.channel is not None:
        where = where.slot(context.channel.number)
    if where is None or where.last_sent is None:
        return None
    number: int | None = where.last_sent.packet(method)
    return number


def objection(context: RuleContext) -> str:
    """A broker's close as text: code, reply text, and the frame that it answers."""
    frame = context.frame
    closed = context.session if context.channel is None else context.channel
    reply = reply_text(frame.reply_code, closed.close_text).rstrip(".")
    method = closed.close_method
    number = request_packet(context, method)
    if method is not None:
        return f"{reply}; answer to {method}{in_packet(number)}"
    if number:
        last = _last_method(context)
        name = f" {last}" if last else ""
        before = f"the client's last frame before is{name}{in_packet(number)}"
        return f"{reply}; {before}"
    return reply


def _last_method(context: RuleContext) -> str | None:
    """The method of the client's last frame before; None if it has none, or two came together."""
    number = request_packet(context, None)
    names = [name for name in set(NAMES) if number and request_packet(context, name) == number]
    return names[0] if len(names) == 1 else None


def is_first_close(context: RuleContext, side: int) -> bool:
    """True if the event is the close of the row, that of a side with an error."""
    session: Session = context.session
    channel: Channel = context.channel
    closed: Closeable = session if channel is None else channel
    if closed.close is None:
        return False
    code, text = closed.close[0], closed.close[1]
    if not code or (code < FIRST_ERROR_CODE and not (text and text.startswith(_EXCEPTION))):
        return False
    number = session.close_packet_number if channel is None else channel.closed_packet_number
    return bool(closed.closed_by == SIDES[side] and number == context.number)


RULES: dict[str, tuple[Rule, ...]] = {
    "connection.close": (_connection_closed, _closed_by_client),
    "channel.close": (_channel_closed, _closed_by_client),
    "connection.open-ok": (_opened,),
    "queue.declare": (_declared,),
    "connection.close-ok": (_ended,),
    "connection-ends": (_ended,),
}
