"""What is said in the conversations that show a finding, and in those that nearly do.

The language is that of `tests.session.script`; `phrases` has what is said often, `edits` what a
broker cannot be brought to do.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.findings.phrases import (
    CONFIRM,
    DELIVER,
    END,
    LOGIN,
    PUBLISH,
    START,
    WORK,
    consumer,
    each,
    login,
    opened,
    prefetch,
    queue,
    said,
)


def steps(wait: int, frame_max: int = 131072, order: str = "") -> str:
    """The handshake, step by step."""
    return (
        "hello\nS: connection.start\n"
        f"@+{wait}ms C: connection.start-ok mechanism=PLAIN response=\\0guest\\0secret "
        "locale=en_US\n"
        "S: connection.tune\n"
        + (
            order
            or f"C: connection.tune-ok channel_max=2047 frame_max={frame_max} heartbeat=60\n"
            "C: connection.open virtual_host=/\nS: connection.open-ok\n"
        )
    )


def _stale(tag: int) -> str:
    return (
        WORK
        + each(3, PUBLISH)
        + consumer()
        + each(3, DELIVER)
        + said(1, "channel.close", True, "reply_code=200")
        + opened()
        + prefetch(1)
        + consumer()
        + DELIVER
        + f"\n@+5ms C1: basic.ack delivery_tag={tag}\n"
    )


def _cancelled(then: str) -> str:
    able = 'client=\'{"capabilities": {"consumer_cancel_notify": true}}\''
    return (
        login("a", able) + opened() + queue() + consumer() + login("b") + opened("b")
        + "b.C1: queue.delete queue=work\nb.S1: queue.delete-ok\nS1: basic.cancel\n" + then
        + "@+6000ms b.C1: queue.declare queue=other\nb.S1: queue.declare-ok\n" + END
    )  # fmt: skip


def _fanout(count: int) -> str:
    declared = each(
        count,
        "C1: queue.declare queue=f{n} auto_delete=1", "S1: queue.declare-ok",
        "C1: queue.bind queue=f{n} exchange=fan", "S1: queue.bind-ok",
        "C1: basic.consume queue=f{n} consumer_tag=c{n} no_ack=1", "S1: basic.consume-ok",
    )  # fmt: skip
    exchange = said(1, "exchange.declare", True, "exchange=fan type=fanout")
    rounds = "C1: basic.publish exchange=fan | body=20000\n" + each(count, DELIVER)
    return START + exchange + declared + rounds * 6 + END


def _again(count: int) -> str:
    back = "C1: basic.reject delivery_tag={n} requeue=1"
    rounds = each(count, DELIVER, back)
    last = f"{DELIVER}\nC1: basic.ack delivery_tag={count + 1}\n"
    return (
        WORK + PUBLISH.replace("{n}", "1") + "\n" + prefetch(1) + consumer() + rounds + last + END
    )


def _storm(back: int) -> str:
    """Thirty deliveries, of which the first ones go back."""
    texts = [
        f"{DELIVER}\n@+450ms C1: basic.reject delivery_tag={n} requeue={int(n <= back)}\n"
        for n in range(1, 31)
    ]
    return (
        WORK
        + each(40, PUBLISH.replace("message_id=m{n}", ""))
        + prefetch(1)
        + consumer()
        + ("".join(texts) + END)
    )


def _circle(rounds: int) -> str:
    arguments = '{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "%s"%s}'
    ends = arguments % ("pause", "")
    waits = arguments % ("work", ', "x-message-ttl": 20')
    return (
        START + queue("work", f"arguments='{ends}'") + queue("pause", f"arguments='{waits}'")
        + consumer() + PUBLISH + "\n"
        + each(rounds, DELIVER, "C1: basic.reject delivery_tag={n}") + DELIVER + "\n"
        + f"C1: basic.ack delivery_tag={rounds + 1}\n" + END
    )  # fmt: skip


def _held(seconds: int, count: int = 2) -> str:
    asked = f"@+{seconds}000ms C2: channel.open\nS2: channel.open-ok\n"
    return (
        WORK + each(4, PUBLISH) + prefetch(count) + consumer() + each(count, DELIVER) + asked + END
    )


def _backlog(ms: int) -> str:
    acks = each(12, f"@+{ms}ms C1: basic.ack delivery_tag={{n}}")
    return WORK + each(120, PUBLISH) + prefetch(120) + consumer() + each(120, DELIVER) + acks + END


def _confirmed(ms: int) -> str:
    return WORK + CONFIRM + PUBLISH + f"\n@+{ms}ms S1: basic.ack\n" + END


def _worked(ms: int) -> str:
    ack = f"@+{ms}ms C1: basic.ack delivery_tag=1\n"
    return WORK + PUBLISH + "\n" + prefetch(1) + consumer() + DELIVER + "\n" + ack + END


ASK = "C1: basic.publish routing_key=work | body=1 reply_to=replies{n} correlation_id=k{n}"
ANSWER = "b.C1: basic.publish routing_key=replies{n} | body=1 correlation_id=k{n}"


def _called(queues: int, calls: int, ms: int, answered: bool = True) -> str:
    """Calls, one after the other, each answered after `ms`."""
    asked = WORK + each(
        queues, "C1: queue.declare queue=replies{n}", "S1: queue.declare-ok",
        "C1: basic.consume queue=replies{n} consumer_tag=r{n} no_ack=1", "S1: basic.consume-ok",
    )  # fmt: skip
    asked += login("b") + opened("b") + consumer("work", "no_ack=1", "b.")
    for n in range(1, calls + 1):
        asked += ASK.replace("replies{n}", f"replies{min(n, queues)}").replace("{n}", str(n))
        asked += "\nb.S1: basic.deliver\n"
        if answered:
            answer = ANSWER.replace("replies{n}", f"replies{min(n, queues)}").replace("{n}", str(n))
            asked += f"@+{ms}ms {answer}\nS1: basic.deliver\n"
    return asked + (END if answered else f"@+{ms}ms " + END)


def _idle(*seconds: int) -> str:
    return "".join(
        login(name) + opened(name) + f"@+{time}000ms {name}.RST C\n"
        for name, time in zip("abc", seconds, strict=True)
    )


def _declared(times: int, wait: int = 1, more: str = "", methods: str = "") -> str:
    one = f"@+{wait}ms C1: queue.declare queue=work {more}\nS1: queue.declare-ok\n{methods}"
    return WORK + one * times + END


def _leaking(count: int) -> str:
    """Channels that stay open, the last of them 6 s after the others."""
    channels = [opened("a", n) for n in range(1, count + 1)]
    return LOGIN + "".join(channels[:-1]) + "@+6000ms " + channels[-1] + END


def _left(count: int) -> str:
    """Connections that stay, opened one after the other; heartbeats are off."""
    started = "{n}.hello\n{n}.S: connection.start\n"
    plain = "mechanism=PLAIN response=\\0guest\\0secret locale=en_US"
    started += "@+1500ms {n}.C: connection.start-ok " + plain + "\n{n}.S: connection.tune\n"
    started += "{n}.C: connection.tune-ok channel_max=9 frame_max=131072\n"
    started += "{n}.C: connection.open virtual_host=/\n{n}.S: connection.open-ok\n"
    names = [f"x{n}" for n in range(count)]
    last = "@+15000ms " + opened(names[-1])
    return "".join(started.replace("{n}", name) for name in names) + last


def _client(product: str, platform: str = "P") -> str:
    return f'user=u client=\'{{"product": "{product}", "platform": "{platform}"}}\''


def _refused(count: int) -> str:
    able = '\'{"capabilities": {"authentication_failure_close": true}}\''
    return each(
        count,
        "c{n}.hello",
        "c{n}.S: connection.start",
        f"c{{n}}.C: connection.start-ok mechanism=PLAIN response=\\0admin\\0x{{n}} locale=en_US "
        f"client_properties={able}",
        "c{n}.S: connection.close",
        "c{n}.C: connection.close-ok",
        "c{n}.FIN C",
    )


def _events(others: int) -> str:
    made = said(1, "exchange.declare", True, "exchange=celeryev type=topic durable=1")
    events = "C1: basic.publish exchange=celeryev routing_key=worker.heartbeat | body=30\n" * 110
    return WORK + made + events + each(others, PUBLISH) + END


ETA = 'headers=\'{"task": "t", "eta": "2030-01-01T00:00:00"}\''


def _tasks(counts: Iterable[int]) -> str:
    raised = "".join(f"{DELIVER}\n{prefetch(count)}" for count in counts)
    tasks = f"C1: basic.publish routing_key=work | body=10 {ETA}\n" * 4
    return WORK + tasks + prefetch(4) + consumer() + raised + END


def _results(count: int) -> str:
    names = [f"00000000-0000-4000-8000-00000000000{n}" for n in range(count)]
    return (
        START + "".join(queue(name, "arguments='{\"x-expires\": 60000}'") for name in names) + END
    )


def _brief(platform: str, product: str = "RabbitMQ", more: str = "") -> str:
    channels = (opened() + more + said(1, "channel.close", True, "reply_code=200")) * 14
    return login("a", _client(product, platform)) + channels + END


def _nested(depth: int) -> str:
    table = '{"a": ' * depth + '"x"' + "}" * depth
    return WORK + f"C1: basic.publish routing_key=work | body=1 headers='{table}'\n" + END


def _property(written: str) -> str:
    return WORK + f"C1: basic.publish routing_key=work | body=1 {written}\n" + END


def _many(body: int) -> str:
    one = f"C1: basic.publish routing_key=work | body={body}\n"
    return WORK + (one + ("& " + one) * 24) * 45 + END


def _acks(multiple: int) -> str:
    acks = "".join(
        f"{'& ' if n % 50 else ''}C1: basic.ack delivery_tag={n + 1} multiple={multiple}\n"
        for n in range(1100)
    )
    sent = each(1100, PUBLISH)
    return WORK + sent + prefetch(1200) + consumer() + each(1100, DELIVER) + acks + END


def _one_by_one(count: int) -> str:
    """Deliveries that come 30 ms after the acknowledgement before, or a window full of them."""
    wait = "" if count > 1 else "@+30ms "
    done = "C1: basic.ack delivery_tag={n}"
    return (
        WORK
        + each(80, PUBLISH)
        + prefetch(count).replace("S1", wait + "S1")
        + consumer()
        + each(80, wait + DELIVER, done)
        + END
    )


def _bodies(frame_max: int) -> str:
    sent = "b.C1: basic.publish routing_key=work | body=6000\n" * 20
    made = steps(1, frame_max) + opened() + queue() + consumer("work", "no_ack=1")
    return made + login("b") + opened("b") + sent + each(20, DELIVER) + END


MODE = said(1, "tx.select")
COMMIT = said(1, "tx.commit")
ONE_PUBLISH = PUBLISH + "\n"
WAIT = "@+{ms}ms C1: queue.declare queue=work\n@+{answer}ms S1: queue.declare-ok\n"


def _unbound(key: str) -> str:
    """A routing key that no binding takes, or one that does."""
    declared = said(1, "exchange.declare", True, "exchange=news type=topic")
    bound = said(1, "queue.bind", True, "queue=work exchange=news routing_key=orders.*")
    publish = f"C1: basic.publish exchange=news routing_key={key} | body=10\n"
    return WORK + declared + bound + CONFIRM + (publish + "S1: basic.ack\n") * 3 + END


def _deleted(again: str) -> str:
    """A queue that another client deletes, and that is declared again or not."""
    deletes = login("b") + opened("b") + "b.C1: queue.delete queue=work\nb.S1: queue.delete-ok\n"
    publish = "C1: basic.publish routing_key=work | body=10\nS1: basic.ack\n"
    return WORK + CONFIRM + publish + deletes + again + publish * 3 + END


def _stopped(then: str) -> str:
    """A consumer whose queue is unbound, or not."""
    declared = said(1, "exchange.declare", True, "exchange=news type=fanout")
    bound = said(1, "queue.bind", True, "queue=work exchange=news")
    publish = "C1: basic.publish exchange=news | body=10\n"
    rounds = each(4, publish + DELIVER, "C1: basic.ack delivery_tag={n}")
    asked = "@+12000ms C2: channel.open\nS2: channel.open-ok\n"
    return WORK + declared + bound + consumer() + rounds + then + asked + END


CONVERSATIONS: dict[str, tuple[str, str]] = {
    "connection-silent": ("FIN C\n", LOGIN + END),
    "handshake-slow": (steps(4000) + END, steps(400) + END),
    "handshake-out-of-order": (
        steps(1, order="C: connection.open virtual_host=/\nFIN S\n"),
        steps(1) + END,
    ),
    "acknowledgement-stale": (
        _stale(3) + "S1: channel.close\nC1: channel.close-ok\n" + END,
        _stale(1) + END,
    ),
    "prefetch-exceeded": (_held(1, 4), _held(1, 4)),
    "consumer-cancelled": (
        _cancelled(""),
        _cancelled(queue() + consumer(tag="d")),
    ),
    "publishes-in-doubt": (
        WORK
        + CONFIRM
        + ONE_PUBLISH
        + "S1: basic.ack\n"
        + ONE_PUBLISH
        + ("& " + ONE_PUBLISH) * 300
        + "RST C\n",
        WORK + CONFIRM + ONE_PUBLISH + "S1: basic.ack\nRST C\n",
    ),
    "fanout-amplified": (_fanout(12), _fanout(5)),
    "poison-message": (_again(6), _again(2)),
    "requeue-storm": (_storm(30), _storm(2)),
    "dead-letter-cycle": (_circle(4), _circle(1)),
    "consumer-stuck": (_held(45), _held(15)),
    "publishes-unbound": (_unbound("ordre.paid"), _unbound("orders.paid")),
    "publishes-after-deletion": (_deleted(""), _deleted(queue())),
    "deliveries-stopped": (
        _stopped(
            said(1, "queue.unbind", True, "queue=work exchange=news")
            + "C1: basic.publish exchange=news | body=10\n" * 12
        ),
        _stopped(("C1: basic.publish exchange=news | body=10\n" + DELIVER + "\n") * 12),
    ),
    "backlog-in-client": (_backlog(1000), _backlog(30)),
    "confirms-slow": (_confirmed(6000), _confirmed(300)),
    "consumer-slow": (_worked(31_000), _worked(5_000)),
    "rpc-unanswered": (_called(1, 1, 11_000, False), _called(1, 1, 8_000, False)),
    "rpc-slow": (_called(1, 2, 11_000), _called(1, 2, 500)),
    "reply-queue-per-call": (_called(3, 3, 5), _called(1, 3, 5)),
    "idle-connection-cut": (_idle(40, 40, 40), _idle(33, 40, 47)),
    "reply-missing": (
        START + WAIT.format(ms=1, answer=6000) + END,
        START + WAIT.format(ms=1, answer=3000) + END,
    ),
    "tcp-retransmissions": (
        WORK + each(60, PUBLISH) + "@+500ms " + END,
        WORK + each(60, PUBLISH) + "@+500ms " + END,
    ),
    "channel-churn": (_brief("Python", "pika"), _brief("Python", "pika", ONE_PUBLISH * 3)),
    "spring-channel-cache": (_brief("Java"), _brief("Erlang/OTP")),
    "declaration-repeated": (
        _declared(14, methods=ONE_PUBLISH),
        _declared(14, methods=ONE_PUBLISH * 3),
    ),
    "queue-length-polling": (_declared(14, 300, "passive=1"), _declared(14, 1500, "passive=1")),
    "get-polling": (
        WORK + "@+100ms C1: basic.get queue=work\nS1: basic.get-empty\n" * 25 + END,
        WORK + "@+300ms C1: basic.get queue=work\nS1: basic.get-empty\n" * 25 + END,
    ),
    "acknowledgements-single": (_acks(0), _acks(1)),
    "transaction-per-message": (
        WORK + MODE + (ONE_PUBLISH + COMMIT) * 12 + END,
        WORK + MODE + (ONE_PUBLISH * 4 + COMMIT) * 12 + END,
    ),
    "overhead-high": (_many(1), _many(200)),
    "channels-leaking": (_leaking(101), _leaking(90)),
    "connections-leaking": (_left(24), _left(12)),
    "frame-max-small": (_bodies(4096), _bodies(131072)),
    "topology-churn": tuple(  # type: ignore[dict-item]
        START
        + each(
            12,
            f"@+{ms}ms C1: queue.declare queue=t{{n}}",
            "S1: queue.declare-ok",
            "C1: queue.delete queue=t{n}",
            "S1: queue.delete-ok",
        )
        + END
        for ms in (50, 1500)
    ),
    "synchronous-waiting": (
        START + WAIT.format(ms=60, answer=240) * 25 + END,
        START + WAIT.format(ms=300, answer=1) * 25 + END,
    ),
    "account-shared": (
        login("a", _client("one"))
        + login("b", _client("two"))
        + END
        + END.replace("C:", "b.C:").replace("S:", "b.S:").replace("FIN", "b.FIN"),
        login("a", _client("one")) + login("b", _client("one")) + END,
    ),
    "password-guessing": (_refused(6), _refused(2)),
    "login-anonymous": (steps(1) + END, steps(1) + END),
    "celery-event-noise": (_events(50), _events(300)),
    "celery-eta-prefetch": (_tasks((5, 6, 7, 8)), _tasks((4, 4, 4, 4))),
    "celery-result-queues": (_results(4), _results(2)),
    "timestamp-milliseconds": (
        _property("timestamp=1700000000000"),
        _property("timestamp=1700000000"),
    ),
    "field-name-duplicate": (
        _property('headers=\'{"first": 1, "other": 2}\''),
        _property('headers=\'{"first": 1, "other": 2}\''),
    ),
    "field-table-malformed": (
        _property('headers=\'{"first": "long enough"}\''),
        _property('headers=\'{"first": "long enough"}\''),
    ),
    "field-table-too-deep": (_nested(130), _nested(12)),
    "publish-repeated": (
        WORK + PUBLISH.replace("{n}", "1") + "\n" + PUBLISH.replace("{n}", "1") + "\n" + END,
        WORK + each(2, PUBLISH) + END,
    ),
    "prefetch-too-small": (_one_by_one(1), _one_by_one(20)),
    "properties-malformed": (
        _property("content_type=text/plain"),
        _property("content_type=text/plain"),
    ),
}
"""What shows a code, and what nearly does."""
