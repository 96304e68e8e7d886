"""CPU time a message costs more with packs: rows of messages, and findings, with and without.

    python -m benchmarks.bench_packs [--rounds 7] [--only NAME]

First messages alone: each capture repeats one as a framework writes it. Then real traffic of
frameworks, where a message has its deliveries, confirms and acknowledgements. Runs with and without
packs alternate, and the median of the pairs is told, so that a busy machine matters little.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from unittest import mock

from amqpsniff.options import Options
from amqpsniff.packs import COLUMNS
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from amqpsniff.tables.batches import Maker, plan_for
from benchmarks import captures
from tests.decode.script import OPENING, method
from tests.packs.rebuilt import Rebuilt
from tests.tcp.wire import Packet, Talk, batch

COUNT = 20_000
NUMBER = b"000000000000"
"""Stands in a message for its number: ids differ in real traffic."""
SEGMENT = 1448
KEYS = ("order", "customer", "total", "currency", "created", "lines", "address", "comment")
JSON = {name: f"a value of some length for {name}" for name in KEYS}
COMMON = {"content_type": "application/json", "message_id": "6f1c2f0e-7d7d-4a55-bd4c-000000000000"}
ENVELOPE = {
    "messageId": "11110000-0000-0000-0000-000000000000",
    "conversationId": "11110000-0000-0000-0000-000000000000",
    "sourceAddress": "rabbitmq://host/source",
    "destinationAddress": "rabbitmq://host/Shop:OrderPlaced",
    "messageType": ["urn:message:Shop:OrderPlaced"],
    "message": JSON,
    "sentTime": "2026-01-01T00:00:00.000Z",
    "headers": {},
    "host": {"machineName": "host", "processName": "shop", "processId": 1},
}
CELERY = "6f1c2f0e-7d7d-4a55-bd4c-000000000000"
MASSTRANSIT = {"content_type": "application/vnd.masstransit+json"}
MESSAGES = {
    "bare": Rebuilt("", None, {}, None, b"x" * 200, properties=COMMON),
    "headers": Rebuilt("", None, {}, {"a": "b", "tenant": "x"}, b"x" * 200, properties=COMMON),
    "json": Rebuilt("", None, {}, None, JSON, properties=COMMON),
    "celery": Rebuilt(
        "", None, {}, {"lang": "py", "task": "shop.tasks.bill", "id": CELERY, "shadow": None,
        "eta": None, "expires": None, "group": None, "retries": 0, "timelimit": [None, None],
        "root_id": CELERY, "parent_id": None, "argsrepr": "()", "kwargsrepr": "{}",
        "origin": "gen1@host"}, [[], {}, {}],
        properties={"content_type": "application/json", "correlation_id": CELERY,
                    "reply_to": "r"},
    ),
    "masstransit": Rebuilt("", None, {}, None, ENVELOPE, properties=MASSTRANSIT),
    "nservicebus": Rebuilt(
        "", None, {}, {"NServiceBus.MessageId": CELERY, "NServiceBus.ConversationId": CELERY,
        "NServiceBus.MessageIntent": "Send", "NServiceBus.ReplyToAddress": "shop",
        "NServiceBus.EnclosedMessageTypes": "Shop.PlaceOrder, Shop, Version=1.0.0.0",
        "NServiceBus.TimeSent": "2026-01-01 00:00:00:000000 Z"}, JSON,
        properties={"message_id": CELERY},
    ),
    "traceparent": Rebuilt(
        "", None, {}, {"traceparent": "00-4bf92f3577b34da6a3ce000000000000-00f067aa0ba902b7-01"},
        b"x" * 200, properties=COMMON,
    ),
}  # fmt: skip


REAL = (
    "celery", "chord", "kombu", "nameko", "oslo", "dramatiq", "order", "amqplib", "workers",
    "dead_letters", "firehose", "streams",
)  # fmt: skip
REAL_BYTES = 12_000_000
IDS = re.compile(
    rb"\b[0-9a-f]{6}([0-9a-f]{2}(?:(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{24}|[0-9a-f]{8}))\b"
)
"""Ids in messages, hexadecimal digits of 128 bits or 64."""


def real(name: str) -> list:
    """Packets of a real capture that is repeated, each time with other ids in its messages."""
    records = captures.records_of(name)
    link = int.from_bytes(captures.bytes_of(name)[20:24], "little")
    packets: list[Packet] = []
    micros, size, turn = captures.FIRST_SECOND * 1_000_000, 0, 0
    while size < REAL_BYTES:
        for offset, record in records:
            captures.renew(record, micros + offset, turn)
            octets = IDS.sub(b"%06x\\1" % turn, bytes(record[16:]))
            packets.append(Packet(octets, (micros + offset) * 1000, link_type=link))
            size += len(record)
        micros += records[-1][0] + 1000
        turn += 1
    return [batch(packets[at : at + 4096]) for at in range(0, len(packets), 4096)]


def capture(message: Rebuilt) -> list:
    """Packets of many such publishes on one channel."""
    login = method("connection.open-ok", 0) + method("channel.open-ok")
    one = message.octets()
    octets = OPENING + b"".join(one.replace(NUMBER, b"%012d" % n) for n in range(COUNT))
    talk = Talk()
    talk.put(0, b"", flags=2)
    talk.put(1, b"", flags=18)
    talk.put(0, octets[:8])
    talk.put(1, login)
    for at in range(8, len(octets), SEGMENT):
        talk.put(0, octets[at : at + SEGMENT])
    return [batch(talk.packets)]


def run(packets: list, plan: Plan, maker: Maker | None, packs: bool) -> tuple[float, int]:
    """(seconds of CPU for one run, rows)."""
    began = time.process_time()
    with nullcontext() if packs else mock.patch("amqpsniff.pipeline.load", return_value=None):
        pipeline = Pipeline(Options(), plan)
    for one in packets:
        pipeline.feed(one)
    pipeline.finish()
    rows = 0
    for taken in pipeline.rest():
        if maker is not None:
            rows += maker.make(taken).num_rows
    return time.process_time() - began, rows


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only")
    asked = parser.parse_args()
    bare = Maker("messages")
    meant = Maker("messages", columns=[*bare.schema.names, *COLUMNS])
    judged = Plan(frozenset({"findings", "messages"}))
    kinds: dict[str, tuple[Callable[[], tuple], Callable[[], tuple]]] = {
        "rows": (lambda: (plan_for([bare]), bare, False), lambda: (plan_for([meant]), meant, True)),
        "findings": (lambda: (judged, None, False), lambda: (judged, None, True)),
    }  # fmt: skip
    print(f"{'messages':17} {'run':9} {'without':>9} {'with':>9} {'more':>7}")
    cases = {name: partial(capture, one) for name, one in MESSAGES.items()}
    cases |= {f"real {name}": partial(real, name) for name in REAL}
    for name, make in cases.items():
        if asked.only not in (None, name):
            continue
        packets = make()
        count = run(packets, *kinds["rows"][0]())[1]
        for kind, (without, with_) in kinds.items():
            pairs = []
            for _ in range(asked.rounds):
                pairs.append((run(packets, *without())[0], run(packets, *with_())[0]))
            more = statistics.median(b / a for a, b in pairs) - 1
            first, second = (
                statistics.median(one) / count * 1e6 for one in zip(*pairs, strict=True)
            )
            print(f"{name:17} {kind:9} {first:6.2f} µs {second:6.2f} µs {100 * more:+5.0f} %")


if __name__ == "__main__":
    main()
