"""A program that uses the API, as its author writes it; `make test` checks its types, strictly."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import amqpsniff
from amqpsniff import Capture, Engine, Finding, Frame, Message


def returned(capture: Capture) -> Iterator[tuple[datetime | None, str]]:
    """When which routing keys came back."""
    message: Message
    for message in capture.messages():
        if message.outcome == "returned" and message.routing_key is not None:
            yield message.timestamp, message.routing_key


def queues(frames: Iterator[Frame]) -> set[str]:
    """Names that were declared."""
    return {frame.queue for frame in frames if frame.method == "queue.declare" and frame.queue}


def worst(findings: Iterator[Finding]) -> str | None:
    """The code of the most frequent error."""
    errors = [(one.count, one.code) for one in findings if one.severity == "error"]
    return max(errors)[1] if errors else None


def main(path: Path) -> int:
    """All of it."""
    try:
        with amqpsniff.open(path, ports=[5672], body_sha256=True) as capture:
            print(list(returned(capture)), queues(capture.frames()), worst(capture.findings()))
            rows: int = capture.table("frames", columns=["method"]).num_rows
            print(rows, capture.totals.packets, capture.options.ports)
    except amqpsniff.CaptureError as error:
        print(error)
    engine = Engine(capture="tap")
    engine.feed_bytes(("10.0.0.1:40000", "10.0.0.2:5672"), "client", b"AMQP\x00\x00\x09\x01", 1)
    engine.finish()
    return len(list(engine.frames()))


if __name__ == "__main__":
    main(Path("samples/pika_mix.pcap"))
