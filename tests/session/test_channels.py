# ruff: noqa: E501 (one packet, one line)
"""Channels: opening, closing by either side, incarnations, requests and their replies, losses."""

from tests.session.comparing import check
from tests.session.conftest import Ask


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
            1.1 opened=open closed=mine closed_by=client close_code=200
        """,
    )


def test_replies_around_a_close(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        C1: channel.open
        S1: channel.open-ok
        [a] C1: queue.declare queue=a
        [b] C1: queue.bind queue=a exchange=e
        [flow] S1: channel.flow active=1
        [close] C1: channel.close reply_code=200
        [ok] S1: queue.declare-ok queue=a
        [okay] S1: channel.close-ok
        S1: queue.bind-ok
        C1: channel.flow-ok active=1
        C2: channel.open
        S2: channel.open-ok
        [c] C2: queue.declare queue=a
        [close2] S2: channel.close reply_code=405
        [d] C2: queue.bind queue=a exchange=e
        S2: queue.declare-ok queue=a
        S2: queue.bind-ok
        """,
        """
        replies:
            a queue.declare -> ok 4ms
            b queue.bind -> -
            flow channel.flow -> -
            close channel.close -> okay 2ms
            c queue.declare -> -
            close2 channel.close -> -
            d queue.bind -> -
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


def test_replies_come_in_order_for_each_method(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        C1: channel.open
        S1: channel.open-ok
        [a] C1: queue.declare queue=a
        & C1: queue.bind queue=a exchange=e
        [b] C1: queue.declare queue=b
        [c] C2: queue.declare queue=c
        [ok1] S1: queue.declare-ok queue=a
        & S1: queue.bind-ok
        [ok2] S1: queue.declare-ok queue=b
        S1: queue.declare-ok queue=nobody-asked
        """,
        """
        replies:
            a queue.declare -> ok1 3ms
            a queue.bind -> ok1 3ms
            b queue.declare -> ok2 3ms
            c queue.declare -> -
        """,
    )


def test_no_wait_gets_no_reply(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        C1: channel.open
        S1: channel.open-ok
        [a] C1: queue.declare queue=a no_wait=1
        [b] C1: queue.declare queue=b
        [c] C1: exchange.declare exchange=x no_wait=1
        [d] C1: queue.bind queue=b exchange=x no_wait=1
        [e] C1: exchange.delete exchange=x no_wait=1
        [ok] S1: queue.declare-ok queue=b
        """,
        """
        replies:
            a queue.declare -> -
            b queue.declare -> ok 4ms
            c exchange.declare -> -
            d queue.bind -> -
            e exchange.delete -> -
        """,
    )


def test_every_kind_of_request(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        C1: channel.open
        S1: channel.open-ok
        [a] C1: exchange.declare exchange=x type=topic
        [a2] S1: exchange.declare-ok
        [b] C1: exchange.bind destination=x source=y
        [b2] S1: exchange.bind-ok
        [c] C1: exchange.unbind destination=x source=y
        [c2] S1: exchange.unbind-ok
        [d] C1: queue.unbind queue=q exchange=x
        [d2] S1: queue.unbind-ok
        [e] C1: queue.purge queue=q
        [e2] S1: queue.purge-ok message_count=4
        [f] C1: queue.delete queue=q
        [f2] S1: queue.delete-ok
        [g] C1: exchange.delete exchange=x
        [g2] S1: exchange.delete-ok
        [h] C1: basic.qos prefetch_count=1
        [h2] S1: basic.qos-ok
        [i] C1: basic.recover requeue=1
        [i2] S1: basic.recover-ok
        [j] C1: access.request realm=/data
        [j2] S1: access.request-ok ticket=1
        [k] C1: basic.recover-async requeue=1
        [l] C1: tx.select
        [l2] S1: tx.select-ok
        [m] C1: tx.commit
        [m2] S1: tx.commit-ok
        [n] C1: tx.rollback
        [n2] S1: tx.rollback-ok
        """,
        """
        replies:
            a exchange.declare -> a2 1ms
            b exchange.bind -> b2 1ms
            c exchange.unbind -> c2 1ms
            d queue.unbind -> d2 1ms
            e queue.purge -> e2 1ms
            f queue.delete -> f2 1ms
            g exchange.delete -> g2 1ms
            h basic.qos -> h2 1ms
            i basic.recover -> i2 1ms
            j access.request -> j2 1ms
            l tx.select -> l2 1ms
            m tx.commit -> m2 1ms
            n tx.rollback -> n2 1ms
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


def test_replies_after_a_loss(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        C1: channel.open
        S1: channel.open-ok
        [a] C1: queue.declare queue=a
        [flow] S1: channel.flow active=1
        GAP S 40
        [b] C1: queue.declare queue=b
        [ok] S1: queue.declare-ok queue=b
        [ok2] C1: channel.flow-ok active=1
        S1: queue.declare-ok queue=b
        """,
        """
        replies:
            a queue.declare -> -
            b queue.declare -> ok 1ms
            flow channel.flow -> ok2 4ms
        """,
    )


def test_a_client_loss_keeps_replies(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        C1: channel.open
        S1: channel.open-ok
        [a] C1: queue.declare queue=a
        GAP C 40
        [ok] S1: queue.declare-ok queue=a
        [b] C1: queue.bind queue=a exchange=x
        [ok2] S1: queue.bind-ok
        """,
        """
        replies:
            a queue.declare -> ok 2ms
            b queue.bind -> ok2 1ms
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
