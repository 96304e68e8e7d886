# ruff: noqa: E501 (one packet, one line)
"""Messages that no queue takes, and consumers that get nothing more."""

from __future__ import annotations

import pytest

from amqpsniff.session.routes import known_after, known_until
from amqpsniff.session.rules.shared_state import MAX_KEPT
from tests.session.rules.found import findings
from tests.session.rules.saying import said

OPEN = """
    handshake client='{"connection_name": "shop"}'
    C1: channel.open
    S1: channel.open-ok
"""
EXCHANGE = "C1: exchange.declare exchange=e type=topic\nS1: exchange.declare-ok\n"
QUEUE = "C1: queue.declare queue=q\nS1: queue.declare-ok\n"
BIND = "C1: queue.bind queue=q exchange=e routing_key=orders.*\nS1: queue.bind-ok\n"
BOUND = OPEN + EXCHANGE + QUEUE + BIND
PUBLISH = "[p{n}] C1: basic.publish exchange=e routing_key={key} | body=1\n"
ORDER, LOST = PUBLISH.format(n=1, key="orders.paid"), PUBLISH.format(n=2, key="ordre.paid")
DELETE = "[deleted] C1: queue.delete queue=q\nS1: queue.delete-ok\n"
OTHER = "b.handshake\nb.C1: channel.open\nb.S1: channel.open-ok\n"

# publishes-unbound


def test_a_routing_key_that_no_binding_takes() -> None:
    assert said(BOUND + ORDER + LOST + LOST.replace("[p2] ", ""), "publishes-unbound") == [
        "publishes-unbound p2 - x2: 2 messages to exchange 'e' with routing key 'ordre.paid': taken by none of the 1 binding that the capture shows, and delivered to nobody"
    ]


@pytest.mark.parametrize("more", [0, 1])
def test_nothing_is_judged_of_more_routes_than_can_be_kept(more: int) -> None:
    """Those of 40 other connections are as many as can be kept, but two."""
    other = "c{0}.handshake\nc{0}.C1: channel.open\nc{0}.S1: channel.open-ok\n"
    text = "".join(map(other.format, range(40)))
    for n in range(MAX_KEPT - 2):
        text += f"c{n % 40}.C1: basic.publish exchange=f routing_key={n} | body=1\n"
    found = findings(text + BOUND + ORDER + LOST + LOST.replace("ordre", "order") * more)
    details = {row["code"]: row["detail"] for row in found}
    assert ("publishes-unbound" in details) is (more == 0)
    assert details.get("rules-limit") == (f"forgotten: routes ({MAX_KEPT})" if more else None)


@pytest.mark.parametrize(
    "text",
    [
        BOUND + ORDER,
        BOUND + LOST.replace("routing_key", "mandatory=1 routing_key"),
        BOUND + LOST + "C1: queue.bind queue=q exchange=e routing_key=#\nS1: queue.bind-ok\n",
        BOUND + LOST + "C1: exchange.bind source=e destination=f routing_key=ordre.paid\nS1: exchange.bind-ok\n",
        BOUND + "S1: basic.deliver consumer_tag=t delivery_tag=1 exchange=e routing_key=ordre.paid | body=1\n" + LOST,
        OPEN + EXCHANGE + QUEUE + LOST,
        OPEN + EXCHANGE.replace("topic", "headers") + QUEUE + BIND + LOST,
        OPEN + EXCHANGE.replace("type", "arguments='{\"alternate-exchange\": \"f\"}' type") + QUEUE + BIND + LOST,
        OPEN + QUEUE + BIND + LOST,
        BOUND + LOST + "GAP S 40\n",
        BOUND + LOST + "b.midstream\nb.C1: basic.publish | body=1\nb.S1: basic.qos-ok\n",
    ],
    ids=[
        "bound", "mandatory", "bound later", "perhaps by way of another exchange", "delivered", "no binding seen",
        "headers", "an alternate exchange", "an unknown type", "a hole", "a connection from before",
    ],
)  # fmt: skip
def test_messages_that_may_have_been_taken(text: str) -> None:
    assert said(text, "publishes-unbound") == []


def test_exchanges_of_the_broker_need_no_declaration() -> None:
    text = (OPEN + QUEUE + BIND + LOST).replace("exchange=e", "exchange=amq.topic")
    assert said(text, "publishes-unbound")[0].startswith(
        "publishes-unbound p2 -: 1 message to exchange 'amq.topic'"
    )


@pytest.mark.parametrize(
    ("kind", "pattern", "key", "takes"),
    [
        ("direct", "a", "a", True),
        ("direct", "a.*", "a.b", False),
        ("fanout", "a", "b", True),
        ("x-random", "a", "b", True),
        ("topic", "a.*", "a.b", True),
        ("topic", "a.*", "a", False),
        ("topic", "a.*", "a.b.c", False),
        ("topic", "a.#", "a", True),
        ("topic", "a.#", "a.b.c", True),
        ("topic", "#.c", "a.b.c", True),
        ("topic", "#.c", "a.b", False),
        ("topic", "*.#.*", "a", False),
        ("topic", "*.#.*", "a.b", True),
        ("topic", "#", "", True),
        ("topic", "", "", True),
        ("topic", "*", "", True),
        ("topic", "#.#.x.#", "a.x", True),
    ],
)
def test_patterns(kind: str, pattern: str, key: str, takes: bool) -> None:
    bound = (
        (OPEN + EXCHANGE + QUEUE + BIND).replace("topic", kind).replace("orders.*", f"'{pattern}'")
    )
    found = said(bound + PUBLISH.format(n=1, key=f"'{key}'"), "publishes-unbound")
    assert (found == []) is takes


# publishes-after-deletion


def test_messages_for_a_queue_that_was_deleted() -> None:
    text = (
        OTHER
        + BOUND
        + ORDER
        + DELETE.replace("C1", "b.C1").replace("S1", "b.S1")
        + ORDER.replace("p1", "p3").replace("C1", "@+2000ms C1")
    )
    text = text.replace("[p3] @+2000ms", "[p3] @+2000ms") + "C1: basic.qos\nS1: basic.qos-ok\n"
    (line,) = said(text, "publishes-after-deletion")
    assert line.startswith("publishes-after-deletion p3 -: queue 'q' was deleted in packet ")
    assert line.endswith(
        "exchange 'e', routing key 'orders.paid' until 2.00 s later, 1 message at least"
    )


DEFAULT = "[p] C1: basic.publish routing_key=q | body=1\n"


@pytest.mark.parametrize(
    ("text", "times"),
    [
        (OPEN + QUEUE + DELETE + DEFAULT, 1),
        (OPEN + DELETE + DEFAULT, 1),
        (OPEN + QUEUE + DEFAULT + DELETE, 0),
        (OPEN + QUEUE + DELETE + DEFAULT + QUEUE, 0),
        (OPEN + QUEUE + DELETE + DEFAULT.replace("=q", "=r"), 0),
        (OPEN + QUEUE + DELETE + DEFAULT + "S1: basic.deliver consumer_tag=t delivery_tag=1 routing_key=q | body=1\n", 0),
        (OPEN + QUEUE + DELETE.replace("S1: queue.delete-ok", "") + DEFAULT, 0),
        (BOUND + "C1: queue.bind queue=r exchange=e routing_key=#\nS1: queue.bind-ok\n" + DELETE + ORDER, 0),
        (OPEN + QUEUE + DELETE + "GAP C 40\n" + DEFAULT, 0),
        (OPEN + (QUEUE + DELETE + DEFAULT).replace("=q", "=amq.gen-1"), 0),
    ],
    ids=[
        "declared before", "declared before the capture", "published before", "declared again", "another queue",
        "delivered", "not deleted", "another binding", "a hole", "a private queue",
    ],
)  # fmt: skip
def test_what_is_published_after_a_deletion(text: str, times: int) -> None:
    assert len(said(text, "publishes-after-deletion")) == times


def test_where_all_publishes_came_after_the_deletion() -> None:
    text = OPEN + QUEUE + DELETE + DEFAULT + DEFAULT.replace("[p]", "[last] @+2000ms")
    (line,) = said(text, "publishes-after-deletion")
    assert line.startswith("publishes-after-deletion p ")


HEADERS = OPEN + EXCHANGE.replace("topic", "headers") + QUEUE + BIND
FURTHER = (
    "C1: exchange.declare exchange=f type=fanout\nS1: exchange.declare-ok\n"
    "C1: exchange.bind source=f destination=e\nS1: exchange.bind-ok\n"
)
WAITING = "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
UNNAMED = LOST.replace("[p2] ", "")
LATER = "@+2500ms S1: channel.flow active=1\n"


def test_headers_that_no_binding_takes() -> None:
    assert said(HEADERS + WAITING + LOST + UNNAMED * 2 + LATER, "publishes-unbound") == [
        "publishes-unbound p2 - x3: 3 or more of 3 messages to exchange 'e', routing key 'ordre.paid' came to nobody: bindings by headers lead to queue 'q', where a consumer waited"
    ]
    text = HEADERS + FURTHER + WAITING + LOST.replace("=e", "=f") * 3 + "@+2500ms C1: channel.close"
    assert "bindings by headers lead to queue 'q'" in said(text, "publishes-unbound")[0]


@pytest.mark.parametrize(
    "text",
    [
        HEADERS + LOST * 3 + LATER,
        HEADERS + WAITING + LOST * 2 + LATER,
        HEADERS + WAITING + LOST * 3 + LATER.replace("2500", "900"),
        HEADERS + WAITING + LOST * 3 + "S1: basic.deliver consumer_tag=t delivery_tag=1 exchange=e routing_key=ordre.paid | body=1\n" + LATER,
        HEADERS + WAITING + "C1: queue.bind queue=r exchange=e\nS1: queue.bind-ok\n" + LOST * 3 + LATER,
        HEADERS + FURTHER.replace("fanout", "x-random") + WAITING + LOST.replace("=e", "=f") * 3 + LATER,
    ],
    ids=["no consumer", "few", "soon", "one came", "another queue", "an unknown type"],
)  # fmt: skip
def test_headers_that_some_binding_may_take(text: str) -> None:
    assert said(text, "publishes-unbound") == []


@pytest.mark.parametrize(("kind", "times"), [("topic", 1), ("headers", 0)])
def test_headers_do_not_say_that_messages_are_for_a_queue(kind: str, times: int) -> None:
    text = BOUND.replace("topic", kind) + WAITING + ORDER * 12 + LATER.replace("2500", "20000")
    assert len(said(text, "deliveries-stopped")) == times


# deliveries-stopped

CONSUME = "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"


def delivered(count: int, at: str = "S1") -> str:
    """Messages that come to the consumer and are acknowledged."""
    return "".join(
        f"[d{n}] {at}: basic.deliver consumer_tag=t delivery_tag={n} routing_key=q | body=1\n"
        f"{at.replace('S', 'C')}: basic.ack delivery_tag={n}\n"
        for n in range(1, count + 1)
    )


def published(count: int) -> str:
    """Messages for it."""
    return "b.C1: basic.publish routing_key=q | body=1\n" * count


ALIVE = "@+{}ms S1: channel.flow active=1\n"
STOPPED = OPEN + CONSUME + OTHER + delivered(3) + "@+200ms " + published(10)


def test_a_consumer_that_gets_nothing_more() -> None:
    assert said(STOPPED + ALIVE.format(10_000), "deliveries-stopped") == [
        "deliveries-stopped d3 1: consumer 't' of queue 'q' got 3 messages, the last in packet d3, and none in the 10.2 s after, in which 10 or more were published with the same exchange and routing key"
    ]


def test_a_consumer_that_is_known_from_its_deliveries_alone() -> None:
    text = "midstream\nb.midstream\nb.S1: basic.ack delivery_tag=7\n" + delivered(3) + published(10)
    (line,) = said(text + ALIVE.format(10_000), "deliveries-stopped")
    assert "consumer 't' of a queue not known got 3 messages" in line


@pytest.mark.parametrize(
    "text",
    [
        STOPPED + ALIVE.format(9_000),
        OPEN + CONSUME + OTHER + delivered(2) + "@+200ms " + published(10) + ALIVE.format(10_000),
        OPEN + CONSUME + OTHER + delivered(3) + "@+200ms " + published(9) + ALIVE.format(10_000),
        STOPPED + "C1: basic.cancel consumer_tag=t\nS1: basic.cancel-ok consumer_tag=t\n" + ALIVE.format(10_000),
        STOPPED + "S1: basic.cancel consumer_tag=t\n" + ALIVE.format(10_000),
        STOPPED + "C1: channel.close\nS1: channel.close-ok\n" + ALIVE.replace("S1", "S2").format(10_000),
        STOPPED.replace("10.2", "") + "S1: basic.deliver consumer_tag=t delivery_tag=4 routing_key=q | body=1\n" + ALIVE.format(9_000),
        STOPPED.replace("queue=q", "queue=amq.gen-1") + ALIVE.format(10_000),
        STOPPED + "GAP S 40\n" + ALIVE.format(10_000),
        STOPPED + CONSUME.replace("C1", "b.C1").replace("S1", "b.S1") + delivered(2, "b.S1").replace("[d1]", "").replace("[d2]", "") + ALIVE.format(10_000),
    ],
    ids=[
        "not for long", "few came", "few were published", "cancelled by its client", "cancelled by the broker",
        "its channel is closed", "one came", "a private queue", "a hole", "another consumer",
    ],
)  # fmt: skip
def test_consumers_that_may_have_nothing_to_get(text: str) -> None:
    assert said(text, "deliveries-stopped") == []


def test_a_full_window_is_another_finding() -> None:
    qos = "C1: basic.qos prefetch_count=3\nS1: basic.qos-ok\n"
    held = STOPPED.replace(CONSUME, qos + CONSUME)
    held = "\n".join(line for line in held.splitlines() if "basic.ack" not in line) + "\n"
    assert said(held + ALIVE.format(40_000), "deliveries-stopped") == []
    assert said(held + ALIVE.format(40_000), "consumer-stuck")


IDLE = OPEN + CONSUME + OTHER + published(10) + "b.C1: basic.publish routing_key=q | body=1\n"


def test_a_consumer_that_gets_nothing_at_all() -> None:
    assert said(IDLE + ALIVE.format(11_000), "deliveries-stopped") == [
        "deliveries-stopped #10 1: consumer 't' of queue 'q' got nothing in 11.0 s, though 10 or more messages were published for that queue"
    ]


@pytest.mark.parametrize(
    "text",
    [
        IDLE + ALIVE.format(9_000),
        OPEN + CONSUME + OTHER + published(9) + ALIVE.format(11_000),
        IDLE + "b.C1: basic.get queue=q\nb.S1: basic.get-ok delivery_tag=1 routing_key=q | body=1\n" + ALIVE.format(11_000),
        IDLE.replace("routing_key=q", "routing_key=r") + ALIVE.format(11_000),
        IDLE + "C1: basic.cancel consumer_tag=t\nS1: basic.cancel-ok\n" + ALIVE.format(11_000),
        IDLE + DELETE.replace("C1", "b.C1").replace("S1", "b.S1") + ALIVE.format(11_000),
        IDLE + "GAP S 40\n" + ALIVE.format(11_000),
    ],
    ids=["not for long", "few", "somebody gets them", "another queue", "cancelled", "deleted", "a hole"],
)  # fmt: skip
def test_consumers_that_need_not_get_anything(text: str) -> None:
    assert said(text, "deliveries-stopped") == []


def test_a_message_that_somebody_fetches_is_taken() -> None:
    got = "C1: basic.get queue=q\nS1: basic.get-ok delivery_tag=1 exchange=e routing_key=ordre.paid | body=1\n"
    assert said(BOUND + LOST + got, "publishes-unbound") == []


@pytest.mark.parametrize(("ts_ns", "count"), [(0, 9), (1, 7), (2, 7), (3, 4), (8, 4), (9, 0)])
def test_how_many_came_after_a_time(ts_ns: int, count: int) -> None:
    assert known_after(9, [(1, 0), (3, 2), (9, 5)], ts_ns) == count


@pytest.mark.parametrize(("ts_ns", "count"), [(0, 0), (1, 0), (3, 2), (8, 2), (9, 5), (99, 5)])
def test_how_many_came_until_a_time(ts_ns: int, count: int) -> None:
    assert known_until([(1, 0), (3, 2), (9, 5)], ts_ns) == count
