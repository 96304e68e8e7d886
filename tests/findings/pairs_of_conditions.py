"""Pairs for what else a finding depends on: each other limit and way of its rule.

Named by the code and what is nearly the case.
"""

from __future__ import annotations

import json

from tests import encoder
from tests.findings.cases import Pair
from tests.findings.pairs_of_bytes import OPEN, _body, _content, _frame, _header
from tests.findings.pairs_of_peers import (
    CONFIRM,
    CONSUMER,
    DELIVER,
    END,
    PUBLISH,
    SELECTED,
    each,
    opening,
    refused,
    table,
)
from tests.session.events import DEFINED

QOS = "C1: basic.qos prefetch_count={n}\nC1: basic.consume"
_ANSWERED = "C1: basic.qos prefetch_count=~\n@+2ms S1: basic.qos-ok\n"
AGAIN = DELIVER.replace("| body", "redelivered=1 | body")
COMMIT = "C1: tx.commit\nS1: tx.commit-ok\n"
ASK = "C1: basic.publish routing_key=w | body=1 reply_to={q} correlation_id=k{n}\n"
ANSWER = "S1: basic.deliver consumer_tag=t delivery_tag={n} | body=1 correlation_id=k{n}\n"


def limited(count: int) -> str:
    """A consumer with a prefetch count."""
    return CONSUMER.replace("C1: basic.consume", QOS.format(n=count))


def pair(text: str, shown: object, near: object) -> Pair:
    """Two scripts, of which one has one value for `~`, and one another."""
    return Pair(text.replace("~", str(shown)), text.replace("~", str(near)))


def less(text: str, last: str) -> Pair:
    """A script and the same without its last line."""
    return Pair(text + last, text)


def more(text: str, last: str) -> Pair:
    """A script and the same with a line more."""
    return Pair(text, text + last)


def _queued_behind() -> str:
    """Three deliveries behind a large one, 1 ms behind each other, but the last `~`."""
    row = DEFINED["basic.deliver"]
    given = {"consumer_tag": b"t", "delivery_tag": 1, "redelivered": 0, "exchange": b"",
             "routing_key": b"q"}  # fmt: skip
    method, header, body = (one.hex() for one in encoder.content(row, given, bytes(65_536)))
    small = "S2: basic.deliver consumer_tag=u delivery_tag={n} routing_key=u | body=1\n"
    return (
        f"{OPEN}C2: channel.open\nS2: channel.open-ok\nBYTES S {method}{header}\n"
        f"@+99ms C2: basic.qos\nBYTES S {body}\n"
        + each(2, small)
        + "@+~ms "
        + small.replace("{n}", "3")
    )


def _slow(count: int, ms: int) -> str:
    """Deliveries that are acknowledged one by one, each after a time, the last after another."""
    one = DELIVER + f"@+{ms}ms C1: basic.ack delivery_tag={{n}}\n"
    last = one.replace(f"@+{ms}", "@+~").replace("{n}", str(count))
    return CONSUMER + each(count - 1, one) + last


def _queued(last: object) -> str:
    """Ten messages that wait a second for their delivery."""
    one = "C1: basic.publish routing_key=q | body=5 message_id=m{n}\n@+{ms}ms " + DELIVER.replace(
        "body=5", "body=5 message_id=m{n}"
    )
    text = each(9, one.replace("{ms}", "1000")) + one.replace("{n}", "10").replace(
        "{ms}", str(last)
    )
    return CONSUMER + text


def _called(last: object) -> str:
    """Eleven calls, the last of which is answered late."""
    quick = each(10, ASK.replace("{q}", "q"), ANSWER)
    return (
        CONSUMER
        + quick
        + (ASK.replace("{q}", "q") + "@+{ms}ms " + ANSWER)
        .replace("{n}", "11")
        .replace("{ms}", str(last))
    )


def _reply_queues(calls: int) -> str:
    queues = each(3, "C1: basic.consume queue=r{n} consumer_tag=r{n} no_ack=1\n")
    asked = (
        ASK.replace("{n}", str(n)).replace("{q}", f"r{min(n, 3)}") for n in range(1, calls + 1)
    )
    return OPEN + queues + "".join(asked)


def _short(product: str, last: str) -> str:
    """Five connections, on the last of which something is said."""
    client = table(product=product)
    text = ""
    for n in range(5):
        name = f"c{n}."
        text += opening(name=name, client=client) + f"{name}C1: channel.open\n"
        text += (PUBLISH.replace("C1", f"{name}C1") * 3 + last if n == 4 else "") + f"{name}RST C\n"
    return text


def _brief(ms: int) -> str:
    """Ten channels of a Java client, 38 ms and a time from the first to the end of the last."""
    one = "C1: channel.open\nS1: channel.open-ok\nC1: channel.close reply_code=200\n"
    client = table(product="RabbitMQ", platform="Java")
    texts = [one + ("S1: channel.close-ok\n" if n else f"@+{ms + 1}ms S1: channel.close-ok\n")
             for n in range(10)]  # fmt: skip
    return opening(client=client) + "".join(texts)


def _spread(count: int, wait: object, *lines: str) -> str:
    """Lines again and again, with a time before the last."""
    return OPEN + each(count - 1, *lines) + f"@+{wait}ms " + each(1, *lines, first=count)


def _later(count: int, ms: int) -> Pair:
    """Channels over 30 s."""
    text = "handshake\n" + each(count - 1, "C{n}: channel.open\n", "S{n}: channel.open-ok\n")
    spent = 2 * (count - 1)
    return pair(text + f"@+~ms C{count}: channel.open\n", ms - spent + 1, ms - spent)


def _idle(ms: int) -> str:
    tuned = "channel_max=2047 frame_max=131072 heartbeat=0"
    one = opening(name="{n}.", tuned=tuned) + "{n}.C1: channel.open\n@+{ms}ms {n}.RST C\n"
    times = (("a", 30_001), ("b", 30_001), ("c", ms))
    return "".join(one.replace("{n}", name).replace("{ms}", str(time)) for name, time in times)


def _guesses(last: str) -> str:
    """Logins under five names, more than a minute apart."""
    text = ""
    for n, user in enumerate(("a", "b", "c", "d", last)):
        text += opening(name=f"c{n}.", steps=2, response=f"\\0{user}\\0x", wait=70_000)
        text += f"c{n}.S: connection.close reply_code=403 reply_text=ACCESS_REFUSED\nc{n}.RST C\n"
    return text


def _entries(count: int) -> str:
    headers = json.dumps({"a": ["x"] * (count - 1)}, separators=(",", ":"))
    return OPEN + f"C1: basic.publish routing_key=q | body=1 headers='{headers}'\n"


def _storm(again: int) -> str:
    """Deliveries put back in ten seconds, of which half come again, or one less."""
    texts = [
        f"S1: basic.deliver consumer_tag=t delivery_tag={n} redelivered="
        f"{1 if n > 12 else again if n == 12 else 0} | body=5\n"
        f"@+500ms C1: basic.reject delivery_tag={n} requeue=1\n"
        for n in range(1, 22)
    ]
    return CONSUMER + "".join(texts)


PAIRS: dict[str, Pair] = {
    "overhead-high rate": less(
        OPEN + "C1: basic.publish routing_key=q | body=1\n" * 999,
        "C1: basic.publish routing_key=q | body=1\n",
    ),
    "confirms-slow none": pair(CONFIRM + PUBLISH + "@+~ms S: connection.unblocked\n", 5000, 4999),
    "connection-silent header": pair(opening(steps=1) + "@+~ms RST C\n", 998, 999),
    "handshake-slow given up": pair(opening(steps=4) + "@+~ms FIN S\n", 7996, 7995),
    "authentication-failed close": Pair(
        opening(steps=2) + refused(403, "NO", "S: connection.close"),
        opening(steps=2) + refused(404, "NO", "S: connection.close"),
    ),
    "tuning-rejected channels": Pair(
        opening(steps=4, tuned="channel_max=2048 frame_max=131072") + "FIN S\n",
        opening(steps=4, tuned="channel_max=2047 frame_max=131072") + "FIN S\n",
    ),
    "tuning-rejected accepted": Pair(
        opening(steps=4, tuned="channel_max=2048 frame_max=131072") + "FIN S\n",
        opening(steps=4, tuned="channel_max=2048 frame_max=131072") + "FIN C\n",
    ),
    "heartbeat-missed given up": pair(OPEN + "@+~ms RST S\n", 60_000, 59_999),
    "consumer-stuck usual": pair(
        limited(1)
        + DELIVER.format(n=1)
        + "@+4000ms C1: basic.ack delivery_tag=1\n"
        + DELIVER.format(n=2)
        + "@+~ms C2: channel.open\n",
        40_000,
        39_999,
    ),
    "consumer-stuck window": Pair(
        limited(2) + each(2, DELIVER) + "@+30000ms C2: channel.open\n",
        limited(2) + each(1, DELIVER) + "@+30000ms C2: channel.open\n",
        steps=2,
    ),
    "prefetch-too-small count": pair(
        CONSUMER.replace("C1: basic.consume", f"{_ANSWERED}C1: basic.consume")
        + each(11, DELIVER)
        + "C1: basic.ack delivery_tag=11 multiple=1\n"
        + each(40, "@+2ms " + DELIVER, "C1: basic.ack delivery_tag={n}\n", first=12),
        10,
        11,
    ),
    "backlog-in-client work": pair(
        CONSUMER
        + each(100, DELIVER)
        + each(9, "C1: basic.ack delivery_tag={n}\n")
        + "@+~ms C1: basic.ack delivery_tag=10\n",
        1000 - 108,
        999 - 108,
    ),
    "backlog-in-client acknowledged": less(
        CONSUMER + each(100, DELIVER) + each(9, "@+1000ms C1: basic.ack delivery_tag={n}\n"),
        "@+1000ms C1: basic.ack delivery_tag=10\n",
    ),
    "acknowledgements-single several": pair(
        CONSUMER
        + each(1000, "& " + DELIVER).replace("& ", "", 1)
        + each(999, "& C1: basic.ack delivery_tag={n}\n").replace("& ", "", 1)
        + "C1: basic.ack delivery_tag=1000 multiple=~\n",
        0,
        1,
    ),
    "consumer-slow mean": pair(_slow(10, 1000), 1000, 999),
    "consumer-slow few": less(
        CONSUMER
        + each(9, DELIVER, "@+2000ms C1: basic.ack delivery_tag={n}\n")
        + DELIVER.format(n=10),
        "@+2000ms C1: basic.ack delivery_tag=10\n",
    ),
    "confirms-slow mean": pair(
        CONFIRM
        + each(9, PUBLISH, "@+499ms S1: basic.ack delivery_tag={n}\n")
        + PUBLISH
        + "@+~ms S1: basic.ack delivery_tag=10\n",
        509,
        508,
    ),
    "head-of-line-wait queued": pair(_queued_behind(), 1, 2),
    "confirms-slow joined": pair(
        "midstream\n"
        + each(9, PUBLISH, "@+499ms S1: basic.ack delivery_tag=9{n}\n")
        + PUBLISH
        + "@+~ms S1: basic.ack delivery_tag=100\n",
        509,
        508,
    ),
    "confirms-slow few": less(
        CONFIRM
        + each(2, PUBLISH, "@+1200ms S1: basic.ack delivery_tag={n}\n")
        + each(7, PUBLISH, "@+450ms S1: basic.ack delivery_tag={n}\n", first=3)
        + PUBLISH,
        "@+450ms S1: basic.ack delivery_tag=10\n",
    ),
    "confirms-slow share": pair(
        CONFIRM
        + each(30, PUBLISH, "S1: basic.ack delivery_tag={n}\n")
        + (PUBLISH + "@+700ms S1: basic.ack delivery_tag=31\n")
        + (PUBLISH + "@+700ms S1: basic.ack delivery_tag=32\n")
        + (PUBLISH + "@+~ms S1: basic.ack delivery_tag=33\n"),
        600,
        599,
    ),
    "confirms-slow often": pair(
        CONFIRM
        + each(2, PUBLISH, "@+1200ms S1: basic.ack delivery_tag={n}\n")
        + (PUBLISH + "@+~ms S1: basic.ack delivery_tag=3\n"),
        500,
        499,
    ),
    "confirm-per-message share": pair(
        CONFIRM + each(49, PUBLISH, "@+4ms S1: basic.ack delivery_tag={n}\n") + "@+~ms " + PUBLISH,
        1,
        2,
    ),
    "transaction-per-message most": more(
        OPEN + "C1: tx.select\n" + (PUBLISH * 2 + COMMIT) * 9 + PUBLISH + COMMIT, PUBLISH
    ),
    "transaction-per-message least": Pair(
        OPEN + "C1: tx.select\n" + (PUBLISH + COMMIT) * 5 + COMMIT * 5,
        OPEN + "C1: tx.select\n" + (PUBLISH + COMMIT) * 4 + COMMIT * 6,
    ),
    "queue-residence-long mean": Pair(_queued(1000), _queued(999)),
    "rpc-slow once": Pair(_called(10_000), _called(9_999)),
    "reply-queue-per-call calls": Pair(_reply_queues(4), _reply_queues(5)),
    "reply-missing never": pair(
        OPEN + "C1: queue.declare queue=q\n@+~ms C2: channel.open\n", 5_001, 5_000
    ),
    "synchronous-waiting requests": Pair(
        OPEN
        + "C1: queue.declare queue=q\n@+100ms S1: queue.declare-ok queue=q\n" * 20
        + "@+3000ms C1: basic.qos\n",
        OPEN
        + "C1: queue.declare queue=q\n@+100ms S1: queue.declare-ok queue=q\n" * 19
        + "C1: queue.declare queue=q\n@+3000ms C1: basic.qos\n",
    ),
    "synchronous-waiting share": pair(
        OPEN
        + "C1: queue.declare queue=q\n@+100ms S1: queue.declare-ok queue=q\n" * 20
        + "@+~ms C1: basic.qos\n",
        9_990 - 2_028,
        9_995 - 2_013,
    ),
    "message-stalled never": pair(_content(body="@+~ms C2: channel.open\n"), 1_000, 999),
    "channels-leaking grown": _later(20, 30_000),
    "channel-churn others": more(
        "handshake\n"
        + each(
            20, "C1: channel.open\n", "C1: channel.close reply_code=200\n", "S1: channel.close-ok\n"
        ).replace("C1: channel.close", PUBLISH * 3 + "C1: channel.close", 10),
        "C1: channel.open\n",
    ),
    "spring-channel-cache rate": Pair(_brief(362), _brief(363)),
    "connection-churn messages": Pair(_short("p", ""), _short("p", PUBLISH.replace("C1", "c4.C1"))),
    "php-short-connections messages": Pair(
        _short("AMQPLib", ""), _short("AMQPLib", PUBLISH.replace("C1", "c4.C1"))
    ),
    "php-short-connections product": Pair(_short("AMQPLib", ""), _short("AMQPLic", ""), steps=5),
    "declaration-repeated publishes": more(
        OPEN + "C1: queue.declare queue=q\n" * 11 + PUBLISH * 19, PUBLISH
    ),
    "queue-length-polling rate": Pair(
        _spread(10, 8_991, "C1: queue.declare queue=q passive=1\n"),
        _spread(10, 8_992, "C1: queue.declare queue=q passive=1\n"),
    ),
    "get-polling rate": Pair(
        _spread(20, 3_763, "C1: basic.get queue=q\n", "S1: basic.get-empty\n"),
        _spread(20, 3_764, "C1: basic.get queue=q\n", "S1: basic.get-empty\n"),
    ),
    "topology-churn rate": Pair(
        _spread(10, 3_981, "C1: queue.declare queue=q{n}\n", "C1: queue.delete queue=q{n}\n"),
        _spread(10, 3_982, "C1: queue.declare queue=q{n}\n", "C1: queue.delete queue=q{n}\n"),
    ),
    "celery-event-noise share": more(
        OPEN + "C1: basic.publish exchange=celeryev | body=5\n" * 100 + PUBLISH * 233, PUBLISH
    ),
    "frame-max-small agreed": pair(
        opening(tuned="channel_max=9 frame_max=~ heartbeat=60")
        + "C1: channel.open\nC1: basic.publish routing_key=q | body=9000\n",
        8192,
        8193,
    ),
    "fanout-amplified bytes": pair(
        OPEN
        + "C1: basic.publish exchange=news | body=1\n"
        + each(10, "S1: basic.deliver exchange=news delivery_tag={n}\n")
        + "S1: basic.deliver exchange=news delivery_tag=11 | body=~\n",
        1 << 20,
        (1 << 20) - 1,
    ),
    "resource-bomb entries": Pair(_entries(10_001), _entries(10_000)),
    "resource-bomb body": Pair(_content(_header((512 << 20) + 1)), _content(_header(512 << 20))),
    "resource-bomb channels": less(
        "handshake\n" + each(999, "& C{n}: channel.open\n").replace("& ", "", 1),
        "C1000: channel.open\n",
    ),
    "poison-message count": pair(
        CONSUMER + "S1: basic.deliver delivery_tag=1 redelivered=1 | body=5 "
        "headers='{\"x-delivery-count\": ~}'\n",
        4,
        3,
    ),
    "poison-message alike": less(
        CONSUMER
        + each(5, AGAIN, "C1: basic.reject delivery_tag={n} requeue=1\n")
        .replace("redelivered=1 ", "", 1)
        .rpartition("C1")[0],
        "C1: basic.reject delivery_tag=5 requeue=1\n",
    ),
    "requeue-storm redelivered": Pair(_storm(1), _storm(0)),
    "software-outdated client": Pair(
        *(
            opening(client=table(product="Pika Python Client Library", version=version))
            for version in ("1.3.9", "1.4.0")
        )
    ),
    "idle-connection-cut least": Pair(_idle(30_000), _idle(29_999)),
    "idle-connection-cut heartbeat": pair(
        "".join(
            opening(name=name, tuned=f"channel_max=9 frame_max=131072 heartbeat={beat}")
            + f"{name}C1: channel.open\n@+40000ms {name}RST C\n"
            for name, beat in (("a.", 0), ("b.", 0), ("c.", "~"))
        ),
        41,
        40,
    ),
    "password-guessing names": Pair(_guesses("e"), _guesses("d")),
    "acknowledgement-invalid zero": pair(
        CONSUMER + DELIVER.format(n=1) + "C1: basic.nack delivery_tag=0 multiple=~\n" + END, 0, 1
    ),
    "acknowledgement-invalid twice": Pair(
        CONSUMER
        + each(2, DELIVER)
        + "C1: basic.ack delivery_tag=1\nC1: basic.ack delivery_tag=1\n"
        + END,
        CONSUMER
        + each(2, DELIVER)
        + "C1: basic.ack delivery_tag=1\nC1: basic.ack delivery_tag=2\n"
        + END,
    ),
    "acknowledgement-invalid broker": Pair(
        "midstream\nC1: basic.ack delivery_tag=9\n" + refused(406, "unknown delivery tag 9"),
        "midstream\nC1: basic.ack delivery_tag=9\n" + refused(404, "unknown delivery tag 9"),
    ),
    "traffic-after-close unanswered": pair(
        OPEN + "S: connection.close reply_code=320\nRST ~\n", "C", "S"
    ),
    "heartbeat-malformed payload": Pair(OPEN + _frame(8, 0, "00"), OPEN + _frame(8, 0, "")),
    "content-unexpected-frame body": Pair(_content() + _body(1), _content()),
    "arguments-truncated numbers": Pair(
        OPEN + _frame(1, 1, "005a00"), OPEN + _frame(1, 1, "005a000a")
    ),
    "automatic-acknowledgement get": less(
        OPEN + "C1: basic.get queue=q no_ack=1\n", "S1: basic.get-ok delivery_tag=1\n"
    ),
    "operation-destructive purge": Pair(
        OPEN + "C1: queue.purge queue=q\n", OPEN + "C1: queue.declare queue=q\n"
    ),
    "publishes-unbound by a letter": pair(
        CONSUMER.replace("queue=q", "queue=~")
        + PUBLISH.replace("routing_key=q", "routing_key=report") * 10,
        "reports",
        "reports2",
    ),
    "transaction-uncommitted for long": Pair(
        *(SELECTED + PUBLISH * 9 + f"@+{ms}ms " + PUBLISH for ms in (59_990, 59_989))
    ),
    "celery-result-queues expires": pair(
        OPEN
        + each(
            2,
            "C1: queue.declare queue=00000000-0000-4000-8000-00000000000{n} "
            "arguments='{\"x-expires\": 5}'\n",
        )
        + "C1: queue.declare queue=00000000-0000-4000-8000-000000000003 "
        "arguments='{\"x-~\": 5}'\n",
        "expires",
        "expired",
    ),
}
"""By code and condition."""
