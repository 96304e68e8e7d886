"""Transactions: what waits for a commit, and what becomes of it."""

from tests.session.comparing import CONSUMING, FIVE, check
from tests.session.conftest import Ask

SELECTED = """
    C1: tx.select
    S1: tx.select-ok
"""
TRANSACTED = """
    handshake
    [open] C1: channel.open
    S1: channel.open-ok
    C1: tx.select
    S1: tx.select-ok
"""


def test_publishes_in_a_transaction(ask: Ask) -> None:
    check(
        ask,
        TRANSACTED
        + """
        [p1] C1: basic.publish exchange=e routing_key=k mandatory=1
        [c1] C1: tx.commit
        [r1] S1: basic.return reply_code=312 exchange=e routing_key=k
        [ok1] S1: tx.commit-ok
        [p2] C1: basic.publish exchange=e routing_key=k mandatory=1
        C1: tx.rollback
        [p3] C1: basic.publish exchange=e routing_key=k mandatory=1
        S1: tx.rollback-ok
        [r2] S1: basic.return reply_code=312 exchange=e routing_key=k
        [p4] C1: basic.publish exchange=e routing_key=k mandatory=1
        C1: tx.commit
        S1: tx.commit-ok
        [r3] S1: basic.return reply_code=312 exchange=e routing_key=k
        """,
        """
        messages:
            p1 publish returned r1 2ms
            p2 publish -
            p3 publish returned r2 2ms
            p4 publish -
            r1 return -
            r2 return -
            r3 return -
        channels:
            1.1 opened=open mode=tx published=4 returned=3
        """,
    )


def test_acks_wait_for_the_commit(ask: Ask) -> None:
    check(
        ask,
        CONSUMING
        + SELECTED
        + FIVE
        + """
        C1: basic.ack delivery_tag=2 multiple=1
        C1: basic.nack delivery_tag=1 requeue=1
        C1: basic.reject delivery_tag=3 requeue=1
        C1: tx.commit
        C1: basic.ack delivery_tag=4
        [ok] @+4ms S1: tx.commit-ok
        C1: basic.ack delivery_tag=5
        C1: tx.rollback
        S1: tx.rollback-ok
        C1: basic.nack delivery_tag=4
        C1: tx.commit
        [ok2] S1: tx.commit-ok
        """,
        """
        messages:
            d deliver queue=q acked ok 9ms
            d deliver queue=q acked ok 9ms
            d deliver queue=q requeued ok 9ms
            d deliver queue=q discarded ok2 15ms
            d deliver queue=q unsettled
        channels:
            1.1 opened=open mode=tx delivered=5 acknowledged=2 unsettled=5/1 consumers=1
        """,
    )


def test_commits_under_way_together(ask: Ask) -> None:
    check(
        ask,
        CONSUMING
        + SELECTED
        + FIVE
        + """
        C1: basic.ack delivery_tag=1
        [c1] C1: tx.commit
        C1: basic.ack delivery_tag=2
        [c2] C1: tx.commit
        C1: basic.ack delivery_tag=3
        C1: tx.rollback
        [r] C1: basic.recover-async requeue=1
        [ok1] S1: tx.commit-ok
        [ok2] S1: tx.commit-ok
        S1: tx.commit-ok
        """,
        """
        messages:
            d deliver queue=q acked ok1 8ms
            d deliver queue=q acked ok2 9ms
            d deliver queue=q requeued r 7ms
            d deliver queue=q requeued r 7ms
            d deliver queue=q requeued r 7ms
        replies:
            open channel.open -> #9 1ms
            c1 tx.commit -> ok1 6ms
            c2 tx.commit -> ok2 5ms
        """,
    )


def test_recover_leaves_what_waits_for_a_commit(ask: Ask) -> None:
    check(
        ask,
        CONSUMING
        + SELECTED
        + """
        [d1] S1: basic.deliver consumer_tag=c delivery_tag=1
        [d2] S1: basic.deliver consumer_tag=c delivery_tag=2
        C1: basic.ack delivery_tag=1
        [r] C1: basic.recover requeue=1
        C1: tx.commit
        [ok] S1: tx.commit-ok
        [d3] S1: basic.deliver consumer_tag=c delivery_tag=3
        C1: basic.ack delivery_tag=3
        C1: basic.recover-async requeue=1
        """,
        """
        messages:
            d1 deliver queue=q acked ok 5ms
            d2 deliver queue=q requeued r 2ms
            d3 deliver queue=q unsettled
        """,
    )


def test_a_commit_that_is_not_answered(ask: Ask) -> None:
    check(
        ask,
        CONSUMING
        + SELECTED
        + """
        [d] S1: basic.deliver consumer_tag=c delivery_tag=1
        C1: basic.ack delivery_tag=1
        C1: tx.commit
        GAP S 12
        S1: basic.qos-ok
        C1: basic.ack delivery_tag=1
        C1: tx.commit
        S1: tx.commit-ok
        """,
        """
        messages:
            d deliver queue=q -
        """,
    )
