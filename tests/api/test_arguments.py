"""Arguments of the API: several where one has to match, an error in a line for what cannot be."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import amqpsniff
from amqpsniff.errors import UsageError
from tests.conftest import SAMPLES

MIX = SAMPLES / "pika_mix.pcap"


@pytest.mark.parametrize(
    ("table", "one", "other"),
    [
        ("messages", {"routing_key": "order.*.eu"}, {"routing_key": "dlq"}),
        ("frames", {"method": "publish"}, {"method": "queue.*"}),
        ("frames", {"outcome": "acked"}, {"outcome": "requeued"}),
        ("connections", {"client": "order-service-1"}, {"client": ":43706"}),
        ("messages", {"client": "order-service-1"}, {"client": ":43706"}),
    ],
)
def test_of_several_values_one_has_to_match(
    table: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    capture = amqpsniff.open(MIX)
    (name,) = one
    both = {name: [one[name], other[name]]}
    apart = [capture.table(table, **part).to_pylist() for part in (one, other)]
    together = capture.table(table, **both).to_pylist()
    assert all(apart)
    whole = capture.table(table).to_pylist()
    assert together == [row for row in whole if row in apart[0] or row in apart[1]]
    assert capture.table(table, **{name: {*both[name]}}).num_rows == len(together)


def test_a_summary_of_several_clients() -> None:
    """By address, and by name too."""
    capture = amqpsniff.open(MIX)
    for clients in ([":43700", ":43706"], [":43700", "order-service-*"]):
        assert len(capture.summary(client=clients)["connections"]) == 2
    assert len(capture.summary(client=[":43700"])["connections"]) == 1


def test_one_port_and_a_span_of_time() -> None:
    assert amqpsniff.open(MIX, ports=5672).table("connections").num_rows == 4
    capture = amqpsniff.open(MIX)
    part = {"from_": timedelta(milliseconds=155.5), "to": timedelta(milliseconds=155.6)}
    assert capture.table("messages", **part).num_rows == 6


WRONG: dict[str, tuple[Callable[[amqpsniff.Capture], Any], str]] = {
    "a number for a text": (
        lambda capture: capture.messages(queue=5),
        r"queue is 5; it is of the type str or Iterable\[str\]",
    ),
    "numbers for texts": (
        lambda capture: capture.messages(queue=["dlq", 5]),
        "queue: 5 is not of the type str",
    ),
    "nothing for a text": (lambda capture: capture.messages(queue=[]), "queue is an empty list"),
    "a method that is none": (
        lambda capture: capture.messages(method=["basic.ack", "basic.akc"]),
        "no `basic.akc`; did you mean `basic.ack`",
    ),
    "a mapping for NAME=VALUE": (
        lambda capture: capture.trace(header={"n": 3}),
        "header is {'n': 3}; it is of the type str",
    ),
    "a list of times": (
        lambda capture: capture.messages(from_=[1]),
        r"from_ is \[1\]; it is of the type str, float, datetime or timedelta",
    ),
    "a text for a number": (
        lambda capture: capture.frames(limit="5"),
        "limit is '5'; it is of the type int",
    ),
    "true for a number": (
        lambda capture: capture.frames(channel=True),
        "channel is True; it is of the type int",
    ),
    "a text for a port": (
        lambda capture: amqpsniff.open(MIX, ports="5672"),
        "ports: '5672' is not of the type int",
    ),
    "a number for a file": (
        lambda capture: amqpsniff.open(MIX, tls_key=5),
        "file: 5 is not of the type str or PathLike",
    ),
    "a number for bounds": (
        lambda capture: amqpsniff.open(MIX, limits=5),
        "limits is 5; it is of the type Limits",
    ),
    "a number for a code": (
        lambda capture: capture.diagnose(only=5),
        "finding: 5 is not of the type str",
    ),
    "a number for a capture": (
        lambda capture: amqpsniff.watch(capture=5),
        "capture: 5 is not of the type str",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_type_is_said(name: str) -> None:
    call, says = WRONG[name]
    with pytest.raises(UsageError, match=says):
        list(call(amqpsniff.open(MIX)))
