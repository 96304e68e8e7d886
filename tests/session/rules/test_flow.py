"""How deliveries flow: prefetch counts, backlogs, acknowledgements."""

from __future__ import annotations

from itertools import count, islice

import pytest

from tests.conftest import CAPTURES
from tests.session.rules.found import details, found, of_capture
from tests.session.rules.telling import told_of
from tests.session.script import MS, Script, wired

CONSUMING = """
    handshake
    C1: channel.open
    S1: channel.open-ok
"""
CONSUME = """
    [consume] C1: basic.consume queue=jobs consumer_tag=t
    S1: basic.consume-ok consumer_tag=t
"""


def qos(count: int, travels_ms: int = 1) -> str:
    """A client that sets a prefetch count."""
    return f"""
        C1: basic.qos prefetch_count={count}
        @+{travels_ms}ms S1: basic.qos-ok
    """


def jobs(
    count: int, travels_ms: int, works_ms: int, size: int = 10, ahead: int = 1, multiple: int = 0
) -> str:
    """Deliveries, each acknowledged after a while; `ahead` of them are sent before the first is."""
    lines = [deliver(tag, 1, size) for tag in range(1, ahead + 1)]
    for tag in range(1, count + 1):
        lines.append(f"@+{works_ms}ms C1: basic.ack delivery_tag={tag} multiple={multiple}")
        if tag + ahead <= count:
            lines.append(deliver(tag + ahead, travels_ms, size))
    return "\n".join(lines)


def deliver(tag: int, after_ms: int = 1, size: int = 10) -> str:
    """A delivery."""
    return f"@+{after_ms}ms S1: basic.deliver consumer_tag=t delivery_tag={tag} | body={size}"


# prefetch-unlimited


def test_a_consumer_without_a_prefetch_count() -> None:
    script = Script(CONSUMING + CONSUME + jobs(3, 1, 1, size=1024, ahead=3))
    row = found(script, "prefetch-unlimited")
    assert row is not None
    assert row["packet_number"] == script.labels["consume"]
    assert row["detail"] == "queue 'jobs'; at most 3 deliveries were unacknowledged, about 3.07 kB"


def test_a_prefetch_count_of_0_is_none() -> None:
    assert found(CONSUMING + qos(0) + CONSUME, "prefetch-unlimited")


@pytest.mark.parametrize(
    "text",
    [
        CONSUMING + qos(10) + CONSUME,
        CONSUMING + CONSUME.replace("=t\n", "=t no_ack=1\n", 1),
        CONSUMING + CONSUME + "C1: basic.qos prefetch_count=5 global=1",
        CONSUMING + "GAP C 30\n" + CONSUME,  # a basic.qos may be lost
        "midstream\nC1: basic.ack delivery_tag=7\n" + CONSUME,
    ],
)
def test_a_limit_or_none_needed_or_not_known(text: str) -> None:
    assert not found(text, "prefetch-unlimited")


# backlog-in-client


def test_work_for_a_long_time_in_one_client() -> None:
    text = CONSUMING + qos(200) + CONSUME + jobs(110, 1, 100, ahead=105)
    row = found(text, "backlog-in-client")
    assert row is not None
    assert row["detail"].startswith("105 deliveries unacknowledged at once, about 1.05 kB; at 9.9")
    assert row["detail"].endswith("that is work for 10.6 s (from 'jobs')")


def test_a_client_that_is_soon_done_has_no_backlog() -> None:
    text = CONSUMING + qos(200) + CONSUME + jobs(110, 1, 80, ahead=105)
    assert not found(text, "backlog-in-client")


def test_a_small_prefetch_count_is_no_backlog() -> None:
    text = CONSUMING + qos(200) + CONSUME + jobs(110, 1, 1000, ahead=99)
    assert not found(text, "backlog-in-client")


def test_many_bytes_in_one_client() -> None:
    size = 10_000_001
    text = CONSUMING + qos(20) + CONSUME
    row = found(
        text + "\n".join(deliver(tag, 1, size) for tag in range(1, 11)), "backlog-in-client"
    )
    assert row is not None
    assert row["detail"].startswith("10 deliveries unacknowledged at once, about 100 MB")
    less = text + "\n".join(deliver(tag, 1, size) for tag in range(1, 10))
    assert not found(less, "backlog-in-client")


# prefetch-too-small


def test_a_consumer_that_waits_for_the_network() -> None:
    row = found(CONSUMING + qos(1, 20) + CONSUME + jobs(60, 20, 10), "prefetch-too-small")
    assert row is not None
    assert row["detail"] == (
        "prefetch count 1: 59 of 60 deliveries came 20.0 ms after an acknowledgement with none "
        "left to work on, 66 % of the time; with 10.0 ms of work each, 3 would keep it busy "
        "(from 'jobs')"
    )


@pytest.mark.parametrize(
    "text",
    [
        CONSUMING + qos(1, 20) + CONSUME + jobs(60, 20, 60),  # long jobs
        CONSUMING + qos(1, 20) + CONSUME + jobs(40, 20, 10),  # too few to say
        CONSUMING + qos(5, 20) + CONSUME + jobs(60, 20, 10, ahead=5),  # never without work
        CONSUMING + qos(2, 20) + CONSUME + jobs(60, 20, 10),  # one more was never there
        CONSUMING + qos(1, 17) + CONSUME + jobs(60, 20, 10),  # longer than a round trip
        CONSUMING + qos(1) + CONSUME + jobs(60, 300, 10),  # the queue is empty for long
    ],
)
def test_consumers_that_wait_for_nothing_or_for_messages(text: str) -> None:
    assert not found(text, "prefetch-too-small")


def test_waits_of_different_lengths_are_for_messages() -> None:
    lines = [deliver(1)]
    for tag in range(1, 60):
        lines.append(f"@+2ms C1: basic.ack delivery_tag={tag}")
        lines.append(deliver(tag + 1, 2 + 20 * (tag % 4)))
    text = CONSUMING + qos(1, 50) + CONSUME + "\n".join(lines)
    assert not found(text, "prefetch-too-small")


def far(text: str, trip_ms: int) -> list[str]:
    """What is found in a script with a longer round trip in TCP's handshake."""
    packets = [packet for _, packet in wired(Script(text))]
    packets[0] = packets[0]._replace(ts_ns=packets[0].ts_ns - trip_ms * MS)
    return [row["detail"] for row in told_of(packets, "prefetch-too-small")]


def test_the_network_as_it_is_seen_at_the_broker() -> None:
    text = CONSUMING + qos(1) + CONSUME + jobs(60, 0, 62)
    (detail,) = far(text, 60)
    assert detail == (
        "prefetch count 1: 60 deliveries were acknowledged after 62.0 ms on average, of which the "
        "round trip to the client takes 60.0 ms, and the next came after that; with 2.00 ms of "
        "work each, 31 would keep it busy (from 'jobs')"
    )
    assert far(CONSUMING + qos(3) + CONSUME + jobs(60, 0, 21, ahead=3), 60)


@pytest.mark.parametrize(
    ("text", "trip_ms"),
    [
        (CONSUMING + qos(1) + CONSUME + jobs(60, 0, 62), 0),  # all of it is work
        (CONSUMING + qos(1) + CONSUME + jobs(60, 0, 62), 63),  # no round trip passed
        (CONSUMING + qos(1) + CONSUME + jobs(60, 0, 122), 60),  # as much work as network
        (CONSUMING + qos(1) + CONSUME + jobs(49, 0, 62), 60),  # too few to say
        (CONSUMING + qos(1) + CONSUME + jobs(60, 8, 62), 60),  # messages come at a pace
        (CONSUMING + qos(2) + CONSUME + jobs(60, 0, 62), 60),  # one more was never there
        (CONSUMING + qos(3) + CONSUME + jobs(60, 0, 31, ahead=3), 60),  # it works meanwhile
        (CONSUMING + qos(11) + CONSUME + jobs(60, 0, 6, ahead=11), 60),  # a large count
    ],
)
def test_consumers_that_do_not_wait_for_the_network(text: str, trip_ms: int) -> None:
    assert not far(text, trip_ms)


def test_a_consumer_far_from_the_capture() -> None:
    (row,) = (
        row
        for row in of_capture(CAPTURES / "cases/prefetch_far.pcap.gz")
        if row["code"] == "prefetch-too-small"
    )
    assert row["detail"].startswith("prefetch count 1: 93 deliveries were acknowledged after 74")


# acknowledgements-single


def test_thousands_of_acknowledgements_of_one_delivery_each() -> None:
    assert details(fours(0), "acknowledgements-single") == [
        "1200 acknowledgements, 2,003 a second, each of one delivery (from 'jobs')"
    ]
    assert not found(fours(1), "acknowledgements-single")
    given_back = fours(0).replace("basic.ack", "basic.reject")
    assert not found(given_back.replace(" multiple=0", " requeue=1"), "acknowledgements-single")


def fours(multiple: int) -> str:
    """1200 deliveries, four in a packet, and their acknowledgements."""
    lines = [CONSUMING, qos(300), CONSUME]
    for first in range(1, 1200, 4):
        tags = range(first, first + 4)
        sent = [f"S1: basic.deliver consumer_tag=t delivery_tag={tag}" for tag in tags]
        acks = [f"C1: basic.ack delivery_tag={tag} multiple={multiple}" for tag in tags]
        lines += ["\n& ".join(sent), "\n& ".join(acks)]
    return "\n".join(lines)


def test_acknowledgements_at_an_ordinary_rate() -> None:
    text = CONSUMING + qos(300) + CONSUME + jobs(1100, 1, 1)
    assert not found(text, "acknowledgements-single")


# consumer-slow


def test_deliveries_that_are_acknowledged_late() -> None:
    row = found(CONSUMING + qos(1) + CONSUME + jobs(10, 1, 1000), "consumer-slow")
    assert row is not None
    assert row["detail"] == (
        "10 acknowledgements, after 1.00 s on average and 1.00 s at most (from 'jobs')"
    )


def test_the_queues_of_consumers_that_were_cancelled() -> None:
    text = CONSUMING + qos(1) + CONSUME + "C1: basic.consume queue=other consumer_tag=u\n"
    text += "S1: basic.consume-ok consumer_tag=u\n" + jobs(10, 1, 1000)
    answered = "\nC1: basic.cancel consumer_tag=t\nS1: basic.cancel-ok consumer_tag=t"
    for more in (answered, "\nS1: basic.cancel consumer_tag=u"):
        text += more
        (row,) = details(text, "consumer-slow")
        assert row.endswith(" (from 'jobs', 'other')")


def test_one_that_is_very_late() -> None:
    script = Script(CONSUMING + qos(1) + CONSUME)
    script.add("[late] " + deliver(1).partition(" ")[2])
    script.add("@+30000ms C1: basic.ack delivery_tag=1")
    row = found(script, "consumer-slow")
    assert row is not None
    assert row["packet_number"] == script.labels["late"]


def test_one_that_is_never_acknowledged_was_held_until_the_end() -> None:
    script = CONSUMING + qos(1) + CONSUME + deliver(1) + "\n"
    for ms in (30_000, 9_000):
        script += f"@+{ms}ms S: connection.blocked\nC: connection.unblocked\n"
    (row,) = details(script, "consumer-slow")
    assert row.startswith("delivery 1 was not acknowledged for 39.0 s")


def test_deliveries_that_are_acknowledged_soon_enough() -> None:
    assert not found(CONSUMING + qos(1) + CONSUME + jobs(10, 1, 999), "consumer-slow")
    assert not found(CONSUMING + qos(1) + CONSUME + jobs(9, 1, 1000), "consumer-slow")


def test_batches_wait_on_purpose() -> None:
    text = CONSUMING + qos(20) + CONSUME + jobs(10, 1, 1000, multiple=1)
    assert not found(text, "consumer-slow")


def pauses(times: int, ms: int, between: int = 40, held: int = 4, multiple: int = 0) -> str:
    """A quick consumer that now and then holds all it may, and acknowledges nothing for a time."""
    lines, tags = [CONSUMING + qos(4) + CONSUME], count(1)
    for _ in range(times):
        for tag in islice(tags, between):
            lines += [deliver(tag, 20), f"C1: basic.ack delivery_tag={tag}"]
        kept = list(islice(tags, held))
        lines += map(deliver, kept)
        acks = [f"C1: basic.ack delivery_tag={tag}" for tag in kept]
        acks = [f"{acks[-1]} multiple=1"] if multiple else acks
        lines += [f"@+{ms}ms {acks[0]}", *acks[1:]]
    return "\n".join(lines)


def test_a_consumer_that_pauses() -> None:
    row = found(pauses(3, 1000), "consumer-slow")
    assert row is not None
    assert row["detail"] == (
        "3 times nothing was acknowledged for 1.00 s on average, with all 4 deliveries in hand "
        "that the prefetch count allows: 3.00 s of 5.52 s (from 'jobs')"
    )


@pytest.mark.parametrize(
    "text",
    [
        pauses(1, 3000),  # once
        pauses(3, 499),
        pauses(2, 999),  # less than two seconds in all
        pauses(3, 1000, held=3),  # it might have more
        pauses(3, 1000, between=200),  # a fifth of its time
        pauses(3, 1000, between=11),  # that is how it works
        pauses(3, 1000, multiple=1),
        CONSUMING + qos(1) + CONSUME + jobs(9, 1, 10) + "\n" + jobs(3, 1, 900),
    ],
)
def test_consumers_that_do_not_pause(text: str) -> None:
    assert not found(text, "consumer-slow")


def test_a_real_consumer_that_pauses() -> None:
    """It sleeps for 1.3 s every 2.8 s."""
    (row,) = (
        row
        for row in of_capture(CAPTURES / "cases/consumer_pauses.pcap.gz")
        if row["code"] == "consumer-slow"
    )
    assert row["detail"].startswith("3 times nothing was acknowledged for 1.19 s on average, ")


# bounds


def test_consumers_without_a_limit_on_one_channel() -> None:
    script = Script(CONSUMING + "C1: queue.declare queue=jobs\nS1: queue.declare-ok queue=jobs\n")
    script.add("[one] C1: basic.consume consumer_tag=t\n[two] C1: basic.consume queue=r\n")
    script.add("S1: basic.deliver consumer_tag=t delivery_tag=1 | body=0")
    row = found(script, "prefetch-unlimited")
    assert row is not None
    assert (row["packet_number"], row["count"]) == (script.labels["one"], 2)
    assert row["last_packet_number"] == script.labels["two"]
    assert row["detail"] == "queue 'jobs', queue 'r'; at most 1 delivery was unacknowledged"
    script.add("C1: basic.consume queue=s\nC1: basic.consume queue=u\n")
    (detail,) = details(script, "prefetch-unlimited")
    assert detail.startswith("queue 'jobs', queue 'r', queue 's' and 1 more; ")
    nothing = details(CONSUMING + CONSUME, "prefetch-unlimited")
    assert nothing == ["queue 'jobs'; it was sent nothing yet"]


def test_consumers_that_are_limited_or_refused() -> None:
    shared = "C1: basic.qos prefetch_count=5 global=1\nS1: basic.qos-ok\n"
    refused = "S1: channel.close reply_code=404\n" + CONSUME
    for text in (shared + CONSUME, refused):
        assert not found(CONSUMING + text, "prefetch-unlimited")


def test_a_consumer_that_the_broker_refuses() -> None:
    refused = "C1: basic.consume queue=r\nS1: channel.close reply_code=404 class_id=60 method_id=20"
    assert not found(f"{CONSUMING}{refused}", "prefetch-unlimited")
    script = Script(f"{CONSUMING}{CONSUME}\n")
    script.add(refused)
    row = found(script, "prefetch-unlimited")
    assert row is not None
    assert (row["count"], row["last_packet_number"]) == (1, script.labels["consume"])


def test_as_many_bytes_as_a_client_may_hold() -> None:
    text = CONSUMING + qos(20) + CONSUME + "\n"
    many = "\n".join(deliver(tag, 1, 10_000_000) for tag in range(1, 11))
    assert not found(text + many, "backlog-in-client")
    lost = many.partition("\n")
    assert not found(f"{text}{lost[0]}\nGAP C 30\n{lost[2]}\n{deliver(11)}", "backlog-in-client")


@pytest.mark.parametrize(("travels", "waits"), [
    ((1,), True),
    ((0,), False),  # on one host there is nothing to gain
    ((2, 6), True),
    ((2, 7), False),  # 2 ms more than the least are the network's, on average
])  # fmt: skip
def test_what_is_the_networks(travels: tuple[int, ...], waits: bool) -> None:
    lines = [deliver(1)]
    for tag in range(1, 61):
        lines += [
            f"@+1ms C1: basic.ack delivery_tag={tag}",
            deliver(tag + 1, travels[tag % len(travels)]),
        ]
    each = qos(1, max(travels))
    for limit in (each, each.replace("count=1", "count=1 global=1")):
        text = CONSUMING + limit + CONSUME + "\n".join(lines)
        assert bool(found(text, "prefetch-too-small")) is waits


def test_half_of_the_rounds_have_a_wait() -> None:
    """With a count of 2: a pair after a wait, or every third pair without one."""
    for every, waits in ((1, True), (3, False)):
        lines, tag = [deliver(1), deliver(2, 0)], 0
        for turn in range(40):
            waited = turn % every == 0
            one, two = tag + 1, tag + 2
            lines += [f"C1: basic.ack delivery_tag={one}"]
            lines += [] if waited else [deliver(tag + 3)]
            lines += [f"C1: basic.ack delivery_tag={two}"]
            lines += [deliver(tag + 3, 9)] if waited else []
            lines += [deliver(tag + 4, 0 if waited else 9)]
            tag += 2
        text = CONSUMING + qos(2, 9) + CONSUME + "\n".join(lines)
        assert bool(found(text, "prefetch-too-small")) is waits
