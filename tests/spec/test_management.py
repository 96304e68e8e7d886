"""Requests to RabbitMQ's management, as the methods of 0-9-1 that they stand for."""

from __future__ import annotations

from typing import Any

import pytest

from amqpsniff.spec.management import as_method, bindings_in, declared_queue, queue_of

QUEUE = {"durable": True, "exclusive": False, "auto_delete": False, "arguments": {}}
EXCHANGE = {
    "type": "direct", "durable": True, "auto_delete": False, "internal": False, "arguments": {},
}  # fmt: skip
BINDING = {"source": "x", "destination_queue": "q", "binding_key": "k"}
BOUND = {"exchange": "x", "queue": "q", "routing_key": "k", "arguments": {}}


@pytest.mark.parametrize(
    ("method", "path", "body", "meant"),
    [
        ("PUT", "/queues/a%2Fb%20%C3%BC", {}, ("queue.declare", {"queue": "a/b ü"} | QUEUE)),
        ("PUT", "/queues/q", {"durable": False, "arguments": {"x-queue-type": "classic"}},
         ("queue.declare",
          {"queue": "q"} | QUEUE | {"durable": False, "arguments": {"x-queue-type": "classic"}})),
        ("PUT", "/queues/q", {"exclusive": 1, "arguments": []},
         ("queue.declare", {"queue": "q"} | QUEUE)),
        ("PUT", "/queues/q", None, ("queue.declare", {"queue": "q", "passive": True})),
        ("PUT", "/queues/q", {"xxxxxxx": True},
         ("queue.declare", {"queue": "q", "passive": True})),
        ("GET", "/queues/q", None, ("queue.declare", {"queue": "q", "passive": True})),
        ("PUT", "/exchanges/x", {"type": "topic"},
         ("exchange.declare", {"exchange": "x"} | EXCHANGE | {"type": "topic"})),
        ("DELETE", "/queues/q", None, ("queue.delete", {"queue": "q"})),
        ("DELETE", "/queues/q/messages", None, ("queue.purge", {"queue": "q"})),
        ("DELETE", "/exchanges/x", None, ("exchange.delete", {"exchange": "x"})),
        ("POST", "/bindings", BINDING, ("queue.bind", BOUND)),
        ("POST", "/bindings",
         {"source": "x", "destination_exchange": "y", "arguments": {"x-match": "all"}},
         ("exchange.bind",
          {"source": "x", "destination": "y", "routing_key": "", "arguments": {"x-match": "all"}})),
        ("DELETE", "/bindings/src=x;dstq=q;key=k;args=", None, ("queue.unbind", BOUND)),
        ("DELETE", "/bindings/src=x;dste=y;key=a.%23;args=Abc", None,
         ("exchange.unbind",
          {"source": "x", "destination": "y", "routing_key": "a.#", "arguments": None})),
        ("GET", "/bindings?src=x&dstq=q&key=", None, None),
        ("PUT", "/auth/tokens", None, None),
        ("POST", "/bindings", {"source": "x", "destination_queue": 1}, None),
        ("POST", "/bindings", None, None),
        ("DELETE", "/bindings/nothing", None, None),
        (None, None, None, None),
        (["PUT"], "/queues", {}, None),
    ],
)  # fmt: skip
def test_methods(method: Any, path: Any, body: Any, meant: Any) -> None:
    """Names are decoded, what a body does not say is as RabbitMQ takes it."""
    assert as_method({"method": method, "path": path, "body": body}) == meant


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (200, {"name": "q", "message_count": 3, "leader": "n", "durable": True}, True),
        (201, {"name": "q"}, True),
        (200, {"message_count": 3}, False),
        (404, "no queue 'q'", False),
        (409, {"name": "q"}, False),
        ("200", {"name": "q"}, False),
        (200, {"name": {"base64": ""}}, False),
    ],
)
def test_queues_of_answers(status: Any, body: Any, told: bool) -> None:
    """An answer tells of a queue if it was not refused and names it."""
    found = queue_of({"status": status, "body": body})
    assert (found is body) is told
    assert found is None or declared_queue(found) == QUEUE


def test_bindings_of_answers() -> None:
    """Paths of bindings with their arguments; what is no binding is passed over."""
    said = {"body": [{"location": "/a", "arguments": {"x": 1}}, {"location": 1}, 2]}
    assert list(bindings_in(said)) == [("/a", {"x": 1})]
    assert not list(bindings_in({}))
