# ruff: noqa: E501 (one packet, one line)
"""Deliveries and gets: how they are settled."""

import pytest

from tests.session.comparing import CONSUMING, FIVE, check
from tests.session.conftest import Ask
from tests.session.script import Script


def test_each_way_of_settling(ask: Ask) -> None:
    check(
        ask,
        CONSUMING
        + """
        [d1] S1: basic.deliver consumer_tag=c delivery_tag=1 | body=5
        [d2] S1: basic.deliver consumer_tag=c delivery_tag=2 redelivered=1
        [d3] S1: basic.deliver consumer_tag=c delivery_tag=3
        [d4] S1: basic.deliver consumer_tag=c delivery_tag=4
        [d5] S1: basic.deliver consumer_tag=c delivery_tag=5
        [d6] S1: basic.deliver consumer_tag=c delivery_tag=6
        [a3] C1: basic.ack delivery_tag=3
        [a1] C1: basic.nack delivery_tag=1 requeue=1
        [a2] C1: basic.nack delivery_tag=2
        [a4] C1: basic.reject delivery_tag=4 requeue=1
        [a5] C1: basic.reject delivery_tag=5
        """,
        """
        messages:
            d1 deliver queue=q requeued a1 7ms
            d2 deliver queue=q discarded a2 7ms
            d3 deliver queue=q acked a3 4ms
            d4 deliver queue=q requeued a4 6ms
            d5 deliver queue=q discarded a5 6ms
            d6 deliver queue=q unsettled
        channels:
            1.1 opened=open delivered=6 acknowledged=1 unsettled=6/1 consumers=1
        """,
    )


def test_several_at_once(ask: Ask) -> None:
    check(
        ask,
        CONSUMING
        + FIVE
        + """
        [a2] C1: basic.reject delivery_tag=2
        [a3] C1: basic.ack delivery_tag=3 multiple=1
        [a0] C1: basic.nack delivery_tag=0 multiple=1 requeue=1
        [e] S1: basic.deliver consumer_tag=c delivery_tag=6
        """,
        """
        messages:
            d deliver queue=q acked a3 2ms
            d deliver queue=q discarded a2 1ms
            d deliver queue=q acked a3 2ms
            d deliver queue=q requeued a0 3ms
            d deliver queue=q requeued a0 3ms
            e deliver queue=q unsettled
        channels:
            1.1 opened=open delivered=6 acknowledged=2 unsettled=5/1 consumers=1
        """,
    )


def test_acks_that_mean_nothing(ask: Ask) -> None:
    check(
        ask,
        CONSUMING
        + """
        [d1] S1: basic.deliver consumer_tag=c delivery_tag=1
        [a0] C1: basic.ack delivery_tag=0
        [a9] C1: basic.reject delivery_tag=9
        C2: basic.ack delivery_tag=1
        [a1] C1: basic.ack delivery_tag=1
        C1: basic.ack delivery_tag=1
        C1: basic.nack delivery_tag=1 requeue=1
        C1: basic.recover requeue=1
        [d2] S1: basic.deliver consumer_tag=c delivery_tag=2
        [beyond] C1: basic.ack delivery_tag=800 multiple=1
        """,
        """
        messages:
            d1 deliver queue=q -
            d2 deliver queue=q -
        channels:
            1.1 opened=open delivered=2 unsettled=? consumers=1
            2.1 unsettled=? unconfirmed=?
        """,
    )


REFUSED = (
    CONSUMING
    + FIVE
    + """
        [a1] C1: basic.ack delivery_tag=1
        {}
        [a2] C1: basic.ack delivery_tag=2
        [a3] C1: basic.nack delivery_tag=3
"""
)
"""Five deliveries, and an acknowledgement among others that the broker may refuse."""


@pytest.mark.parametrize(
    ("refused", "tag"),
    [
        ("basic.ack delivery_tag=9 multiple=1", 9),
        ("basic.ack delivery_tag=1 multiple=1", 1),
        ("basic.nack delivery_tag=9 multiple=1 requeue=1", 9),
        ("basic.reject delivery_tag=9", 9),
        ("basic.ack delivery_tag=1", 1),
        ("basic.ack delivery_tag=0", 0),
    ],
)
@pytest.mark.parametrize("text", ["reply_text='unknown delivery tag {}'", "reply_text=no"])
def test_what_the_broker_refuses_settles_nothing(
    ask: Ask, refused: str, tag: int, text: str
) -> None:
    """Nor does what the client sent after it; what it sent before takes effect."""
    check(
        ask,
        REFUSED.format(f"C1: {refused}")
        + f"""
        C1: basic.recover requeue=1
        [end] S1: channel.close reply_code=406 {text.format(tag)} class_id=60 method_id=80
        C1: channel.close-ok
        """,
        f"""
        messages:
            d deliver queue=q acked a1 1ms
            d deliver queue=q unsettled
            d deliver queue=q unsettled
            d deliver queue=q unsettled
            d deliver queue=q unsettled
        channels:
            1.1 opened=open closed=end delivered=5 acknowledged=1 unsettled=5/4 consumers=1 closed_by=server close_code=406 close_text={text.format(tag)[11:]} close_method=basic.ack
        """,
    )


@pytest.mark.parametrize(
    "then",
    [
        "@+3000ms S1: basic.deliver consumer_tag=c delivery_tag=6",
        "C1: channel.close\nS1: channel.close-ok",
        "C0: connection.close\nS0: connection.close-ok",
    ],
)
def test_what_the_broker_does_not_refuse_takes_effect(ask: Ask, then: str) -> None:
    """It goes on for long, or has read everything before the close."""
    made = Script(REFUSED.format("[all] C1: basic.ack delivery_tag=9 multiple=1") + then)
    outcomes = [row["outcome"] for row in ask(made).messages]
    assert outcomes[:5] == ["acked"] * 5


@pytest.mark.parametrize(
    "then",
    [
        "",
        "GAP S 21",
        "S1: channel.close reply_code=404 class_id=50 method_id=10",
        "S0: connection.close reply_code=320",
    ],
)
def test_what_the_broker_may_have_refused_has_no_outcome(ask: Ask, then: str) -> None:
    made = Script(REFUSED.format("C1: basic.ack delivery_tag=9 multiple=1") + then)
    rows = ask(made)
    assert [row["outcome"] for row in rows.messages] == ["acked"] + 4 * [None]
    assert [row["unsettled_end"] for row in rows.channels] == [None]


def _delivered(*tags: int) -> str:
    return "".join(f"S1: basic.deliver consumer_tag=c delivery_tag={tag}\n" for tag in tags)


@pytest.mark.parametrize("multiple", [0, 1])
def test_the_acknowledgement_of_a_delivery_that_is_lost_is_not_refused(
    ask: Ask, multiple: int
) -> None:
    """Those of others take effect at once, whatever is lost next."""
    script = f"""
        GAP S 21
        {_delivered(3, 4)}
        C1: basic.ack delivery_tag=2 multiple={multiple}
        C1: basic.ack delivery_tag=3
        GAP S 21
    """
    rows = ask(Script(CONSUMING + _delivered(1) + script))
    assert [row["outcome"] for row in rows.messages][1] == "acked"


@pytest.mark.parametrize(
    ("then", "outcome"),
    [(_delivered(6), "acked"), ("", None), ("C1: channel.close\nS1: channel.close-ok", None)],
)
def test_a_loss_may_hide_what_the_broker_refused_until_it_delivers_again(
    ask: Ask, then: str, outcome: str | None
) -> None:
    """A channel that it had closed would have no later delivery."""
    script = REFUSED.format("C1: basic.ack delivery_tag=9") + "GAP S 21\n" + then
    rows = ask(Script(f"{script}\n@+3000ms C1: basic.ack delivery_tag=4"))
    assert rows.messages[1]["outcome"] == outcome


@pytest.mark.parametrize("close", ["C1: channel.close", "C0: connection.close"])
def test_what_is_sent_after_a_close_settles_nothing(ask: Ask, close: str) -> None:
    made = Script(CONSUMING + FIVE + f"C1: basic.ack delivery_tag=1\n{close}\n"
                  "C1: basic.ack delivery_tag=2\nC1: basic.nack delivery_tag=4 multiple=1")  # fmt: skip
    assert [row["outcome"] for row in ask(made).messages] == ["acked"] + 4 * ["unsettled"]


def test_no_ack(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        S1: channel.open-ok
        C1: basic.consume queue=q consumer_tag=c no_ack=1
        S1: basic.consume-ok consumer_tag=c
        C1: basic.consume queue=r consumer_tag=d
        S1: basic.consume-ok consumer_tag=d
        [d1] S1: basic.deliver consumer_tag=c delivery_tag=1
        [d2] S1: basic.deliver consumer_tag=d delivery_tag=2
        [a] C1: basic.ack delivery_tag=2 multiple=1
        """,
        """
        messages:
            d1 deliver queue=q automatic d1 0ms
            d2 deliver queue=r acked a 1ms
        channels:
            1.1 opened=open delivered=2 acknowledged=1 unsettled=1/0 consumers=2
        """,
    )


def test_tags_that_the_server_chooses(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        S1: channel.open-ok
        [c1] C1: basic.consume queue=q
        [c2] C1: basic.consume queue=r no_ack=1
        [ok1] S1: basic.consume-ok consumer_tag=amq.ctag-1
        [d1] S1: basic.deliver consumer_tag=amq.ctag-1 delivery_tag=1
        [ok2] S1: basic.consume-ok consumer_tag=amq.ctag-2
        [d2] S1: basic.deliver consumer_tag=amq.ctag-2 delivery_tag=2
        C1: basic.consume queue=s no_wait=1
        [d3] S1: basic.deliver consumer_tag=amq.ctag-3 delivery_tag=3
        [a] C1: basic.ack delivery_tag=3
        [d4] S1: basic.deliver consumer_tag=amq.ctag-3 delivery_tag=4
        """,
        """
        messages:
            d1 deliver queue=q unsettled
            d2 deliver queue=r automatic d2 0ms
            d3 deliver acked a 1ms
            d4 deliver -
        replies:
            open channel.open -> #9 1ms
            c1 basic.consume -> ok1 2ms
            c2 basic.consume -> ok2 3ms
        channels:
            1.1 opened=open delivered=4 acknowledged=1 unsettled=? consumers=3
        """,
    )


def test_gets(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        S1: channel.open-ok
        [g1] C1: basic.get queue=q
        [g2] C1: basic.get queue=r no_ack=1
        [g3] C1: basic.get queue=s
        [m1] S1: basic.get-ok delivery_tag=1 message_count=3 | body=4
        [e2] S1: basic.get-empty
        [m3] S1: basic.get-ok delivery_tag=2
        [a] C1: basic.ack delivery_tag=1
        [g4] C1: basic.get queue=r no_ack=1
        [m4] S1: basic.get-ok delivery_tag=3
        [m5] S1: basic.get-ok delivery_tag=4
        """,
        """
        messages:
            m1 get-ok queue=q acked a 3ms
            m3 get-ok queue=s unsettled
            m4 get-ok queue=r automatic m4 0ms
            m5 get-ok -
        replies:
            open channel.open -> #9 1ms
            g1 basic.get -> m1 3ms
            g2 basic.get -> e2 3ms
            g3 basic.get -> m3 3ms
            g4 basic.get -> m4 1ms
        channels:
            1.1 opened=open delivered=4 acknowledged=1 unsettled=?
        """,
    )


def test_recover(ask: Ask) -> None:
    check(
        ask,
        CONSUMING
        + FIVE
        + """
        [a] C1: basic.ack delivery_tag=2
        C1: basic.recover
        [r] C1: basic.recover requeue=1
        S1: basic.recover-ok
        [e] S1: basic.deliver consumer_tag=c delivery_tag=6 redelivered=1
        [s] C1: basic.recover-async requeue=1
        [f] S1: basic.deliver consumer_tag=c delivery_tag=7 redelivered=1
        """,
        """
        messages:
            d deliver queue=q requeued r 3ms
            d deliver queue=q acked a 1ms
            d deliver queue=q requeued r 3ms
            d deliver queue=q requeued r 3ms
            d deliver queue=q requeued r 3ms
            e deliver queue=q requeued s 1ms
            f deliver queue=q unsettled
        """,
    )


def test_unsettled_at_the_end_of_a_channel(ask: Ask) -> None:
    check(
        ask,
        CONSUMING
        + """
        [d1] S1: basic.deliver consumer_tag=c delivery_tag=1
        [end] C1: channel.close reply_code=200
        [d2] S1: basic.deliver consumer_tag=c delivery_tag=2
        S1: channel.close-ok
        [again] C1: channel.open
        S1: channel.open-ok
        C1: basic.ack delivery_tag=1
        C1: basic.get queue=r
        [m] S1: basic.get-ok delivery_tag=1
        [d3] S1: basic.deliver consumer_tag=c delivery_tag=2
        """,
        """
        messages:
            d1 deliver queue=q unsettled
            d2 deliver queue=q unsettled
            m get-ok queue=r unsettled
            d3 deliver -
        channels:
            1.1 opened=open closed=end delivered=2 unsettled=2/2 consumers=1 closed_by=client close_code=200
            1.2 opened=again delivered=2 unsettled=?
        """,
    )


def test_what_the_server_does_not_look_at_any_more(ask: Ask) -> None:
    check(
        ask,
        CONSUMING
        + FIVE
        + """
        C1: basic.ack delivery_tag=1
        [end] S1: channel.close reply_code=406 reply_text=unknown class_id=60 method_id=80
        C1: basic.ack delivery_tag=2
        C1: basic.nack delivery_tag=3
        C1: basic.recover-async requeue=1
        C1: basic.consume queue=r consumer_tag=r no_wait=1
        C1: channel.close-ok
        """,
        """
        messages:
            d deliver queue=q acked #13 1ms
            d deliver queue=q unsettled
            d deliver queue=q unsettled
            d deliver queue=q unsettled
            d deliver queue=q unsettled
        channels:
            1.1 opened=open closed=end delivered=5 acknowledged=1 unsettled=5/4 consumers=1 closed_by=server close_code=406 close_text=unknown close_method=basic.ack
        """,
    )


def test_a_tag_that_comes_again(ask: Ask) -> None:
    check(
        ask,
        CONSUMING
        + """
        [d1] S1: basic.deliver consumer_tag=c delivery_tag=1
        [d2] S1: basic.deliver consumer_tag=c delivery_tag=1
        [a] C1: basic.ack delivery_tag=1
        """,
        """
        messages:
            d1 deliver queue=q unsettled
            d2 deliver queue=q acked a 1ms
        channels:
            1.1 opened=open delivered=2 acknowledged=1 unsettled=1/0 consumers=1
        """,
    )


def test_large_tags(ask: Ask) -> None:
    check(
        ask,
        CONSUMING
        + """
        [d1] S1: basic.deliver consumer_tag=c delivery_tag=9000000000000000000
        [d2] S1: basic.deliver consumer_tag=c delivery_tag=9000000000000000001
        [a] C1: basic.ack delivery_tag=9000000000000000000 multiple=1
        """,
        """
        messages:
            d1 deliver queue=q acked a 2ms
            d2 deliver queue=q unsettled
        """,
    )


HOLE = (
    CONSUMING
    + FIVE
    + """
        GAP C 21
        C1: basic.qos prefetch_count=9
        [e] S1: basic.deliver consumer_tag=c delivery_tag=6
    """
)


def test_several_at_once_after_a_hole_that_may_have_settled_them(ask: Ask) -> None:
    """Only the delivery that is named, and those that came after the hole, are known to be."""
    check(
        ask,
        HOLE
        + """
        [a2] C1: basic.ack delivery_tag=2 multiple=1
        [a3] C1: basic.ack delivery_tag=3
        [a0] C1: basic.nack delivery_tag=0 multiple=1
        C1: channel.close
        S1: channel.close-ok
        """,
        """
        messages:
            d deliver queue=q -
            d deliver queue=q acked a2 4ms
            d deliver queue=q acked a3 5ms
            d deliver queue=q -
            d deliver queue=q -
            e deliver queue=q discarded a0 3ms
        """,
    )
    check(
        ask,
        HOLE
        + """
        [r] C1: basic.recover requeue=1
        """,
        """
        messages:
            d deliver queue=q -
            d deliver queue=q -
            d deliver queue=q -
            d deliver queue=q -
            d deliver queue=q -
            e deliver queue=q requeued r 1ms
        """,
    )
