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
        "21 requests waited for 4.00 s of 6.01 s, most of it 20 times queue.bind: 200 ms each"
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


def test_which_answers_were_slow() -> None:
    """The slowest of a method counts; where the first slow one was asked for is the evidence."""
    script = Script(OPEN)
    for label, method, ms in (("a", "purge", 999), ("b", "declare", 1500), ("c", "declare", 1000),
                              ("d", "bind", 1000), ("e", "delete", 5001)):  # fmt: skip
        script.add(f"[{label}] C1: queue.{method}\n@+{ms}ms S1: queue.{method}-ok")
    row = found(script, "broker-slow")
    assert row is not None
    assert row["packet_number"] == script.labels["b"]
    assert (row["count"], row["detail"]) == (2, (
        "queue.bind: answered after 1.00 s; "
        "queue.declare: 2 answered after 1.25 s on average and 1.50 s at most"
    ))  # fmt: skip


def test_the_longest_wait_that_is_only_slow() -> None:
    text = OPEN + "C1: queue.purge\n@+5000ms S1: queue.purge-ok"
    assert details(text, "broker-slow") == ["queue.purge: answered after 5.00 s"]
    assert not found(text.replace("5000", "5001"), "broker-slow")


def test_what_a_broker_asks_for() -> None:
    for end in ("@+6000ms C1: channel.flow-ok active=0", "@+6000ms S: connection.unblocked"):
        text = OPEN + "S1: channel.flow active=0\n" + end
        assert not found(text, "reply-missing")
        assert not found(text, "broker-slow")


def test_what_is_asked_of_a_connection_itself() -> None:
    """Who waits there, waits for a login, which has findings of its own."""
    text = OPEN + "C: connection.update-secret new_secret=x\n@+6000ms S: connection.unblocked"
    assert not found(text, "reply-missing")


def test_answers_after_publishing_was_blocked() -> None:
    blocked = "C1: basic.publish exchange=e\nS: connection.blocked reason=memory\n"
    late = "C1: queue.declare queue=jobs\n@+6000ms S1: queue.declare-ok queue=jobs\n"
    unblocked = "@+10ms S: connection.unblocked\n"
    for text in (blocked + unblocked + late, blocked + late + unblocked):
        (detail,) = details(OPEN + text, "reply-missing")
        assert detail.endswith("publishing was blocked meanwhile or before")


def test_a_fifth_of_the_time() -> None:
    """20 requests of 101 ms, the last frame at 5 s and more."""
    text = OPEN + "C1: queue.purge\n@+{first}ms S1: queue.purge-ok\n"
    text += "C1: queue.purge\n@+52ms S1: queue.purge-ok\n" * 18 + "@+{rest}ms C2: channel.open"
    spent = 6 + 2 + 1 + 18 * 53
    for first, waits in ((63, False), (64, True)):  # 1 ms for channel.open-ok
        rest = 5000 - spent - first
        assert bool(found(text.format(first=first, rest=rest), "synchronous-waiting")) is waits


def test_requests_after_something_was_lost() -> None:
    for side in "CS":
        lost = OPEN + f"GAP {side} 20\nC1: queue.declare queue=jobs\nS: connection.unblocked\n"
        assert not found(lost + "@+9000ms S: connection.unblocked", "reply-missing")
