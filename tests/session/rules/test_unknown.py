"""What a capture does not show is not found: one direction only, or holes."""

from __future__ import annotations

import pytest

from amqpsniff import Engine
from tests.findings.cases import packets_of
from tests.findings.test_pairs import PAIRS
from tests.session.rules import test_churn as churn
from tests.session.rules import test_flow as flow
from tests.session.rules import test_rpc as calls
from tests.session.rules import test_sharing as sharing
from tests.session.rules import test_sizes as sizes
from tests.session.rules import test_waits as waits
from tests.session.rules.found import found
from tests.session.script import Script

CASES = {
    "prefetch-unlimited": flow.CONSUMING + flow.CONSUME,
    "backlog-in-client": flow.CONSUMING
    + flow.qos(200)
    + flow.CONSUME
    + flow.jobs(110, 1, 100, ahead=105),
    "reply-missing": waits.OPEN + "C1: queue.declare queue=q\n@+9000ms S: connection.unblocked",
    "channel-churn": churn.channels(20, 1),
    "connection-churn": churn.connections(7),
    "channels-leaking": sharing.opened(150, 100),
    "rpc-unanswered": calls.OPEN
    + calls.reads("r")
    + calls.call("a", "r")
    + "@+20000ms S: connection.unblocked",
}


def codes(script: Script, senders: tuple[str, ...]) -> set[str]:
    """Codes of what is found in the bytes of some sides."""
    engine = Engine()
    for packet in script.packets:
        if packet.sender in senders and packet.octets:
            key = (f"10.0.0.1:{1000 + int(packet.connection[1:] or 0)}", "10.0.0.2:5672")
            engine.feed_bytes(key, packet.sender, packet.octets, packet.ts_ns)
    engine.finish()
    return {row["code"] for row in engine.take("findings").to_pylist()}


@pytest.mark.parametrize("code", sorted(CASES))
def test_one_direction_only(code: str) -> None:
    script = Script(CASES[code])
    assert found(script, code)
    assert code not in codes(script, ("client",))
    assert code not in codes(script, ("server",))


TIMED = (
    "acknowledgements-single backlog-in-client channels-leaking confirm-per-message confirms-slow "
    "connection-churn connections-leaking consumer-slow consumer-stuck get-polling handshake-slow "
    "heartbeat-missed idle-connection-cut message-stalled php-short-connections prefetch-too-small "
    "publish-while-blocked queue-length-polling queue-residence-long reconnect-loop reply-missing "
    "requeue-storm rpc-slow rpc-unanswered synchronous-waiting topology-churn broker-slow"
).split()


@pytest.mark.parametrize(
    "name", [*TIMED, "channel-churn", "connection-blocked", "disconnect-unclean"]
)
def test_packets_without_times(name: str) -> None:
    """What is measured in time is not known then; the rest is."""
    shown = PAIRS[name].shown
    assert isinstance(shown, str)
    engine = Engine()
    for packet in packets_of(shown):
        engine.feed_packet(packet.octets, None, packet.link_type)
    engine.finish()
    found = {row["code"] for row in engine.take("findings").to_pylist()}
    assert (name in found) is (name not in TIMED)


@pytest.mark.parametrize(
    ("code", "text"),
    [("channels-leaking", sharing.opened(150, 100)), ("overhead-high", sizes.small(1000, 10))],
)
def test_how_often_is_not_known_without_times(code: str, text: str) -> None:
    assert found(text, code)
    engine = Engine()
    for packet in packets_of(text):
        engine.feed_packet(packet.octets, None, packet.link_type)
    engine.finish()
    assert code not in {one.code for one in engine.findings()}


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("hello\nGAP C 100\nC1: basic.publish | body=1", "channel-not-open"),
        ("midstream\nC: connection.tune-ok\nS: connection.close\nFIN C", "traffic-after-close"),
        ("midstream\nS: connection.close-ok\nRST C", "disconnect-unclean"),
    ],
)
def test_what_came_before_may_excuse_it(script: str, code: str) -> None:
    assert found(script, code) is None


def test_a_request_whose_answer_was_captured_before_it() -> None:
    """Where a capture begins, one direction may be understood before the other."""
    asked = "midstream\nC1: queue.declare queue=q\n"
    later = "C1: exchange.declare exchange=e\nS1: exchange.declare-ok\n"
    end = "@+9000ms S: connection.unblocked"
    assert found(asked + end, "reply-missing")
    assert found(asked + later + end, "reply-missing") is None
