"""Messages and requests that wait: the cost of one with 80 outstanding and with 80,000.

    python benchmarks/bench_outstanding.py [--messages 160000] [--rounds 3]

The same bytes in the same number of calls, on one channel: blocks of messages, then what settles
them; only the length of the blocks differs. Prints CPU microseconds a message of both, the best of
the rounds; exits with 1 where a message costs more than twice as much with 80,000.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from amqpsniff import Engine
from amqpsniff.spec import Method, methods_for
from tests import encoder

FEW, MANY = 80, 80_000
MAX_TIMES = 2.0

Talk = Iterator[tuple[str, list[bytes]]]
"""Who sends, and frames: as many as fit one call."""


def _row(class_id: int, method_id: int) -> Method:
    return methods_for("0-9-1", class_id, method_id)[0]


def _method(class_id: int, method_id: int, **given: Any) -> bytes:
    row = _row(class_id, method_id)
    empty = {"b": False, "s": b"", "S": b"", "F": ()}
    values = {each.name: empty.get(each.type, 0) for each in row.arguments} | given
    return encoder.method(row, values)


def _content(method: bytes, body: bytes = b"12345") -> bytes:
    return method + encoder.header(1, 60, len(body)) + encoder.body(1, body)


def _publish(tag: int) -> bytes:
    return _content(_method(60, 40, exchange=b"e", routing_key=b"k"))


def _mandatory(tag: int) -> bytes:
    return _content(_method(60, 40, exchange=b"e", routing_key=b"k", mandatory=True))


def _returned(tag: int) -> bytes:
    return _content(_method(60, 50, reply_code=312, exchange=b"e", routing_key=b"k"))


def _mandatory_elsewhere(tag: int) -> bytes:
    return _content(_method(60, 40, exchange=b"e", routing_key=b"%d" % tag, mandatory=True))


def _returned_from_elsewhere(tag: int) -> bytes:
    return _content(_method(60, 50, reply_code=312, exchange=b"e", routing_key=b"%d" % tag))


def _mandatory_of_sizes(tag: int) -> bytes:
    return _content(
        _method(60, 40, exchange=b"e", routing_key=b"k", mandatory=True), b"x" * (tag % 50)
    )


def _returned_of_sizes(tag: int) -> bytes:
    return _content(
        _method(60, 50, reply_code=312, exchange=b"e", routing_key=b"k"), b"x" * (tag % 50)
    )


def _deliver(tag: int) -> bytes:
    return _content(_method(60, 60, consumer_tag=b"c", delivery_tag=tag, routing_key=b"k"))


def _ack(tag: int) -> bytes:
    return _method(60, 80, delivery_tag=tag)


def _recover(tag: int) -> bytes:
    return _method(60, 100, requeue=tag % FEW == 0)


def _declare(tag: int) -> bytes:
    return _method(50, 10, queue=b"q")


def _declared(tag: int) -> bytes:
    return _method(50, 11, queue=b"q")


OPENING = (
    ("client", encoder.PROTOCOL_HEADERS["0-9-1"] + _method(20, 10)),
    ("server", _method(20, 11)),
)
CONFIRM = (("client", _method(85, 10)), ("server", _method(85, 11)))
CONSUME = (
    ("client", _method(60, 20, queue=b"q", consumer_tag=b"c")),
    ("server", _method(60, 21, consumer_tag=b"c")),
)
SELECT = (("client", _method(90, 10)), ("server", _method(90, 11)))
NOTHING: tuple[tuple[str, bytes], ...] = ()

Frame = Callable[[int], bytes]
OLDEST, NEWEST, TOGETHER = "oldest first", "newest first", f"{FEW} at once"
CASES: tuple[tuple[str, tuple[tuple[str, bytes], ...], str, Frame, Frame, str], ...] = (
    ("confirmed", CONFIRM, "client", _publish, _ack, OLDEST),
    ("confirmed", CONFIRM, "client", _publish, _ack, NEWEST),
    ("confirmed", CONFIRM, "client", _publish, _ack, TOGETHER),
    ("returned", CONFIRM, "client", _mandatory, _returned, OLDEST),
    ("returned by key", CONFIRM, "client", _mandatory_elsewhere, _returned_from_elsewhere, NEWEST),
    ("returned by size", NOTHING, "client", _mandatory_of_sizes, _returned_of_sizes, NEWEST),
    ("acked", CONSUME, "server", _deliver, _ack, OLDEST),
    ("acked", CONSUME, "server", _deliver, _ack, NEWEST),
    ("acked", CONSUME, "server", _deliver, _ack, TOGETHER),
    ("recovered", CONSUME, "server", _deliver, _recover, OLDEST),
    ("acked, not committed", SELECT + CONSUME, "server", _deliver, _ack, OLDEST),
    ("declared", NOTHING, "client", _declare, _declared, OLDEST),
)
"""What happens · what comes before · who opens · what opens · what settles it · in which order."""


def _multiple(tag: int) -> bytes:
    return _method(60, 80, delivery_tag=tag, multiple=True)


def blocks(length: int, messages: int, first: str, begin: Frame, end: Frame, order: str) -> Talk:
    """Blocks of messages and of what settles them."""
    second = "server" if first == "client" else "client"
    for block in range(0, messages, length):
        tags = range(block + 1, block + length + 1)
        opened = [begin(tag) for tag in tags]
        if order == TOGETHER:  # one for all before it, among many that mean nothing
            settled = [_ack(2**60) if tag % FEW else _multiple(tag) for tag in tags]
        else:
            settled = [end(tag) for tag in (reversed(tags) if order == NEWEST else tags)]
        for sender, frames in ((first, opened), (second, settled)):
            for at in range(0, length, FEW):
                yield sender, frames[at : at + FEW]


def measure(before: tuple[tuple[str, bytes], ...], talk: Talk, messages: int) -> float:
    """CPU microseconds a message."""
    calls = [(sender, b"".join(frames)) for sender, frames in talk]
    engine = Engine()
    for sender, octets in (*OPENING, *before):
        engine.feed_bytes("a", sender, octets, 1)
    begin = time.process_time()
    for sender, octets in calls:
        engine.feed_bytes("a", sender, octets, 1)
    engine.finish()
    return (time.process_time() - begin) / messages * 1e6


def main() -> int:
    """Measure; 1 where the cost of a message depends on how many are outstanding."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=2 * MANY)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    measure(CONFIRM, blocks(FEW, MANY, "client", _publish, _ack, OLDEST), MANY)  # warms up
    missed = 0
    for name, before, first, begin, end, order in CASES:
        times = []
        for length in (FEW, MANY):
            talks = [
                blocks(length, given.messages, first, begin, end, order)
                for _ in range(given.rounds)
            ]
            times.append(min(measure(before, talk, given.messages) for talk in talks))
        few, many = times
        ratio = many / few
        missed += ratio > MAX_TIMES
        print(
            f"{name + ', ' + order:36} {few:6.2f} µs with {FEW}  {many:6.2f} µs with {MANY:,}"
            f"  {ratio:.2f} x (bar {MAX_TIMES})",
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
