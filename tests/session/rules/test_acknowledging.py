# ruff: noqa: E501 (one packet, one line)
"""Acknowledgements that mean nothing, and deliveries without one."""

import pytest

from amqpsniff.session.rules.acknowledging import MAX_OPEN, MAX_UNSETTLED_CHANNELS
from amqpsniff.session.rules.deferred import MAX_DEFERRED
from tests.session.rules.saying import found, said
from tests.session.script import Remembering, Script, feed

OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
CONSUMER = f"""
    {OPEN}
    C1: basic.consume queue=q consumer_tag=t
    S1: basic.consume-ok consumer_tag=t
    [d1] S1: basic.deliver consumer_tag=t delivery_tag=1
    [d2] S1: basic.deliver consumer_tag=t delivery_tag=2
"""
INVALID = ("acknowledgement-invalid", "acknowledgement-stale")


def test_a_delivery_acknowledged_twice() -> None:
    script = CONSUMER + "C1: basic.ack delivery_tag=1\n[again] C1: basic.ack delivery_tag=1"
    assert said(script, *INVALID) == [
        "acknowledgement-invalid again 1: delivery 1 was settled before"
    ]


def test_each_delivery_settled_once() -> None:
    script = CONSUMER + "C1: basic.ack delivery_tag=2 multiple=1\nC1: basic.ack multiple=1"
    assert said(script, *INVALID) == []


def test_a_tag_that_was_never_delivered() -> None:
    script = CONSUMER + "[bad] C1: basic.nack delivery_tag=9\nC1: basic.ack delivery_tag=1"
    assert said(script, *INVALID) == [
        "acknowledgement-invalid bad 1: delivery 9 was not sent on this channel, the last was 2"
    ]


def test_the_same_again_is_counted() -> None:
    bad = "C1: basic.ack delivery_tag=9\n"
    fed = feed(Script(CONSUMER + bad * 3))
    (one,) = (one for one in fed.engine.findings() if one.code == INVALID[0])
    assert one.packet_number is not None
    assert (one.count, one.last_packet_number) == (3, one.packet_number + 2)


def test_tag_zero_without_multiple() -> None:
    script = CONSUMER + "[bad] C1: basic.reject delivery_tag=0"
    assert said(script, *INVALID) == [
        "acknowledgement-invalid bad 1: delivery 0 does not exist: 0 means all, and only with multiple"
    ]


def test_a_tag_of_another_channel() -> None:
    script = CONSUMER + "C2: channel.open\nS2: channel.open-ok\n[bad] C2: basic.ack delivery_tag=2"
    assert said(script, *INVALID) == [
        "acknowledgement-invalid bad 2: delivery 2 was not sent on this channel, which had none; it is outstanding on channel 1"
    ]


def test_a_delivery_that_needs_no_acknowledgement() -> None:
    script = """
        handshake
        C1: channel.open
        S1: channel.open-ok
        C1: basic.get queue=q no_ack=1
        S1: basic.get-ok delivery_tag=1
        [bad] C1: basic.ack delivery_tag=1
    """
    assert said(script, *INVALID) == [
        "acknowledgement-invalid bad 1: delivery 1 needed no acknowledgement (no-ack)"
    ]


def test_what_the_capture_may_have_missed_is_not_judged() -> None:
    lost = CONSUMER + "GAP S 100\nC1: basic.ack delivery_tag=9\nS1: basic.qos-ok"
    assert said(lost, *INVALID) == []
    midstream = "midstream\nC1: basic.ack delivery_tag=9\nS1: basic.qos-ok"
    assert said(midstream, *INVALID) == []


def test_the_broker_knows_what_the_capture_does_not_show() -> None:
    script = """
        midstream
        C1: basic.ack delivery_tag=9
        [close] S1: channel.close reply_code=406 reply_text="PRECONDITION_FAILED - unknown delivery tag 9" class_id=60 method_id=80
    """
    assert said(script, *INVALID) == [
        "acknowledgement-invalid close 1: the broker says: PRECONDITION_FAILED - unknown delivery tag 9"
    ]


def test_the_answer_of_the_broker_is_a_consequence() -> None:
    script = (
        CONSUMER
        + """
        [bad] C1: basic.ack delivery_tag=9
        S1: channel.close reply_code=406 reply_text="PRECONDITION_FAILED - unknown delivery tag 9" class_id=60 method_id=80
    """
    )
    fed = feed(Script(script))
    causes = {finding.code: finding.cause_code for finding in fed.engine.findings()}
    assert causes["channel-closed-by-broker"] == "acknowledgement-invalid"
    assert causes["acknowledgement-invalid"] is None


def test_acknowledged_on_the_channel_opened_after_it() -> None:
    script = (
        CONSUMER
        + """
        [close] C1: channel.close reply_code=200
        S1: channel.close-ok
        [open] C1: channel.open
        S1: channel.open-ok
        [late] C1: basic.ack delivery_tag=2
    """
    )
    assert said(script, *INVALID) == [
        "acknowledgement-stale late 1: delivery 2 was sent on the channel that ended in packet close, and this one was opened later, in packet open"
    ]


def test_acknowledged_on_the_next_connection() -> None:
    script = (
        CONSUMER
        + """
        FIN S
        FIN C
        b.C0: connection.start-ok
        b.S0: connection.tune
        b.C1: channel.open
        b.S1: channel.open-ok
        [late] b.C1: basic.ack delivery_tag=2
    """
    )
    assert found(script, *INVALID) == ["acknowledgement-stale late"]


def test_the_last_channel_of_the_host_that_left_something_counts() -> None:
    """Another one, which left nothing, ended after it; and one ended too late."""
    other = "b.handshake\nb.C1: channel.open\nb.S1: channel.open-ok\nb.RST C\n"
    late = """
        d.S1: basic.deliver consumer_tag=t delivery_tag=3
        d.RST C
    """
    script = (
        CONSUMER
        + "d.handshake\nd.C1: channel.open\nd.S1: channel.open-ok\nRST C\n"
        + other
        + "c.handshake\n[open] c.C1: channel.open\nc.S1: channel.open-ok\n"
        + late
        + "[late] c.C1: basic.ack delivery_tag=2\n[wrong] c.C1: basic.ack delivery_tag=3"
    )
    assert found(script, *INVALID) == [
        "acknowledgement-stale late",
        "acknowledgement-invalid wrong",
    ]


def test_what_was_settled_before_the_end_is_not_stale() -> None:
    script = (
        CONSUMER
        + """
        C1: basic.ack delivery_tag=2 multiple=1
        C1: channel.close reply_code=200
        S1: channel.close-ok
        C1: channel.open
        S1: channel.open-ok
        [late] C1: basic.ack delivery_tag=2
    """
    )
    assert found(script, *INVALID) == ["acknowledgement-invalid late"]


@pytest.mark.parametrize("settled", ["", "4", "123578", "1278"])
@pytest.mark.parametrize("tag", "1234578")
def test_tags_that_a_channel_left(settled: str, tag: str) -> None:
    deliver = "S1: basic.deliver consumer_tag=t delivery_tag={}\n"
    script = OPEN + "".join(deliver.format(n) for n in range(1, 9))
    script += "".join(f"C1: basic.ack delivery_tag={n}\n" for n in settled)
    script += "C1: channel.close reply_code=200\nS1: channel.close-ok\n"
    script += f"C1: channel.open\nS1: channel.open-ok\n[late] C1: basic.ack delivery_tag={tag}"
    code = "invalid" if tag in settled else "stale"
    assert found(script, *INVALID) == [f"acknowledgement-{code} late"]


def test_channels_remembered_are_limited() -> None:
    script = Script()
    for number in range(1, MAX_UNSETTLED_CHANNELS + 9):
        script.add(f"""
            C{number}: channel.open
            S{number}: channel.open-ok
            S{number}: basic.deliver consumer_tag=t delivery_tag=1
        """)
    memory = Remembering(
        script.add("C: connection.close\nS: connection.close-ok")
    ).pipeline.tracker.shared
    assert len(memory["left-outstanding"]) == len(memory["left-on-hosts"]) == MAX_UNSETTLED_CHANNELS


@pytest.mark.parametrize(("others", "code"), [(-1, "stale"), (0, "invalid")])
def test_open_channels_of_a_host_are_limited(others: int, code: str) -> None:
    """Of more than that, it shows only later that one is over."""
    opened = "{0}.handshake\n{0}.C1: channel.open\n{0}.S1: channel.open-ok\n"
    ended = CONSUMER + "FIN S\nFIN C\n"
    more = "".join(opened.format(f"c{n}") for n in range(MAX_OPEN - 1 + others))
    late = opened.format("b") + "[late] b.C1: basic.ack delivery_tag=2"
    assert found(ended + more + late, *INVALID) == [f"acknowledgement-{code} late"]


def test_deliveries_in_doubt() -> None:
    script = CONSUMER + "[close] C: connection.close reply_code=200\nS: connection.close-ok"
    assert said(script, "deliveries-in-doubt") == [
        "deliveries-in-doubt close 1 x2: 2 deliveries from queue 'q', the first in packet d1, when the client closed it"
    ]


def test_deliveries_of_a_stream_are_not_in_doubt() -> None:
    offset = """headers='{"x-stream-offset": 7}'"""
    stream = CONSUMER.replace("delivery_tag=2", f"delivery_tag=2 | body=1 {offset}")
    assert stream != CONSUMER
    script = stream + "C: connection.close reply_code=200\nS: connection.close-ok"
    assert said(script, "deliveries-in-doubt") == []


def test_nothing_is_in_doubt_while_the_connection_is_open() -> None:
    assert said(CONSUMER, "deliveries-in-doubt") == []
    settled = CONSUMER + "C1: basic.ack multiple=1\nC: connection.close reply_code=200"
    assert said(settled, "deliveries-in-doubt") == []


def test_a_gap_in_the_delivery_tags() -> None:
    script = (
        CONSUMER
        + """
        [d5] S1: basic.deliver consumer_tag=t delivery_tag=5
        C1: basic.ack delivery_tag=4
        [d6] S1: basic.deliver consumer_tag=t delivery_tag=6
    """
    )
    assert said(script, "delivery-tag-gap", *INVALID) == [
        "delivery-tag-gap d5 1: delivery tag 5 follows 2"
    ]


def test_a_new_channel_counts_anew() -> None:
    script = (
        CONSUMER
        + """
        C1: channel.close reply_code=200
        S1: channel.close-ok
        C1: channel.open
        S1: channel.open-ok
        S1: basic.deliver consumer_tag=t delivery_tag=1
    """
    )
    assert said(script, "delivery-tag-gap") == []


def test_a_delivery_captured_after_its_acknowledgement() -> None:
    script = (
        CONSUMER
        + """
        C1: basic.ack delivery_tag=3
        S1: basic.deliver consumer_tag=t delivery_tag=3
        C1: basic.ack delivery_tag=2 multiple=1
        C: connection.close
        S: connection.close-ok
    """
    )
    assert said(script, "deliveries-in-doubt", *INVALID) == []


def test_a_delivery_captured_late_before_the_broker_closes() -> None:
    """What came late excuses all that was suspected, also when the channel ends only later."""
    late = "C1: basic.ack delivery_tag=3\nS1: basic.deliver consumer_tag=t delivery_tag=3\n"
    bad = "C1: basic.ack delivery_tag=9\n"
    closed = "S1: channel.close reply_code=404\n"
    assert found(CONSUMER + bad + closed, *INVALID) == ["acknowledgement-invalid #14"]
    assert found(CONSUMER + late + bad + closed, *INVALID) == []


def test_a_loss_that_shows_after_the_acknowledgement() -> None:
    """The client is read on while the server's bytes wait behind the hole."""
    script = CONSUMER + "C1: basic.ack delivery_tag=9\nGAP S 100\nC1: basic.ack delivery_tag=9"
    assert said(script + "\nS1: basic.qos-ok", *INVALID) == []


def test_suspicions_are_limited() -> None:
    script = Script("handshake")
    for number in range(1, MAX_DEFERRED + 9):
        script.add(f"""
            C{number}: channel.open
            S{number}: channel.open-ok
            C{number}: basic.ack delivery_tag=1
        """)
    findings = list(feed(script).engine.findings())
    codes = [finding.code for finding in findings]
    assert codes.count("acknowledgement-invalid") == MAX_DEFERRED
    assert "suspicions" in next(one.detail for one in findings if one.code == "rules-limit")


UNKNOWN = 'S1: channel.close reply_code=406 reply_text="unknown delivery tag 9" class_id=60 method_id=80\n'


def test_what_the_broker_says_is_said_once() -> None:
    """Where the capture showed it, on the channel that showed it."""
    asked = CONSUMER + "[bad] C1: basic.ack delivery_tag=9\n"
    assert found(asked + UNKNOWN, *INVALID) == ["acknowledgement-invalid bad"]
    opened = "C1: channel.close-ok\nC1: channel.open\nS1: channel.open-ok\n"
    again = asked + UNKNOWN + opened + "[close] " + UNKNOWN
    assert found(again, *INVALID) == [
        "acknowledgement-invalid bad",
        "acknowledgement-invalid close",
    ]


def test_two_faults_are_told_apart() -> None:
    """What was settled twice is one, and what was never delivered another."""
    script = (
        CONSUMER
        + """
        C1: basic.ack delivery_tag=1
        [twice] C1: basic.ack delivery_tag=1
        [never] C1: basic.ack delivery_tag=9
        C1: basic.ack delivery_tag=8
        S1: basic.qos-ok
    """
    )
    assert said(script, *INVALID) == [
        "acknowledgement-invalid twice 1: delivery 1 was settled before",
        "acknowledgement-invalid never 1 x2: delivery 9 was not sent on this channel, the last was 2",
    ]


@pytest.mark.parametrize("close", [
    "C1: channel.close reply_code=406 reply_text='unknown delivery tag 9'",
    "S1: channel.close reply_code=404 reply_text='unknown delivery tag 9'",
    "S1: channel.close reply_code=406 reply_text='unknown delivery'",
    "S1: channel.close reply_code=406",
])  # fmt: skip
def test_closes_that_do_not_speak_of_tags(close: str) -> None:
    assert said("midstream\nC1: basic.ack delivery_tag=9\n" + close, *INVALID) == []


def test_acknowledged_after_closing() -> None:
    assert said(CONSUMER + "C1: channel.close\nC1: basic.ack delivery_tag=9", *INVALID) == []


def test_settled_where_some_consumers_do_not_acknowledge() -> None:
    twice = "C1: basic.ack delivery_tag=1\n[again] C1: basic.ack delivery_tag=1"
    other = (
        "C1: basic.consume queue=r consumer_tag=u no_ack=1\nS1: basic.consume-ok consumer_tag=u\n"
    )
    assert said(CONSUMER + other + twice, *INVALID) == [
        "acknowledgement-invalid again 1: delivery 1 was settled before, or needed no acknowledgement (no-ack)"
    ]


def test_a_tag_that_is_outstanding_nowhere() -> None:
    for other, tag in (("C2: channel.open\nS2: channel.open-ok\n", 9), ("", 9)):
        (line,) = said(CONSUMER + other + f"[bad] C1: basic.ack delivery_tag={tag}", *INVALID)
        assert line.endswith("was not sent on this channel, the last was 2")
    first = CONSUMER.replace("[d1] S1: basic.deliver consumer_tag=t delivery_tag=1", "").replace(
        "[d2] S1: basic.deliver consumer_tag=t delivery_tag=2",
        "S1: basic.deliver consumer_tag=t delivery_tag=0",
    )
    (line,) = said(first + "[bad] C1: basic.ack delivery_tag=1", *INVALID)
    assert line.endswith("the last was 0")
