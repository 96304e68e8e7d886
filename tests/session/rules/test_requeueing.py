# ruff: noqa: E501 (one packet, one line)
"""Messages that come again: poison, storms and circles."""

import json
import re

import pytest

from amqpsniff.session.rules.requeueing import MAX_MESSAGES
from amqpsniff.session.rules.unattended import MAX_ARGUMENTS_BYTES
from tests.conftest import CAPTURES
from tests.session.rules.found import of_capture
from tests.session.rules.saying import said
from tests.session.script import Remembering, Script, feed

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
    C1: basic.consume queue=q consumer_tag=t
    S1: basic.consume-ok consumer_tag=t
"""


def _deliver(tag: int, redelivered: int = 0, content: str = "body=3", wait: str = "") -> str:
    return (
        f"[d{tag}] {wait} S1: basic.deliver consumer_tag=t delivery_tag={tag} "
        f"redelivered={redelivered} routing_key=q | {content}\n"
    )


def _rounds(times: int, content: str, wait: str = "") -> str:
    """One message that is put back each time."""
    return "".join(
        _deliver(tag, int(tag > 1), content, wait)
        + f"[n{tag}] C1: basic.nack delivery_tag={tag} requeue=1\n"
        for tag in range(1, times + 1)
    )


def test_the_same_message_id_again_and_again() -> None:
    script = OPEN + _rounds(7, "body=3 message_id=m1")
    assert said(script, "poison-message") == [
        "poison-message d5 1 x3: delivery 5 from queue 'q' brings the same message, by message-id 'm1', for the 5th time"
    ]


def test_a_message_that_kills_its_consumers() -> None:
    """Nobody puts it back but the broker, on the next connection."""
    script = Script()
    for number in range(6):
        script.add(
            f"""
            c{number}.C1: channel.open
            c{number}.S1: channel.open-ok
            c{number}.C1: basic.consume queue=q consumer_tag=t
            c{number}.S1: basic.consume-ok consumer_tag=t
            c{number}.S1: basic.deliver consumer_tag=t delivery_tag=1 redelivered={int(number > 0)} | body=3 message_id=m1
            RST C
        """.replace("RST C", f"c{number}.RST C")
        )
    codes = [finding.code for finding in feed(script).engine.findings()]
    assert codes.count("poison-message") == 2


def test_a_message_in_many_queues_comes_again_from_each() -> None:
    """As after a cut of the network, when an exchange had put it into all of them."""
    script = OPEN.replace("queue=q consumer_tag=t", "queue=q0 consumer_tag=t0")
    script = script.replace("consumer_tag=t\n", "consumer_tag=t0\n")
    for number in range(1, 6):
        script += f"C1: basic.consume queue=q{number} consumer_tag=t{number}\n"
        script += f"S1: basic.consume-ok consumer_tag=t{number}\n"
    again = "S1: basic.deliver consumer_tag=t{} delivery_tag={} redelivered=1 | message_id=m1\n"
    once = "".join(again.format(number, number + 1) for number in range(6))
    assert said(script + once, "poison-message") == []
    often = "".join(again.format(2, tag) for tag in range(7, 10))
    assert said(script + once + often, "poison-message") == [
        "poison-message #30 1: delivery 9 from queue 'q2' brings the same message, by message-id 'm1', for the 5th time"
    ]


def test_a_few_redeliveries_are_no_poison() -> None:
    script = OPEN + _rounds(4, "body=3 message_id=m1")
    other = "".join(_deliver(tag, 1, f"body=3 message_id=x{tag}") for tag in range(5, 50))
    assert said(script + other, "poison-message") == []


def test_a_message_without_an_id() -> None:
    script = OPEN + _rounds(6, "body=3")
    assert said(script, "poison-message") == [
        "poison-message n5 1 x2: first, delivery 5 from queue 'q' brings the same message, by properties and size, for the 5th time"
    ]


def test_messages_put_back_in_turn_are_told_apart() -> None:
    """A capture of six messages of two queues, and of three consumers that are cancelled."""
    rows = of_capture(CAPTURES / "cases" / "put_back_in_turn.pcap.gz")
    poison = [row for row in rows if row["code"] == "poison-message"]
    named = {re.findall("message-id '(.+)'", row["detail"])[0]: row["count"] for row in poison}
    assert named == {"a0": 41, "a1": 41, "a2": 41, "b0": 41, "b1": 40, "b2": 40}
    cancelled = [row for row in rows if row["code"] == "consumer-cancelled"]
    assert [row["detail"].partition(" of ")[2][:12] for row in cancelled] == [
        f"queue 'v2.{name}'" for name in "abc"
    ]


def test_messages_alike_are_not_one() -> None:
    """Fifty of them are put back once each, and come again."""
    first = "".join(_deliver(tag) for tag in range(1, 51))
    again = "".join(_deliver(tag, 1) for tag in range(51, 101))
    script = (
        OPEN + first + "C1: basic.nack multiple=1 requeue=1\n" + again + "C1: basic.ack multiple=1"
    )
    assert said(script, "poison-message") == []
    backlog = OPEN + again + "C1: basic.nack multiple=1 requeue=1"
    assert said(backlog, "poison-message") == []


def test_messages_that_are_discarded_do_not_come_again() -> None:
    script = OPEN
    for tag in range(1, 21, 2):
        script += _deliver(tag) + f"C1: basic.nack delivery_tag={tag} requeue=1\n"
        script += _deliver(tag + 1, 1) + f"C1: basic.reject delivery_tag={tag + 1}\n"
    assert said(script, "poison-message") == []


def test_the_broker_counts_deliveries() -> None:
    script = "midstream\nC: connection.unblocked\n"
    script += _deliver(9, 1, """body=3 'headers={"x-delivery-count": 4}'""")
    assert said(script, "poison-message") == [
        "poison-message d9 1: first, delivery 9 brings the same message, by its x-delivery-count, for the 5th time"
    ]
    assert said(script.replace(": 4}", ": 3}"), "poison-message") == []


def test_messages_remembered_are_limited() -> None:
    script = Script(OPEN)
    for tag in range(1, MAX_MESSAGES + 9):
        script.add(_deliver(tag, 1, f"body=1 message_id=m{tag}"))
    memory = Remembering(script).pipeline.tracker.shared
    assert len(memory["came-again"].messages) == MAX_MESSAGES


def test_a_storm() -> None:
    script = OPEN + _rounds(60, "body=3", "@+200ms")
    (line,) = said(script, "requeue-storm")
    assert line.startswith("requeue-storm n51 1: 50 of 50 deliveries put back in 10")
    assert line.endswith(" (from 'q')")


def test_calm() -> None:
    for script in (
        OPEN + _rounds(60, "body=3", "@+900ms"),  # few of them
        OPEN  # a tenth of them
        + "".join(
            _deliver(tag, int(tag % 10 == 1), "body=3", "@+20ms")
            + f"C1: basic.nack delivery_tag={tag} requeue={int(tag % 10 == 0)}\n"
            for tag in range(1, 1001)
        ),
        OPEN  # all of them at the end, once
        + "".join(_deliver(tag) for tag in range(1, 101))
        + "C1: basic.nack multiple=1 requeue=1\n"
        + _deliver(101, wait="@+11000ms").strip()
        + "\nC1: basic.nack delivery_tag=101 requeue=1",
    ):
        assert said(script, "requeue-storm") == []


def test_dead_lettered_in_a_circle() -> None:
    script = OPEN + _deliver(1, 0, _deaths("work", 3))
    assert said(script, "dead-letter-cycle") == [
        "dead-letter-cycle d1 1: 3 times through queue 'work', now delivered from queue 'q'"
    ]


def test_dead_lettered_once_or_not_at_all() -> None:
    for content in (_deaths("work", 2), """body=3 'headers={"x-death": 7, "count": 5}'"""):
        assert said(OPEN + _deliver(1, 0, content), "dead-letter-cycle") == []


def _retried(rounds: int, messages: int, left_ms: int) -> str:
    """Messages that come that often, once a second, one after the other, and are then done."""
    text, tag = OPEN, 0
    for _ in range(messages):
        for count in range(1, rounds + 1):
            tag += 1
            wait = "@+999ms" if tag > 1 else ""
            text += _deliver(tag, 0, _deaths("work", count), wait)
            requeue = (
                "C1: basic.nack delivery_tag={} requeue=0\n"
                if count < rounds
                else "C1: basic.ack delivery_tag={}\n"
            )
            text += requeue.format(tag)
    return text + f"@+{left_ms}ms S1: channel.flow active=1\n"


@pytest.mark.parametrize(("rounds", "messages", "left_ms", "count"), [
    (3, 1, 3000, 0),  # gives up
    (3, 1, 2990, 1),  # it may come again
    (3, 4, 0, 0),  # all of them stop there
    (5, 2, 0, 0),
    (9, 1, 3000, 0),
    (10, 4, 0, 32),  # more than programs try
])  # fmt: skip
def test_programs_that_give_up_after_some_rounds(
    rounds: int, messages: int, left_ms: int, count: int
) -> None:
    lines = said(_retried(rounds, messages, left_ms), "dead-letter-cycle")
    assert len(lines) == (count > 0)
    assert all(" 1: 3 times" in line.replace(f" x{count}", "") for line in lines)
    assert all(count == 1 or f" x{count}:" in line for line in lines)


def _deaths(queue: str, count: int) -> str:
    headers = {"x-death": [{"queue": queue, "count": count, "reason": "rejected"}]}
    return f"body=3 'headers={json.dumps(headers)}'"


def test_queues_and_reasons_of_dead_letters_are_counted_apart() -> None:
    full = _deaths("full", 1).replace("rejected", "maxlen")
    script = OPEN + "".join(
        _deliver(tag, 0, content)
        for tag, content in enumerate([_deaths("work", 1), full, _deaths("work", 1), full, full], 1)
    )
    here = "delivered from queue 'q'"
    assert said(script, "dead-lettered") == [
        f"dead-lettered d1 - x2: from queue 'work', rejected by its consumer; {here}",
        f"dead-lettered d2 - x3: from queue 'full', pushed out of a full queue; {here}",
    ]


def _of_release(release: str) -> str:
    server = json.dumps({"product": "RabbitMQ", "version": release}, separators=(",", ":"))
    return OPEN.replace("handshake", f"handshake server='{server}'")


@pytest.mark.parametrize(("release", "counted"), [("3.13.7", 1), ("4.3.6", 2)])
def test_dead_letters_that_are_called_redelivered(release: str, counted: int) -> None:
    """RabbitMQ 4.3 says so of what a consumer rejected, at its first delivery already."""
    one, other = (_deaths("work", 1) + f" message_id=m{number}" for number in (1, 2))
    script = (
        _deliver(1, 0, one) + _deliver(2, 1, one) + _deliver(3, 1, other) + _deliver(4, 1, other)
    )
    (line,) = said(_of_release(release) + script, "dead-lettered")
    assert line.partition(":")[0] == "dead-lettered d1 -" + f" x{counted}" * (counted > 1)


def test_a_message_that_is_tried_again_by_dead_lettering_is_no_poison() -> None:
    """Each time it is another dead letter; one of them that comes again and again is poison."""
    delayed = "".join(
        _deliver(times, 1, _deaths("work", times) + " message_id=m1")
        + f"C1: basic.nack delivery_tag={times} requeue=0\n"
        for times in range(1, 8)
    )
    assert said(_of_release("4.3.6") + delayed, "poison-message") == []
    again = _rounds(6, _deaths("work", 1) + " message_id=m1")
    assert said(_of_release("4.3.6") + again, "poison-message")


def _storms(back: int, kept: int, again: int, ms: int) -> str:
    """After one that is put back so many of them, some again, and some that are kept."""
    script = OPEN + "".join(
        _deliver(tag, int(tag > back - again)) + f"C1: basic.nack delivery_tag={tag} requeue=1\n"
        for tag in range(1, back + 1)
    )
    last = back + kept + 1
    script += "".join(_deliver(tag) for tag in range(back + 1, last + 1))
    spent = 2 * (back - 1) + kept + 1
    return script + f"@+{ms - spent}ms C1: basic.nack delivery_tag={last} requeue=1"


@pytest.mark.parametrize(("back", "kept", "again", "ms", "is_storm"), [
    (20, 0, 10, 10_000, True),
    (20, 0, 9, 10_000, False),  # what is put back comes again
    (19, 0, 18, 10_000, False),
    (20, 0, 10, 9_999, False),
    (20, 79, 10, 10_000, True),
    (20, 80, 10, 10_000, False),  # a fifth of them
])  # fmt: skip
def test_what_is_a_storm(back: int, kept: int, again: int, ms: int, is_storm: bool) -> None:
    assert bool(said(_storms(back, kept, again, ms), "requeue-storm")) is is_storm


def test_a_storm_is_of_one_channel() -> None:
    """A channel that was opened again counts from its own beginning."""
    half = _rounds(25, "body=3", "@+200ms")
    again = "C1: channel.close\nS1: channel.close-ok\nC1: channel.open\nS1: channel.open-ok\n"
    again += "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
    assert said(OPEN + half + again + half.replace("[", "[x"), "requeue-storm") == []


def test_where_a_message_in_a_circle_is_now() -> None:
    """The queue that it went through most; where it is, as far as that is known."""
    deaths = [{"queue": "a", "count": 2}, "?", {"queue": "b", "count": 4}, {"queue": "c", "count": 3},
              {"queue": "d"}, {"queue": "e", "count": "9"}]  # fmt: skip
    content = f"body=3 'headers={json.dumps({'x-death': deaths})}'"
    midstream = "midstream\nC1: basic.qos\nS1: basic.qos-ok\n"
    got = "C1: basic.get queue=\n[got] S1: basic.get-ok delivery_tag=1 | " + content
    for script, place in (
        (OPEN + _deliver(1, 0, content), "d1 1: 4 times through queue 'b', now delivered from queue 'q'"),
        (midstream + _deliver(1, 0, content), "d1 1: 4 times through queue 'b', now with routing key 'q'"),
        (midstream + got, "got 1: 4 times through queue 'b', now with routing key ''"),
        (midstream + "[p] C1: basic.publish routing_key=k | " + content,
         "p 1: 4 times through queue 'b', now with routing key 'k'"),
    ):  # fmt: skip
        assert said(script, "dead-letter-cycle") == [f"dead-letter-cycle {place}"]


def rejected(times: int, declared: str = "", begin: str = "handshake\n") -> str:
    """Deliveries from queue q, of which some are rejected without requeue."""
    lines = [begin, "C1: channel.open\nS1: channel.open-ok\n"]
    lines.append(f"C1: queue.declare queue=q {declared}\nS1: queue.declare-ok queue=q\n")
    lines.append("C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n")
    lines += [f"S1: basic.deliver consumer_tag=t delivery_tag={tag}\n" for tag in range(1, 9)]
    lines += [
        f"C1: basic.nack delivery_tag={tag} requeue={int(tag > times)}\n" for tag in range(1, 9)
    ]
    return "".join(lines)


def test_deliveries_rejected_for_good() -> None:
    """Not with a dead-letter exchange, nor where an older connection may have declared one."""
    (line,) = said(rejected(5), "deliveries-rejected")
    assert line.endswith(
        "x5: 5 deliveries from queue 'q' without requeue; the capture declares no dead-letter "
        "exchange for it"
    )
    assert said(rejected(4), "deliveries-rejected") == []
    dead = f"arguments='{json.dumps({'x-dead-letter-exchange': 'dead'})}'"
    assert said(rejected(5, dead), "deliveries-rejected") == []
    unanswered = rejected(5, f"{dead} no_wait=1").replace("S1: queue.declare-ok queue=q\n", "")
    assert said(unanswered, "deliveries-rejected") == []
    assert said(rejected(5, begin=""), "deliveries-rejected") == []
    long = json.dumps({"x-dead-letter-exchange": "dead", "x-comment": "." * MAX_ARGUMENTS_BYTES})
    assert said(rejected(5, f"arguments='{long}'"), "deliveries-rejected") == []


# dead letters


@pytest.mark.parametrize(("hands_on", "times"), [(False, 1), (True, 0)])
def test_dead_letters_in_a_queue_that_hands_them_on(hands_on: bool, times: int) -> None:
    """A queue for retries gives its messages back when they expire; nobody has to read it."""
    dead = json.dumps({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "retry"})
    back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"} if hands_on else {}
    text = (
        "handshake\nC1: channel.open\nS1: channel.open-ok\n"
        f"C1: queue.declare queue=q arguments='{dead}'\nS1: queue.declare-ok queue=q\n"
        f"C1: queue.declare queue=retry arguments='{json.dumps({'x-message-ttl': 300} | back)}'\n"
        "S1: queue.declare-ok queue=retry\n"
        "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
        + _deliver(1)
        + "C1: basic.reject delivery_tag=1 requeue=0\n"
        + "@+11000ms C: connection.close reply_code=200\nS: connection.close-ok\n"
    )
    assert len(said(text, "dead-letter-unread")) == times
