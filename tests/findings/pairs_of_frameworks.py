"""Pairs for what packs say of messages: one header, name or number apart."""

from __future__ import annotations

from tests.findings.cases import Pair
from tests.findings.pairs_of_bytes import OPEN
from tests.findings.pairs_of_peers import CONSUMER, table
from tests.findings.phrases import END

_NSB = {"NServiceBus.EnclosedMessageTypes": "Shop.Bill, Shop", "NServiceBus.MessageId": "m"}
_ERROR = "NServiceBus.ExceptionInfo.ExceptionType"
_TRACE = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}


def _published(headers: dict[str, object], more: str = "") -> str:
    return f"C1: basic.publish routing_key=q {more} | body=5 headers='{table(**headers)}'\n"


def _failed(name: str, **more: str) -> str:
    return OPEN + _published(_NSB | {name: "System.TimeoutException"} | more)


def _tried(times: int) -> str:
    return OPEN + _published({"task": "bill", "id": "t", "retries": times})


def _typed(exchange: str, kind: str) -> str:
    return OPEN + f"C1: basic.publish exchange={exchange} | body=5 content_type={kind}\n"


def _delayed(ms: int) -> str:
    """A message that is to come 5 s later, and comes after a time."""
    sent = table(**{"x-delay": 5000})
    came = table(**{"x-delay": -5000})
    return (
        CONSUMER
        + f"C1: basic.publish exchange=later | body=5 message_id=m headers='{sent}'\n"
        + f"@+{ms}ms S1: basic.deliver exchange=later delivery_tag=1 consumer_tag=c "
        + f"| body=5 message_id=m headers='{came}'\n"
    )


def _delayed_by_levels(ms: int) -> str:
    """The same in the levels of NServiceBus: the routing key has the seconds in bits."""
    key = ".".join(f"{5:028b}") + ".bills"
    headers = table(**_NSB)
    return (
        CONSUMER
        + f"C1: basic.publish exchange=nsb.v2.delay-level-02 routing_key={key} "
        + f"| body=5 message_id=m headers='{headers}'\n"
        + f"@+{ms}ms S1: basic.deliver exchange=nsb.v2.delay-delivery routing_key={key} "
        + f"delivery_tag=1 consumer_tag=c | body=5 message_id=m headers='{headers}'\n"
    )


def _delivered(name: str = "traceparent", exchange: str = "x", value: object = None) -> str:
    headers = table(**{name: value or _TRACE["traceparent"]})
    return (
        f"S1: basic.deliver exchange={exchange} delivery_tag={{n}} consumer_tag=c "
        f"| body=5 headers='{headers}'\n"
    )


def _traced(first: str) -> str:
    """Messages with the context of a trace come, others without it go."""
    came = "".join(_delivered().replace("{n}", str(n)) for n in (1, 2, 3))
    headers = {first: _TRACE["traceparent"]}
    return CONSUMER + came + _published(headers) + "C1: basic.publish routing_key=q | body=5\n" * 3


def _moved(*names: str) -> str:
    hops = [{"shovel-name": name} for name in names]
    return OPEN + _published({"x-shovelled": hops})


def _told(command: str) -> str:
    body = table(method=command, arguments={}, ticket="t")
    start = OPEN.replace("handshake", """handshake client='{"product": "py-amqp"}'""", 1)
    return start + f"C1: basic.publish exchange=celery.pidbox | body='text:{body}'\n"


def _expiring(text: str) -> str:
    headers = table(task="bill", id="t", expires=text)
    return CONSUMER + (
        f"S1: basic.deliver exchange=x delivery_tag=1 consumer_tag=c | body=5 headers='{headers}'\n"
    )


_ASKED = {
    "NServiceBus.MessageId": "r5", "NServiceBus.ReplyToAddress": "q",
    "NServiceBus.EnclosedMessageTypes": "Shop.Bill", "NServiceBus.MessageIntent": "Send",
}  # fmt: skip
_REPLY = {"NServiceBus.RelatedTo": "r5", "NServiceBus.MessageIntent": "Reply"}


def _answered(times: int) -> str:
    """Two requests, one of which is answered so many times, the other one once."""
    other = _ASKED | {"NServiceBus.MessageId": "r13"}
    replies = [_REPLY | {"NServiceBus.MessageId": f"a{n}"} for n in range(times)]
    replies.append(_REPLY | {"NServiceBus.MessageId": "b", "NServiceBus.RelatedTo": "r13"})
    return OPEN + "".join(map(_published, (_ASKED, other, *replies)))


def _by_another(script: str) -> str:
    """A script of another connection."""
    return "".join(f"b.{line}\n" for line in script.splitlines())


def _two_formats(name: str) -> str:
    """Two clients of a virtual host publish with the context of traces."""
    other = OPEN + _published({name: "80f198ee56343ba8-05e3ac9a4f6e3b90"})
    return OPEN + _published(_TRACE) + _by_another(other)


def _delays(last_ms: int) -> str:
    """40 queues that keep messages for a time, the last of them for that."""
    delays_ms = [*range(1000, 40_000, 1000), last_ms]
    arguments = [
        table(**{"x-message-ttl": delay_ms, "x-dead-letter-exchange": ""}) for delay_ms in delays_ms
    ]
    return OPEN + "".join(
        f"C1: queue.declare queue=q.delay.{n} arguments='{one}'\nS1: queue.declare-ok\n"
        for n, one in enumerate(arguments)
    )


def _stream(*offsets: int) -> str:
    headers = (table(**{"x-stream-offset": offset}) for offset in offsets)
    return CONSUMER + "".join(
        f"S1: basic.deliver delivery_tag={n} consumer_tag=t | body=5 headers='{one}'\n"
        for n, one in enumerate(headers, 1)
    )


def _streams(last: int, first: int) -> str:
    """A consumer of a stream, and another one of the client after it."""
    return _stream(last) + END + _by_another(_stream(first))


_DEATHS = [
    {"reason": "expired", "queue": "work", "count": 1, "exchange": "", "routing-keys": ["k"]}
]

PAIRS: dict[str, Pair] = {
    "operation-failed": Pair(_failed(_ERROR), _failed(_ERROR + "s")),
    "retries-exhausted": Pair(
        _failed(_ERROR, **{"NServiceBus.FailedQ": "bills"}),
        _failed(_ERROR, **{"NServiceBus.FailedX": "bills"}),
    ),
    "operation-retried": Pair(_tried(5), _tried(4)),
    "message-skipped": Pair(
        _typed("bills_skipped", "application/vnd.masstransit+json"),
        _typed("bills_error", "application/vnd.masstransit+json"),
    ),
    "delay-missed": Pair(_delayed(6_001), _delayed(6_000)),
    "delay-too-long": Pair(
        OPEN + _published({"x-delay": 86_400_001}), OPEN + _published({"x-delay": 86_400_000})
    ),
    "message-loops": Pair(_moved("a", "b", "a"), _moved("a", "b", "c")),
    "workers-controlled": Pair(_told("shutdown"), _told("stats")),
    "message-expired": Pair(_expiring("1970-01-02T00:00:00+00:00"), _expiring("2170-01-01")),
    "rpc-answered-twice": Pair(_answered(2), _answered(1)),
    "trace-context-lost": Pair(_traced("tracepart"), _traced("traceparent")),
    "serialized-code": Pair(
        _typed("x", "application/x-python-serialize"), _typed("x", "application/json")
    ),
    "firehose-on": Pair(
        CONSUMER + _delivered(exchange="amq.rabbitmq.trace").replace("{n}", "1"),
        CONSUMER + _delivered(exchange="amq.rabbitmq.event").replace("{n}", "1"),
    ),
    "trace-context-mixed": Pair(_two_formats("b3"), _two_formats("b4")),
    "delay-queues-many": Pair(_delays(40_000), _delays(39_000)),
    "stream-start-next": Pair(_streams(7, 9), _streams(7, 8)),
    "stream-reread": Pair(_streams(500, 400), _streams(500, 401)),
    "stream-offset-gap": Pair(_stream(1, 102), _stream(1, 101)),
    "dead-lettered": Pair(
        CONSUMER + _delivered("x-death", value=_DEATHS).replace("{n}", "1"),
        CONSUMER + _delivered("x-birth", value=_DEATHS).replace("{n}", "1"),
    ),
}
"""By code: scripts that differ in one message."""

CONDITIONS: dict[str, Pair] = {
    "delay-missed in levels": Pair(_delayed_by_levels(6_001), _delayed_by_levels(6_000)),
}
"""Other ways to a finding."""
