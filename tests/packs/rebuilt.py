"""Messages as frameworks write them, a row each, rebuilt from what their sources say.

Only what recognises a message and what columns are made of is here. What was captured from a real
program is in `tests/captures/packs`.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tests import encoder
from tests.decode.script import method
from tests.encoder import Field


class Rebuilt(NamedTuple):
    """A published message, and what its columns say beside `framework`."""

    pack: str
    framework: str | None
    meaning: dict[str, Any]
    headers: dict[str, Any] | None = None
    body: Any = None
    exchange: str = ""
    routing_key: str = "q"
    properties: dict[str, str] | None = None

    def octets(self) -> bytes:
        """Its frames."""
        given: dict[str, Any] = {
            name: text.encode() for name, text in (self.properties or {}).items()
        }
        if self.headers:
            given["headers"] = _table(self.headers)
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        body = b"" if self.body is None else body
        where = {"exchange": self.exchange.encode(), "routing_key": self.routing_key.encode()}
        return b"".join(
            [
                method("basic.publish", **where),
                encoder.header(1, 60, len(body), properties=given),
                encoder.body(1, body) if body else b"",
            ]
        )


def _table(values: dict[str, Any]) -> list[tuple[bytes, Field]]:
    return [(name.encode(), _field(value)) for name, value in values.items()]


def _field(value: Any) -> Field:
    if value is None:
        return Field("V", None)
    if isinstance(value, bool):
        return Field("t", value)
    if isinstance(value, int):
        return Field("l", value)
    if isinstance(value, dict):
        return Field("F", _table(value))
    if isinstance(value, list):
        return Field("A", [_field(one) for one in value])
    return Field("S", value.encode())


TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"
STAMP = "X-Message-Stamp-Symfony\\Component\\Messenger\\Stamp\\"
BITS = ".".join(f"{5:028b}")

ROWS = (
    Rebuilt(
        "celery-task",
        "celery",
        {"operation": "shop.tasks.bill", "message_key": "t2", "conversation_key": "t1",
         "parent_key": "t1", "retry_count": 2, "not_before": 1767225600000000},
        {"lang": "py", "task": "shop.tasks.bill", "id": "t2", "root_id": "t1", "parent_id": "t1",
         "retries": 2, "eta": "2026-01-01T00:00:00+00:00", "shadow": None},
        [[], {}, {}],
    ),
    Rebuilt(
        "celery-task-v1",
        "celery",
        {"operation": "shop.tasks.bill", "message_key": "t3", "retry_count": 0},
        {},
        {"task": "shop.tasks.bill", "id": "t3", "args": [], "kwargs": {}, "retries": 0,
         "eta": None},
    ),
    Rebuilt(
        "celery-event",
        "celery-event",
        {"operation": "task.succeeded", "parent_key": "t3"},
        {"hostname": "celery@one"},
        {"type": "task-succeeded", "uuid": "t3", "runtime": 0.1},
        "celeryev",
        "task.succeeded",
    ),
    Rebuilt(
        "celery-control",
        "celery-control",
        {"operation": "ping", "message_key": "k1"},
        {"clock": 1, "expires": 0},
        {"method": "ping", "arguments": {}, "destination": None, "ticket": "k1"},
        "celery.pidbox",
        "",
    ),
    Rebuilt(
        "celery-result",
        "celery-result",
        {"operation": "FAILURE", "message_key": "t3", "error_type": "KeyError"},
        {},
        {"task_id": "t3", "status": "FAILURE", "traceback": "Traceback",
         "result": {"exc_type": "KeyError", "exc_message": ["x"], "exc_module": "builtins"}},
    ),
    Rebuilt(
        "celery-delayed",
        "celery",
        {"operation": "celery", "not_before": 5_000_001},
        {},
        None,
        "celery_delayed_2",
        f"{BITS}.celery",
    ),
    Rebuilt(
        "spring-amqp",
        "spring-amqp",
        {"operation": "com.shop.Order"},
        {"__TypeId__": "com.shop.Order"},
        {"id": 1},
        "orders",
        "new",
        {"content_type": "application/json"},
    ),
    Rebuilt(
        "spring-republished",
        "spring-amqp",
        {"operation": "com.shop.Order", "error_type": "java.lang.IllegalStateException"},
        {"__TypeId__": "com.shop.Order", "x-original-routingKey": "new",
         "x-exception-stacktrace": "org.springframework.X: failed\n\tat a.B\n"
         "Caused by: java.lang.IllegalStateException: no stock\n\tat c.D\n\t... 4 more\n"},
    ),
    Rebuilt("spring-cloud-stream", "spring-cloud-stream", {}, {"scst_partition": 1}),
    Rebuilt(
        "masstransit",
        "masstransit",
        {"operation": "Shop:SubmitOrder", "message_key": "m1", "conversation_key": "c1",
         "parent_key": "i1"},
        {},
        {"messageId": "m1", "requestId": "r1", "conversationId": "c1", "initiatorId": "i1",
         "destinationAddress": "rabbitmq://host/submit",
         "messageType": ["urn:message:Shop:SubmitOrder", "urn:message:Shop:Order"],
         "message": {"orderId": 1}},
        "Shop:SubmitOrder",
        "",
        {"content_type": "application/vnd.masstransit+json"},
    ),
    Rebuilt(
        "masstransit-courier",
        "masstransit",
        {"conversation_key": "s1"},
        {},
        {"trackingNumber": "s1", "itinerary": [], "activityLogs": []},
    ),
    Rebuilt(
        "nservicebus",
        "nservicebus",
        {"operation": "Shop.PlaceOrder", "message_key": "m2", "conversation_key": "c2",
         "parent_key": "m1", "retry_count": 1, "error_type": "System.Exception"},
        {"NServiceBus.MessageId": "m2", "NServiceBus.ConversationId": "c2",
         "NServiceBus.RelatedTo": "m1", "NServiceBus.Retries": "1",
         "NServiceBus.EnclosedMessageTypes": "Shop.PlaceOrder, Shop, Version=1.0.0.0",
         "NServiceBus.ExceptionInfo.ExceptionType": "System.Exception"},
        None,
        "error",
        "",
        {"message_id": "m2"},
    ),
    Rebuilt(
        "easynetq",
        "easynetq",
        {"operation": "Shop.Order"},
        {},
        {"Id": 1},
        "Shop.Order, Shop",
        "",
        {"type": "Shop.Order, Shop"},
    ),
    Rebuilt(
        "easynetq-error",
        "easynetq",
        {"operation": "Shop.Order", "error_type": "System.TimeoutException"},
        {},
        {"RoutingKey": "", "Exception": "System.TimeoutException: late\n   at Shop",
         "BasicProperties": {"Type": "Shop.Order, Shop"}},
        "ErrorExchange_",
    ),
    Rebuilt(
        "rebus",
        "rebus",
        {"operation": "Shop.Order", "message_key": "m3", "conversation_key": "c3",
         "not_before": 1767225600000000, "retry_count": 2},
        {"rbs2-msg-id": "m3", "rbs2-msg-type": "Shop.Order, Shop", "rbs2-corr-id": "c3",
         "rbs2-deferred-until": "2026-01-01T00:00:00.0000000+00:00", "rbs2-defer-count": "2"},
    ),
    Rebuilt(
        "wolverine",
        "wolverine",
        {"operation": "Shop.Order", "message_key": "m4", "conversation_key": "c4",
         "retry_count": 1},
        {"conversation-id": "c4", "sent-at": "2026-01-01 00:00:00:000000 Z", "attempts": 1},
        properties={"type": "Shop.Order", "message_id": "m4"},
    ),
    Rebuilt(
        "wolverine-ping",
        "wolverine",
        {"operation": "wolverine-ping"},
        properties={"type": "wolverine-ping"},
    ),
    Rebuilt(
        "nameko",
        "nameko",
        {"operation": "cart.add", "message_key": "cart.add.3", "conversation_key": "web.get.1",
         "parent_key": "shop.buy.2"},
        {"nameko.call_id_stack": ["web.get.1", "shop.buy.2", "cart.add.3"]},
        {"args": [], "kwargs": {}},
        "nameko-rpc",
        "cart.add",
    ),
    Rebuilt(
        "nameko-reply",
        "nameko",
        {"error_type": "ValueError"},
        {},
        {"result": None, "error": {"exc_type": "ValueError", "value": "sold out"}},
        "nameko-rpc",
        "b54ab3ac-95a9-4208-9872-6ee6193d3250",
    ),
    Rebuilt(
        "dramatiq",
        "dramatiq",
        {"operation": "resize", "message_key": "d1", "retry_count": 1,
         "not_before": 1767225600000000, "error_type": "shop.Broken"},
        {},
        {"queue_name": "default", "actor_name": "resize", "args": [], "kwargs": {},
         "options": {"retries": 1, "eta": 1767225600000,
                     "traceback": "Traceback (most recent call last):\n  File\nshop.Broken: no\n"},
         "message_id": "d1", "message_timestamp": 1},
    ),
    Rebuilt(
        "sneakers",
        "sneakers",
        {"operation": "thumbs", "retry_count": 3, "error_type": "IOError"},
        {"retry_info": json.dumps({"num_attempts": 3, "error_class": "IOError"})},
        None,
        "thumbs-error",
        "thumbs",
    ),
    Rebuilt(
        "hutch",
        "hutch",
        {"operation": "shop.order.paid", "message_key": "h1"},
        {},
        {"id": 1},
        "hutch",
        "shop.order.paid",
        {"message_id": "h1"},
    ),
    Rebuilt(
        "symfony-messenger",
        "symfony-messenger",
        {"operation": "App\\Order", "retry_count": 2, "error_type": "RuntimeException"},
        {"type": "App\\Order", f"{STAMP}BusNameStamp": '[{"busName":"bus"}]',
         f"{STAMP}RedeliveryStamp": '[{"retryCount":1},{"retryCount":2}]',
         f"{STAMP}ErrorDetailsStamp": '[{"exceptionClass":"RuntimeException"}]'},
    ),
    Rebuilt(
        "laravel",
        "laravel",
        {"operation": "App\\Jobs\\Bill", "message_key": "l1", "retry_count": 2},
        {"laravel": {"attempts": 2}},
        {"uuid": "l1", "displayName": "App\\Jobs\\Bill", "job": "CallQueuedHandler@call"},
    ),
    Rebuilt(
        "oslo-messaging",
        "oslo.messaging",
        {"operation": "build_instance", "message_key": "u1", "conversation_key": "req-1",
         "parent_key": "call1"},
        {},
        {"oslo.version": "2.0", "oslo.message": json.dumps(
            {"method": "build_instance", "args": {}, "_msg_id": "call1", "_unique_id": "u1",
             "_context_request_id": "req-1"})},
        "nova",
        "compute",
    ),
    Rebuilt(
        "oslo-notification",
        "oslo.messaging",
        {"operation": "instance.create", "message_key": "n1"},
        {},
        {"message_id": "n1", "publisher_id": "compute.host1", "event_type": "instance.create",
         "_unique_id": "u1"},
        "openstack",
        "notifications.info",
    ),
    Rebuilt(
        "firehose",
        "rabbitmq",
        {"operation": "publish.orders"},
        {"exchange_name": "orders"},
        exchange="amq.rabbitmq.trace",
        routing_key="publish.orders",
    ),
    Rebuilt("trace-w3c", None, {"trace_id": TRACE, "span_id": SPAN}, {"traceparent": TRACEPARENT}),
    Rebuilt(
        "trace-b3", None, {"trace_id": TRACE, "span_id": SPAN}, {"b3": f"{TRACE}-{SPAN}-1"}
    ),
    Rebuilt(
        "trace-jaeger",
        None,
        {"trace_id": TRACE, "span_id": SPAN},
        {"uber-trace-id": f"{TRACE}%3A{SPAN}%3A0%3A1"},
    ),
    Rebuilt(
        "trace-sentry",
        None,
        {"trace_id": TRACE, "span_id": SPAN},
        {"headers": {"sentry-trace": f"{TRACE}-{SPAN}-1"}},
    ),
    Rebuilt(
        "trace-datadog",
        None,
        {"trace_id": "00000000000004d2", "span_id": "000000000000162e"},
        {"x-datadog-trace-id": "1234", "x-datadog-parent-id": "5678"},
    ),
    Rebuilt("trace-userver", None, {"trace_id": "abc", "span_id": "d"},
            {"u-trace-id": "abc", "u-span-id": "d"}),
    Rebuilt("quorum-redelivery", None, {"retry_count": 4}, {"x-delivery-count": 4}),
    Rebuilt(
        "dead-letter",
        None,
        {"retry_count": 3},
        {"x-death": [{"count": 3, "reason": "expired", "queue": "q"}, {"count": 9}]},
    ),
    Rebuilt("delayed-exchange", None, {"not_before": 2_000_001}, {"x-delay": 2000}),
    Rebuilt("shovel", None, {}, {"x-shovelled": [{"shovel-name": "dr"}, {"shovel-name": "dr"}]}),
    Rebuilt("federation", None, {}, {"x-received-from": [{"uri": "amqp://up", "visit-count": 2}]}),
    Rebuilt("trace-none", None, {}, {"tracestate": "a=1"}),
    Rebuilt("broker-interceptors", None, {}, {"timestamp_in_ms": 1_700_000_000_000}),
    Rebuilt("dotnet-client", None, {}, {"x-dotnet-pub-seq-no": 1}),
    Rebuilt("sender-selected", None, {}, {"CC": ["a"]}),
    Rebuilt("stream", None, {}, {"x-stream-offset": 7}),
    Rebuilt("pickle", None, {}, properties={"content_type": "application/x-python-serialize"}),
    Rebuilt(
        "java-serialized",
        None,
        {},
        properties={"content_type": "application/x-java-serialized-object"},
    ),
)  # fmt: skip
"""One message for each pack that recognises messages; its time is 1 µs after 1970."""
