# ruff: noqa: E501 (one packet, one line)
"""Connections: what the handshake says, how they end, blocking, replies on channel 0."""

import pytest

from tests.session.comparing import check
from tests.session.conftest import Ask
from tests.session.script import Script

GUEST = "vhost=/ user=guest mechanism=PLAIN channel_max=2047 frame_max=131072 heartbeat=60"


def test_a_normal_connection(ask: Ask) -> None:
    check(
        ask,
        """
        handshake user=joe vhost=shop client='{"product": "pika", "version": "1.3.2"}'
        [close] C: connection.close reply_code=200 reply_text=bye
        [ok] S: connection.close-ok
        FIN C
        FIN S
        """,
        """
        replies:
            close connection.close -> ok 1ms
        connections:
            a vhost=shop user=joe mechanism=PLAIN client_product=pika client_version=1.3.2 channel_max=2047 frame_max=131072 heartbeat=60 closed_by=client close_code=200 close_text=bye
        channels:
        messages:
        """,
    )


def test_what_both_sides_say_of_themselves(ask: Ask) -> None:
    check(
        ask,
        """
        hello
        [start] S: connection.start version_minor=9 server_properties='{"product": "RabbitMQ", "version": "3.10.8", "platform": "Erlang", "copyright": {"a": 1}}' mechanisms=PLAIN
        [ok] @+20ms C: connection.start-ok mechanism=AMQPLAIN response='{"LOGIN": "ann", "PASSWORD": "p"}' client_properties='{"product": "app", "platform": "Java", "connection_name": "orders", "version": 7}'
        [tune] S: connection.tune channel_max=2047 frame_max=131072 heartbeat=60
        C: connection.tune-ok channel_max=10 frame_max=4096 heartbeat=5
        [open] C: connection.open virtual_host=v
        [opened] @+7ms S: connection.open-ok
        """,
        """
        replies:
            start connection.start -> ok 20ms
            tune connection.tune -> #5 1ms
            open connection.open -> opened 7ms
        connections:
            a vhost=v user=ann mechanism=AMQPLAIN client_product=app client_platform=Java connection_name=orders server_product=RabbitMQ server_version=3.10.8 channel_max=10 frame_max=4096 heartbeat=5
        """,
    )


PEERS = {
    "pika": ('{"product": "pika", "version": "1.4.4"}', ("pika", "1.4.4")),
    "py-amqp": ('{"product": "py-amqp", "product_version": "5.4.2"}', ("py-amqp", "5.4.2")),
    "py-amqplib": (
        '{"library": "Python amqplib", "library_version": "1.0.2"}',
        ("Python amqplib", "1.0.2"),
    ),
    "both": (
        '{"product": "a", "library": "b", "product_version": "2", "version": "1"}',
        ("a", "1"),
    ),
    "empty": ('{"version": "", "product_version": "5"}', (None, "5")),
    "no text": ('{"product": 1, "version": {"a": 1}, "library": "b"}', ("b", None)),
    "nothing": ("{}", (None, None)),
}


@pytest.mark.parametrize("name", PEERS)
def test_libraries_name_themselves_in_several_ways(name: str, ask: Ask) -> None:
    properties, (product, version) = PEERS[name]
    (row,) = ask(Script(f"handshake client='{properties}'")).connections
    assert (row["client_product"], row["client_version"]) == (product, version)


def test_other_mechanisms_name_no_user(ask: Ask) -> None:
    check(
        ask,
        """
        hello
        S: connection.start version_minor=9
        C: connection.start-ok mechanism=EXTERNAL
        [secure] S: connection.secure challenge=c
        [secret] C: connection.secure-ok response=r
        S: connection.tune channel_max=1 frame_max=4096
        C: connection.tune-ok channel_max=1 frame_max=4096
        """,
        """
        replies:
            secure connection.secure -> secret 1ms
        connections:
            a mechanism=EXTERNAL channel_max=1 frame_max=4096
        """,
    )


def test_a_refused_login(ask: Ask) -> None:
    check(
        ask,
        """
        hello
        S: connection.start version_minor=9 mechanisms=PLAIN
        [login] C: connection.start-ok mechanism=PLAIN response=\\0eve\\0wrong client_properties='{"product": "x"}'
        [close] @+300ms S: connection.close reply_code=403 reply_text="ACCESS_REFUSED - no"
        [ok] C: connection.close-ok
        FIN C
        """,
        """
        replies:
            close connection.close -> ok 1ms
        connections:
            a user=eve mechanism=PLAIN client_product=x closed_by=server close_code=403 close_text='ACCESS_REFUSED - no'
        """,
    )


def test_a_refused_login_without_a_word(ask: Ask) -> None:
    check(
        ask,
        """
        hello
        S: connection.start version_minor=9 mechanisms=PLAIN
        C: connection.start-ok mechanism=PLAIN response=\\0eve\\0wrong
        @+3000ms FIN S
        """,
        """
        connections:
            a user=eve mechanism=PLAIN closed_by=fin
        """,
    )


def test_a_vhost_that_is_not_there(ask: Ask) -> None:
    check(
        ask,
        """
        hello
        S: connection.start version_minor=9
        C: connection.start-ok mechanism=PLAIN response=\\0joe\\0pw
        S: connection.tune
        C: connection.tune-ok
        [open] C: connection.open virtual_host=gone
        S: connection.close reply_code=530 reply_text=none class_id=10 method_id=40
        C: connection.close-ok
        """,
        """
        replies:
            open connection.open -> -
        connections:
            a vhost=gone user=joe mechanism=PLAIN closed_by=server close_code=530 close_text=none close_method=connection.open
        """,
    )


def test_blocked_and_unblocked(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        S: connection.blocked reason=memory
        @+40ms S: connection.unblocked
        S: connection.blocked reason=disk
        @+5ms S: connection.blocked reason=memory
        @+6ms S: connection.unblocked
        """,
        f"""
        connections:
            a {GUEST} blocked=51ms
        """,
    )


def test_blocked_to_the_end(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        S: connection.blocked reason=memory
        @+100ms FIN C
        @+30ms FIN S
        """,
        f"""
        connections:
            a {GUEST} blocked=130ms closed_by=fin
        """,
    )


def test_unblocked_first(ask: Ask) -> None:
    check(
        ask,
        """
        midstream
        C1: basic.publish exchange=e routing_key=k | body=3
        S: connection.unblocked
        C1: basic.publish exchange=e routing_key=k | body=3
        C1: basic.publish exchange=e routing_key=k | body=3
        """,
        """
        connections:
            a midstream channels=1 published=3 blocked=?
        """,
    )


def test_closed_by_the_server_with_channels_open(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        [opened] S1: channel.open-ok
        [declare] C1: queue.declare queue=q
        [close] S: connection.close reply_code=320 reply_text=shutdown
        C1: basic.publish exchange=e routing_key=k
        [late] C1: queue.declare queue=r
        [ok] C: connection.close-ok
        FIN S
        FIN C
        """,
        f"""
        replies:
            open channel.open -> opened 1ms
            declare queue.declare -> -
            late queue.declare -> -
            close connection.close -> ok 3ms
        channels:
            1.1 opened=open closed=close published=1 closed_by=server
        connections:
            a {GUEST} channels=1 published=1 closed_by=server close_code=320 close_text=shutdown
        """,
    )


def test_both_sides_close_at_once(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [mine] C: connection.close reply_code=200 reply_text=bye
        [yours] S: connection.close reply_code=320 reply_text=shutdown
        [ok] C: connection.close-ok
        [okay] S: connection.close-ok
        """,
        f"""
        replies:
            mine connection.close -> okay 3ms
            yours connection.close -> ok 1ms
        connections:
            a {GUEST} closed_by=server close_code=320 close_text=shutdown
        """,
    )


def test_nothing_counts_after_the_end(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        C1: channel.open
        C: connection.close reply_code=200
        S: connection.close-ok
        [late] C1: basic.publish exchange=e routing_key=k
        [ask] C1: queue.declare queue=q
        S1: queue.declare-ok queue=q
        """,
        f"""
        messages:
            late publish -
        replies:
            ask queue.declare -> -
        connections:
            a {GUEST} channels=1 closed_by=client close_code=200
        """,
    )


def test_reset(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        S1: channel.open-ok
        RST S
        """,
        f"""
        channels:
            1.1 opened=open closed_by=rst
        connections:
            a {GUEST} channels=1 closed_by=rst
        """,
    )


def test_reset_after_one_side_finished(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        FIN C
        RST S
        """,
        f"""
        connections:
            a {GUEST} closed_by=fin
        """,
    )


def test_channels_that_are_not_for_it(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        [opened] S1: channel.open-ok
        S1: connection.blocked reason=r
        [no] C: queue.declare queue=q
        S: queue.declare-ok queue=q
        [nor] C1: connection.close reply_code=200
        S1: connection.close-ok
        [p] C1: basic.publish exchange=e
        """,
        f"""
        messages:
            p publish -
        replies:
            open channel.open -> opened 1ms
            no queue.declare -> -
            nor connection.close -> -
        channels:
            1.1 opened=open published=1
        connections:
            a {GUEST} channels=1 published=1
        """,
    )


def test_silence(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        """,
        f"""
        replies:
            open channel.open -> -
        channels:
            1.1 opened=open
        connections:
            a {GUEST} channels=1
        """,
    )


def test_two_connections_know_nothing_of_each_other(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        b.handshake user=ann
        [one] C1: channel.open
        [two] b.C1: channel.open
        [three] b.S1: channel.open-ok
        [four] S1: channel.open-ok
        b.C1: confirm.select
        C1: basic.publish exchange=e
        [publish] b.C1: basic.publish exchange=e
        S1: basic.ack delivery_tag=1
        """,
        f"""
        replies:
            one channel.open -> four 3ms
            two channel.open -> three 1ms
        messages:
            #20 publish -
            publish publish number=1 unconfirmed
        channels:
            1.1 opened=one published=1
            b.1.1 opened=two mode=confirm published=1 unconfirmed=1/1
        connections:
            a {GUEST} channels=1 published=1
            b {GUEST.replace("guest", "ann")} channels=1 published=1
        """,
    )


def test_midstream(ask: Ask) -> None:
    check(
        ask,
        """
        midstream
        [p] C3: basic.publish exchange=e routing_key=k mandatory=1 | body=10
        C3: basic.publish exchange=e routing_key=j | body=10
        S3: basic.ack delivery_tag=812
        [r] S3: basic.return reply_code=312 reply_text=NO_ROUTE exchange=e routing_key=k | body=10
        [d] S3: basic.deliver consumer_tag=c delivery_tag=40 | body=1
        [e] S3: basic.deliver consumer_tag=c delivery_tag=41 | body=1
        [a] C3: basic.ack delivery_tag=40
        [g] S3: basic.get-ok delivery_tag=42 | body=1
        S3: queue.declare-ok queue=q
        """,
        """
        messages:
            p publish returned r 3ms
            #2 publish -
            r return -
            d deliver acked a 2ms
            e deliver -
            g get-ok -
        channels:
            3.1 published=2 returned=1 delivered=3 acknowledged=1 unsettled=? unconfirmed=?
        connections:
            a midstream channels=1 published=2 delivered=3 acknowledged=1
        """,
    )
