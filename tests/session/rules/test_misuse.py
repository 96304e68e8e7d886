# ruff: noqa: E501 (one packet, one line)
"""Methods from the wrong side, on the wrong channel, or in the wrong state."""

import pytest

from tests.session.rules.saying import said

OPEN = """
    handshake
    [open] C1: channel.open
    S1: channel.open-ok
"""


def test_channel_zero_used_for_messages() -> None:
    script = OPEN + "[bad] C: basic.publish\n[close] S: connection.close reply_code=504"
    assert said(script, "channel-zero-misused") == [
        "channel-zero-misused bad -: basic.publish from the client on channel 0"
    ]


def test_a_channel_used_for_the_connection() -> None:
    script = OPEN + "[bad] C1: connection.open"
    assert said(script, "channel-zero-misused") == [
        "channel-zero-misused bad -: connection.open from the client on channel 1"
    ]
    assert said(OPEN + "C: connection.close", "channel-zero-misused") == []


def test_the_wrong_side() -> None:
    script = OPEN + "[bad] C1: queue.declare-ok queue=q"
    assert said(script, "method-wrong-direction") == [
        "method-wrong-direction bad -: the client sent queue.declare-ok on channel 1"
    ]


def test_methods_of_both_sides() -> None:
    script = (
        OPEN
        + """
        C1: channel.flow active=1
        S1: channel.flow-ok active=1
        S1: channel.flow active=0
        C1: channel.flow-ok active=0
        S1: basic.cancel consumer_tag=t no_wait=1
        C: connection.update-secret
        S: connection.update-secret-ok
    """
    )
    assert said(script, "method-wrong-direction") == []


def test_a_channel_that_was_never_opened() -> None:
    script = OPEN + "[bad] C5: queue.declare queue=q"
    assert said(script, "channel-not-open") == [
        "channel-not-open bad 5: queue.declare on a channel that was never opened"
    ]


def test_a_channel_that_was_closed() -> None:
    script = (
        OPEN
        + """
        S1: channel.close reply_code=404
        C1: channel.close-ok
        [bad] C1: basic.publish
    """
    )
    assert said(script, "channel-not-open") == [
        "channel-not-open bad 1: basic.publish on a channel that was closed before"
    ]


def test_what_was_sent_before_the_close_was_known() -> None:
    script = OPEN + "S1: channel.close reply_code=404\nC1: basic.publish\nC1: channel.close-ok"
    assert said(script, "channel-not-open") == []
    ended = "handshake\nS: connection.close reply_code=320\nC1: channel.open\nC2: basic.publish"
    assert said(ended, "channel-not-open") == []


def test_channels_of_before_the_capture() -> None:
    assert said("midstream\nC1: basic.publish\nS1: basic.ack", "channel-not-open") == []
    assert said(OPEN + "GAP C 60\nC2: basic.publish", "channel-not-open") == []


def test_opened_twice() -> None:
    script = OPEN + "[again] C1: channel.open\nS: connection.close reply_code=504"
    assert said(script, "channel-opened-twice") == [
        "channel-opened-twice again 1: open since packet open"
    ]


def test_opened_again_after_a_close() -> None:
    for close in (
        "C1: channel.close\nS1: channel.close-ok",
        "S1: channel.close reply_code=404",  # RabbitMQ does not wait for the close-ok
    ):
        assert said(OPEN + close + "\nC1: channel.open", "channel-opened-twice") == []


def test_opened_again_after_a_close_that_was_lost() -> None:
    script = OPEN + "C1: channel.close-ok\nC1: channel.open\nGAP S 60\nS1: channel.open-ok"
    assert said(script, "channel-opened-twice") == []


def test_modes_mixed() -> None:
    for first, then, said_of in (
        ("confirm.select", "tx.select", "tx.select on a channel in confirm mode"),
        ("tx.select", "confirm.select", "confirm.select on a channel with transactions"),
        ("basic.qos", "tx.commit", "tx.commit on a channel without tx.select"),
        ("confirm.select", "tx.rollback", "tx.rollback on a channel without tx.select"),
    ):
        script = f"{OPEN}C1: {first}\nS1: {first}-ok\n[bad] C1: {then}"
        assert said(script, "channel-mode-mixed") == [f"channel-mode-mixed bad 1: {said_of}"]


def test_one_mode() -> None:
    for script in (
        OPEN + "C1: tx.select\nS1: tx.select-ok\nC1: tx.commit\nC1: tx.rollback\nC1: tx.select",
        OPEN + "C1: confirm.select\nC1: confirm.select",
        OPEN + "S1: channel.close reply_code=404\nC1: tx.commit",
        "midstream\nC1: tx.commit\nS1: tx.commit-ok",
    ):
        assert said(script, "channel-mode-mixed") == []


def test_not_implemented() -> None:
    script = (
        OPEN
        + """
        [qos] C1: basic.qos prefetch_size=100
        [close] S: connection.close reply_code=540 reply_text="NOT_IMPLEMENTED - prefetch_size!=0 (100)" class_id=60 method_id=10
    """
    )
    assert said(script, "feature-not-implemented") == [
        "feature-not-implemented close -: 540 NOT_IMPLEMENTED - prefetch_size!=0 (100); answer to basic.qos, the last in packet qos"
    ]


def test_immediate_is_not_implemented() -> None:
    script = (
        OPEN
        + """
        [p] C1: basic.publish immediate=1
        [close] S: connection.close reply_code=540 reply_text="NOT_IMPLEMENTED - immediate=true" class_id=60 method_id=40
    """
    )
    assert said(script, "feature-not-implemented") == [
        "feature-not-implemented close -: 540 NOT_IMPLEMENTED - immediate=true; answer to basic.publish, the last in packet p"
    ]


def test_other_closes_are_about_something_else() -> None:
    script = OPEN + "C1: basic.qos prefetch_size=100\nS: connection.close reply_code=541"
    assert said(script, "feature-not-implemented") == []


def test_methods_of_a_wrong_side_where_the_sides_are_not_proved() -> None:
    """A broker on a port of clients would be taken for one."""
    text = "midstream\nS1: basic.publish routing_key=q | body=1\nS1: basic.publish | body=1"
    assert said(text, "method-wrong-direction") == []


def test_a_commit_where_the_mode_is_not_known() -> None:
    assert said("midstream\nC1: tx.commit\nS1: tx.commit-ok", "channel-mode-mixed") == []
    lost = OPEN + "GAP C 30\nC1: tx.commit"
    assert said(lost, "channel-mode-mixed") == []


def test_who_may_use_a_channel_that_is_not_open() -> None:
    """What the broker sends there is the answer to something that was not captured."""
    assert said("handshake\nS1: basic.qos-ok", "channel-not-open") == []
    assert said("handshake\nC1: basic.qos", "channel-not-open") != []


def test_opened_again_where_a_close_may_be_lost() -> None:
    for text in ("midstream\nC1: channel.open\nS1: channel.open-ok\n", OPEN + "GAP C 30\n"):
        assert said(text + "C1: channel.open", "channel-opened-twice") == []


def test_a_commit_in_a_mode_that_is_known() -> None:
    """Also where the connection began before the capture."""
    text = "midstream\nC1: confirm.select\nS1: confirm.select-ok\n[bad] C1: tx.commit"
    assert said(text, "channel-mode-mixed") == [
        "channel-mode-mixed bad 1: tx.commit on a channel without tx.select"
    ]


@pytest.mark.parametrize(("method", "number"), [
    ("basic.qos", 10), ("basic.consume", 20), ("basic.recover", 110),
    ("basic.recover-async", 100), ("channel.flow", 20),
])  # fmt: skip
def test_whatever_is_not_implemented(method: str, number: int) -> None:
    class_id = 20 if method.startswith("channel") else 60
    close = f"connection.close reply_code=540 reply_text=NOT_IMPLEMENTED class_id={class_id} method_id={number}"
    text = f"{OPEN}C1: {method}\n[asked] C1: {method}\n"
    assert said(f"{text}[close] S: {close}", "feature-not-implemented") == [
        f"feature-not-implemented close -: 540 NOT_IMPLEMENTED; answer to {method}, the last in packet asked"
    ]
    assert said(f"{text}C: {close}", "feature-not-implemented") == []
    by_broker = f"{OPEN}S1: {method}\n[close] S: {close}"
    assert said(by_broker, "feature-not-implemented") == [
        f"feature-not-implemented close -: 540 NOT_IMPLEMENTED; answer to {method}"
    ]


def test_the_last_publish_of_a_connection() -> None:
    text = (
        OPEN + "C2: channel.open\nS2: channel.open-ok\nC2: basic.publish\n[p] C1: basic.publish\n"
    )
    close = "[close] S: connection.close reply_code=540 reply_text=NOT_IMPLEMENTED class_id=60 method_id=40"
    (line,) = said(text + close, "feature-not-implemented")
    assert line.endswith("540 NOT_IMPLEMENTED; answer to basic.publish, the last in packet p")
    (line,) = said(OPEN + close.replace("class_id=60 method_id=40", ""), "feature-not-implemented")
    assert line == "feature-not-implemented close -: 540 NOT_IMPLEMENTED"
