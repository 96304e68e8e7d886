"""Consumers: begun and cancelled by either side, and of which queue."""

from tests.session.comparing import CONSUMING, check
from tests.session.conftest import Ask


def test_a_consume_whose_answer_is_lost(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        C1: channel.open
        S1: channel.open-ok
        [c] C1: basic.consume queue=q consumer_tag=c
        C1: basic.consume queue=r
        GAP S 60
        [d1] S1: basic.deliver consumer_tag=c delivery_tag=1
        [d2] S1: basic.deliver consumer_tag=amq.ctag-1 delivery_tag=2
        """,
        """
        messages:
            d1 deliver queue=q unsettled
            d2 deliver -
        replies:
            c basic.consume -> -
        """,
    )


def test_consume_without_waiting(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        S1: channel.open-ok
        [c] C1: basic.consume queue=q consumer_tag=c no_wait=1
        [d1] S1: basic.deliver consumer_tag=c delivery_tag=1
        [x] C1: basic.cancel consumer_tag=c no_wait=1
        [d2] S1: basic.deliver consumer_tag=c delivery_tag=2
        C1: basic.consume queue=r consumer_tag=c no_wait=1
        [d3] S1: basic.deliver consumer_tag=c delivery_tag=3
        """,
        """
        messages:
            d1 deliver queue=q unsettled
            d2 deliver queue=q unsettled
            d3 deliver queue=r unsettled
        replies:
            open channel.open -> #9 1ms
            c basic.consume -> -
            x basic.cancel -> -
        channels:
            1.1 opened=open delivered=3 unsettled=3/3 consumers=2
        """,
    )


def test_cancelled_by_the_client(ask: Ask) -> None:
    check(
        ask,
        CONSUMING
        + """
        [x] C1: basic.cancel consumer_tag=c
        C1: basic.consume queue=r consumer_tag=c
        [d1] S1: basic.deliver consumer_tag=c delivery_tag=1
        [ok] S1: basic.cancel-ok consumer_tag=c
        [d2] S1: basic.deliver consumer_tag=c delivery_tag=2
        S1: basic.consume-ok consumer_tag=c
        [d3] S1: basic.deliver consumer_tag=c delivery_tag=3
        """,
        """
        messages:
            d1 deliver queue=q unsettled
            d2 deliver -
            d3 deliver queue=r unsettled
        replies:
            open channel.open -> #9 1ms
            x basic.cancel -> ok 3ms
        channels:
            1.1 opened=open delivered=3 unsettled=? consumers=2
        """,
    )


def test_cancelled_by_the_server(ask: Ask) -> None:
    check(
        ask,
        CONSUMING
        + """
        [d1] S1: basic.deliver consumer_tag=c delivery_tag=1
        [x] S1: basic.cancel consumer_tag=c no_wait=1
        [d2] S1: basic.deliver consumer_tag=c delivery_tag=2
        [y] S1: basic.cancel consumer_tag=e
        [ok] C1: basic.cancel-ok consumer_tag=e
        [a] C1: basic.ack delivery_tag=1
        """,
        """
        messages:
            d1 deliver queue=q acked a 5ms
            d2 deliver queue=q unsettled
        replies:
            open channel.open -> #9 1ms
            x basic.cancel -> -
            y basic.cancel -> ok 1ms
        """,
    )


def test_the_queue_that_was_declared_last(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        C1: channel.open
        S1: channel.open-ok
        C1: basic.get
        [m1] S1: basic.get-ok delivery_tag=1
        C1: queue.declare
        C1: basic.consume consumer_tag=c
        C1: queue.declare queue=b
        C1: basic.consume consumer_tag=d
        S1: queue.declare-ok queue=amq.gen-1
        S1: basic.consume-ok consumer_tag=c
        S1: queue.declare-ok queue=not-b
        S1: basic.consume-ok consumer_tag=d
        [m2] S1: basic.deliver consumer_tag=c delivery_tag=2
        [m3] S1: basic.deliver consumer_tag=d delivery_tag=3
        C1: queue.declare queue=n no_wait=1
        C1: basic.get
        S1: basic.get-empty
        C1: basic.get
        [m6] S1: basic.get-ok delivery_tag=6
        C1: queue.declare no_wait=1
        C1: basic.get
        [m4] S1: basic.get-ok delivery_tag=4
        C2: channel.open
        C2: basic.get
        [m5] S2: basic.get-ok delivery_tag=1
        """,
        """
        messages:
            m1 get-ok unsettled
            m2 deliver queue=amq.gen-1 unsettled
            m3 deliver queue=b unsettled
            m4 get-ok unsettled
            m6 get-ok queue=n unsettled
            m5 get-ok unsettled
        """,
    )


def test_a_client_loss_forgets_what_was_declared(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        C1: channel.open
        S1: channel.open-ok
        C1: queue.declare queue=q
        S1: queue.declare-ok queue=q
        C1: basic.consume consumer_tag=c
        S1: basic.consume-ok consumer_tag=c
        GAP C 70
        [m1] S1: basic.deliver consumer_tag=c delivery_tag=1
        C1: basic.get
        [m2] S1: basic.get-ok delivery_tag=2
        """,
        """
        messages:
            m1 deliver queue=q -
            m2 get-ok unsettled
        """,
    )
