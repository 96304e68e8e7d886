"""Pairs for what packs say of messages: one header, name or number apart."""

from __future__ import annotations

from tests.findings.cases import Pair
from tests.findings.pairs_of_bytes import OPEN
from tests.findings.pairs_of_peers import CONSUMER, DELIVER, table
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


def _federated(count: int) -> str:
    hops = [{"uri": f"amqp://b{number}", "exchange": "e"} for number in range(count)]
    return OPEN + _published({"x-received-from": hops}).replace(
        "C1: basic.publish", "S1: basic.deliver consumer_tag=c delivery_tag=1"
    )


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


_KOMBU = """handshake client='{"product": "py-amqp"}'"""


def _from(client: str, *more: str) -> str:
    """Messages of a client."""
    return OPEN.replace("handshake", client, 1) + "".join(more)


def _body(name: str, **body: object) -> str:
    """A publish with a JSON body."""
    return f"C1: basic.publish routing_key={name} | body='text:{table(**body)}'\n"


def _declared(method: str, more: str = "", answer: str = "") -> str:
    return f"C1: {method} {more}\nS1: {method}-ok {answer}\n"


def _later(script: str) -> str:
    """A script, and the end of its connection after a while."""
    return script + "WAIT 11000\n" + END


_DEAD = table(**{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q.XQ"})
_DLX = table(**{"x-dead-letter-exchange": "dead"})


def _rejected(requeue: int) -> str:
    """A delivery of a queue that has dead letters is rejected."""
    return _later(
        OPEN
        + _declared("queue.declare", f"queue=q arguments='{_DEAD}'", "queue=q")
        + _declared("basic.consume", "queue=q consumer_tag=t")
        + DELIVER.replace("{n}", "1")
        + f"C1: basic.reject delivery_tag=1 requeue={requeue}\n"
    )


def _absent(name: str) -> str:
    """The broker has no exchange of a name."""
    text = f"reply_text=\"NOT_FOUND - no exchange '{name}' in vhost '/'\""
    return (
        OPEN
        + _declared("queue.declare", f"queue=q arguments='{_DLX}'", "queue=q")
        + "C1: basic.publish exchange=dead | body=1\n"
        + f"S1: channel.close reply_code=404 {text} class_id=60 method_id=40\n"
        + "C1: channel.close-ok\n"
    )


def _to_delayed(mandatory: int) -> str:
    return (
        OPEN
        + _declared("exchange.declare", "exchange=e type=x-delayed-message")
        + f"C1: basic.publish exchange=e mandatory={mandatory} | body=1\n"
    )


def _numbered(*numbers: int) -> str:
    """Publishes with the numbers that the client gives them."""
    return (
        OPEN
        + _declared("confirm.select")
        + "".join(_published({"x-dotnet-pub-seq-no": number}) for number in numbers)
    )


def _copied(count: int) -> str:
    return OPEN + _published({"CC": [f"q{n}" for n in range(count)]})


def _tried_job(attempts: int) -> str:
    """Two jobs of Laravel: from the first one on bodies are looked at."""
    headers = table(laravel={"attempts": attempts})
    body = table(displayName="Bill", job="x", maxTries=3)
    first = _published({"laravel": {"attempts": 0}})
    return (
        OPEN
        + first
        + (f"C1: basic.publish routing_key=q | body='text:{body}' headers='{headers}'\n")
    )


def _to_service_bus(more: str) -> str:
    client = """handshake client='{"client_api": "NServiceBus"}'"""
    return CONSUMER.replace("handshake", client, 1) + (
        f"S1: basic.deliver exchange=x delivery_tag=1 consumer_tag=t | body=5 {more}\n"
    )


def _received(ms: int) -> str:
    """A delivery with the time at which the broker got the message."""
    return CONSUMER + _delivered("timestamp_in_ms", value=str(ms)).replace("{n}", "1")


def _protocols(name: str) -> str:
    """A task in protocol 2, and one in protocol 1."""
    old = {name: "bill", "id": "t1", "args": [], "kwargs": {}}
    return _from(_KOMBU, _published({"task": "bill", "id": "t2"}), _body("q", **old))


def _bound_to(kind: str) -> str:
    return (
        OPEN
        + _declared("exchange.declare", "exchange=celery_delayed_delivery type=topic")
        + _declared("exchange.declare", f"exchange=tasks type={kind}")
        + _declared("queue.bind", "queue=q exchange=tasks routing_key=bill")
        + _published({"task": "bill", "id": "t"})
    )


def _due(minute: int) -> str:
    """A task that comes 22:13 and is due later."""
    server = """handshake server='{"product": "RabbitMQ", "version": "3.12.0"}'"""
    headers = table(task="bill", id="t", eta=f"2023-11-14T22:{minute}:30+00:00")
    return CONSUMER.replace("handshake", server, 1) + (
        f"S1: basic.deliver exchange=x delivery_tag=1 consumer_tag=t | body=5 headers='{headers}'\n"
    )


def _sampled(last: str) -> str:
    """30 traces, of which the last one has these flags."""
    flags = ["00"] * 29 + [last]
    return OPEN + "".join(
        _published({"traceparent": f"00-{n + 1:032x}-00f067aa0ba902b7-{one}"})
        for n, one in enumerate(flags)
    )


def _leaked(ms: int) -> str:
    """Messages with one trace, the last of them later."""
    return OPEN + _published(_TRACE) * 4 + f"WAIT {ms}\n" + _published(_TRACE)


def _result(name: str) -> str:
    return _later(_from(_KOMBU, _body("reply", **{name: "t", "status": "SUCCESS", "result": 1})))


def _notified(name: str) -> str:
    body = table(**{name: "u", "event_type": "up", "publisher_id": "nova"})
    key = "routing_key=notifications.info"
    return _later(
        _from(
            _KOMBU,
            _declared("exchange.declare", "exchange=nova type=topic"),
            _declared("queue.bind", f"queue=notifications.info exchange=nova {key}"),
            f"C1: basic.publish exchange=nova {key} | body='text:{body}'\n",
        )
    )


def _inspected(replies: int) -> str:
    """Two workers get a command; so many answer."""
    body = table(method="ping", arguments={}, ticket="k", reply_to={"routing_key": "r"})
    headers = table(ticket="k")
    worker = _declared("basic.consume", "queue=w consumer_tag=t") + (
        f"S1: basic.deliver exchange=celery.pidbox delivery_tag=1 consumer_tag=t "
        f"| body='text:{body}'\n"
    )
    answer = (
        "C1: basic.publish exchange=reply.celery.pidbox routing_key=r "
        f"| body=2 headers='{headers}'\n"
    )
    asker = _from(
        _KOMBU,
        _declared("basic.consume", "queue=r consumer_tag=t"),
        f"C1: basic.publish exchange=celery.pidbox | body='text:{body}'\n",
    )
    workers = [
        _by_another(_from(_KOMBU, worker, answer if n < replies else "")).replace("b.", f"w{n}.")
        for n in range(2)
    ]
    return asker + "".join(workers) + "WAIT 11000\n" + END


def _typed_exchange(name: str) -> str:
    """An event of MassTransit to an exchange that is bound to nothing; another one is bound."""
    return (
        OPEN
        + _declared("exchange.declare", f"exchange={name} type=fanout")
        + _declared("queue.bind", "queue=q exchange=Shop:Paid")
        + f"C1: basic.publish exchange={name} "
        "| body=1 content_type=application/vnd.masstransit+json\n"
    )


def _worker_of_dramatiq(queue: str) -> str:
    """A worker publishes a message that failed once more."""
    options = {"traceback": "Traceback\n  File\nshop.Broken: no"}
    body = {"actor_name": "resize", "message_id": "d", "queue_name": "q", "options": options}
    return OPEN + _declared("queue.declare", f"queue={queue}") + _body("q", **body)


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
    "federation-hops": Pair(_federated(2), _federated(1)),
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
    "dead-letter-unread": Pair(_rejected(0), _rejected(1)),
    "dead-letter-target-missing": Pair(_absent("dead"), _absent("deaf")),
    "delayed-mandatory": Pair(_to_delayed(1), _to_delayed(0)),
    "publish-number-wrong": Pair(_numbered(2, 3, 4), _numbered(2, 3, 3)),
    "headers-near-frame-limit": Pair(
        OPEN + _published({"stack": "x" * 65_530}), OPEN + _published({"stack": "x" * 65_500})
    ),
    "header-secret": Pair(
        OPEN + _published({"nameko.auth_token": "t"}, "exchange=nameko-rpc"),
        OPEN + _published({"nameko.auth_taken": "t"}, "exchange=nameko-rpc"),
    ),
    "fanout-by-header": Pair(_copied(11), _copied(10)),
    "attempts-exceeded": Pair(_tried_job(3), _tried_job(2)),
    "message-id-missing": Pair(_to_service_bus(""), _to_service_bus("message_id=m")),
    "delay-levels-old": Pair(
        OPEN + _published(_NSB, "exchange=nsb.delay-level-02"),
        OPEN + _published(_NSB, "exchange=nsb.v2.delay-level-02"),
    ),
    "clocks-differ": Pair(_received(1_700_000_001_100), _received(1_700_000_001_000)),
    "celery-protocol-mixed": Pair(_protocols("task"), _protocols("tusk")),
    "celery-delay-direct-exchange": Pair(_bound_to("direct"), _bound_to("topic")),
    "eta-beyond-consumer-timeout": Pair(_due(43), _due(42)),
    "trace-context-never": Pair(
        OPEN + _published({"tracestate": "a=1"}), OPEN + _published({"tracestates": "a=1"})
    ),
    "trace-unsampled": Pair(_sampled("00"), _sampled("01")),
    "trace-id-reused": Pair(
        _leaked(300_000), _leaked(299_000), bounds=(("amqpsniff.session.rules.traces.REUSED", 5),)
    ),
    "task-result-unread": Pair(_result("task_id"), _result("taskid")),
    "notifications-unread": Pair(_notified("_unique_id"), _notified("unique_id")),
    "dead-lettered": Pair(
        CONSUMER + _delivered("x-death", value=_DEATHS).replace("{n}", "1"),
        CONSUMER + _delivered("x-birth", value=_DEATHS).replace("{n}", "1"),
    ),
}
"""By code: scripts that differ in one message."""

CONDITIONS: dict[str, Pair] = {
    "rpc-unanswered by one of two": Pair(_inspected(1), _inspected(2)),
    "publishes-unbound for a type": Pair(_typed_exchange("Shop:Bill"), _typed_exchange("Bill"), 2),
    "operation-failed in a body of Dramatiq": Pair(
        _worker_of_dramatiq("q.XQ"), _worker_of_dramatiq("q.YQ")
    ),
    "operation-failed in EasyNetQ": Pair(
        OPEN + _published({"IsFaulted": True}, "exchange=easy_net_q_rpc"),
        OPEN + _published({"IsFault": True}, "exchange=easy_net_q_rpc"),
    ),
    "header-secret of a shovel": Pair(
        OPEN + _published({"x-shovelled": [{"src-uri": "amqp://a:b@c"}]}),
        OPEN + _published({"x-shovelled": [{"src-uri": "amqp://a@c"}]}),
    ),
    "delay-missed in levels": Pair(_delayed_by_levels(6_001), _delayed_by_levels(6_000)),
}
"""Other ways to a finding."""
