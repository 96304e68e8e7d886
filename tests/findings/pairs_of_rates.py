"""Pairs for how often and how long: one less, or a millisecond less."""

from __future__ import annotations

from collections.abc import Callable

from tests import encoder
from tests.findings.cases import Case, Pair, sent
from tests.findings.pairs_of_bytes import HELLO, OPEN
from tests.findings.pairs_of_peers import (
    CONFIRM,
    CONSUMER,
    DELIVER,
    PUBLISH,
    each,
    opening,
    table,
)
from tests.session.events import DEFINED
from tests.session.script import MS, START_NS, Script
from tests.tcp import wire

_QOS = CONSUMER.replace("C1: basic.consume", "C1: basic.qos prefetch_count=1\nC1: basic.consume")
_ASKED = "C1: queue.declare queue=q\n@+{ms}ms S1: queue.declare-ok queue=q\n"
_TX = OPEN + "C1: tx.select\nS1: tx.select-ok\n"
_BRIEF = "C1: channel.close reply_code=200\nS1: channel.close-ok\n"
_UUID = "00000000-0000-4000-8000-00000000000"


def _held(ms: int) -> str:
    return _QOS + DELIVER.format(n=1) + f"@+{ms}ms C2: channel.open\n"


def _worked(ms: int) -> str:
    return CONSUMER + DELIVER.format(n=1) + f"@+{ms}ms C1: basic.ack delivery_tag=1\n"


def _confirmed(ms: int) -> str:
    return CONFIRM + PUBLISH + f"@+{ms}ms S1: basic.ack delivery_tag=1\n"


def _waits(count: int) -> str:
    """Deliveries that come 2 ms after the acknowledgement before, one by one."""
    answered = _QOS.replace("C1: basic.consume", "@+2ms S1: basic.qos-ok\nC1: basic.consume")
    return answered + each(count, "@+2ms " + DELIVER, "C1: basic.ack delivery_tag={n}\n")


def _backlog(count: int) -> str:
    """Deliveries at once, of which ten are acknowledged, one in a second."""
    acks = each(10, "@+1000ms C1: basic.ack delivery_tag={n}\n")
    return CONSUMER + each(count, DELIVER) + acks


def _queued(ms: int) -> str:
    text = CONSUMER + PUBLISH.replace("body=5", "body=5 message_id=m")
    delivered = DELIVER.format(n=1).replace("body=5", "body=5 message_id=m")
    return text + f"@+{ms}ms {delivered}"


def _overloaded(ms: int) -> str:
    """A consumer that has one message in hand, the next come meanwhile, the last after a time."""
    published = PUBLISH.replace("body=5", "body=5 message_id=m{n}")
    delivered = DELIVER.replace("body=5", "body=5 message_id=m{n}")
    text = _QOS + published.format(n=1) + delivered.format(n=1) + each(10, published, first=2)
    text += f"@+{ms - 10}ms " + published.format(n=12)
    for n in range(2, 13):
        text += f"@+{9000 if n == 12 else 500}ms C1: basic.ack delivery_tag={n - 1}\n"
        text += delivered.format(n=n)
    return text


def _called(ms: int) -> str:
    """A call whose answer comes after a time."""
    asked = "C1: basic.publish routing_key=work | body=1 reply_to=q correlation_id=k\n"
    answer = f"@+{ms}ms S1: basic.deliver consumer_tag=t delivery_tag=1 | body=1 correlation_id=k\n"
    return CONSUMER + asked + answer


def _unanswered(ms: int) -> str:
    asked = "C1: basic.publish routing_key=work | body=1 reply_to=q correlation_id=k\n"
    return CONSUMER + asked + f"@+{ms}ms C1: basic.qos\n"


def _server_lost(ms: int) -> str:
    """A server's connection is reset with a request in hand; the client waits for so long."""
    asked = "routing_key=work | body=1 reply_to=q correlation_id=k\n"
    server = CONSUMER.replace("C1:", "b.C1:").replace("S1:", "b.S1:").replace("hand", "b.hand")
    return (
        CONSUMER + server + "C1: basic.publish " + asked
        + f"b.S1: basic.deliver consumer_tag=t delivery_tag=1 {asked}b.RST C\n"
        + f"@+{ms}ms C1: basic.qos\n"
    )  # fmt: skip


def _held_up(ms: int) -> str:
    """Three deliveries behind large ones that take 100 ms, the last so long behind."""
    row = DEFINED["basic.deliver"]
    given = {"consumer_tag": b"t", "delivery_tag": 1, "redelivered": 0, "exchange": b"",
             "routing_key": b"q"}  # fmt: skip
    method, header, body = (one.hex() for one in encoder.content(row, given, bytes(65_536)))
    large = f"BYTES S {method}{header}\n@+99ms C2: basic.qos\nBYTES S {body}\n"
    small = "S2: basic.deliver consumer_tag=u delivery_tag={n} routing_key=u | body=1\n"
    begun = "C2: channel.open\nS2: channel.open-ok\n"
    rounds = [large + (f"@+{ms}ms " if n == 3 else "") + small.replace("{n}", str(n))
              for n in (1, 2, 3)]  # fmt: skip
    return OPEN + begun + "".join(rounds)


def _transferred(ms: int) -> str:
    """Three publishes, each 667 ms on its way, the last 1 ms longer than a time."""
    row = DEFINED["basic.publish"]
    given = {"ticket": 0, "exchange": b"e", "routing_key": b"k", "mandatory": 0, "immediate": 0}
    method, header, body = (one.hex() for one in encoder.content(row, given, bytes(16_384)))
    one = f"BYTES C {method}{header}\n@+{{}}ms S: connection.unblocked\nBYTES C {body}\n"
    return OPEN + "".join(map(one.format, (666, 666, ms)))


def _reply_queues(last: str) -> str:
    """Three calls, each with a queue of its own but perhaps the last."""
    queues = each(3, "C1: basic.consume queue=r{n} consumer_tag=r{n} no_ack=1\n")
    calls = "".join(
        f"C1: basic.publish routing_key=work | body=1 reply_to={queue} correlation_id={queue}\n"
        for queue in ("r1", "r2", last)
    )
    return OPEN + queues + calls


def _shut(reader: int, ms: int) -> Callable[[], Case]:
    """A window that is closed for so long while something waits."""

    def make() -> Case:
        talk = wire.Talk(step_ns=0, start_ns=START_NS).hands()
        talk.put(0, HELLO)
        talk.put(reader)
        packet = talk.packets.pop()
        talk.packets.append(
            packet._replace(octets=packet.octets[:34] + b"\0\0" + packet.octets[36:])
        )
        talk.wait(400 * MS)
        talk.put(1 - reader, at=talk.sent[1 - reader] - 1)
        talk.wait((ms - 400) * MS)
        talk.put(reader)
        return sent(talk.packets)

    return make


def _sent_again(times: int) -> Callable[[], Case]:
    """A client that speaks, and says some of it twice."""

    def make() -> Case:
        talk = wire.Talk(step_ns=0)
        talk.hands()
        for packet in Script(OPEN).packets:
            talk.put(0 if packet.sender == "client" else 1, packet.octets)
        for n in range(20):
            talk.wait(300 * MS)
            talk.client(encoder.HEARTBEAT_FRAME)
            talk.wait(300 * MS)
            again = len(encoder.HEARTBEAT_FRAME) if n < times else 0
            octets = encoder.HEARTBEAT_FRAME[:again]
            talk.client(octets, at=talk.sent[0] - again)
            talk.server()
        return sent(talk.packets)

    return make


def _stalled(ms: int) -> str:
    """A publish whose body comes 2 ms and a time after its method."""
    method, header, body = (one.hex() for one in _publish(5))
    return (
        OPEN
        + f"BYTES C {method}\nBYTES C {header}\n@+{ms}ms C2: channel.open\n"
        + (f"BYTES C {body}\n")
    )


def _unconfirmed(ms: int) -> str:
    """A publish without its confirm, and the client's end after a time."""
    return CONFIRM + PUBLISH + f"@+{ms}ms FIN C\n"


def _incomplete(parts: int) -> str:
    """The first parts of a publish, and the end of TCP."""
    return OPEN + "".join(f"BYTES C {one.hex()}\n" for one in _publish(5)[:parts]) + "FIN C\n"


def _publish(size: int) -> list[bytes]:
    row = DEFINED["basic.publish"]
    given = {"ticket": 0, "exchange": b"", "routing_key": b"q", "mandatory": 0, "immediate": 0}
    return encoder.content(row, given, b"x" * size)


def _pauses(last_ns: int) -> Callable[[], Case]:
    """Five publishes that wait for an acknowledgement, which the last gets after another time."""

    def make() -> Case:
        method, header, body = _publish(100)
        talk = wire.Talk(step_ns=0).hands()
        talk.client(HELLO)
        talk.server()
        for number in range(5):
            talk.wait(MS)
            talk.client(method)
            talk.wait(last_ns if number == 4 else 40 * MS)
            talk.server()
            talk.wait(20_000)
            talk.client(header + body)
            talk.wait(10_000)
            talk.server()
        return sent(talk.goodbye().packets)

    return make


def _short(last_ms: int) -> str:
    """Five connections, which live 11 ms, the last longer."""
    product = '{"product": "AMQPLib"}'
    return "".join(
        opening(name=f"c{n}.", client=product) + f"@+{ms}ms c{n}.RST C\n"
        for n, ms in enumerate((1, 1, 1, 1, last_ms))
    )


def _channels(last: str = "") -> str:
    """Ten channels without anything on them, but perhaps on the last."""
    one = "C1: channel.open\nS1: channel.open-ok\n"
    return "handshake\n" + (one + _BRIEF) * 9 + one + PUBLISH * 2 + last + _BRIEF


def _spring(platform: str) -> str:
    one = "C1: channel.open\nS1: channel.open-ok\n" + _BRIEF
    return opening(client=table(product="RabbitMQ", platform=platform)) + one * 10


def _declared(times: int) -> str:
    return OPEN + "C1: queue.declare queue=q\n" * (1 + times)


def _polled(times: int) -> str:
    return OPEN + "@+400ms C1: queue.declare queue=q passive=1\n" * times


def _gets(last: str) -> str:
    """Twenty gets, eleven of them in vain, or one less."""
    got = each(9, "C1: basic.get queue=q\n", "S1: basic.get-ok delivery_tag={n}\n")
    empty = "C1: basic.get queue=q\nS1: basic.get-empty\n" * 10
    return OPEN + got + empty + "C1: basic.get queue=q\n" + last


def _single(count: int) -> str:
    """Deliveries and their acknowledgements, all within half a second."""
    deliveries = "".join(("" if n % 50 == 1 else "& ") + DELIVER.format(n=n)
                         for n in range(1, 1001))  # fmt: skip
    acks = "".join(
        ("" if n % 50 == 1 else "& ") + f"C1: basic.ack delivery_tag={n}\n"
        for n in range(1, count + 1)
    )
    return CONSUMER + deliveries + acks


def _shared(acks: int) -> str:
    text = CONSUMER + PUBLISH * 10 + each(10, DELIVER)
    return text + each(acks, "C1: basic.ack delivery_tag={n}\n")


def _leaking(last: str = "") -> str:
    """A hundred channels that stay open, and perhaps one more."""
    opens = each(100, "C{n}: channel.open\n", "S{n}: channel.open-ok\n")
    return "handshake\n" + opens + last


def _staying(ms: int) -> str:
    """Twenty connections that stay, the first and last of them so long apart, and much later."""
    tuned = "channel_max=9 frame_max=131072 heartbeat=0"
    first = "".join(opening(name=f"c{n}.", tuned=tuned) for n in range(19))
    last = f"@+{ms - 19 * 7}ms x.C1: channel.open\n" + opening(name="d.", tuned=tuned)
    return first + last + "@+12000ms d.C1: channel.open\n"


def _small(body: int) -> str:
    tuned = "channel_max=9 frame_max=8192 heartbeat=60"
    return (
        opening(tuned=tuned)
        + "C1: channel.open\nS1: channel.open-ok\n"
        + (f"C1: basic.publish routing_key=q | body={body}\n")
    )


def _changed(last: str) -> str:
    """Ten queues that are made and deleted, but perhaps the last."""
    return (
        OPEN
        + each(9, "C1: queue.declare queue=q{n}\n", "C1: queue.delete queue=q{n}\n")
        + "C1: queue.declare queue=q\n"
        + last
    )


def _waited(ms: int) -> str:
    """Twenty requests that wait for their answers for 2 s of 5."""
    asked = "C1: queue.declare queue=q\n@+100ms S1: queue.declare-ok queue=q\n"
    spent = 6 + 2 + 20 * 101
    return OPEN + asked * 20 + f"@+{ms - spent}ms C1: basic.qos\n"


def _large_headers(size: int) -> str:
    """Headers of so many bytes as JSON."""
    headers = table(a="x" * (size - len('{"a":""}')))
    return OPEN + f"C1: basic.publish routing_key=q | body=1 headers='{headers}'\n"


def _multiplied(count: int) -> str:
    published = "C1: basic.publish exchange=news | body=110000\n"
    return (
        OPEN
        + published
        + each(count, "S1: basic.deliver exchange=news delivery_tag={n} | body=110000\n")
    )


def _events(count: int) -> str:
    return OPEN + "C1: basic.publish exchange=celeryev | body=5\n" * count + PUBLISH


def _tasks(counts: tuple[int, ...]) -> str:
    """Tasks with an ETA, after each of which the prefetch count is set."""
    headers = '{"task": "t", "eta": "2030-01-01T00:00:00"}'
    text = CONSUMER + "C1: basic.qos prefetch_count=4\n"
    for n, count in enumerate(counts, 1):
        text += DELIVER.format(n=n).rstrip() + f" headers='{headers}'\n"
        text += f"C1: basic.qos prefetch_count={count}\n"
    return text


def _results(last: str) -> str:
    arguments = "arguments='{\"x-expires\": 60000}'"
    names = (f"{_UUID}1", f"{_UUID}2", last)
    return OPEN + "".join(f"C1: queue.declare queue={name} {arguments}\n" for name in names)


PAIRS: dict[str, Pair] = {
    # messages
    "message-oversized": Pair(
        OPEN + "C1: basic.publish | body=1048577", OPEN + "C1: basic.publish | body=1048576"
    ),
    "fanout-amplified": Pair(_multiplied(11), _multiplied(10)),
    "overhead-high": Pair(_large_headers(4097), _large_headers(4096)),
    "frame-max-small": Pair(_small(8185), _small(8184)),
    # times
    "consumer-stuck": Pair(_held(30_000), _held(29_999)),
    "consumer-slow": Pair(_worked(30_000), _worked(29_999)),
    "confirms-slow": Pair(_confirmed(5_000), _confirmed(4_999)),
    "queue-residence-long": Pair(_queued(10_000), _queued(9_999)),
    "consumer-overloaded": Pair(_overloaded(5_000), _overloaded(4_999)),
    "rpc-slow": Pair(_called(1_000), _called(999)),
    "rpc-unanswered": Pair(_unanswered(10_001), _unanswered(10_000)),
    "rpc-server-lost": Pair(_server_lost(1_000), _server_lost(999)),
    "head-of-line-wait": Pair(_held_up(1), _held_up(2)),
    "transfer-slow": Pair(_transferred(665), _transferred(664)),
    "reply-missing": Pair(OPEN + _ASKED.format(ms=5_001), OPEN + _ASKED.format(ms=5_000)),
    "broker-slow": Pair(OPEN + _ASKED.format(ms=1_000), OPEN + _ASKED.format(ms=999)),
    "synchronous-waiting": Pair(_waited(5_000), _waited(4_999)),
    "publish-incomplete": Pair(_incomplete(2), _incomplete(3)),
    "traffic-stopped": Pair(_unconfirmed(10_000), _unconfirmed(9_999)),
    "message-stalled": Pair(_stalled(999), _stalled(998)),
    "delayed-ack-stall": Pair(_pauses(35 * MS), _pauses(34 * MS)),
    "broker-not-reading": Pair(_shut(1, 1_000), _shut(1, 999)),
    "client-not-reading": Pair(_shut(0, 1_000), _shut(0, 999)),
    "channels-leaking": Pair(_leaking("C101: channel.open\n"), _leaking()),
    "connections-leaking": Pair(_staying(30_000), _staying(29_999)),
    # numbers
    "prefetch-too-small": Pair(_waits(49) + "@+2ms " + DELIVER.format(n=50), _waits(49)),
    "backlog-in-client": Pair(_backlog(100), _backlog(99)),
    "tcp-retransmissions": Pair(_sent_again(10), _sent_again(9)),
    "channel-churn": Pair(_channels(), _channels(PUBLISH)),
    "spring-channel-cache": Pair(_spring("Java"), _spring("JVM")),
    "connection-churn": Pair(_short(993), _short(994)),
    "php-short-connections": Pair(_short(993), _short(994)),
    "declaration-repeated": Pair(_declared(10), _declared(9)),
    "queue-length-polling": Pair(_polled(10), _polled(9)),
    "get-polling": Pair(
        _gets("S1: basic.get-empty\n"), _gets("S1: basic.get-ok delivery_tag=10\n")
    ),
    "acknowledgements-single": Pair(_single(1000), _single(999)),
    "confirm-per-message": Pair(
        CONFIRM + each(49, PUBLISH, "@+9ms S1: basic.ack delivery_tag={n}\n") + PUBLISH,
        CONFIRM + each(49, PUBLISH, "@+9ms S1: basic.ack delivery_tag={n}\n"),
    ),
    "transaction-per-message": Pair(
        _TX + (PUBLISH + "C1: tx.commit\nS1: tx.commit-ok\n") * 9 + PUBLISH + "C1: tx.commit\n",
        _TX + (PUBLISH + "C1: tx.commit\nS1: tx.commit-ok\n") * 9 + PUBLISH,
    ),
    "connection-shared": Pair(_shared(10), _shared(9)),
    "reply-queue-per-call": Pair(_reply_queues("r3"), _reply_queues("r2")),
    "topology-churn": Pair(_changed("C1: queue.delete queue=q\n"), _changed("")),
    # frameworks
    "celery-event-noise": Pair(_events(100), _events(99)),
    "celery-eta-prefetch": Pair(_tasks((5, 6, 7)), _tasks((5, 6, 6))),
    "celery-result-queues": Pair(_results(f"{_UUID}3"), _results(f"{_UUID}g")),
}
"""By code: scripts and packets that differ in one of many, or in one time."""
