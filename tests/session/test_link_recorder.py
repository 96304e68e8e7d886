"""Deliveries find their publishes and replies their requests, across connections."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from amqpsniff.limits import Limits
from amqpsniff.session import Memory
from amqpsniff.session.linker import PublishIndex
from amqpsniff.tables.schema import EVERYTHING
from tests.encoder import Field
from tests.session.script import MS, Script, feed

OPEN = "{0}.handshake vhost={1}\n{0}.C1: channel.open\n{0}.S1: channel.open-ok\n"
CONSUME = "{0}.C1: basic.consume queue={1} consumer_tag={2} no_ack=1\n"
DELIVER = "{0}.S1: basic.deliver consumer_tag={1} delivery_tag=1 exchange={2} routing_key={3}"

EVERY = EVERYTHING["messages"].names


def opened(*names: str, vhost: str = "/") -> str:
    """Connections with a channel."""
    return "".join(OPEN.format(name, vhost) for name in names)


def linked(script: str, memory: Memory | None = None) -> list[str]:
    """The messages of a script that are linked: what they are, and with what, in short."""
    made = Script(script)
    fed = feed(made) if memory is None else _fed_with(made, memory)
    labels = {number: label for label, number in made.labels.items()}
    lines = []
    for row in fed.engine.take("messages").to_pylist():
        at = fed.numbers[row["packet_number"]]
        words = [labels.get(at, f"#{at}")]
        if row["link_confidence"] is not None:
            published = fed.numbers[row["published_packet_number"]]
            words += [labels[published], row["link_confidence"], f"{row['published_ns'] // MS}ms"]
            words.append(str(row["delivery_number"] or "again"))
        if row["request_packet_number"] is not None:
            request = fed.numbers[row["request_packet_number"]]
            words += ["to", labels[request], f"{row['request_ns'] // MS}ms"]
            words += ["late"] if row["reply_late"] else []
        if len(words) > 1:
            lines.append(" ".join(words))
    return lines


def _fed_with(script: Script, memory: Memory) -> Any:
    return feed(script, limits=Limits(memory=memory))


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_fan_out() -> None:
    """One publish, three queues on two connections: three deliveries, in order, and one again."""
    script = (
        opened("p", "a", "b")
        + CONSUME.format("a", "q1", "t1")
        + CONSUME.format("a", "q2", "t2")
        + CONSUME.format("b", "q3", "t3")
        + """
        [p1] p.C1: basic.publish exchange=x routing_key=k | body=5 message_id=m1
        [d1] a.S1: basic.deliver consumer_tag=t1 delivery_tag=1 exchange=x routing_key=k | body=5 message_id=m1
        [d2] b.S1: basic.deliver consumer_tag=t3 delivery_tag=1 exchange=x routing_key=k | body=5 message_id=m1
        [d3] a.S1: basic.deliver consumer_tag=t2 delivery_tag=2 exchange=x routing_key=k | body=5 message_id=m1
        [d4] a.S1: basic.deliver consumer_tag=t2 delivery_tag=3 redelivered=1 exchange=x routing_key=k | body=5 message_id=m1
        """  # noqa: E501
    )
    assert linked(script) == lines(
        """
        d1 p1 exact 1ms 1
        d2 p1 exact 2ms 2
        d3 p1 exact 3ms 3
        d4 p1 exact 4ms again
        """
    )


def test_alike_publishes_are_handed_on_in_order() -> None:
    """Without ids the order decides, and it says so, also of what is left at last."""
    script = (
        opened("p", "a")
        + CONSUME.format("a", "q", "t")
        + """
        [p1] p.C1: basic.publish exchange=x routing_key=k | body=5
        [p2] p.C1: basic.publish exchange=x routing_key=k | body=5
        [d1] a.S1: basic.deliver consumer_tag=t delivery_tag=1 exchange=x routing_key=k | body=5
        [d2] a.S1: basic.deliver consumer_tag=t delivery_tag=2 exchange=x routing_key=k | body=5
        [r1] a.S1: basic.deliver consumer_tag=t delivery_tag=3 redelivered=1 exchange=x routing_key=k | body=5
        [r2] a.S1: basic.deliver consumer_tag=t delivery_tag=4 redelivered=1 exchange=x routing_key=k | body=5
        [d3] a.S1: basic.deliver consumer_tag=t delivery_tag=5 exchange=x routing_key=k | body=5
        """  # noqa: E501
    )
    assert linked(script) == lines(
        """
        d1 p1 ambiguous 2ms 1
        d2 p2 ambiguous 2ms 1
        r1 p1 ambiguous 4ms again
        r2 p2 ambiguous 4ms again
        """
    )


@pytest.mark.parametrize(
    "change",
    [
        "exchange=y routing_key=k | body=5",
        "exchange=x routing_key=l | body=5",
        "exchange=x routing_key=k | body=6",
        "exchange=x routing_key=k | body=5 message_id=m",
        "exchange=x routing_key=k | body=5 priority=1",
        "exchange=x routing_key=k | body=5 delivery_mode=2",
        "exchange=x routing_key=k | body=5 correlation_id=c",
        "exchange=x routing_key=k | body=5 headers='{\"a\": 1}'",
    ],
)
def test_what_differs_is_another_message(change: str) -> None:
    """Near misses: everything but one thing is the same."""
    script = opened("p", "a") + "p.C1: basic.publish exchange=x routing_key=k | body=5\n"
    assert linked(script + f"a.S1: basic.deliver delivery_tag=1 {change}\n") == []


def test_other_virtual_hosts_are_other_brokers() -> None:
    """The same message in two virtual hosts; a connection that began before may be in either."""
    script = (
        opened("p", vhost="/one")
        + opened("a", vhost="/two")
        + opened("b", vhost="/one")
        + """
        m.midstream
        [p1] p.C1: basic.publish exchange=x routing_key=k | body=5
        [d1] a.S1: basic.deliver delivery_tag=1 exchange=x routing_key=k | body=5
        [d2] b.S1: basic.deliver delivery_tag=1 exchange=x routing_key=k | body=5
        [d3] m.S1: basic.deliver delivery_tag=1 exchange=x routing_key=k | body=5
        """
    )
    assert linked(script) == ["d2 p1 likely 2ms 1", "d3 p1 likely 3ms 2"]


def test_headers_that_a_broker_adds() -> None:
    """A delivery count does not make another message, nor does a route of dead-lettering."""
    script = opened("p", "a") + CONSUME.format("a", "q", "t") + CONSUME.format("a", "dead", "u")
    made = Script(
        script
        + """
        [p1] p.C1: basic.publish exchange=x routing_key=k | body=5 expiration=50 headers='{"n": 1}'
        [d1] a.S1: basic.deliver consumer_tag=t delivery_tag=1 redelivered=1 exchange=x routing_key=k | body=5 expiration=50 headers='{"n": 1, "x-delivery-count": 1}'
        """  # noqa: E501
    )
    arguments = {"consumer_tag": "u", "exchange": "dlx", "routing_key": "gone", "delivery_tag": 2}
    made.wait()
    made.method("a", "server", 1, "basic.deliver", arguments, b"x" * 5, _with_death())
    rows = feed(made).engine.take("messages").to_pylist()
    assert [row["link_confidence"] for row in rows] == [None, "likely", "likely"]
    assert [row["delivery_number"] for row in rows] == [None, None, 1]


def _with_death() -> dict[str, Any]:
    """Properties of a message that expired, as RabbitMQ hands it on."""
    died = [
        (b"count", Field("l", 1)),
        (b"exchange", Field("S", b"x")),
        (b"original-expiration", Field("S", b"50")),
        (b"routing-keys", Field("A", [Field("S", b"k")])),
    ]
    headers = [(b"n", Field("I", 1)), (b"x-death", Field("A", [Field("F", died)]))]
    return {"headers": headers}


CALL = opened("c", "s") + CONSUME.format("s", "w", "w") + CONSUME.format("c", "b", "t")


def test_a_call_through_a_queue() -> None:
    """Request, its delivery, the reply, its delivery: both know the request, and how long ago."""
    script = (
        CALL
        + """
        [q1] c.C1: basic.publish routing_key=w | body=3 reply_to=b correlation_id=1
        [w1] s.S1: basic.deliver consumer_tag=w routing_key=w | body=3 reply_to=b correlation_id=1
        [a1] @+7ms s.C1: basic.publish routing_key=b | body=2 correlation_id=1
        [b1] c.S1: basic.deliver consumer_tag=t routing_key=b | body=2 correlation_id=1
        [a2] s.C1: basic.publish routing_key=b | body=2 correlation_id=2
        """
    )
    assert linked(script) == lines(
        """
        w1 q1 likely 1ms 1
        a1 to q1 8ms
        b1 a1 likely 1ms 1 to q1 9ms
        """
    )


def test_late_replies() -> None:
    """After the request expired, and after its connection was closed."""
    script = (
        CALL
        + """
        [q1] c.C1: basic.publish routing_key=w | body=3 reply_to=b expiration=5 correlation_id=1
        [q2] c.C1: basic.publish routing_key=w | body=3 reply_to=b correlation_id=2
        [q3] c.C1: basic.publish routing_key=w | body=3 reply_to=b correlation_id=3
        [a1] @+9ms s.C1: basic.publish routing_key=b | body=2 correlation_id=1
        [a2] s.C1: basic.publish routing_key=b | body=2 correlation_id=2
        c.C: connection.close
        c.S: connection.close-ok
        [a3] s.C1: basic.publish routing_key=b | body=2 correlation_id=3
        """
    )
    assert linked(script) == ["a1 to q1 11ms late", "a2 to q2 11ms", "a3 to q3 13ms late"]


def test_a_request_that_expires_after_the_last_time_there_is() -> None:
    """A capture says that it is the year 2242, and a client that it has 32 years of patience."""
    script = Script(
        CALL
        + """
        c.C1: basic.publish routing_key=w | body=3 reply_to=b expiration=999999999999
        [a1] s.C1: basic.publish routing_key=b | body=2
        """
    )
    script.packets[:] = [
        packet._replace(ts_ns=packet.ts_ns + 6_900_000_000_000_000_000) for packet in script.packets
    ]
    replies = feed(script).engine.take("messages").to_pylist()
    assert [row["reply_late"] for row in replies] == [None, False]


def test_late_after_a_reset() -> None:
    """TCP ended without a close, in the packet before."""
    script = (
        CALL
        + """
        [q1] c.C1: basic.publish routing_key=w | body=3 reply_to=b correlation_id=1
        [a1] s.C1: basic.publish routing_key=b | body=2 correlation_id=1
        c.RST C
        [a2] s.C1: basic.publish routing_key=b | body=2 correlation_id=1
        """
    )
    assert linked(script) == ["a1 to q1 1ms", "a2 to q1 3ms late"]


def test_replies_stay_in_their_virtual_host() -> None:
    """The same address and correlation id in two virtual hosts."""
    script = (
        opened("c", "s", vhost="/one")
        + opened("d", vhost="/two")
        + """
        m.midstream
        [q1] c.C1: basic.publish routing_key=w | body=3 reply_to=b correlation_id=1
        [x1] d.C1: basic.publish routing_key=b | body=2 correlation_id=1
        [a1] s.C1: basic.publish routing_key=b | body=2 correlation_id=1
        [a2] m.C1: basic.publish routing_key=b | body=2 correlation_id=1
        """
    )
    assert linked(script) == ["a1 to q1 2ms", "a2 to q1 3ms"]


def test_direct_replies_without_the_server() -> None:
    """Only the client's connection was captured: the reply comes to the channel that asked."""
    script = (
        opened("c", "d")
        + """
        [q] c.C1: basic.publish | body=3 reply_to=amq.rabbitmq.reply-to correlation_id=1
        [x] d.S1: basic.deliver routing_key=amq.rabbitmq.reply-to.g1 | body=2 correlation_id=1
        [b1] c.S1: basic.deliver routing_key=amq.rabbitmq.reply-to.g2 | body=2 correlation_id=1
        """
    )
    assert linked(script) == ["b1 to q 2ms"]


def test_requests_without_an_id_are_answered_in_order() -> None:
    """Two alike requests, two replies."""
    script = (
        CALL
        + """
        [q1] c.C1: basic.publish routing_key=w | body=3 reply_to=b
        [q2] c.C1: basic.publish routing_key=w | body=3 reply_to=b
        [a1] s.C1: basic.publish routing_key=b | body=2
        [a2] s.C1: basic.publish exchange=e routing_key=b | body=2
        """
    )
    assert linked(script) == ["a1 to q1 2ms", "a2 to q2 2ms"]


def test_an_address_with_an_exchange() -> None:
    """`exchange/key` as some frameworks write it."""
    script = (
        CALL
        + """
        [q1] c.C1: basic.publish routing_key=w | body=5 reply_to=e/b correlation_id=1
        [a1] s.C1: basic.publish exchange=e routing_key=b | body=2 correlation_id=1
        """
    )
    assert linked(script) == ["a1 to q1 1ms"]


# limits


def _many(count: int) -> str:
    publish = "[p{0}] p.C1: basic.publish exchange=x routing_key=k | body=5 message_id=m{0}\n"
    deliver = "[d{0}] a.S1: basic.deliver exchange=x routing_key=k delivery_tag=1 | body=5 message_id=m{0}\n"  # noqa: E501
    numbers = range(1, count + 1)
    return opened("p", "a") + "".join(
        [publish.format(n) for n in numbers] + [deliver.format(n) for n in numbers]
    )


def test_publishes_beyond_the_limit_are_forgotten() -> None:
    """The oldest go, and a finding says so."""
    memory = Memory(publishes=3)
    assert [line.split()[0] for line in linked(_many(5), memory)] == ["d3", "d4", "d5"]
    fed = _fed_with(Script(_many(5)), memory)
    details = [one.detail for one in fed.engine.findings() if one.code == "session-limit"]
    assert details == ["publishes: 2 times"]


def test_old_publishes_are_forgotten() -> None:
    """What is older than the limit when another publish comes."""
    assert [line.split()[0] for line in linked(_many(5), Memory(age_ns=2 * MS))] == [
        "d3", "d4", "d5",
    ]  # fmt: skip


def test_positions_and_calls_beyond_the_limit() -> None:
    """Queues of one line, and requests that wait."""
    publish = "p.C1: basic.publish exchange=x routing_key=k | body=5\n"
    script = opened("p", "a") + "[p1] " + publish + "[p2] " + publish
    for queue in ("q1", "q2", "q3"):
        script += CONSUME.format("a", queue, queue)
        for _ in range(2):
            script += DELIVER.format("a", queue, "x", "k") + " | body=5\n"
    every = [line.split()[1] for line in linked(script)]
    assert every == ["p1", "p2"] * 3
    few = [line.split()[1] for line in linked(script, Memory(positions=1))]
    assert few == ["p1", "p2"] * 2 + ["p1", "p1"]
    calls = CALL + "".join(
        f"[q{n}] c.C1: basic.publish routing_key=w | body=3 reply_to=b correlation_id={n}\n"
        for n in (1, 2)
    )
    calls += "".join(
        f"[a{n}] s.C1: basic.publish routing_key=b | body=2 correlation_id={n}\n" for n in (1, 2)
    )
    assert linked(calls, Memory(calls=1)) == ["a2 to q2 2ms"]


def test_a_ring_of_publishes_grows_and_turns() -> None:
    """What is remembered is found again, whatever was forgotten and wherever it stands."""
    lines = PublishIndex(Memory(publishes=1000))
    for number in range(5_000):
        key = number % 7 if number % 3 else number + 1 << 32
        publish = lines.remember(key, number, number, 1, True)
        assert publish == number
    assert len(lines) == 1000
    alone = [number for number in range(5_000) if not number % 3]
    for number in alone:
        found = lines.get(number + 1 << 32)
        there = number >= 4_000
        assert (found >= 0) == there, number
        if there:
            publish = lines.match(found, 5, False)
            assert lines.packet_numbers[publish % lines.size] == number
    for key in range(1, 7):
        alike = [n for n in range(4_000, 5_000) if n % 3 and n % 7 == key]
        line = lines.get(key)
        assert [lines.match(line, 5, False) for _ in alike] == alike
        assert lines.match(line, 5, False) == -1
    assert lines.hits == {"publishes": 4_000}


def test_a_publish_that_is_remembered_takes_130_bytes() -> None:
    """Nothing of it is an object: 200,000 of them would be 60 MB."""
    lines = PublishIndex(Memory())
    tracemalloc.start()
    try:
        for number in range(15_000):
            lines.remember(number << 24, number, number, 1, True)
        assert tracemalloc.get_traced_memory()[0] / 16_384 < 130
    finally:
        tracemalloc.stop()
