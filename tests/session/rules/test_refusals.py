# ruff: noqa: E501 (one packet, one line)
"""Channels that the broker closes, and what is published on them afterwards."""

import re
from pathlib import Path

import pytest

from amqpsniff.session.rules.format import reply_text
from tests.conftest import CAPTURES
from tests.session.rules import saying
from tests.session.rules.found import findings, of_capture
from tests.session.rules.saying import said

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
"""
INCIDENTS = Path(__file__).parents[2] / "captures" / "incidents"
CODES = (
    "channel-closed-by-broker",
    "declaration-mismatch",
    "acknowledgement-timeout",
    "message-too-large",
)


def _closed(code: int, text: str, method: tuple[int, int]) -> str:
    return (
        f'[close] S1: channel.close reply_code={code} reply_text="{text}" '
        f"class_id={method[0]} method_id={method[1]}\n"
    )


def test_the_request_that_the_broker_objects_to() -> None:
    script = OPEN + "[one] C1: queue.declare queue=q\n[two] C1: queue.bind queue=q exchange=e\n"
    script += "S1: queue.declare-ok queue=q\n" + _closed(
        404, "NOT_FOUND - no exchange 'e'", (50, 20)
    )
    assert said(script, *CODES) == [
        "channel-closed-by-broker close 1: 404 NOT_FOUND - no exchange 'e'; answer to queue.bind in packet two; declare it first, or correct its name"
    ]


def test_the_publish_that_the_broker_objects_to() -> None:
    script = OPEN + "[one] C1: basic.publish exchange=e\n"
    script += _closed(404, "NOT_FOUND - no exchange 'e'", (60, 40))
    assert said(script, *CODES) == [
        "channel-closed-by-broker close 1: 404 NOT_FOUND - no exchange 'e'; answer to basic.publish, the last in packet one; declare it first, or correct its name"
    ]


def test_no_method_is_blamed() -> None:
    script = OPEN + "C1: queue.declare queue=q\n" + _closed(541, "INTERNAL_ERROR", (0, 0))
    assert said(script, *CODES) == ["channel-closed-by-broker close 1: 541 INTERNAL_ERROR"]


def test_an_error_that_crosses_the_close_of_the_client() -> None:
    script = OPEN + "[one] C1: queue.declare queue=q\nC1: channel.close reply_code=200\n"
    script += _closed(403, "ACCESS_REFUSED - access to queue 'q'", (50, 10))
    assert said(script, *CODES) == [
        "channel-closed-by-broker close 1: 403 ACCESS_REFUSED - access to queue 'q'; answer to queue.declare in packet one"
    ]


@pytest.mark.parametrize(
    "close",
    [
        "S1: channel.close reply_code=200 reply_text=bye",
        "C1: channel.close reply_code=404 reply_text=NOT_FOUND",
    ],
)
def test_closes_that_are_no_errors_of_the_broker(close: str) -> None:
    assert said(OPEN + close, *CODES) == []


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q'"),
        (406, "PRECONDITION_FAILED - user_id property set to 'a' but authenticated user was 'b'"),
    ],
)
def test_what_other_findings_say_better(code: int, text: str) -> None:
    assert said(OPEN + _closed(code, text, (50, 10)), *CODES) == []


def test_declared_otherwise() -> None:
    text = "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'"
    script = OPEN + "[declare] C1: queue.declare queue=q durable=1\n" + _closed(406, text, (50, 10))
    assert said(script, *CODES) == [
        f"declaration-mismatch close 1: 406 {text}; answer to queue.declare in packet declare"
    ]


def test_acknowledged_too_late() -> None:
    text = "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: 1800000 ms"
    script = (
        OPEN
        + """
        C1: basic.consume queue=q consumer_tag=t
        S1: basic.consume-ok consumer_tag=t
        S1: basic.deliver consumer_tag=t delivery_tag=1
        [slow] S1: basic.deliver consumer_tag=t delivery_tag=2
        C1: basic.ack delivery_tag=1
        @+1800000ms S: connection.blocked
    """
    )
    assert said(script + _closed(406, text, (0, 0)), *CODES) == [
        f"acknowledgement-timeout close 1: delivery 2 from queue 'q', packet slow, waited 30 min; 406 {text}"
    ]


@pytest.mark.parametrize(
    ("late", "code"),
    [
        ("C1: basic.ack delivery_tag=1", "channel-closed-by-broker"),
        ("@+1800001ms C1: basic.ack delivery_tag=1", "acknowledgement-timeout"),
        ("GAP C 21", "acknowledgement-timeout"),
    ],
    ids=["acknowledged", "acknowledged too late", "perhaps acknowledged"],
)
def test_a_timeout_that_the_capture_disproves(late: str, code: str) -> None:
    text = "delivery acknowledgement on channel 1 timed out. Timeout value used: 1800000 ms"
    script = (
        OPEN
        + f"""
        C1: basic.consume queue=q consumer_tag=t
        S1: basic.consume-ok consumer_tag=t
        S1: basic.deliver consumer_tag=t delivery_tag=1
        {late}
        @+1900000ms S: connection.blocked
    """
    )
    (line,) = said(script + _closed(406, text, (0, 0)), *CODES)
    assert line.startswith(f"{code} close 1: ")
    assert ("nothing was outstanding and no delivery waited for longer than 1.00 ms" in line) == (
        code == "channel-closed-by-broker"
    )


def test_too_large() -> None:
    text = "PRECONDITION_FAILED - message size 5000 is larger than configured max size 1000"
    script = OPEN + "[big] C1: basic.publish | body=5000\n" + _closed(406, text, (60, 40))
    assert said(script, *CODES) == [
        f"message-too-large close 1: 406 {text}; answer to basic.publish, the last in packet big"
    ]


def test_published_before_the_client_learned_of_the_close() -> None:
    script = (
        OPEN
        + _closed(404, "NOT_FOUND - no exchange 'e'", (60, 40))
        + """
        [p1] C1: basic.publish
        [p2] C1: basic.publish
        [ok] C1: channel.close-ok
        C1: channel.open
        S1: channel.open-ok
        C1: basic.publish
    """
    )
    assert said(script, "publishes-discarded") == [
        "publishes-discarded p1 1 x2: to the default exchange, routing key '', sent after the broker's close in packet close (404), and dropped"
    ]


def test_published_after_the_broker_closed_the_connection() -> None:
    script = OPEN + "[close] S: connection.close reply_code=320\n[p1] C1: basic.publish"
    assert said(script, "publishes-discarded") == [
        "publishes-discarded p1 1: to the default exchange, routing key '', sent after the broker's close in packet close (320), and dropped"
    ]


@pytest.mark.parametrize("end", ["", "\nRST S", "\nFIN C"])
def test_published_after_the_broker_ended_tcp(end: str) -> None:
    script = OPEN + "[end] FIN S\n[p1] C1: basic.publish\n[p2] C1: basic.publish" + end
    assert said(script, "publishes-discarded") == [
        "publishes-discarded p1 1 x2: to the default exchange, routing key '', sent after the broker's FIN in packet end, and dropped"
    ]


@pytest.mark.parametrize("end", ["FIN C", "C1: basic.publish\nFIN S", "C1: basic.publish\nRST S"])
def test_published_before_the_broker_ended_tcp(end: str) -> None:
    script = OPEN + f"C1: basic.publish\n{end}\n" + "C1: basic.publish" * (end == "FIN C")
    assert said(script, "publishes-discarded") == []


def test_published_where_an_answer_may_be_lost() -> None:
    script = OPEN + _closed(404, "NOT_FOUND", (60, 40)) + "GAP C 60\nC1: basic.publish"
    assert said(script, "publishes-discarded") == []


def _closed_again_and_again(
    *closes: tuple[int, str], method: str = "basic.consume"
) -> list[tuple[str, str, int]]:
    """The rows of a channel that is opened again after each close."""
    again = "C1: channel.close-ok\nC1: channel.open\nS1: channel.open-ok\n"
    numbers = {"basic.consume": (60, 20), "queue.declare": (50, 10)}[method]
    script = OPEN
    for at, (code, text) in enumerate(closes):
        script += f"C1: {method} queue=q{at}\n"
        script += _closed(code, text, numbers).replace("close]", f"close{at}]") + again
    return [
        (row["code"], row["detail"].partition(";")[0], row["count"])
        for row in findings(script)
        if row["code"] in ("channel-closed-by-broker", "declaration-mismatch")
    ]


def test_closes_of_one_number_are_told_by_what_they_are_about() -> None:
    """A number that is opened again and again: what differs is not hidden behind the first."""
    code = "channel-closed-by-broker"
    assert _closed_again_and_again(
        (404, "no queue 'a'"), (403, "ACCESS_REFUSED"), (404, "no queue 'b'"), (404, "no queue 'a'")
    ) == [
        (code, "404 no queue 'a'", 2),
        (code, "403 ACCESS_REFUSED", 1),
        (code, "404 no queue 'b'", 1),
    ]


def test_faults_of_one_channel_are_told_by_what_they_are_about() -> None:
    """A capture of a client that opens the same channel again after each error."""
    counts: dict[str, list[tuple[str, int]]] = {}
    for row in of_capture(CAPTURES / "cases" / "faults_in_turn.pcap.gz"):
        named = re.findall("'[^']+'", row["detail"].partition(" in vhost")[0])
        counts.setdefault(row["code"], []).append((" ".join(named), row["count"]))
    assert counts["channel-closed-by-broker"] == [("'v.a'", 1), ("'v.b'", 1), ("'v.c'", 1)]
    assert counts["declaration-mismatch"] == [
        ("'x-message-ttl' 'v.d'", 1), ("'x-message-ttl' 'v.e'", 1), ("'type' 'v.x'", 1)
    ]  # fmt: skip
    assert counts["message-unroutable"] == [
        ("'v.x' 'k1'", 3), ("'v.x' 'k2'", 3), ("'v.x' 'k3'", 3), ("'v.zz'", 1)
    ]  # fmt: skip


def test_declarations_are_told_by_what_they_are_about() -> None:
    code, text = "declaration-mismatch", "inequivalent arg 'durable' for queue '{}'"
    closes = [(406, text.format(name)) for name in "aba"]
    assert _closed_again_and_again(*closes, method="queue.declare") == [
        (code, f"406 {text.format('a')}", 2), (code, f"406 {text.format('b')}", 1)
    ]  # fmt: skip


def test_numbers_that_differ_are_no_other_fault() -> None:
    rows = _closed_again_and_again((406, "unknown tag 7 of 'q1'"), (406, "unknown tag 8 of 'q1'"))
    assert [count for *_, count in rows] == [2]


def test_many_closes_are_told_together_after_the_first() -> None:
    """A client may make up names without end. What has another code is still told by itself."""
    closes = [(404, f"no queue '{at}'") for at in range(23)]
    rows = _closed_again_and_again(*closes, (403, "ACCESS_REFUSED"))
    assert [count for *_, count in rows] == [1] * 20 + [3, 1]
    assert rows[20][1] == "further ones, first: 404 no queue '20'"
    assert rows[21][1] == "403 ACCESS_REFUSED"


OTHERS = "channel-closed-by-broker"


@pytest.mark.parametrize(("code", "text", "finding"), [
    (404, "message size 5 is larger than 4", OTHERS),
    (406, "the header is larger than 4", OTHERS),
    (406, "message size 5 is odd", OTHERS),
    (406, "no acknowledgement", OTHERS),
    (406, "the consumer timed out", OTHERS),
    (404, "acknowledgement timed out", OTHERS),
    (404, "inequivalent arg 'durable'", OTHERS),
    (403, "user_id property set to 'x'", OTHERS),
    (406, "", OTHERS),
    (300, "", OTHERS),
    (299, "inequivalent arg", ""),
])  # fmt: skip
def test_texts_and_codes_belong_together(code: int, text: str, finding: str) -> None:
    lines = said(OPEN + _closed(code, text, (0, 0)), *CODES)
    assert lines == ([f"{finding} close 1: {reply_text(code, text)}"] if finding else [])


def test_what_was_published_before_is_not_blamed() -> None:
    """Where the request that it blames was not captured, or is none of these."""
    published = OPEN + "C1: basic.publish exchange=e\n"
    (line,) = said(published + _closed(404, "NOT_FOUND", (50, 20)), *CODES)
    assert line.endswith("404 NOT_FOUND; answer to queue.bind")
    (line,) = said(OPEN + _closed(404, "NOT_FOUND", (60, 40)), *CODES)
    assert line.endswith("404 NOT_FOUND; answer to basic.publish")


def test_which_delivery_waited() -> None:
    """One that was to be acknowledged, from a get too; not where the channel was open before."""
    late = "@+1000ms " + _closed(406, "delivery acknowledgement timed out", (0, 0))
    got = "C1: basic.get queue=q no_ack=1\nS1: basic.get-ok delivery_tag=1\n"
    got += "C1: basic.get queue=q\n[slow] S1: basic.get-ok delivery_tag=2\n"
    late = late.replace("@+1000ms [close]", "[close] @+1000ms")
    assert said(OPEN + got + late, *CODES)[0].startswith(
        "acknowledgement-timeout close 1: delivery 2 from queue 'q', packet slow, waited 1.00 s; "
    )
    for text in ("midstream\n" + got, OPEN):
        (line,) = said(text + late, *CODES)
        assert line == "acknowledgement-timeout close 1: 406 delivery acknowledgement timed out"


@pytest.mark.parametrize(
    ("code", "text", "remedy"),
    [
        (
            403,
            "ACCESS_REFUSED - queue 'single' in vhost 'shop' in exclusive use",
            "x-single-active-consumer",
        ),
        (
            403,
            "ACCESS_REFUSED - read access to queue 'q' in vhost '/' refused for user 'u'",
            "the permission",
        ),
        (
            403,
            "ACCESS_REFUSED - access to queue 'in exclusive use' refused for user 'u'",
            "the permission",
        ),
        (
            403,
            "ACCESS_REFUSED - cannot publish to internal exchange 'e' in vhost '/'",
            "bound to it",
        ),
        (
            403,
            "ACCESS_REFUSED - queue name 'amq.x' contains reserved prefix 'amq.*'",
            "choose a name",
        ),
        (404, "NOT_FOUND - no queue 'q' in vhost '/'", "declare it first"),
        (404, "NOT_FOUND - no previously declared queue", "name the queue"),
        (
            404,
            "NOT_FOUND - home node 'r@h' of durable queue 'q' in vhost '/' is down or inaccessible",
            "node is down",
        ),
        (
            405,
            "RESOURCE_LOCKED - cannot obtain access to locked queue 'q' in vhost '/'. basic.get operations are not supported by quorum queues with single active consumer",
            "consume from",
        ),
        (406, "PRECONDITION_FAILED - queue 'q' in vhost '/' in use", "without if-unused"),
        (406, "PRECONDITION_FAILED - queue 'in use' in vhost '/' not empty", "without if-empty"),
        (
            406,
            "PRECONDITION_FAILED - consumer prefetch count is not set for stream 'q'",
            "basic.qos",
        ),
        (406, "PRECONDITION_FAILED - something else", ""),
    ],
)
def test_each_text_has_its_own_remedy(code: int, text: str, remedy: str) -> None:
    """A missing permission is spoken of only where one is missing."""
    (line,) = said(OPEN + "C1: basic.consume queue=q\n" + _closed(code, text, (60, 20)), *CODES)
    told = line.partition("answer to basic.consume in packet")[2].partition("; ")[2]
    assert (remedy in told) if remedy else not told
    assert ("permission" in told) == ("permission" in remedy)


# probes

PROBE = """
    handshake
    C1: channel.open
    S1: channel.open-ok
    C2: channel.open
    S2: channel.open-ok
    C2: exchange.declare exchange=e type=topic passive=1
    [no] S2: channel.close reply_code=404 reply_text='NOT_FOUND - no exchange' class_id=40 method_id=10
    C2: channel.close-ok
"""
MADE = "C1: exchange.declare exchange=e type=topic\nS1: exchange.declare-ok\n"
MISSING = ["channel-closed-by-broker no"]


@pytest.mark.parametrize(
    ("after", "found"),
    [
        ("", MISSING),
        (MADE, []),
        (MADE.replace("topic\n", "topic passive=1\n"), []),
        (MADE.replace("exchange=e", "exchange=f"), MISSING),
        ("@+9000ms " + MADE, []),
        ("@+10001ms " + MADE, MISSING),
        ("C1: exchange.declare exchange=e type=topic\n", MISSING),
        (MADE + "FIN C\n", []),
    ],
)
def test_something_that_a_client_asks_for_and_makes(after: str, found: list[str]) -> None:
    assert saying.found(PROBE + after, "channel-closed-by-broker") == found


def test_a_plain_declaration_that_is_refused_stays_an_error() -> None:
    text = PROBE.replace(" passive=1", "") + MADE
    assert saying.found(text, "channel-closed-by-broker") == MISSING


def test_a_probe_is_no_failure_that_repeats() -> None:
    lines = (PROBE + MADE + "C: connection.close\nS: connection.close-ok\n").replace("[no] ", "")
    lines = lines.replace("handshake", 'handshake client=\'{"connection_name": "shovel"}\'')
    each = [f"{name}.{line.strip()}\n" for name in "abcd" for line in lines.strip().splitlines()]
    text = "".join(each).replace(".handshake", ".handshake")
    assert saying.found(text, "reconnect-loop", "channel-closed-by-broker") == []
    assert saying.found(text.replace(" passive=1", ""), "reconnect-loop")


def test_a_federation_link_that_asks_first() -> None:
    codes = {row["code"] for row in of_capture(INCIDENTS / "v_shovel.pcap")}
    assert "channel-closed-by-broker" not in codes


def test_what_was_made_may_lie_in_a_hole() -> None:
    assert saying.found(PROBE + "GAP C 50\nC1: channel.close\n", "channel-closed-by-broker") == []
    later = PROBE + "@+11000ms S: connection.unblocked\nGAP C 50\nC1: channel.close\n"
    assert saying.found(later, "channel-closed-by-broker") == MISSING


@pytest.mark.parametrize(
    ("thing", "deleted", "used", "method"),
    [
        ("exchange", "exchange.delete exchange=e", "basic.publish exchange=e | body=1", (60, 40)),
        ("queue", "queue.delete queue=e", "basic.get queue=e", (60, 70)),
        ("queue", "queue.delete queue=e", "queue.declare passive=1 queue=e", (50, 10)),
        (
            "exchange",
            "exchange.delete exchange=e",
            "exchange.declare passive=1 exchange=e",
            (40, 10),
        ),
    ],
)
@pytest.mark.parametrize("name", ["e", "f"])
def test_who_deleted_what_is_missing(
    thing: str, deleted: str, used: str, method: tuple[int, int], name: str
) -> None:
    text = f"""
        a.handshake client='{{"connection_name": "ops"}}'
        a.C1: channel.open
        a.S1: channel.open-ok
        [gone] a.C1: {deleted}
        [ok] a.S1: {deleted.split(maxsplit=1)[0]}-ok
        b.handshake
        b.C1: channel.open
        b.S1: channel.open-ok
        b.C1: {used.replace("=e", f"={name}")}
        b.""" + _closed(404, f"NOT_FOUND - no {thing} '{name}' in vhost '/'", method).replace(
        "[close] ", ""
    )
    (line,) = said(text, "channel-closed-by-broker")
    packet = "gone" if thing == "exchange" else "ok"
    advice = f"deleted in packet {packet} by ops: declare it again, or end what uses it"
    assert line.endswith(advice if name == "e" else "declare it first, or correct its name")


def test_a_close_that_is_read_after_later_frames() -> None:
    """A direction may wait midstream until it is understood: what came later is no reason."""
    rows = of_capture(CAPTURES / "cases" / "closes_midstream.pcap.gz")
    details = {row["code"]: row["detail"] for row in rows}
    refused = details["channel-closed-by-broker"]
    assert refused.endswith("; answer to basic.publish; declare it first, or correct its name")
    told_to = details["connection-forced-closed"]
    assert told_to == "320 CONNECTION_FORCED - password rotated"


def test_a_deletion_after_the_refusal_is_not_its_reason() -> None:
    for used, method in (
        ("queue.declare passive=1 queue=e", (50, 10)),
        ("basic.get queue=e", (60, 70)),
    ):
        text = (
            OPEN + f"C1: {used}\n" + _closed(404, "NOT_FOUND - no queue 'e' in vhost '/'", method)
        )
        text += """
            b.handshake
            b.C1: channel.open
            b.S1: channel.open-ok
            b.C1: queue.delete queue=e
            b.S1: queue.delete-ok
            """
        (line,) = said(text, "channel-closed-by-broker")
        assert line.endswith("declare it first, or correct its name")


@pytest.mark.parametrize(
    ("declared", "again"),
    [("C1: queue.declare queue=e", True), ("C1: queue.declare queue=e passive=1", False),
     ("C1: queue.declare queue=f", False), ("C1: exchange.declare exchange=e", False)],
)  # fmt: skip
def test_a_deletion_before_a_new_declaration_is_not_the_reason(declared: str, again: bool) -> None:
    text = (
        OPEN
        + f"""
        C1: queue.delete queue=e
        S1: queue.delete-ok
        {declared}
        b.handshake
        b.C1: channel.open
        b.S1: channel.open-ok
        b.C1: basic.get queue=e
        b."""
        + _closed(404, "NOT_FOUND - no queue 'e' in vhost '/'", (60, 70)).replace("[close] ", "")
    )
    (line,) = said(text, "channel-closed-by-broker")
    assert ("deleted in packet" in line) is not again


def test_an_exchange_that_was_declared_again_after_its_deletion() -> None:
    text = OPEN + """
        C1: exchange.delete exchange=e
        S1: exchange.delete-ok
        C1: exchange.declare exchange=e type=fanout
        S1: exchange.declare-ok
        C1: basic.publish exchange=e | body=1
        """ + _closed(404, "NOT_FOUND - no exchange 'e' in vhost '/'", (60, 40))  # fmt: skip
    (line,) = said(text, "channel-closed-by-broker")
    assert line.endswith("declare it first, or correct its name")
