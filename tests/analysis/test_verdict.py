"""The verdict, of findings alone."""

from __future__ import annotations

from typing import Any

from amqpsniff.analysis.clients import MAX_NAME, Clients
from amqpsniff.analysis.finding_tree import cases
from amqpsniff.analysis.verdict import MAX_SENTENCES, Verdict, and_others, gist, verdict
from amqpsniff.findings import FURTHER, KINDS, Finding

SOUND = {
    "lost_bytes": 0,
    "gaps": 0,
    "cut": 0,
    "midstream_connections": 0,
    "unmeasured_publishes": 0,
}
SECOND = 10**9


def finding(code: str, at: int = 1, connection: str | None = "a", **more: Any) -> Finding:
    """A finding at a packet, a second a packet."""
    port = ord(connection or "z")
    given: dict[str, Any] = {
        "detail": "", "capture": "x.pcap", "packet_number": at, "ts_ns": at * SECOND,
        "connection_id": connection, "client": f"10.0.0.2:{port}", "server": "s:2",
    } | more  # fmt: skip
    return Finding(code, **given)


def connection(connection_id: str, name: str | None = None, **more: Any) -> dict[str, Any]:
    """A row of the connections table."""
    return {
        "connection_id": connection_id, "user": "app", "client_product": "Lib",
        "connection_name": name, "client_packets": 9, "server_packets": 9,
    } | more  # fmt: skip


def judged(*findings: Finding, clients: Clients | None = None, **more: Any) -> Verdict:
    """The verdict on some findings in a capture of two connections."""
    given: dict[str, Any] = {"packets": 9, "connections": 2, "start_ns": SECOND} | more
    numbers = SOUND | given.pop("numbers", {})
    return verdict(cases(findings), clients or Clients(), numbers, **given)


def test_what_is_wrong_since_when_who_and_how_sure() -> None:
    clients = Clients([connection("a", "billing")])
    found = judged(
        finding("publish-rejected", 3, count=4, detail="to exchange 'x'; more of it"),
        clients=clients,
    )
    assert str(found) == (
        "The broker refused published messages: billing (user app, 10.0.0.2), 4 times, first seen "
        "at 2.000 s (00:00:03 UTC, packet 3, certain); to exchange 'x'; more of it."
    )
    assert found.severity == "error"
    assert found.evidence == [
        {"code": "publish-rejected", "capture": "x.pcap", "connection_id": "a", "packet_number": 3}
    ]


def test_a_capture_is_named_only_among_others() -> None:
    """A limit of the analysis is a finding of no capture."""
    one = finding("publish-rejected", 3)
    assert "packet 3," in str(judged(one, finding("rules-limit", capture=None)))
    two = judged(one, finding("publish-rejected", 3, "b", capture="y.pcap"))
    assert "packet 3 of x.pcap," in str(two)


def test_a_broker_is_named_only_among_others() -> None:
    """Not where the detail names it; of findings without a client each broker is told."""
    clients = Clients([connection("a", "billing"), connection("b", "stock")])
    refused, ended = finding("publish-rejected", 3), finding("disconnect-unclean", 4, "b")
    assert "s:2" not in str(judged(refused, ended, clients=clients))
    other = finding("disconnect-unclean", 4, "b", server="t:2")
    found = judged(refused, other, clients=clients)
    assert "billing (user app, 10.0.0.2) at s:2, seen" in found.sentences[0]
    assert "stock (user app, 10.0.0.2) at t:2, seen" in found.sentences[1]
    stopped = [
        finding("broker-stopped", at, None, client=None, server=f"s:{at}", detail=f"s:{at} ended")
        for at in (5, 6)
    ]
    text = str(judged(*stopped))
    assert "2 times, first seen" in text
    assert "s:5 ended; s:6 ended" in text


def test_what_concerns_all_clients_of_a_broker_is_told_first() -> None:
    found = judged(finding("channel-closed-by-broker", 1), finding("connection-blocked", 9, "b"))
    assert [one["code"] for one in found.evidence] == [
        "connection-blocked",
        "channel-closed-by-broker",
    ]


def test_a_detail_of_another_client_than_the_first_names_it() -> None:
    clients = Clients([connection("a", "billing"), connection("b", "stock")])
    found = judged(
        finding("disconnect-unclean", 3, detail="one"),
        finding("disconnect-unclean", 4, "b", detail="another"),
        finding(
            "publishes-in-doubt", 5, "b", cause_code="disconnect-unclean", cause_packet_number=4
        ),
        clients=clients,
    )
    assert "billing, stock (user app, 10.0.0.2), 2 times, first seen at 2.000 s" in str(found)
    assert "; stock: another; one." in str(found)


def test_a_cause_that_is_named_may_begin_later() -> None:
    late = {"cause_code": "connection-blocked", "cause_packet_number": 4}
    (case,) = cases([finding("confirms-slow", 3, **late), finding("connection-blocked", 4)])
    assert case.code == "connection-blocked"


def test_what_has_no_time_is_placed_by_its_packet() -> None:
    found = judged(finding("publish-rejected", 3, count=4, ts_ns=None))
    assert "4 times, first in packet 3 (certain)." in str(found)


def test_how_often_is_left_out_where_the_detail_has_the_number() -> None:
    for detail, told in (("404 NOT_FOUND", True), ("12.4 s in all", True), ("4 messages", False)):
        found = str(judged(finding("channel-closed-by-broker", count=4, detail=detail)))
        assert ("4 times" in found) is told, found


def test_clients_are_named_together() -> None:
    findings = [finding("disconnect-unclean", at, one) for at, one in enumerate("abcde", 1)]
    names = Clients(connection(one, f"web-{one}") for one in "abcde")
    assert "web-a, web-b, web-c and 2 others (user app, 10.0.0.2), 5 times" in str(
        judged(*findings, clients=names)
    )
    assert "5 clients (10.0.0.2), 5 times" in str(judged(*findings))
    assert "Lib (user app, 10.0.0.2)" in str(
        judged(findings[0], clients=Clients([connection("a")]))
    )
    assert names.short(findings) == "web-a +4"


def test_consequences_and_causes() -> None:
    wrong = finding("acknowledgement-invalid", 1, detail="delivery 1 was settled before")
    closed = finding(
        "channel-closed-by-broker", 2, detail="406; more",
        cause_code="acknowledgement-invalid", cause_packet_number=1,
    )  # fmt: skip
    told = judged(wrong, closed).sentences
    assert told[1] == "As a result, the broker closed a channel with an error (406)."
    limit = finding("prefetch-unlimited", 1)
    stuck = finding("client-not-reading", 2, cause_code="prefetch-unlimited", cause_packet_number=1)
    (told_of,) = judged(limit, stuck).sentences
    assert told_of.startswith("A client does not read what the broker sends: ")
    assert told_of.endswith("; likely because a consumer receives without a prefetch limit.")


def test_what_failed_is_told_before_a_cost_that_led_to_it() -> None:
    large = finding("message-oversized", 1, detail="a body of 20 MB")
    refused = {"cause_code": "message-oversized", "cause_packet_number": 1, "detail": "406"}
    found = judged(large, finding("message-too-large", 2, **refused))
    assert found.sentences[0].startswith("A message is larger than the broker accepts: ")
    assert found.sentences[0].endswith("likely because a message is very large (a body of 20 MB).")
    assert "Nothing failed" not in str(found)


def test_the_cause_is_quoted_where_it_brought_it_about() -> None:
    """Not as it was seen on another connection before."""
    found = judged(
        finding("automatic-acknowledgement", 2, "b", detail="basic.consume of queue 'other'"),
        finding("automatic-acknowledgement", 3, "a", detail="basic.get of queue 'q'"),
        finding("acknowledgement-invalid", 4, "a", cause_code="automatic-acknowledgement",
                cause_packet_number=3),
    )  # fmt: skip
    assert found.sentences[0].endswith("by auto-ack (basic.get of queue 'q').")


def test_the_one_with_consequences_is_told_first() -> None:
    ends = [
        finding("disconnect-unclean", at, one, detail=one * 3) for at, one in ((1, "a"), (2, "b"))
    ]
    left = {"cause_code": "disconnect-unclean", "cause_packet_number": 2}
    found = str(judged(*ends, finding("deliveries-in-doubt", 2, "b", **left)))
    assert found.index("bbb") < found.index("aaa") if "aaa" in found else "bbb" in found


def test_nothing_wrong() -> None:
    shown = "in what the capture shows of 2 AMQP connections"
    assert str(judged(finding("account-default"))) == f"Nothing wrong was found {shown}."
    assert judged().severity is None
    costs = judged(finding("connection-churn"))
    assert costs.sentences[0] == f"Nothing failed {shown}, but:"
    assert costs.severity == "warning"
    part = judged(finding("account-default"), finding_count=3)
    assert str(part) == "1 of 3 findings match."
    assert str(judged(finding_count=3)) == "0 of 3 findings match."


def test_what_could_not_be_looked_at() -> None:
    assert judged(packets=0, connections=0).unseen == ["the capture has no packets"]
    assert str(judged(connections=0)) == "No AMQP was found in the capture."
    sealed = judged(finding("tls-unreadable", count=2), connections=0)
    assert sealed.unseen[1] == "2 TLS connections may be AMQP and could not be read"
    locked = judged(finding("tls-keys-wrong", count=2), connections=0)
    assert locked.unseen[1] == "the keys that were given do not open 2 TLS connections"
    half = Clients([connection("a", "x", server_packets=0)])
    sided = judged(finding("capture-inconclusive"), clients=half)
    assert sided.unseen == ["of 1 connection only one direction was captured"]
    assert sided.sentences[0].startswith("Nothing wrong was found in what could be read of 2")
    assert judged(finding("capture-inconclusive")).unseen == []
    strange = judged(finding("protocol-not-decoded"), connections=1)
    assert str(strange) == "1 connection used a protocol version that is not decoded."


def test_what_the_capture_lacks() -> None:
    holes = {"lost_bytes": 2_000, "gaps": 2, "cut": 3, "midstream_connections": 2}
    told = str(judged(finding("capture-truncated"), numbers=holes))
    assert "a file is cut short; 2.00 kB missing in 2 holes; 3 packets were cut" in told
    assert "all connections began before it" in told
    some = str(judged(numbers={"midstream_connections": 1}))
    assert "1 of 2 connections began before it" in some


def test_five_sentences_at_most() -> None:
    codes = [code for code, kind in KINDS.items() if kind.category == "problem"]
    findings = [finding(code, at, connection=chr(97 + at)) for at, code in enumerate(codes[:20], 1)]
    findings += [
        finding("tls-unreadable"),
        finding("channel-closed-by-broker", cause_code=codes[0]),
    ]
    found = judged(*findings, numbers={"cut": 1})
    assert len(found.sentences) == MAX_SENTENCES
    assert "more findings are listed below." in str(found)
    assert found.sentences[-1].startswith("The capture does not show everything")
    assert "x.pcap" not in str(found)
    assert "packet 1 of y.pcap" in str(
        judged(finding("publish-rejected", capture="y.pcap"), *findings[8:])
    )


def test_others_of_the_first_connection_are_counted() -> None:
    """Those whose details differ in more than numbers: what they are about is another thing."""
    code, said = "channel-closed-by-broker", "404 no queue '{}'; answer to packet {}"
    found = [finding(code, at, detail=said.format(name, at)) for at, name in enumerate("abca", 1)]
    elsewhere = finding(code, 9, "b", detail=said.format("d", 9))
    assert and_others([*found, elsewhere]) == "and 2 others"
    assert str(judged(*found, elsewhere)).endswith("'a'; answer to packet 1; and 2 others.")
    assert and_others(found[:2]) == "and 1 other"
    assert and_others(found[:1]) == and_others([found[0], found[3], elsewhere]) == ""
    assert and_others([*found, finding(code, 8, detail=FURTHER + "e")]) == "and many others"


def test_only_the_first_clauses_of_a_detail_are_told() -> None:
    assert gist("one; two; three", 0) == "one"
    assert gist("one; two; three", 7) == "one; two"
    assert gist("x" * 500, 0).endswith("…")
    assert gist("a \x1b[31m name", 0) == "a \\x1b[31m name"
    assert gist(None, 9) == ""


def test_a_very_long_name_is_shortened() -> None:
    clients = Clients([connection("a", "x" * 10_000)])
    assert clients.name("a") == "x" * (MAX_NAME - 1) + "…"


def test_connections_that_were_captured_twice() -> None:
    """Numbers count them twice; what passed a proxy was not published again."""
    said = judged(finding("proxy-on-both-sides"), finding("proxy-on-both-sides", 2, "b"))
    assert said.sentences[1:] == [
        (
            "2 connections were captured twice, on both sides of a proxy or of address "
            "translation: all numbers count them twice."
        )
    ]
    assert said.severity is None
