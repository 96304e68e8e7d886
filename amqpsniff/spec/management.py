"""Requests to RabbitMQ's node `/management`, as the methods of 0-9-1 that do the same.

A client of AMQP 1.0 declares, binds and deletes by requests: HTTP over AMQP, with the method in the
property `subject`, the path in `to`, and a map as the body. The answer has the status in `subject`
and the request's message-id as its correlation-id. Names in paths are percent-encoded. Source:
`rabbit_amqp_management.erl` of RabbitMQ 4.3, and what 4.3.6 answers.

`management` is the object of that name among the arguments of a transfer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

REFUSED = 400
"""The status of an answer from which on its request was refused."""

PATHS = (b"/queues/", b"/exchanges/", b"/bindings")
"""Beginnings of the paths of requests whose bodies are declarations; others may be secrets."""

_BINDING = re.compile(r"src=([^;]*);dst([eq])=([^;]*);key=([^;]*);args=(.*)", re.DOTALL)

_QUEUE: dict[str, Any] = {"durable": True, "exclusive": False, "auto_delete": False}
_EXCHANGE: dict[str, Any] = {
    "type": "direct", "durable": True, "auto_delete": False, "internal": False,
}  # fmt: skip
"""Fields of a declaration, with the values of those that it leaves out."""

Method = tuple[str, dict[str, Any]]
"""A method and its arguments."""


def as_method(management: Mapping[str, Any]) -> Method | None:
    """The method of 0-9-1 that a request stands for, and its arguments; None for another request.

    A declaration without its body is passive: it shows that something is there, and no more. The
    path of an unbinding has a hash for arguments: `arguments` is None then.
    """
    path, body = management.get("path"), management.get("body")
    if not isinstance(path, str):
        return None
    kind, segment, *rest = (*path.partition("?")[0].split("/")[1:], "", "")
    name = unquote(segment)
    request = f"{management.get('method')} {kind}"
    if request in ("PUT queues", "GET queues"):
        return "queue.declare", {"queue": name} | _declared(body, _QUEUE)
    if request == "PUT exchanges":
        return "exchange.declare", {"exchange": name} | _declared(body, _EXCHANGE)
    if request == "DELETE queues":
        return "queue.purge" if rest[0] == "messages" else "queue.delete", {"queue": name}
    if request == "DELETE exchanges":
        return "exchange.delete", {"exchange": name}
    if request == "POST bindings" and isinstance(body, dict):
        queue, exchange = body.get("destination_queue"), body.get("destination_exchange")
        key = body.get("binding_key", "")
        return _binding("bind", body.get("source"), queue, exchange, key, _table(body))
    found = _BINDING.fullmatch(segment) if request == "DELETE bindings" else None
    if found is None:
        return None
    source, destination, key = map(unquote, found.group(1, 3, 4))
    queue, exchange = (destination, None) if found[2] == "q" else (None, destination)
    return _binding("unbind", source, queue, exchange, key, None if found[5] else {})


def queue_of(management: Mapping[str, Any]) -> dict[str, Any] | None:
    """The queue in an answer: `name`, `message_count`, `consumer_count`, and the settings of its
    declaration. None for an answer without a queue.
    """
    body, status = management.get("body"), management.get("status")
    if not isinstance(body, dict) or not isinstance(status, int) or status >= REFUSED:
        return None
    return body if isinstance(body.get("name"), str) else None


def bindings_in(management: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The paths of the bindings that an answer lists, with their arguments."""
    body = management.get("body")
    for binding in body if isinstance(body, list) else ():
        if isinstance(binding, dict) and isinstance(binding.get("location"), str):
            yield binding["location"], _table(binding)


def declared_queue(body: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a queue's declaration, from the body of an answer."""
    settings = (*_QUEUE, "arguments")
    return _declared({name: body[name] for name in settings if name in body}, _QUEUE)


def _declared(body: Any, usual: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a declaration: those of its body, and for the others `usual` ones.

    RabbitMQ refuses a body with further fields, so one that has them was not captured whole.
    """
    if not isinstance(body, dict) or not body.keys() <= {*usual, "arguments"}:
        return {"passive": True}
    given = {
        name: body[name] for name, value in usual.items() if type(body.get(name)) is type(value)
    }
    return usual | given | {"arguments": _table(body)}


def _table(body: dict[str, Any]) -> dict[str, Any]:
    found = body.get("arguments")
    return found if isinstance(found, dict) else {}


def _binding(
    verb: str, source: Any, queue: Any, exchange: Any, key: Any, arguments: dict[str, Any] | None
) -> Method | None:
    """A method that binds or unbinds; None if its names are no texts."""
    names = (source, key, exchange if queue is None else queue)
    if not all(isinstance(name, str) for name in names):
        return None
    further = {"routing_key": key, "arguments": arguments}
    if queue is None:
        return f"exchange.{verb}", {"destination": exchange, "source": source} | further
    return f"queue.{verb}", {"queue": queue, "exchange": source} | further
