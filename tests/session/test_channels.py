# ruff: noqa: E501 (one packet, one line)
"""Channels: opening, closing by either side, incarnations, modes."""

import pytest

from tests.session.comparing import check
from tests.session.conftest import Ask
from tests.session.script import Script, feed


def test_opened_and_closed_by_the_client(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        [opened] @+2ms S1: channel.open-ok
        [close] C1: channel.close reply_code=200 reply_text=done
        [ok] @+3ms S1: channel.close-ok
        """,
        """
        replies:
            open channel.open -> opened 2ms
            close channel.close -> ok 3ms
        channels:
            1.1 opened=open closed=close closed_by=client close_code=200 close_text=done
        """,
    )


def test_closed_by_the_server(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C5: channel.open
        S5: channel.open-ok
        [declare] C5: queue.declare queue=q passive=1
        [bind] C5: queue.bind queue=q exchange=e routing_key=k
        [close] S5: channel.close reply_code=404 reply_text="NOT_FOUND - no queue" class_id=50 method_id=10
        [late] C5: queue.purge queue=q
        [ok] C5: channel.close-ok
        """,
        """
        replies:
            open channel.open -> #9 1ms
            declare queue.declare -> -
            bind queue.bind -> -
            late queue.purge -> -
            close channel.close -> ok 2ms
        channels:
            5.1 opened=open closed=close closed_by=server close_code=404 close_text='NOT_FOUND - no queue' close_method=queue.declare
        """,
    )


def test_a_close_is_answered_after_the_connection_was_closed(ask: Ask) -> None:
    """The server closed the connection and still answers the channel.close that came before."""
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        S1: channel.open-ok
        [declare] C1: queue.declare queue=q
        [close] C1: channel.close reply_code=200 reply_text=done
        [over] S: connection.close reply_code=320 reply_text=over
        [ok] S1: channel.close-ok
        """,
        """
        replies:
            open channel.open -> #9 1ms
            declare queue.declare -> -
            close channel.close -> ok 2ms
            over connection.close -> -
        channels:
            1.1 opened=open closed=close closed_by=client close_code=200 close_text=done
        """,
    )


def test_opened_again(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [one] C1: channel.open
        S1: channel.open-ok
        C1: basic.qos prefetch_count=5
        C1: basic.publish exchange=e
        [end] C1: channel.close reply_code=200
        S1: channel.close-ok
        [two] C1: channel.open
        S1: channel.open-ok
        C1: basic.publish exchange=e
        C1: basic.publish exchange=e
        """,
        """
        channels:
            1.1 opened=one closed=end prefetch_count=5 published=1 closed_by=client close_code=200
            1.2 opened=two published=2
        """,
    )


def test_opened_twice_without_a_close_between(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [one] C1: channel.open
        S1: channel.open-ok
        C1: confirm.select
        [p] C1: basic.publish exchange=e
        [ask] C1: queue.declare queue=q
        [two] C1: channel.open
        S1: queue.declare-ok queue=q
        [ok] S1: channel.open-ok
        S1: basic.ack delivery_tag=1
        FIN C
        """,
        """
        messages:
            p publish number=1 unconfirmed
        replies:
            one channel.open -> #9 1ms
            ask queue.declare -> -
            two channel.open -> ok 2ms
        channels:
            1.1 opened=one mode=confirm published=1 unconfirmed=1/1
            1.2 opened=two closed_by=fin
        """,
    )


def test_opened_again_in_a_hole(ask: Ask) -> None:
    """Tags begin at 1 again: what comes from there on is of another opening."""
    check(
        ask,
        """
        handshake
        [one] C1: channel.open
        S1: channel.open-ok
        C1: basic.consume queue=q consumer_tag=t
        S1: basic.consume-ok consumer_tag=t
        [d1] S1: basic.deliver consumer_tag=t delivery_tag=1 | body=5
        [d2] S1: basic.deliver consumer_tag=t delivery_tag=2 | body=5
        [a1] C1: basic.ack delivery_tag=1
        GAP C 60
        GAP S 60
        [d3] S1: basic.deliver consumer_tag=u delivery_tag=1 | body=5
        [d4] S1: basic.deliver consumer_tag=u delivery_tag=2 | body=5
        """,
        """
        replies:
            one channel.open -> #9 1ms
        messages:
            d1 deliver queue=q acked a1 2ms
            d2 deliver queue=q -
            d3 deliver -
            d4 deliver -
        channels:
            1.1 opened=one delivered=2 acknowledged=1 unsettled=? unconfirmed=? consumers=1
            1.2 delivered=2 unsettled=? unconfirmed=?
        """,
    )


def test_opened_again_by_what_the_server_says(ask: Ask) -> None:
    """A channel.open-ok of an open channel: what the client sent before it is missing."""
    check(
        ask,
        """
        handshake
        [one] C1: channel.open
        S1: channel.open-ok
        C1: basic.consume queue=q consumer_tag=t
        S1: basic.consume-ok consumer_tag=t
        [d1] S1: basic.deliver consumer_tag=t delivery_tag=1 | body=5
        S1: channel.open-ok
        [d2] S1: basic.deliver consumer_tag=t delivery_tag=1 | body=5
        """,
        """
        replies:
            one channel.open -> #9 1ms
        messages:
            d1 deliver queue=q -
            d2 deliver -
        channels:
            1.1 opened=one delivered=1 unsettled=? unconfirmed=? consumers=1
            1.2 delivered=1 unsettled=? unconfirmed=?
        """,
    )


@pytest.mark.parametrize(
    ("lost", "tag", "rows"), [("GAP S 60", 1, 1), ("GAP C 60", 3, 1), ("GAP C 60", 2, 2)]
)
def test_tags_that_show_no_other_opening(lost: str, tag: int, rows: int) -> None:
    """Without a loss of the client's frames its channel.open would have been seen."""
    text = (
        "handshake\nC1: channel.open\nS1: channel.open-ok\n"
        "S1: basic.deliver consumer_tag=t delivery_tag=1 | body=5\n"
        "S1: basic.deliver consumer_tag=t delivery_tag=2 | body=5\n"
        f"{lost}\nS1: basic.deliver consumer_tag=t delivery_tag={tag} | body=5\n"
    )
    engine = feed(Script(text)).engine
    assert len(engine.take("channels").to_pylist()) == rows


def test_both_sides_close_at_once(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        S1: channel.open-ok
        [mine] C1: channel.close reply_code=200
        [yours] S1: channel.close reply_code=406 reply_text=bad class_id=60 method_id=80
        [ok] C1: channel.close-ok
        [okay] S1: channel.close-ok
        """,
        """
        replies:
            open channel.open -> #9 1ms
            mine channel.close -> okay 3ms
            yours channel.close -> ok 1ms
        channels:
            1.1 opened=open closed=yours closed_by=server close_code=406 close_text=bad close_method=basic.ack
        """,
    )


def test_a_close_that_was_not_answered(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        S1: channel.open-ok
        [close] C1: channel.close reply_code=200
        [again] C1: channel.open
        S1: channel.close-ok
        S1: channel.open-ok
        C1: basic.publish exchange=e
        RST C
        """,
        """
        replies:
            open channel.open -> #9 1ms
            close channel.close -> -
            again channel.open -> #13 2ms
        channels:
            1.1 opened=open closed=close closed_by=client close_code=200
            1.2 opened=again published=1 closed_by=rst
        """,
    )


def test_a_close_ok_of_nothing(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        S7: channel.close-ok
        [open] C1: channel.open
        S1: channel.open-ok
        S1: channel.close-ok
        C1: channel.close-ok
        C1: basic.publish exchange=e
        """,
        """
        channels:
            1.1 opened=open published=1
        """,
    )


def test_a_channel_without_an_opening(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        C1: basic.publish exchange=e
        [end] S1: channel.close reply_code=504 class_id=60 method_id=40
        C1: channel.close-ok
        [open] C1: channel.open
        """,
        """
        channels:
            1.1 closed=end published=1 unsettled=? unconfirmed=? closed_by=server close_code=504 close_method=basic.publish
            1.2 opened=open
        """,
    )


def test_a_method_that_is_none(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        [end] S1: channel.close reply_code=503 class_id=99 method_id=1
        """,
        """
        channels:
            1.1 opened=open closed=end closed_by=server close_code=503
        """,
    )


def test_flow_of_both_sides(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        C1: channel.open
        S1: channel.open-ok
        [mine] C1: channel.flow active=1
        [yours] S1: channel.flow active=0
        [two] @+4ms S1: channel.flow-ok active=1
        [one] @+5ms C1: channel.flow-ok active=0
        """,
        """
        replies:
            mine channel.flow -> two 5ms
            yours channel.flow -> one 9ms
        """,
    )


def test_the_wrong_side_changes_nothing(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        S1: channel.open-ok
        C1: confirm.select
        S1: confirm.select-ok
        [p] C1: basic.publish exchange=e
        [q] S1: queue.declare queue=q
        [r] C1: queue.declare-ok queue=q
        S1: basic.reject delivery_tag=1
        """,
        """
        messages:
            p publish number=1 unconfirmed
        replies:
            open channel.open -> #9 1ms
            q queue.declare -> -
        channels:
            1.1 opened=open mode=confirm published=1 unconfirmed=1/1
        """,
    )


def test_qos(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [one] C1: channel.open
        C1: basic.qos prefetch_count=10
        C1: basic.qos prefetch_count=300 global=1
        [two] C2: channel.open
        C2: basic.qos prefetch_count=300
        C2: basic.qos prefetch_count=4
        [end] S2: channel.close reply_code=406
        C2: basic.qos prefetch_count=5
        """,
        """
        channels:
            1.1 opened=one prefetch_count=300
            2.1 opened=two closed=end prefetch_count=4 closed_by=server close_code=406
        """,
    )


def test_the_first_mode_stays(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [one] C1: channel.open
        C1: tx.select
        S1: tx.select-ok
        C1: confirm.select
        C1: basic.publish exchange=e
        [two] C2: channel.open
        C2: confirm.select
        C2: tx.select
        C2: basic.publish exchange=e
        """,
        """
        messages:
            #12 publish -
            #16 publish number=1 unconfirmed
        channels:
            1.1 opened=one mode=tx published=1
            2.1 opened=two mode=confirm published=1 unconfirmed=1/1
        """,
    )


def test_depths_without_a_word_of_the_server(ask: Ask) -> None:
    """What it confirmed and delivered is not known, where only the client was captured."""
    client = """
        midstream
        [open] C1: channel.open
        C1: confirm.select
        [p] C1: basic.publish
        """
    unknown = "unsettled=? unconfirmed=?"
    check(ask, client, f"channels:\n 1.1 opened=open mode=confirm published=1 {unknown}")
    check(
        ask,
        client + "S2: channel.open-ok",
        f"channels:\n 1.1 opened=open mode=confirm published=1 unconfirmed=1/1\n 2.1 {unknown}",
    )
