# ruff: noqa: E501 (one packet, one line)
"""Publishes: numbers and confirms."""

from tests.session.comparing import CONFIRMING, check
from tests.session.conftest import Ask


def test_confirms_one_by_one(ask: Ask) -> None:
    check(
        ask,
        CONFIRMING
        + """
        [p1] C1: basic.publish exchange=e routing_key=k | body=5
        [p2] C1: basic.publish exchange=e routing_key=k
        [a2] S1: basic.ack delivery_tag=2
        [a1] @+10ms S1: basic.nack delivery_tag=1
        [p3] C1: basic.publish exchange=e routing_key=k
        """,
        """
        messages:
            p1 publish number=1 rejected a1 12ms
            p2 publish number=2 confirmed a2 1ms
            p3 publish number=3 unconfirmed
        channels:
            1.1 opened=open mode=confirm published=3 confirmed=1 unconfirmed=2/1
        """,
    )


def test_multiple_confirms(ask: Ask) -> None:
    check(
        ask,
        CONFIRMING
        + """
        [p] C1: basic.publish exchange=e
        & C1: basic.publish exchange=e
        & C1: basic.publish exchange=e
        & C1: basic.publish exchange=e
        & C1: basic.publish exchange=e
        [one] S1: basic.ack delivery_tag=2
        [many] S1: basic.nack delivery_tag=3 multiple=1
        [all] S1: basic.ack delivery_tag=0 multiple=1
        [q] C1: basic.publish exchange=e
        """,
        """
        messages:
            p publish number=1 rejected many 2ms
            p publish number=2 confirmed one 1ms
            p publish number=3 rejected many 2ms
            p publish number=4 confirmed all 3ms
            p publish number=5 confirmed all 3ms
            q publish number=6 unconfirmed
        channels:
            1.1 opened=open mode=confirm published=6 confirmed=3 unconfirmed=5/1
        """,
    )


def test_several_at_once_after_a_hole_that_may_have_answered_them(ask: Ask) -> None:
    """Only the publish that is named, and those that came after the hole, are known to be."""
    check(
        ask,
        CONFIRMING
        + """
        [p] C1: basic.publish exchange=e
        & C1: basic.publish exchange=e
        & C1: basic.publish exchange=e
        GAP S 21
        [two] S1: basic.ack delivery_tag=2 multiple=1
        [q] C1: basic.publish exchange=e
        [three] S1: basic.ack delivery_tag=3
        [all] S1: basic.ack delivery_tag=0 multiple=1
        """,
        """
        messages:
            p publish number=1 -
            p publish number=2 confirmed two 2ms
            p publish number=3 confirmed three 4ms
            q publish number=4 confirmed all 2ms
        channels:
            1.1 opened=open mode=confirm published=4 confirmed=3 unsettled=? unconfirmed=?
        """,
    )


def test_tags_that_mean_nothing(ask: Ask) -> None:
    check(
        ask,
        CONFIRMING
        + """
        [p1] C1: basic.publish exchange=e
        S1: basic.ack delivery_tag=0
        S1: basic.ack delivery_tag=9
        [a] S1: basic.ack delivery_tag=1
        S1: basic.nack delivery_tag=1
        S1: basic.nack delivery_tag=1 multiple=1
        [p2] C1: basic.publish exchange=e
        [beyond] S1: basic.ack delivery_tag=900 multiple=1
        """,
        """
        messages:
            p1 publish number=1 confirmed a 3ms
            p2 publish number=2 confirmed beyond 1ms
        """,
    )


def test_numbering_begins_with_the_request(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        S1: channel.open-ok
        [p0] C1: basic.publish exchange=e
        C1: confirm.select
        [p1] C1: basic.publish exchange=e
        S1: confirm.select-ok
        [p2] C1: basic.publish exchange=e
        C1: confirm.select no_wait=1
        [p3] C1: basic.publish exchange=e
        [a] S1: basic.ack delivery_tag=1
        """,
        """
        messages:
            p0 publish -
            p1 publish number=1 confirmed a 5ms
            p2 publish number=2 unconfirmed
            p3 publish number=3 unconfirmed
        channels:
            1.1 opened=open mode=confirm published=4 confirmed=1 unconfirmed=3/2
        """,
    )


def test_every_incarnation_begins_at_one(ask: Ask) -> None:
    check(
        ask,
        CONFIRMING
        + """
        [p1] C1: basic.publish exchange=e
        C1: channel.close reply_code=200
        [late] S1: basic.ack delivery_tag=1
        S1: channel.close-ok
        C1: channel.open
        [p2] C1: basic.publish exchange=e
        C1: confirm.select no_wait=1
        [p3] C1: basic.publish exchange=e
        [a3] S1: basic.ack delivery_tag=1
        C1: channel.close reply_code=200
        S1: channel.close-ok
        C1: channel.open
        S1: basic.ack delivery_tag=1
        """,
        """
        messages:
            p1 publish number=1 confirmed late 2ms
            p2 publish -
            p3 publish number=1 confirmed a3 1ms
        """,
    )


def test_unconfirmed_when_the_server_closes(ask: Ask) -> None:
    check(
        ask,
        CONFIRMING
        + """
        [p1] C1: basic.publish exchange=gone
        [p2] C1: basic.publish exchange=gone
        [end] S1: channel.close reply_code=404 class_id=60 method_id=40
        [p3] C1: basic.publish exchange=gone
        C1: channel.close-ok
        """,
        """
        messages:
            p1 publish number=1 unconfirmed
            p2 publish number=2 unconfirmed
            p3 publish number=3 unconfirmed
        channels:
            1.1 opened=open closed=end mode=confirm published=3 unconfirmed=3/3 closed_by=server close_code=404 close_method=basic.publish
        """,
    )


def test_confirm_mode_of_an_older_channel(ask: Ask) -> None:
    check(
        ask,
        """
        midstream
        [p0] C1: basic.publish exchange=e
        C1: confirm.select
        S1: confirm.select-ok
        [p1] C1: basic.publish exchange=e
        [p2] C1: basic.publish exchange=e
        [a] S1: basic.ack delivery_tag=1
        """,
        """
        messages:
            p0 publish -
            p1 publish number=1 confirmed a 2ms
            p2 publish number=2 unconfirmed
        channels:
            1.1 mode=confirm published=3 confirmed=1 unsettled=? unconfirmed=2/1
        """,
    )


def test_mode_that_is_proved_by_its_answer_only(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        S1: channel.open-ok
        GAP C 12
        S1: confirm.select-ok
        [p] C1: basic.publish exchange=e
        S1: basic.ack delivery_tag=1
        C1: confirm.select
        [q] C1: basic.publish exchange=e
        """,
        """
        messages:
            p publish -
            q publish -
        channels:
            1.1 opened=open mode=confirm published=2 unsettled=? unconfirmed=?
        """,
    )


def test_numbers_end_with_a_client_loss(ask: Ask) -> None:
    check(
        ask,
        CONFIRMING
        + """
        [p1] C1: basic.publish exchange=e
        [p2] C1: basic.publish exchange=e
        GAP C 50
        [p3] C1: basic.publish exchange=e routing_key=k mandatory=1
        [p4] C1: basic.publish exchange=e
        [a1] S1: basic.ack delivery_tag=1
        [r] S1: basic.return reply_code=312 exchange=e routing_key=k
        [a2] S1: basic.ack delivery_tag=5 multiple=1
        """,
        """
        messages:
            p1 publish number=1 confirmed a1 5ms
            p2 publish number=2 confirmed a2 6ms
            p3 publish returned r 3ms
            p4 publish -
            r return -
        channels:
            1.1 opened=open mode=confirm published=4 confirmed=2 returned=1 unsettled=? unconfirmed=?
        """,
    )


def test_numbers_go_on_after_a_server_loss(ask: Ask) -> None:
    check(
        ask,
        CONFIRMING
        + """
        [p1] C1: basic.publish exchange=e
        [p2] C1: basic.publish exchange=e
        GAP S 21
        [p3] C1: basic.publish exchange=e
        [a] S1: basic.ack delivery_tag=3
        """,
        """
        messages:
            p1 publish number=1 -
            p2 publish number=2 -
            p3 publish number=3 confirmed a 1ms
        """,
    )
