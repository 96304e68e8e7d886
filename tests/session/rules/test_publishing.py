# ruff: noqa: E501 (one packet, one line)
"""Whether the broker has what was published."""

import pytest

from amqpsniff import Engine
from amqpsniff.capture.packets import NO_TIME
from tests.findings.cases import packets_of
from tests.session.rules.found import found
from tests.session.rules.saying import said
from tests.session.script import Script, feed

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
"""
CONFIRMING = (
    OPEN
    + """
    C1: confirm.select
    S1: confirm.select-ok
"""
)


def test_returned_and_confirmed() -> None:
    script = (
        CONFIRMING
        + """
        [p] C1: basic.publish exchange=e routing_key=k mandatory=1 | body=3
        [r] S1: basic.return reply_code=312 reply_text=NO_ROUTE exchange=e routing_key=k | body=3
        S1: basic.ack delivery_tag=1
    """
    )
    assert said(script, "message-unroutable", "publishes-in-doubt") == [
        "message-unroutable r 1: exchange 'e', routing key 'k', published in packet p; the confirm that follows does not mean success"
    ]


def test_returned_without_confirms_or_its_publish() -> None:
    script = "midstream\nC: connection.close-ok\n[r] S1: basic.return reply_code=312 routing_key=k"
    assert said(script, "message-unroutable") == [
        "message-unroutable r 1: the default exchange, routing key 'k'"
    ]


def test_returned_for_another_reason() -> None:
    script = OPEN + "S1: basic.return reply_code=313 reply_text=NO_CONSUMERS routing_key=k"
    assert said(script, "message-unroutable") == []


def test_a_direct_reply_is_returned_and_delivered() -> None:
    script = (
        OPEN
        + """
        C1: basic.publish routing_key=amq.rabbitmq.reply-to.g1h mandatory=1 | correlation_id=1
        S1: basic.return reply_code=312 routing_key=amq.rabbitmq.reply-to.g1h | correlation_id=1
    """
    )
    assert said(script, "message-unroutable") == []
    assert said(script.replace("g1h", "").replace("to. ", "to "), "message-unroutable")


def test_mandatory_and_routed() -> None:
    script = (
        CONFIRMING + "C1: basic.publish routing_key=k mandatory=1\nS1: basic.ack delivery_tag=1"
    )
    assert said(script, "message-unroutable", "publish-rejected") == []


def test_rejected() -> None:
    script = (
        CONFIRMING
        + """
        C1: basic.publish routing_key=k
        [p2] C1: basic.publish routing_key=k
        [p3] C1: basic.publish routing_key=k mandatory=1
        S1: basic.ack delivery_tag=1
        [nack] S1: basic.nack delivery_tag=3 multiple=1
    """
    )
    assert said(script, "publish-rejected") == [
        "publish-rejected nack 1 x2: publish 2 of the channel in packet p2 to the default exchange, routing key 'k'"
    ]


@pytest.mark.parametrize(
    ("arguments", "exchange", "words"),
    [
        ('{"x-max-length": 20, "x-overflow": "reject-publish"}', "", "; queue 'q' was declared with x-max-length 20, x-overflow reject-publish"),
        ('{"x-max-length-bytes": 9}', "e", "; queue 'q' was declared with x-max-length-bytes 9"),
        ('{"x-max-length": 20}', "f", ""),
        ('{"x-max-priority": 20}', "", ""),
    ],
)  # fmt: skip
def test_the_limit_of_a_queue_that_rejects(arguments: str, exchange: str, words: str) -> None:
    script = (
        CONFIRMING
        + f"""
        C1: queue.declare queue=q arguments='{arguments}'
        S1: queue.declare-ok
        C1: exchange.declare exchange=e type=direct
        S1: exchange.declare-ok
        C1: queue.bind queue=q exchange=e routing_key=q
        S1: queue.bind-ok
        C1: basic.publish exchange={exchange or "''"} routing_key=q | body=1
        S1: basic.nack delivery_tag=1
    """
    )
    (line,) = said(script, "publish-rejected")
    assert line.endswith(f"routing key 'q'{words}")


def test_unprotected() -> None:
    script = OPEN + "[p1] C1: basic.publish\n[p2] C1: basic.publish"
    assert said(script, "publishes-unprotected") == [
        "publishes-unprotected p1 - x2: user 'guest' from 10.0.0.1"
    ]


def test_unprotected_on_a_channel_that_is_opened_again() -> None:
    """One finding for all channels of a client."""
    again = "C1: channel.close\nS1: channel.close-ok\nC1: channel.open\nS1: channel.open-ok\n"
    script = OPEN + "[p1] C1: basic.publish\n" + again + "[p2] C1: basic.publish\n" + again
    script += "[p3] C1: basic.publish\n"
    assert said(script, "publishes-unprotected") == [
        "publishes-unprotected p1 - x3: user 'guest' from 10.0.0.1"
    ]


def test_protected_or_not_known() -> None:
    for script in (
        CONFIRMING + "C1: basic.publish",
        OPEN + "C1: tx.select\nS1: tx.select-ok\nC1: basic.publish",
        "midstream\nC1: basic.publish\nS1: basic.qos-ok",
        OPEN + "GAP C 100\nC1: basic.publish",
        OPEN + "C1: basic.qos\nS1: basic.qos-ok",
    ):
        assert said(script, "publishes-unprotected") == []


def test_not_confirmed_when_the_channel_was_closed() -> None:
    script = (
        CONFIRMING
        + """
        C1: basic.publish
        [p2] C1: basic.publish
        [p3] C1: basic.publish
        S1: basic.ack delivery_tag=1
        [close] S1: channel.close reply_code=404 reply_text=NOT_FOUND
        C1: channel.close-ok
    """
    )
    assert said(script, "publishes-in-doubt") == [
        (
            "publishes-in-doubt close 1 x2: 2 publishes, numbers 2 to 3 in packets p2 to p3, "
            "when the broker closed it"
        )
    ]


def test_what_the_broker_dropped_is_not_in_doubt() -> None:
    script = CONFIRMING + "[p1] C1: basic.publish\n"
    close = "[close] S1: channel.close reply_code=404 reply_text=NOT_FOUND\n"
    later = "[p2] C1: basic.publish\nC1: channel.close-ok"
    assert said(script + close + later, "publishes-in-doubt") == [
        "publishes-in-doubt close 1: 1 publish, number 1 in packet p1, when the broker closed it"
    ]
    assert (
        said(script + "S1: basic.ack delivery_tag=1\n" + close + later, "publishes-in-doubt") == []
    )


def test_not_confirmed_when_tcp_was_reset() -> None:
    script = CONFIRMING + "[p1] C1: basic.publish\n[rst] RST S"
    assert said(script, "publishes-in-doubt") == [
        "publishes-in-doubt rst 1: 1 publish, number 1 in packet p1, when TCP was reset"
    ]


def test_nothing_in_doubt() -> None:
    for script in (
        CONFIRMING + "C1: basic.publish",  # the capture ends, the connection does not
        CONFIRMING + "C1: basic.publish\nS1: basic.ack delivery_tag=1\nRST S",
        OPEN + "C1: basic.publish\nRST S",
        CONFIRMING + "C1: basic.publish\nGAP S 21\nS: connection.close reply_code=320",
    ):
        assert said(script, "publishes-in-doubt") == []


def test_published_again() -> None:
    script = """
        a.C1: channel.open
        a.S1: channel.open-ok
        a.C1: confirm.select
        [p1] a.C1: basic.publish exchange=e routing_key=k | body=3 message_id=m1
        a.RST S
        b.C1: channel.open
        b.S1: channel.open-ok
        [p2] b.C1: basic.publish exchange=e routing_key=k | body=3 message_id=m1
    """
    assert said(script, "publish-repeated") == [
        "publish-repeated p2 1: message-id 'm1' to exchange 'e', routing key 'k'; first in packet p1"
    ]


def test_nobody_knows_when_a_publish_without_a_time_was() -> None:
    """A Simple Packet Block has none: the message may come again on purpose."""
    publish = "C1: basic.publish exchange=e routing_key=k | body=3 message_id=m1\n"
    script = Script(OPEN + publish + publish)
    assert found(script, "publish-repeated")
    script.packets[-2] = script.packets[-2]._replace(ts_ns=NO_TIME)
    assert "publish-repeated" not in {one.code for one in feed(script).engine.findings()}


def test_other_messages() -> None:
    first = "C1: basic.publish exchange=e routing_key=k | body=3 message_id=m1\n"
    for then in (
        "C1: basic.publish exchange=e routing_key=k | body=3 message_id=m2",
        "C1: basic.publish exchange=e routing_key=l | body=3 message_id=m1",
        "C1: basic.publish exchange=f routing_key=k | body=3 message_id=m1",
        "@+301000ms C1: basic.publish exchange=e routing_key=k | body=3 message_id=m1",
        "S1: basic.nack delivery_tag=1\n" + first,
    ):
        assert said(CONFIRMING + first + then, "publish-repeated") == []
    without_id = "C1: basic.publish exchange=e routing_key=k | body=3\n"
    assert said(OPEN + without_id + without_id, "publish-repeated") == []


def test_a_message_that_came_back_may_be_sent_again() -> None:
    publish = "C1: basic.publish exchange=e routing_key=k mandatory=1 | body=3 message_id=m1\n"
    back = "S1: basic.return reply_code=312 exchange=e routing_key=k | body=3 message_id=m1\n"
    assert said(OPEN + publish + back + publish, "publish-repeated") == []


@pytest.mark.parametrize(
    ("lost", "times"),
    [("", 2), ("GAP S 21\n", 1), ("S1: basic.ack delivery_tag=1\nGAP C 30\n", 2)],
)
@pytest.mark.parametrize("again", ["a.C1:", "b.C1: channel.open\nb.S1: channel.open-ok\nb.C1:"])
def test_a_refusal_that_may_be_missing(lost: str, times: int, again: str) -> None:
    """In what was lost of the broker's frames between a publish and the next one like it."""
    publish = "basic.publish exchange=e routing_key=k | body=3 message_id=m1\n"
    script = CONFIRMING + f"C1: {publish}{lost}{again} {publish}@+9000ms S: connection.unblocked\n"
    assert len(said(script, "publish-repeated")) == times - 1
    later = script + f"a.C1: {publish}"  # of the second one nothing is missing
    assert len(said(later, "publish-repeated")) >= 1


def test_a_broker_that_was_never_captured() -> None:
    publish = "C1: basic.publish exchange=e routing_key=k | body=3 message_id=m1\n"
    assert not said("midstream\n" + publish + publish, "publish-repeated")


def test_a_confirm_captured_before_its_publish() -> None:
    script = CONFIRMING + "S1: basic.ack delivery_tag=1\nC1: basic.publish\nC: connection.close"
    assert said(script, "publishes-in-doubt") == []


def test_published_again_and_again() -> None:
    publish = "C1: basic.publish exchange=e routing_key=k | body=3 message_id=m1\n"
    script = OPEN + f"[p1] {publish}[p2] {publish}{publish}[p4] {publish}"
    (line,) = said(script, "publish-repeated")
    assert line.startswith("publish-repeated p2 1 x3: ")
    row = found(Script(script), "publish-repeated")
    assert row is not None
    assert row["last_packet_number"] == Script(script).labels["p4"]


def test_rejected_on_its_way_to_nowhere() -> None:
    script = CONFIRMING + "[p] C1: basic.publish exchange=e\n[nack] S1: basic.nack delivery_tag=1"
    assert said(script, "publish-rejected") == [
        "publish-rejected nack 1: publish 1 of the channel in packet p to exchange 'e'"
    ]


def test_what_is_in_doubt_when_the_connection_is_closed() -> None:
    """By the broker: what was sent before. By the client: all."""
    script = CONFIRMING + "[p1] C1: basic.publish\n"
    close = "[close] {}: connection.close reply_code=320\n"
    later = "C1: basic.publish\nC: connection.close-ok\n"
    (line,) = said(script + close.format("S") + later, "publishes-in-doubt")
    assert ": 1 publish, number 1 in packet p1, when the broker closed it" in line
    later = "C1: basic.publish\n" + close.format("C") + "S: connection.close-ok"
    (line,) = said(script + later, "publishes-in-doubt")
    assert " x2: 2 publishes, numbers 1 to 2 in packets " in line


def test_confirms_that_were_not_captured() -> None:
    engine = Engine()
    for packet in packets_of(CONFIRMING + "C1: basic.publish\nRST C"):
        if packet.octets[12:16] == b"\n\0\0\1":  # what the client sent
            engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type)
    engine.finish()
    codes = {finding.code for finding in engine.findings()}
    assert "publishes-in-doubt" not in codes


def test_rejected_on_its_way_somewhere() -> None:
    """Where it was to come back if it had no route, that is remembered."""
    script = CONFIRMING + "[p] C1: basic.publish exchange=e routing_key=k mandatory=1\n"
    assert said(script + "[nack] S1: basic.nack delivery_tag=1", "publish-rejected") == [
        "publish-rejected nack 1: publish 1 of the channel in packet p to exchange 'e', routing key 'k'"
    ]


def test_a_publish_that_the_broker_refused_is_not_in_doubt() -> None:
    """The close that names basic.publish is its answer; of several it is not known which."""
    close = (
        "[close] S1: channel.close reply_code=406 reply_text=PRECONDITION_FAILED class_id=60 "
        "method_id=40\nC1: channel.close-ok"
    )
    one = CONFIRMING + "[p1] C1: basic.publish\n"
    assert said(one + close, "publishes-in-doubt") == []
    assert said(one + "[p2] C1: basic.publish\n" + close, "publishes-in-doubt") == [
        (
            "publishes-in-doubt close 1 x2: 2 publishes, numbers 1 to 2 in packets p1 to p2, of "
            "which it refused one, and read none after it, when the broker closed it"
        )
    ]
