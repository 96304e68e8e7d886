"""Answers that come late, or never."""

from __future__ import annotations

from tests.session.rules.found import details, findings, found
from tests.session.script import Script

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
"""


def test_an_answer_that_never_came() -> None:
    script = Script(OPEN + "[asked] C1: queue.declare queue=jobs\n@+5002ms S2: channel.close-ok")
    row = found(script, "reply-missing")
    assert row is not None
    assert row["packet_number"] == script.labels["asked"]
    assert row["detail"] == "queue.declare on channel 1 had no answer in 5.00 s"


def test_an_answer_that_came_late() -> None:
    text = OPEN + "C1: queue.declare queue=jobs\n@+5001ms S1: queue.declare-ok queue=jobs"
    assert details(text, "reply-missing") == ["queue.declare was answered after 5.00 s"]
    assert not found(text.replace("5001", "5000"), "reply-missing")


def test_answers_while_publishing_is_blocked() -> None:
    text = OPEN + "C1: basic.publish exchange=e\nS: connection.blocked reason=memory\n"
    text += "C1: queue.declare queue=jobs\n@+6000ms S: connection.unblocked"
    row = found(text, "reply-missing")
    assert row is not None
    assert "publishing was blocked" in row["detail"]


def test_a_capture_that_ends_before_the_answer() -> None:
    assert not found(OPEN + "C1: queue.declare queue=jobs\n@+4000ms FIN C", "reply-missing")


def test_a_client_that_did_not_wait() -> None:
    text = (
        OPEN
        + """
        C1: queue.declare queue=jobs
        C: connection.close reply_code=200
        @+9000ms S: connection.close-ok
    """
    )
    assert not found(text, "reply-missing")


def test_an_answer_that_may_be_lost() -> None:
    text = OPEN + "C1: queue.declare queue=jobs\nGAP S 20\n@+9000ms S: connection.unblocked"
    assert not found(text, "reply-missing")


def asked(count: int, ms: int, pause_ms: int = 1) -> str:
    """Bindings, one after the other."""
    return OPEN + "\n".join(
        f"@+{pause_ms}ms C1: queue.bind queue=jobs exchange=e routing_key={n}\n"
        f"@+{ms}ms S1: queue.bind-ok"
        for n in range(count)
    )


def test_slow_answers() -> None:
    assert details(asked(2, 1000), "broker-slow") == [
        "queue.bind: 2 answered after 1.00 s on average and 1.00 s at most"
    ]
    assert not found(asked(2, 999), "broker-slow")


def test_a_connection_that_waits_most_of_its_time() -> None:
    assert details(asked(20, 200, 100), "synchronous-waiting") == [
        "21 requests waited for 4.00 s of 6.01 s, most of it 20 times queue.bind"
    ]


def test_an_application_that_only_starts() -> None:
    assert not found(asked(20, 100, 100), "synchronous-waiting")
    assert not found(asked(18, 200, 100), "synchronous-waiting")


def test_waiting_that_does_not_matter() -> None:
    assert not found(asked(30, 40, 200), "synchronous-waiting")


def test_requests_at_the_same_time_are_waited_for_once() -> None:
    lines = [OPEN]
    for number in range(30):
        lines += [f"@+250ms C{n}: basic.qos prefetch_count={number}" for n in (1,)]
        lines += ["& C1: queue.purge queue=jobs", "@+40ms S1: basic.qos-ok"]
        lines += ["& S1: queue.purge-ok"]
    assert "synchronous-waiting" not in {row["code"] for row in findings("\n".join(lines))}
