"""Requests and answers by message."""

from __future__ import annotations

import pytest

from amqpsniff.session.rules.shared_state import MAX_NAMES
from tests.conftest import CAPTURES
from tests.session.rules.found import details, found, of_capture
from tests.session.script import Script

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
"""


def reads(queue: str) -> str:
    """A consumer of a reply queue."""
    return f"C1: basic.consume queue={queue} consumer_tag={queue} no_ack=1\nS1: basic.consume-ok\n"


def call(name: str, queue: str) -> str:
    """A request."""
    words = f"body=5 reply_to={queue} correlation_id={name}"
    return f"C1: basic.publish exchange=e routing_key=work | {words}\n"


def answer(name: str, queue: str, after_ms: int = 1, tag: int = 1) -> str:
    """Its answer."""
    return (
        f"@+{after_ms}ms S1: basic.deliver consumer_tag={queue} delivery_tag={tag} | body=5 "
        f"correlation_id={name}\n"
    )


def test_answers_that_come_late() -> None:
    text = OPEN + reads("r") + call("a", "r") + answer("a", "r", 1000)
    row = found(text, "rpc-slow")
    assert row is not None
    assert row["detail"] == (
        "1 answer, after 1.00 s on average; the latest after 1.00 s, to the request sent on "
        "channel 1 to exchange 'e' with routing key 'work'"
    )
    assert not found(text.replace("@+1000ms", "@+999ms"), "rpc-slow")


def test_one_answer_that_comes_very_late() -> None:
    script = Script(OPEN + reads("r"))
    for number in range(30):
        script.add(call(f"a{number}", "r") + answer(f"a{number}", "r"))
    script.add("[late] " + call("z", "r") + answer("z", "r", 10_000))
    row = found(script, "rpc-slow")
    assert row is not None
    assert row["packet_number"] == script.labels["late"]


def test_a_request_without_an_answer() -> None:
    script = Script(OPEN + reads("r") + "[lost] " + call("a", "r") + call("b", "r"))
    script.add(answer("b", "r", 10_001))
    row = found(script, "rpc-unanswered")
    assert row is not None
    assert row["packet_number"] == script.labels["lost"]
    assert row["detail"].startswith(
        "1 request without an answer, on channel 1 to exchange 'e' with "
    )


def test_requests_whose_answers_may_still_come_or_come_elsewhere() -> None:
    soon = OPEN + reads("r") + call("a", "r") + call("b", "r") + answer("b", "r", 9_000)
    assert not found(soon, "rpc-unanswered")
    elsewhere = OPEN + reads("r") + call("a", "s") + call("b", "r") + answer("b", "r", 20_000)
    assert not found(elsewhere, "rpc-unanswered")
    lossy = OPEN + reads("r") + call("a", "r") + "GAP S 50\n@+20000ms S: connection.unblocked"
    assert not found(lossy, "rpc-unanswered")


def test_direct_answers() -> None:
    direct = "amq.rabbitmq.reply-to"
    text = OPEN + reads(direct) + call("a", direct) + answer("a", direct, 2000)
    assert found(text, "rpc-slow")
    assert not found(text, "reply-queue-per-call")


def queues(count: int, calls: int) -> str:
    """Reply queues with so many calls each."""
    lines = [OPEN]
    for number in range(count):
        lines.append(reads(f"r{number}"))
        for each in range(calls):
            name = f"{number}-{each}"
            lines.append(call(name, f"r{number}") + answer(name, f"r{number}", tag=each + 1))
    return "".join(lines)


def test_a_reply_queue_for_each_call() -> None:
    row = found(queues(3, 1), "reply-queue-per-call")
    assert row is not None
    assert (row["count"], row["detail"]) == (3, "3 reply queues for 3 requests, the first 'r0'")


def test_reply_queues_that_are_used_again() -> None:
    assert not found(queues(2, 1), "reply-queue-per-call")
    assert not found(queues(3, 2), "reply-queue-per-call")
    assert found(queues(4, 1) + second(0, 2), "reply-queue-per-call")
    assert not found(queues(4, 1) + second(0, 3), "reply-queue-per-call")


def second(start: int, stop: int) -> str:
    """More calls of some queues, so many of all of them."""
    names = [(f"{number}-x", f"r{number}") for number in range(start, stop)]
    return "".join(call(*name) + answer(*name, tag=2) for name in names)


def test_reply_queues_that_are_of_others_or_of_no_one_call() -> None:
    others = "".join(call(f"a{n}", f"r{n}") for n in range(3))
    assert not found(OPEN + others, "reply-queue-per-call")
    direct = "amq.rabbitmq.reply-to"
    text = queues(2, 1) + reads(direct) + call("d", direct) + answer("d", direct)
    assert not found(text, "reply-queue-per-call")


def test_the_latest_answer() -> None:
    script = Script(OPEN + reads("r") + "[late] " + call("a", "r") + answer("a", "r", 2500))
    script.add(call("b", "r") + answer("b", "r", 500))
    row = found(script, "rpc-slow")
    assert row is not None
    assert row["packet_number"] == script.labels["late"]
    assert row["detail"].startswith("2 answers, after 1.50 s on average; the latest after 2.50 s")


def test_a_reply_queue_that_the_broker_names() -> None:
    declared = "C1: queue.declare\nS1: queue.declare-ok queue=amq.gen-1\n"
    text = OPEN + declared + "C1: basic.consume consumer_tag=t\n" + call("a", "amq.gen-1")
    assert found(text + "@+10001ms S: connection.unblocked", "rpc-unanswered")
    closed = OPEN + "S1: channel.close reply_code=404\n" + reads("r") + "C1: channel.close-ok\n"
    text = closed + "C2: channel.open\nS2: channel.open-ok\n" + call("a", "r").replace("C1", "C2")
    assert not found(text + "@+10001ms S: connection.unblocked", "rpc-unanswered")


def test_calls_beyond_the_limit() -> None:
    text = OPEN + reads("r") + "".join(call(f"c{n}", "r") for n in range(MAX_NAMES + 1))
    text += "@+20004ms S: connection.unblocked"
    row = found(text, "rpc-unanswered")
    assert row is not None
    assert row["count"] == MAX_NAMES
    assert details(text, "rules-limit") == ["forgotten: requests (1)"]


def test_answers_to_what_nobody_here_asked() -> None:
    text = OPEN + reads("r") + call("a", "r") + answer("b", "r", 9000) + answer("a", "r", 2, tag=2)
    row = found(text, "rpc-slow")
    assert row is not None
    assert row["detail"].startswith("1 answer, after 9.00 s on average")


BUSY = """
    b.handshake client='{"connection_name": "pricing"}'
    b.C1: channel.open
    b.S1: channel.open-ok
    b.C1: basic.qos prefetch_count=1
    b.S1: basic.qos-ok
    b.C1: basic.consume queue=work consumer_tag=w
    b.S1: basic.consume-ok consumer_tag=w
"""


def served(idle_ms: int = 1, queue: str = "work", others: str = "") -> str:
    """Twelve requests at once; a server works on each for 200 ms, and is idle before the next."""
    text = OPEN + reads("r") + BUSY.replace("queue=work", f"queue={queue}") + others
    text += "".join(call(f"a{n}", "r").replace("exchange=e ", "") for n in range(12))
    for n in range(12):
        name = f"routing_key=work | body=5 reply_to=r correlation_id=a{n}"
        text += f"@+{idle_ms}ms b.S1: basic.deliver consumer_tag=w delivery_tag={n + 1} {name}\n"
        text += f"@+200ms b.C1: basic.publish routing_key=r | body=5 correlation_id=a{n}\n"
        text += answer(f"a{n}", "r", tag=n + 1)
        text += f"b.C1: basic.ack delivery_tag={n + 1}\n"
    return text


def test_late_answers_of_a_server_that_is_busy_all_the_time() -> None:
    row = found(served(), "rpc-slow")
    assert row is not None
    assert row["detail"] == (
        "12 answers, after 1.32 s on average; pricing takes one every 203 ms, with the one in hand "
        "that a prefetch count of 1 allows, 100 % of the time (from 'work'); the latest after "
        "2.44 s, to the request sent on channel 1 to the default exchange with routing key 'work'"
    )
    other = BUSY.replace("b.", "c.").replace("pricing", "spare")
    assert "; pricing takes" in details(served(others=other), "rpc-slow")[0]


@pytest.mark.parametrize(("idle_ms", "queue"), [(100, "work"), (1, "other")])
def test_late_answers_of_others(idle_ms: int, queue: str) -> None:
    """The server waits between requests, or what is busy has another queue."""
    (detail,) = details(served(idle_ms, queue), "rpc-slow")
    assert "pricing" not in detail


def test_a_real_server_that_is_busy() -> None:
    rows = of_capture(CAPTURES / "cases/rpc_server_busy.pcap.gz")
    told = [row["detail"] for row in rows if row["code"] == "rpc-slow"]
    words = "server takes one every 251 ms, with the one in hand that a prefetch count of 1 allows"
    assert len(told) == 6
    assert all(words in detail for detail in told)


SERVER = """
    b.handshake client='{"connection_name": "pricing"}'
    b.C1: channel.open
    b.S1: channel.open-ok
    b.C1: basic.consume queue=work consumer_tag=w
    b.S1: basic.consume-ok consumer_tag=w
"""
TAKEN = (
    "b.S1: basic.deliver consumer_tag=w delivery_tag=1 exchange=e routing_key=work | body=5 "
    "reply_to=r correlation_id=a\n"
)
WAIT = "@+2000ms C2: channel.open\n"


def lost(end: str, after: str = WAIT) -> str:
    """A server takes a request and ends so."""
    return OPEN + reads("r") + SERVER + call("a", "r") + TAKEN + end + after


def test_a_server_that_is_lost_with_a_request() -> None:
    row = found(lost("[gone] b.RST C\n"), "rpc-server-lost")
    assert row is not None
    assert row["detail"] == (
        "pricing had the request to exchange 'e' with routing key 'work' since packet 30 when its "
        "connection ended (RST in packet 31); no answer came in the 2.00 s after it"
    )


@pytest.mark.parametrize(
    ("end", "after"),
    [
        ("b.C1: basic.ack delivery_tag=1\nb.RST C\n", WAIT),  # it may have answered
        ("b.C: connection.close\nb.S: connection.close-ok\nb.FIN C\n", WAIT),
        ("b.RST C\n", answer("a", "r") + WAIT),  # another server answered
        ("b.RST C\n", ""),  # the answer may come
    ],
)
def test_servers_that_did_not_lose_a_request(end: str, after: str) -> None:
    assert not found(lost(end, after), "rpc-server-lost")
