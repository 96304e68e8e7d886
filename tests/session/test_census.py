"""Counts by exchange, routing key and queue, over batches of rows and vocabularies."""

from __future__ import annotations

from typing import Any

import pytest

from amqpsniff.limits import Limits
from amqpsniff.options import Options
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from amqpsniff.session.census import Census, CensusLimits
from tests.encoder import frame
from tests.session.script import Script, wired
from tests.tcp import wire

TALK = """
    handshake
    C1: channel.open
    S1: channel.open-ok
    C1: basic.consume queue=q consumer_tag=t
    S1: basic.consume-ok consumer_tag=t
"""
MESSAGES = """
    C1: basic.publish exchange=e routing_key=a | body=5
    C1: basic.publish exchange=e routing_key=b | body=7
    S1: basic.deliver consumer_tag=t delivery_tag=1 exchange=e routing_key=a | body=5
    C1: basic.publish exchange=f routing_key=a | body=9
"""


def _counted(
    turned: bool = False, most: CensusLimits | None = None, **limits: int
) -> list[dict[Any, list[int]]]:
    """What a census counts that sees every packet alone; `turned`: asked after each of them."""
    counts = Census(limits=most)
    joined = Pipeline(Options(limits=Limits(**limits)), Plan((), census=counts))
    talk = wire.Talk()
    talk.hands()
    for packet in Script(TALK + 3 * MESSAGES).packets:
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    found: list[dict[Any, list[int]]] = [{}, {}]
    for packet in talk.packets:
        joined.feed(wire.batch([packet]))
        for whole, part in zip(found, counts.rotate() if turned else (), strict=False):
            for name, numbers in part.counts.items():
                before = whole.get(name, [0] * len(numbers))
                whole[name] = [a + b for a, b in zip(before, numbers, strict=True)]
    joined.finish()
    facts = counts.facts()
    return found if turned else [facts["routes"].counts, facts["queues"].counts]


ROUTES = {
    ("/", "e", "a"): [3, 15, 3, 15, 3, 3],
    ("/", "e", "b"): [3, 21, 0, 0, 3, 0],
    ("/", "f", "a"): [3, 27, 0, 0, 3, 0],
}
QUEUES = {("/", "q"): [0, 0, 3, 15, 0, 3]}


@pytest.mark.parametrize(
    "limits",
    [{}, {"names_per_batch": 1}, {"most": CensusLimits(names=1)}],
    ids=["one vocabulary", "many vocabularies", "many names"],
)
def test_names_are_counted_across_batches(limits: dict[str, Any]) -> None:
    routes, queues = _counted(**limits)
    assert (list(routes.items()), queues) == (list(ROUTES.items()), QUEUES)


def test_names_are_counted_between_turns() -> None:
    assert _counted(turned=True) == [ROUTES, QUEUES]


def test_names_of_two_virtual_hosts_are_two() -> None:
    """Messages, and what the broker says of a queue; beyond the bound they are of unknown ones."""
    texts = []
    for name in ("a", "b", "c"):
        lines = TALK.replace("handshake", f"handshake vhost={name}") + MESSAGES
        lines += "C1: queue.declare queue=q\n S1: queue.declare-ok queue=q message_count=7"
        texts += [f"{name}.{line.strip()}" for line in lines.split("\n") if line.strip()]
    counts = Census(limits=CensusLimits(vhosts=3))
    joined = Pipeline(Options(), Plan((), census=counts))
    for _, packet in wired(Script("\n".join(texts))):
        joined.feed(wire.batch([packet]))
    joined.finish()
    facts = counts.facts()
    whole = {names: counted[0] for names, counted in facts["routes"].counts.items()}
    vhosts = ("a", "b", None)
    assert whole == {(vhost, *name): 1 for vhost in vhosts for name in ("ea", "eb", "fa")}
    assert list(facts["queues"].counts) == [(vhost, "q") for vhost in vhosts]
    assert [(*names, depth) for names, (depth, *_) in facts["depths"].items()] == [
        ("a", "q", 7), ("b", "q", 7), (None, "q", 7),
    ]  # fmt: skip


def test_a_client_of_tls_at_a_plain_port_leaves_nothing_open() -> None:
    """The broker answers with its header and ends TCP: nobody had a connection to close."""
    counts = Census()
    joined = Pipeline(Options(), Plan((), census=counts))
    talk = wire.Talk().hands()
    talk.client(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(32))
    talk.server(b"AMQP\0\0\x09\x01")
    talk.server(flags=wire.RST | wire.ACK)
    for packet in talk.packets:
        joined.feed(wire.batch([packet]))
    joined.finish()
    facts = counts.facts()
    assert (facts["counted"], facts["unclean"]) == (1, 0)


def test_errors_are_bounded() -> None:
    """Those of other texts than the first few are counted by their method alone."""
    refused = (
        "C1: channel.open\nS1: channel.close reply_code=404 reply_text={0}\nC1: channel.close-ok\n"
    )
    counts = Census(limits=CensusLimits(errors=3))
    joined = Pipeline(Options(), Plan((), census=counts))
    text = "handshake\n" + "".join(map(refused.format, "abcdea"))
    joined.feed(wire.batch([packet for _, packet in wired(Script(text))]))
    joined.finish()
    errors = counts.facts()["errors"]
    assert [(one["reply_text"], one["count"]) for one in errors] == [
        ("a", 2), ("b", 1), ("c", 1), (None, 2)
    ]  # fmt: skip


def test_methods_that_no_dialect_knows() -> None:
    """By name as they come, but not without end."""
    counts = Census(limits=CensusLimits(others=2))
    joined = Pipeline(Options(), Plan((), census=counts))
    talk = wire.Talk().hands()
    for packet in Script(TALK).packets:
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    for number in (2, 1, 2, 3):
        talk.put(0, frame(1, 1, bytes([0, 200, 0, number])))
    for packet in talk.packets:
        joined.feed(wire.batch([packet]))
    joined.finish()
    facts = counts.facts()
    unknown = {name: n for name, n in facts["methods"].items() if name.startswith("200.")}
    assert unknown == {"200.2": 2, "200.1": 1}
    assert facts["frames"]["method"] == sum(facts["methods"].values()) + 1
