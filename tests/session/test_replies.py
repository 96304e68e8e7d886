"""Requests and their replies: in which order, around closes, and after losses."""

from pathlib import Path

import amqpsniff
from amqpsniff.spec.describe import describe
from tests import encoder
from tests.cli.running import write_capture
from tests.session.comparing import check
from tests.session.conftest import Ask
from tests.tcp.wire import Talk


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


def test_requests_before_the_own_close_are_answered(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        C1: channel.open
        S1: channel.open-ok
        [declare] C1: queue.declare queue=q
        [close] C: connection.close reply_code=200
        [declared] S1: queue.declare-ok queue=q
        [ok] S: connection.close-ok
        """,
        """
        replies:
            declare queue.declare -> declared 2ms
            close connection.close -> ok 2ms
        """,
    )


def test_no_reply_after_the_close_of_a_connection(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [one] C1: channel.open
        S1: channel.open-ok
        C1: basic.consume queue=q consumer_tag=c
        S1: basic.consume-ok consumer_tag=c
        [d] S1: basic.deliver consumer_tag=c delivery_tag=1
        [before] C1: queue.bind queue=q exchange=e
        [close] S: connection.close reply_code=541
        [after] C1: queue.declare queue=q
        C1: basic.ack delivery_tag=1
        S1: queue.declare-ok queue=q
        S1: queue.bind-ok
        """,
        """
        messages:
            d deliver queue=q unsettled
        replies:
            one channel.open -> #9 1ms
            before queue.bind -> -
            close connection.close -> -
            after queue.declare -> -
        """,
    )


def test_update_secret(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [one] C: connection.update-secret new_secret=s reason=r
        [two] C: connection.update-secret new_secret=s reason=r
        [ok] S: connection.update-secret-ok
        """,
        """
        replies:
            one connection.update-secret -> ok 2ms
            two connection.update-secret -> -
        """,
    )


def test_closes_that_cross_in_0_8(tmp_path: Path) -> None:
    """Their methods have other numbers there, and both closes are answered all the same."""

    def method(name: str, channel: int = 0) -> bytes:
        row = next(row for row in describe(name) if "0-8" in row.dialects)
        given = {one.name: b"" if one.type in "sS" else 0 for one in row.arguments}
        return encoder.method(
            row, {k: [] if k == "arguments" else v for k, v in given.items()}, channel
        )

    talk = Talk().hands()
    talk.client(encoder.PROTOCOL_HEADERS["0-8"])
    talk.client(method("channel.open", 1))
    talk.client(method("queue.delete", 1))
    talk.client(method("connection.close"))
    talk.server(method("connection.close"))
    talk.server(method("queue.delete-ok", 1))
    talk.client(method("connection.close-ok"))
    talk.server(method("connection.close-ok"))
    capture = amqpsniff.open(write_capture(tmp_path / "a.pcap", talk.goodbye().packets))
    rows = [row for batch in capture.batches("frames") for row in batch.to_pylist()]
    answered = [(row["method"], row["response_ns"] is not None) for row in rows if row["method"]]
    closes = [one for name, one in answered if name == "connection.close"]
    assert closes == [True, True]
    assert ("queue.delete", False) in answered  # nothing is, once the server has closed
