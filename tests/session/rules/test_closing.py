# ruff: noqa: E501 (one packet, one line)
"""What the broker closes with an error, and how connections end without a close."""

from __future__ import annotations

import json
import re

import pytest

from amqpsniff.findings import KINDS
from amqpsniff.session.rules import ending
from tests.conftest import CAPTURES
from tests.findings.cases import packets_of
from tests.session.events import Row
from tests.session.rules.found import findings, of_capture
from tests.session.rules.telling import one, several, told, told_of
from tests.session.script import Script

OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"


def test_an_error_of_the_broker() -> None:
    row = one(OPEN + """
        [asked] C1: queue.declare queue=q
        C: connection.close-ok
        S: connection.close reply_code=503 reply_text='COMMAND_INVALID - no' class_id=50 method_id=10
        """, "connection-closed-by-broker")  # fmt: skip
    assert row["detail"] == "503 COMMAND_INVALID - no; answer to queue.declare in packet 13"


DEPRECATED = (
    "S: connection.close reply_code=541 "
    'reply_text="INTERNAL_ERROR - Feature `transient_nonexcl_queues` is deprecated."'
)


def test_a_feature_that_is_deprecated() -> None:
    declare = OPEN + "C1: queue.declare queue=q\n"
    row = one(declare + DEPRECATED + " class_id=50 method_id=10", "feature-deprecated")
    assert row["detail"] == (
        "541 feature `transient_nonexcl_queues`, used by queue.declare of queue 'q' in packet 13; "
        "declare it durable, or exclusive to its connection; x-expires deletes it when it is not "
        "used"
    )
    assert not told(declare + DEPRECATED, "connection-closed-by-broker")


def test_a_deprecated_feature_of_a_request_that_is_not_known() -> None:
    blamed = DEPRECATED + " class_id=50 method_id=10"
    for script in (OPEN + DEPRECATED, OPEN + blamed, "midstream a\n" + blamed):
        detail = one(script, "feature-deprecated")["detail"]
        assert detail.startswith("541 feature `transient_nonexcl_queues`")
        assert " of queue " not in detail
    anonymous = OPEN + "C1: queue.declare\n" + blamed
    assert "queue.declare in packet 13;" in one(anonymous, "feature-deprecated")["detail"]


def test_a_feature_that_another_text_names() -> None:
    other = DEPRECATED.replace("is deprecated", "is not known")
    assert not told(OPEN + other, "feature-deprecated")
    assert told(OPEN + other, "connection-closed-by-broker")


def test_an_error_that_blames_no_method() -> None:
    row = one(
        OPEN
        + "C1: basic.qos prefetch_count=1\nS: connection.close reply_code=541 reply_text=INTERNAL_ERROR",
        "connection-closed-by-broker",
    )
    assert (
        row["detail"]
        == "541 INTERNAL_ERROR; the client's last frame before is basic.qos in packet 13"
    )


@pytest.mark.parametrize(
    ("version", "last", "known"),
    [
        ("4.3.2", "C1: basic.consume queue=q", True),
        ("4.2.0", "C1: basic.consume queue=q", False),
        ("4.3.2", "C1: basic.qos prefetch_count=1", False),
        ("4.3.2", "C1: basic.consume queue=q\nC1: basic.publish | body=1", False),
    ],
)
def test_a_fault_of_one_release(version: str, last: str, known: bool) -> None:
    server = json.dumps({"product": "RabbitMQ", "version": version})
    text = f"handshake server='{server}'\nC1: channel.open\nS1: channel.open-ok\n{last}\n"
    close = "S: connection.close reply_code=541 reply_text=INTERNAL_ERROR"
    detail = one(text + close, "connection-closed-by-broker")["detail"]
    assert ("the client is not at fault" in detail) == known


@pytest.mark.parametrize("close", [
    "S: connection.close reply_code=200 reply_text=bye",
    "C: connection.close reply_code=541 reply_text=oops",
])  # fmt: skip
def test_closes_that_are_no_errors_of_the_broker(close: str) -> None:
    assert not told(OPEN + close, "connection-closed-by-broker", "connection-forced-closed")


def test_a_connection_closed_by_order() -> None:
    close = "S: connection.close reply_code=320 reply_text='CONNECTION_FORCED - maintenance'"
    assert (
        "CONNECTION_FORCED - maintenance" in one(OPEN + close, "connection-forced-closed")["detail"]
    )
    assert not told(OPEN + close, "connection-closed-by-broker")


def test_a_user_id_of_somebody_else() -> None:
    text = "PRECONDITION_FAILED - user_id property set to 'x' but authenticated user was 'guest'"
    close = f'S1: channel.close reply_code=406 reply_text="{text}" class_id=60 method_id=40'
    row = one(OPEN + "C1: basic.publish | body=1 user_id=x\n" + close, "user-id-refused")
    assert row["channel"] == 1
    assert "answer to basic.publish in packet 13" in row["detail"]
    assert not told(OPEN + close.replace("user_id", "message_id"), "user-id-refused")


def test_a_queue_that_another_connection_owns() -> None:
    close = (
        "S1: channel.close reply_code=405 reply_text='RESOURCE_LOCKED - q' class_id=50 method_id=10"
    )
    alone = one(OPEN + "C1: queue.declare queue=q\n" + close, "exclusive-queue-locked")
    assert alone["detail"] == "405 RESOURCE_LOCKED - q; answer to queue.declare in packet 13"
    again = one("b.handshake\n" + OPEN + close, "exclusive-queue-locked")
    assert again["detail"].endswith("; this client has 1 other connection open")
    assert not told(OPEN + close.replace("405", "404"), "exclusive-queue-locked")


LOCKED = (
    'S1: channel.close reply_code=405 reply_text="RESOURCE_LOCKED - cannot obtain exclusive '
    "access to locked queue 'lock' in vhost '/'.\" class_id=50 method_id=10"
)
OWNER = 'b.handshake client=\'{"connection_name": "first"}\'\nb.C1: channel.open\nb.S1: channel.open-ok\n'
OWNED = (
    OWNER + "[own] b.C1: queue.declare queue=lock exclusive=1\nb.S1: queue.declare-ok queue=lock\n"
)
ASKS = OPEN + "C1: queue.declare queue=lock exclusive=1\n" + LOCKED


def _locked(text: str) -> str:
    return (
        str(one(text, "exclusive-queue-locked")["detail"])
        .partition("in packet")[2]
        .partition("; ")[2]
    )


@pytest.mark.parametrize("before", [
    OWNED,
    OWNED.replace("queue=lock exclusive=1", "queue= exclusive=1"),
    OWNER + "[own] b.C1: queue.declare queue=lock exclusive=1 no_wait=1\n",
    OWNED + "b.C1: queue.delete queue=other\nb.S1: queue.delete-ok\n",
])  # fmt: skip
def test_the_connection_that_has_the_queue_is_named(before: str) -> None:
    said = _locked(before + ASKS)
    assert re.fullmatch(r"'first' \(10\..*\) declared it exclusive in packet \d+", said), said


@pytest.mark.parametrize("before", [
    OWNER,  # before the capture
    OWNED.replace("exclusive=1", "exclusive=0"),
    OWNED.replace("exclusive=1", "exclusive=1 passive=1"),
    OWNED.replace("queue=lock exclusive", "queue=another exclusive").replace("ok queue=lock", "ok queue=another"),
    OWNED.replace("handshake", "handshake vhost=other"),
    OWNED + "b.C1: queue.delete queue=lock\nb.S1: queue.delete-ok\n",
])  # fmt: skip
def test_another_connection_has_the_queue(before: str) -> None:
    assert _locked(before + ASKS) == "this client has 1 other connection open"


def test_the_connection_that_had_the_queue_is_gone() -> None:
    assert (
        _locked(
            OWNED
            + "b.C: connection.close reply_code=200\nb.S: connection.close-ok\nb.FIN C\nb.FIN S\n"
            + ASKS
        )
        == ""
    )


def test_a_connection_that_ends_without_a_close() -> None:
    row = one(OPEN + """
        C1: confirm.select
        S1: confirm.select-ok
        C1: basic.publish routing_key=q | body=1
        C1: basic.consume queue=q consumer_tag=t
        S1: basic.consume-ok consumer_tag=t
        S1: basic.deliver consumer_tag=t delivery_tag=1 | body=1
        @+2000ms FIN C
        FIN S
        """, "disconnect-unclean")  # fmt: skip
    assert row["detail"].startswith(
        "the client ended TCP after 2.01 s (FIN), last frames: the client's 2.00 s before"
    )
    assert row["detail"].endswith(
        "left open: 1 channel, 1 consumer, 1 delivery not acknowledged, 1 publish not confirmed"
    )


@pytest.mark.parametrize(
    ("consume", "before_ms", "rest_ms", "end", "told_of_it"),
    [
        ("no_ack=1", 1_989, 999, "RST C", "; up to 3 deliveries with automatic acknowledgement "),
        ("no_ack=1", 9_900, 99, "RST C", "; of 3 deliveries with automatic acknowledgement the "),
        ("no_ack=1", 1_989, 1_001, "RST C", ""),  # it had time to work on them
        ("no_ack=1", 0, 99, "RST C", ""),  # it had all that it wanted
        ("no_ack=1", 1_989, 10, "RST S", ""),
        ("no_ack=1", 1_989, 10, "FIN C", ""),  # it had read everything
        ("no_ack=1", 1_989, 10, "FIN C\n        @+1ms RST S", ""),  # as RabbitMQ answers it
        ("", 1_989, 10, "RST C", ""),
        ("no_ack=1\n        C1: queue.declare queue=q exclusive=1", 1_989, 10, "RST C", ""),
    ],
)
def test_deliveries_that_are_lost_with_their_consumer(
    consume: str, before_ms: int, rest_ms: int, end: str, told_of_it: str
) -> None:
    row = one(f"""{OPEN}
        C1: basic.consume queue=q consumer_tag=t {consume}
        S1: basic.consume-ok consumer_tag=t
        S1: basic.deliver consumer_tag=t delivery_tag=1 | body=1
        @+{before_ms}ms S1: basic.deliver consumer_tag=t delivery_tag=2 | body=1
        @+10ms S1: basic.deliver consumer_tag=t delivery_tag=3 | body=1
        @+{rest_ms}ms {end}
        """, "disconnect-unclean")  # fmt: skip
    assert told_of_it in row["detail"]
    assert bool(told_of_it) == ("automatic" in row["detail"])


def test_no_time_is_negative_where_the_clock_was_set_back() -> None:
    script = Script(OPEN + "C1: basic.publish routing_key=q | body=1\nRST C\n")
    hour_ns = 3_600 * 10**9
    for place in (-2, -1):
        packet = script.packets[place]
        script.packets[place] = packet._replace(ts_ns=packet.ts_ns - hour_ns)
    (row,) = (one for one in findings(script) if one["code"] == "disconnect-unclean")
    assert row["detail"] == "the client ended TCP (RST); left open: 1 channel"


@pytest.mark.parametrize("end", [
    "C: connection.close reply_code=200\nS: connection.close-ok\nRST C",
    "",
    "GAP C 100\nC: basic.qos",
])  # fmt: skip
def test_ends_that_are_clean_or_not_seen(end: str) -> None:
    end = end.replace("C: basic", "C1: basic")
    assert not told(OPEN + end, "disconnect-unclean", "traffic-after-close")


def test_who_goes_on_after_closing() -> None:
    text = (
        OPEN
        + "C: connection.close reply_code=200\nC1: basic.qos prefetch_count=1\nC1: basic.qos prefetch_count=2\nS: connection.close-ok"
    )
    row = one(text, "traffic-after-close")
    assert (row["detail"], row["count"]) == ("the client sent basic.qos after its close", 2)
    late = (
        OPEN
        + "C: connection.close reply_code=200\nS1: basic.cancel consumer_tag=t\nS: connection.close-ok"
    )
    assert not told(late, "traffic-after-close")


def test_a_close_that_nobody_answers() -> None:
    row = one(OPEN + "S: connection.close reply_code=320\nFIN C\nFIN S", "traffic-after-close")
    assert row["detail"].startswith("the client ended TCP and did not answer connection.close")
    assert not told(
        OPEN + "S: connection.close reply_code=320\nC: connection.close-ok\nFIN C",
        "traffic-after-close",
    )


CUT = """
    c{n}.hello
    c{n}.S: connection.start version_minor=9
    c{n}.C: connection.start-ok mechanism=PLAIN response='\\0joe\\0x'
    c{n}.S: connection.tune channel_max=2047 frame_max=131072 heartbeat=600
    c{n}.C: connection.tune-ok channel_max=2047 frame_max=131072 heartbeat=600
    c{n}.C: connection.open virtual_host=/
    c{n}.S: connection.open-ok
    @+60000ms c{n}.RST S
"""


def test_connections_that_are_cut_after_the_same_idle_time() -> None:
    row = one(several(CUT, 4), "idle-connection-cut")
    assert row["detail"] == (
        "4 connections to 10.0.0.2:5672 ended after 60.0 s without traffic; the last had a "
        "heartbeat of 600 s"
    )
    assert row["count"] == 4
    ends = told(several(CUT, 4), "disconnect-unclean")
    assert [end["cause_code"] for end in ends] == ["idle-connection-cut"] * 4


def test_a_loop_of_connections_that_are_cut_as_others_are() -> None:
    """The first one that was cut was another client's."""
    cut = CUT.replace("60000ms c{n}.RST S", "8000ms c{n}.FIN S")
    row = one(cut.replace("joe", "ann").replace("{n}", "a") + several(cut, 3), "reconnect-loop")
    assert (row["count"], row["cause_code"]) == (3, "idle-connection-cut")


@pytest.mark.parametrize(("before", "after"), [
    ("heartbeat=600", "heartbeat=30"),
    ("60000ms c{n}.RST S", "20000ms c{n}.RST C"),
    ("60000ms", "{n}0000ms"),
])  # fmt: skip
def test_ends_that_have_other_reasons(before: str, after: str) -> None:
    assert not told(several(CUT.replace(before, after), 4), "idle-connection-cut")


def test_connections_that_a_proxy_cuts_soon() -> None:
    """Each ends alone: those that end together may be the broker's own end."""
    soon = CUT.replace("60000ms c{n}.RST", "5000ms c{n}.FIN")
    row = one(several(soon, 4), "idle-connection-cut")
    assert "ended after 5.00 s without traffic" in row["detail"]
    assert not told(several(soon.replace("FIN S", "FIN C"), 4), "idle-connection-cut")
    begins, end = soon.rsplit("\n    @+", 1)
    together = several(begins, 4) + "\n@+" + several(end.replace("5000ms ", ""), 4)
    assert "5000ms" not in together
    assert not told(together.replace("\n@+", "\n@+5000ms ", 1), "idle-connection-cut")


# what was deleted


def _named(name: str, code: str) -> list[Row]:
    rows = of_capture(CAPTURES / "cases" / f"{name}.pcap.gz")
    return [row for row in rows if row["code"] == code]


def test_a_virtual_host_that_was_deleted() -> None:
    (closed,) = _named("vhost_deleted", "connection-forced-closed")
    assert "; the virtual host was deleted, and its queues" in closed["detail"]
    refused = _named("vhost_deleted", "vhost-refused")
    assert len(refused) == 3
    causes = {(row["cause_code"], row["cause_packet_number"]) for row in refused}
    assert causes == {("connection-forced-closed", closed["packet_number"])}
    assert not _named("vhost_deleted", "password-guessing")


def test_a_user_that_was_deleted() -> None:
    (closed,) = _named("user_deleted", "connection-forced-closed")
    assert closed["detail"].endswith(
        "; queues and messages are not deleted with it: create the account again with its permissions,"
        " or let clients log in as another"
    )
    causes = {row["cause_packet_number"] for row in _named("user_deleted", "authentication-failed")}
    assert causes == {closed["packet_number"]}


@pytest.mark.parametrize(
    ("gone", "is_cause"), [("vhost 'x'", True), ("vhost 'y'", False), ("user 'x'", False)]
)
def test_a_deletion_is_the_cause_of_its_own_refusals(gone: str, is_cause: bool) -> None:
    text = f"""
        a.handshake vhost=x
        a.S: connection.close reply_code=320 reply_text="CONNECTION_FORCED - {gone} is deleted"
        a.C: connection.close-ok
        b.hello
        b.S: connection.start version_minor=9
        b.C: connection.start-ok mechanism=PLAIN response='\\0joe\\0x'
        b.S: connection.tune
        b.C: connection.tune-ok
        b.C: connection.open virtual_host=x
        b.S: connection.close reply_code=530 reply_text="vhost not found" class_id=10 method_id=40
    """
    assert (one(text, "vhost-refused")["cause_code"] is not None) is is_cause


# ends without a close


@pytest.mark.parametrize(("text", "detail"), [
    ("midstream\nC1: basic.qos\nS1: basic.qos-ok\n@+10ms RST C",
     "the client ended TCP (RST), last frames: the client's 11.0 ms before, the broker's 10.0 ms before; left open: 1 channel"),
    ("handshake\nC: connection.close-ok\nFIN S",
     "the broker ended TCP after 8.00 ms (FIN), last frames: the client's 1.00 ms before, the broker's 2.00 ms before"),
])  # fmt: skip
def test_what_is_said_of_an_end(text: str, detail: str) -> None:
    assert one(text, "disconnect-unclean")["detail"] == detail


def test_ends_that_say_nothing() -> None:
    for text in (
        "hello\nFIN C",
        "midstream\nC: connection.close-ok\nS: connection.unblocked\nFIN C",
    ):
        assert not told(text, "disconnect-unclean")


def test_an_end_of_which_something_is_missing() -> None:
    ends = packets_of(OPEN + "C1: basic.qos\nS1: basic.qos-ok\n" * 3 + "FIN C")
    assert told_of(ends, "disconnect-unclean")
    lost = [packet for n, packet in enumerate(ends) if n != len(ends) - 4]
    assert not told_of(lost, "disconnect-unclean")
    assert not told_of(
        [one for one in ends if one.octets[12:16] == b"\n\0\0\1"], "disconnect-unclean"
    )


def test_who_does_not_answer_a_close() -> None:
    row = one(OPEN + "[close] C: connection.close reply_code=200\nFIN S", "traffic-after-close")
    assert row["detail"] == "the broker ended TCP and did not answer connection.close in packet 13"
    refused = "hello\nS: connection.start version_minor=9\nC: connection.start-ok mechanism=PLAIN\n"
    refused += "S: connection.close reply_code=403\nFIN C"
    assert not told(refused, "traffic-after-close")
    joined = "midstream\nC1: basic.qos\nS1: basic.qos-ok\n"
    assert told(joined + "C: connection.close reply_code=200\nFIN S", "traffic-after-close")
    assert not told(joined + "C: connection.close reply_code=200\nFIN C", "traffic-after-close")


CLOSE = "S: connection.close reply_code={} reply_text='{}' class_id=10 method_id={}\n"
EVERY = (
    "limit-reached",
    "vhost-refused",
    "authentication-failed",
    "connection-forced-closed",
    "connection-closed-by-broker",
)


@pytest.mark.parametrize(("before", "close", "code"), [
    (6, (530, "access refused: connection limit (2) is reached", 40), "limit-reached"),
    (6, (530, "channel_max reached", 0), "limit-reached"),
    (6, (530, "the end is reached", 40), "vhost-refused"),
    (6, (541, "connection limit is reached", 0), "connection-closed-by-broker"),
    (6, (403, "access refused", 40), "vhost-refused"),
    (6, (530, "no such virtual host", 40), "vhost-refused"),
    (6, (541, "no", 40), "connection-closed-by-broker"),
    (6, (403, "no", 0), "connection-closed-by-broker"),
    (3, (403, "no", 0), "authentication-failed"),
    (3, (530, "no", 0), "connection-closed-by-broker"),
    (0, (403, "no", 0), "connection-closed-by-broker"),
    (7, (320, "connection limit is reached", 40), "connection-forced-closed"),
])  # fmt: skip
def test_what_a_close_means(before: int, close: tuple[int, str, int], code: str) -> None:
    """`before`: steps of the handshake; 0 where the connection began before the capture."""
    steps = CUT.replace("c{n}.", "").strip().splitlines()[:-1]
    text = "\n".join(steps[:before]) if before else "midstream\nC1: basic.qos\nS1: basic.qos-ok"
    rows = told(f"{text}\n{CLOSE.format(*close)}C: connection.close-ok", *EVERY)
    assert [row["code"] for row in rows] == [code]


@pytest.mark.parametrize(("what", "detail"), [
    ("C: connection.close reply_code=501 reply_text=no", "the client closed the connection: 501 no"),
    ("C1: channel.close reply_code=406 reply_text=no", "the client closed the channel: 406 no"),
    ("C1: channel.close reply_code=541",
     "the client closed the channel: 541 INTERNAL_ERROR, no reason given"),
    ("C: connection.close reply_code=501 reply_text=no class_id=60 method_id=60",
     "the client closed the connection: 501 no; it objects to basic.deliver"),
    ("C1: channel.close reply_code=200 reply_text='Closed due to exception from Consumer x'",
     "the client closed the channel: 200 Closed due to exception from Consumer x"),
    ("C: connection.close reply_code=200 reply_text=error", None),
    ("C: connection.close reply_code=0 reply_text=error", None),
    ("C: connection.close reply_code=320 reply_text=stop", None),
    ("S1: channel.close reply_code=404\nC1: channel.close reply_code=501", None),
])  # fmt: skip
def test_errors_that_the_client_says(what: str, detail: str | None) -> None:
    rows = told(OPEN + what, "closed-by-client")
    assert [row["detail"] for row in rows] == ([detail] if detail else [])


ACKED_TWICE = (
    OPEN
    + """
    C1: basic.consume queue=q consumer_tag=t
    S1: basic.consume-ok consumer_tag=t
    S1: basic.deliver delivery_tag=1 routing_key=q consumer_tag=t | body=1
    C1: basic.ack delivery_tag=1
    C1: basic.ack delivery_tag=1
    S1: channel.close reply_code=406 reply_text="PRECONDITION_FAILED - unknown delivery tag 1"
    """
)


def _causes(text: str) -> dict[str, str | None]:
    return {row["code"]: row["cause_code"] for row in told(text, *KINDS)}


def test_an_error_that_the_client_says_because_of_the_brokers() -> None:
    """amqplib takes a delivery behind the broker's close for one on an unknown channel."""
    close = "C: connection.close reply_code=504 reply_text=unknown\nC1: channel.close-ok\n"
    causes = _causes(ACKED_TWICE + close)
    assert causes["channel-closed-by-broker"] == "acknowledgement-invalid"
    assert causes["closed-by-client"] == "channel-closed-by-broker"
    assert causes["traffic-after-close"] == "closed-by-client"
    assert _causes(ACKED_TWICE + "@+1001ms " + close)["closed-by-client"] is None


def test_a_client_that_closes_with_an_error_again_and_again() -> None:
    close = "c{n}.C: connection.close reply_code=501 reply_text=BAD\nc{n}.S: connection.close-ok\n"
    row = one(several("c{n}.handshake user=joe\n" + close, 3), "reconnect-loop")
    assert row["detail"].endswith("ended with: the client said 501 BAD")


def test_closes_that_only_look_like_those_of_a_channel() -> None:
    """By their code, and as the first that is said."""
    text = OPEN + "C1: basic.publish | body=1 user_id=x\n"
    words = "user_id property set to 'x'"
    refused = f'S1: channel.close reply_code=403 reply_text="{words}" class_id=60 method_id=40\n'
    assert not told(text + refused, "user-id-refused")
    locked = "S1: channel.close reply_code=405 class_id=50 method_id=10\n"
    asked = OPEN + "C1: queue.declare queue=q\n"
    assert one(asked + locked * 2, "exclusive-queue-locked")["count"] == 1
    gone = "b.handshake\nb.FIN C\nb.FIN S\n" + asked + "@+90000ms " + locked
    assert "other" not in one(gone, "exclusive-queue-locked")["detail"]


def test_a_method_whose_number_another_dialect_has_for_another() -> None:
    """10/50 is connection.redirect in 0-8."""
    close = "S: connection.close reply_code=503 reply_text=NO class_id=10 method_id=50"
    row = one(OPEN + close, "connection-closed-by-broker")
    assert row["detail"].startswith("503 NO; answer to connection.close")


@pytest.mark.parametrize(("end", "loop"), [
    ("S: connection.close reply_code=501", "3 connections in 16.0 ms ended with: 501 FRAME_ERROR, no reason given"),
    ("FIN S", "3 connections in 16.0 ms ended with: the broker ended TCP (FIN)"),
    ("FIN C", ""),
])  # fmt: skip
def test_whose_ends_are_failures(end: str, loop: str) -> None:
    """A client that leaves without a word was not sent away."""
    rows = told(several("c{n}.handshake user=joe\nc{n}." + end, 3), "reconnect-loop")
    assert [row["detail"].partition(": ")[2] for row in rows] == ([loop] if loop else [])


def test_what_is_said_of_connections_that_are_cut() -> None:
    named = CUT.replace("mechanism=PLAIN", 'client_properties=\'{"product": "p"}\' mechanism=PLAIN')
    off = named.replace("heartbeat=600", "heartbeat=0")
    row = one(several(off, 3), "idle-connection-cut")
    assert row["detail"] == (
        "3 connections to 10.0.0.2:5672 ended after 60.0 s without traffic; the last, of p, had "
        "heartbeats off"
    )
    late = several(off, 2) + "\n" + off.replace("{n}", "9").replace("60000", "61500")
    assert "after 60.0 s to 61.5 s without" in one(late, "idle-connection-cut")["detail"]
    joined = "c{n}.midstream\nc{n}.C1: basic.qos\nc{n}.S1: basic.qos-ok\n@+60000ms c{n}.RST S\n"
    assert not told(several(joined, 4), "idle-connection-cut")


@pytest.mark.parametrize(
    ("others", "cut"), [(ending.MAX_IDLE_TIMES - 3, True), (ending.MAX_IDLE_TIMES - 2, False)]
)
def test_idle_times_that_are_remembered(others: int, cut: bool) -> None:
    """The oldest is forgotten: of three that are alike, the first."""
    different = "".join(
        CUT.replace("{n}", f"x{n}").replace("60000ms", f"{70_000 + 5_000 * n}ms")
        for n in range(others)
    )
    first, *more = (CUT.replace("{n}", str(n)) for n in range(3))
    assert bool(told(first + different + "".join(more), "idle-connection-cut")) is cut


@pytest.mark.parametrize(
    ("code", "text", "finding", "remedy"),
    [
        (
            320,
            "CONNECTION_FORCED - vhost 'shop' is deleted",
            "connection-forced-closed",
            "the virtual host was deleted",
        ),
        (
            541,
            "INTERNAL_ERROR - Could not declare it because the metadata store operation timed out",
            "connection-closed-by-broker",
            "see rabbitmqctl cluster_status",
        ),
    ],
)
def test_remedies_of_closed_connections(code: int, text: str, finding: str, remedy: str) -> None:
    script = f'handshake\nS: connection.close reply_code={code} reply_text="{text}"'
    assert remedy in one(script, finding)["detail"]
    assert remedy not in one(script.replace(text, "OTHER"), finding)["detail"]
