"""What a broker says when it closes a connection or channel with an error."""

from __future__ import annotations

import re
from typing import Any

from amqpsniff.session.rules.blame import is_first_close, objection
from amqpsniff.session.rules.guessing import note_refused_login
from amqpsniff.session.rules.opening import step
from amqpsniff.session.rules.peers import client_host, server_end, shown, user_of
from amqpsniff.session.rules.queues import Key, owner_words
from amqpsniff.session.rules.remedies import is_exclusive, remedy
from amqpsniff.session.rules.remembering import across, kept, report_at
from amqpsniff.session.rules.scene import Place, Rule, Scene
from amqpsniff.session.rules.wording import in_packet, number_of, reason_text

_QUEUE = re.compile(r"queue '(.*)' in vhost '(.*?)'")
"""A queue in a reply text of RabbitMQ."""

_LIMITS = ("limit", "channel_max")
"""Words of the reply texts that name a limit; measured on RabbitMQ 3.10.8."""


def _connection_closed(scene: Scene) -> None:
    if not is_first_close(scene):
        return
    code = _code_of(scene)
    _note_failure(scene, scene.session.close_text)
    if code == "authentication-failed":
        _, number = step(scene, "connection.start-ok")
        answer = f"{scene.event.reply_code} {reason_text(scene.session.close_text)}"
        scene.report("authentication-failed", f"{shown(scene)}{in_packet(number)}: {answer}")
        note_refused_login(scene)
    else:
        what, _ = remedy(scene.event.reply_code, scene.session.close_text)
        scene.report(code, objection(scene) + what)


def _code_of(scene: Scene) -> str:
    """The finding that says best why the broker closed the connection."""
    session = scene.session
    code, method = session.close_code, session.close_method
    text = (session.close_text or "").lower()
    if code == 320:
        return "connection-forced-closed"
    if code == 530 and "reached" in text and any(word in text for word in _LIMITS):
        return "limit-reached"
    if code in (403, 530) and method == "connection.open":
        return "vhost-refused"
    if code == 403 and "connection.open" not in session.facts and session.peer.began:
        return "authentication-failed"
    return "connection-closed-by-broker"


def _channel_closed(scene: Scene) -> None:
    if not is_first_close(scene):
        return
    code, text = scene.event.reply_code, scene.channel.close_text or ""
    _note_failure(scene, scene.channel.close_text)
    if code == 406 and "user_id property set to" in text:
        scene.report("user-id-refused", objection(scene))
    elif is_exclusive(code, text):
        place = scene.place._replace(capture=scene.channel.capture)
        what = (objection(scene), _queue_of(scene, text), scene.channel.number)
        across(scene, judge_locked, _client(scene), *what, place)


def _queue_of(scene: Scene, text: str) -> Key | None:
    """The queue that a broker's text names; None if it names none."""
    found = _QUEUE.search(text)
    return None if found is None else (server_end(scene), found[2], found[1])


def _note_failure(scene: Scene, text: str | None) -> None:
    """Why the connection failed; without its text it may be for any of many reasons."""
    if text is not None:
        scene.memory["failure"] = f"{scene.event.reply_code} {reason_text(text)}"


def judge_locked(
    scene: Scene,
    client: tuple[Any, ...],
    objected: str,
    queue: Key | None,
    channel: int,
    where: tuple[Any, ...],
) -> None:
    """A queue that belongs to another connection: which, or may it be one of the same client?"""
    place = Place(*where)
    more = owner_words(scene, queue, place)
    if not more:
        others = scene.everything.get("open", {}).get(client, set())
        count = len(others - {place.connection_id})
        more = f"this client has {number_of(count, 'other connection')} open" if count else ""
    detail = f"{objected}; {more}" if more else objected
    report_at(scene, place, "exclusive-queue-locked", detail, channel=channel)


def _client(scene: Scene) -> tuple[str, str, str | None]:
    """What is taken for one client: its address and user, at one server."""
    return client_host(scene), server_end(scene), user_of(scene)


def _opened(scene: Scene) -> None:
    if "client" not in scene.memory:
        client = scene.memory["client"] = _client(scene)
        across(scene, judge_opened, client, scene.session.peer.name()[0])


def judge_opened(scene: Scene, client: tuple[Any, ...], connection_id: str) -> None:
    """One more connection of a client is open."""
    connections: set[str] = kept(scene, "open", client, set)
    connections.add(connection_id)


def _ended(scene: Scene) -> None:
    client = scene.memory.get("client")
    if client is not None:
        across(scene, judge_ended, client, scene.session.peer.name()[0])


def judge_ended(scene: Scene, client: tuple[Any, ...], connection_id: str) -> None:
    """One connection of a client less is open."""
    clients = scene.everything.get("open", {})
    connections = clients.get(client)
    if connections:
        connections.discard(connection_id)
        if not connections:
            del clients[client]


RULES: dict[str, tuple[Rule, ...]] = {
    "connection.close": (_connection_closed,),
    "channel.close": (_channel_closed,),
    "connection.open-ok": (_opened,),
    "connection.close-ok": (_ended,),
    "connection-ends": (_ended,),
}
"""The rules of this module by occasion."""
