"""Links of AMQP 1.0: names that are attached again, credit, what a client closes with an error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from tests.amqp10 import EMPTY, composite, error, frame, message, source, target
from tests.archive.splits import packets_of as packets_in
from tests.conftest import CAPTURES
from tests.findings.cases import packets_of
from tests.findings.pairs_of_links import (
    ACCEPTED,
    RABBITMQ4,
    RELEASED,
    detaches,
    give,
    managed,
    opening,
    receiver,
    said,
    sender,
    sends,
    settles,
)
from tests.session.rules.damage import direction_of
from tests.session.rules.telling import told_of
from tests.session.script import Script, wired

CASE = CAPTURES / "cases/links_attached_again.pcap.gz"
LOSSES = CAPTURES / "amqp10/rabbitmq43_losses.pcap.gz"
MANAGEMENT = CAPTURES / "amqp10/rabbitmq43_management.pcap.gz"


def _told(*steps: Any, code: str) -> list[str]:
    return [row["detail"] for row in told_of(packets_of(said(*steps)), code)]


def _again(handle: int) -> list[Any]:
    return [
        ("C", frame("attach", name="in", handle=handle, role=True, target=target(),
                    source=source("q"))),
        ("S", frame("attach", name="in", handle=handle, role=False, source=source("q"),
                    target=target(), initial_delivery_count=0)),
    ]  # fmt: skip


def _links(name: str) -> list[dict[str, Any]]:
    rows = amqpsniff.open(str(CASE)).table("links").to_pylist()
    return [row for row in rows if row["link"] == name]


def test_a_link_whose_name_is_attached_again_goes_on() -> None:
    first, second = _links("det-rcv")
    assert (first["closed_by"], first["suspended"], first["deliveries"]) == ("client", True, 2)
    assert first["detached_packet_number"] == second["attached_packet_number"]
    assert first["end_ns"] == second["start_ns"]
    assert second["deliveries"] == 1
    assert [row["closed_by"] for row in _links("twin")] == ["client", "client"]
    assert all(row["end_ns"] for row in _links("twin"))


def test_credit_that_was_lowered_while_deliveries_were_under_way() -> None:
    (hangs,) = _links("hang-rcv")
    assert (hangs["deliveries"], hangs["credit_end"]) == (4, 0)


def test_two_links_of_one_name_are_those_of_one_client() -> None:
    """The one that Proton attaches before it detaches the other of its name takes nothing over."""
    (stolen,) = (row for row in amqpsniff.open(str(CASE)).findings() if row.code == "link-stolen")
    assert stolen.detail.startswith("the client attached link 'twin' from '/queues/u.a' again in")
    assert stolen.detail.endswith("both links are its own")
    (closed,) = (row for row in amqpsniff.open(str(CASE)).findings()
                 if row.code == "closed-by-client")  # fmt: skip
    assert closed.detail == (
        "the client closed the connection: amqp:invalid-field: link name already attached: twin"
    )
    assert closed.cause_code == "link-stolen"


@pytest.mark.parametrize(("wait", "is_told"), [(999, False), (1001, True)])
def test_who_detaches_the_old_link_soon_puts_another_in_its_place(wait: int, is_told: bool) -> None:
    old = (*detaches("C", 1), wait)
    steps = opening(), receiver(), _again(2), old, detaches("S", 1)
    assert bool(_told(*steps, code="link-stolen")) is is_told


def test_a_handle_that_is_used_again_ends_the_link_before() -> None:
    assert _told(opening(), receiver(), _again(1), code="link-stolen")


def test_consumers_that_never_give_credit() -> None:
    assert [
        row.detail
        for row in amqpsniff.open(str(CASE)).findings()
        if row.code == "credit-never-given"
    ] == ["link 'nc-rcv' from '/queues/u.a', attached for 12.0 s"]


@pytest.mark.parametrize(("condition", "wait", "cause"), [
    ("amqp:not-found", 1, "link-refused"), ("amqp:not-found", 1_001, None),
    ("amqp:resource-deleted", 1, "link-detached"), ("amqp:resource-deleted", 1_001, None),
])  # fmt: skip
def test_a_session_that_ends_since_a_link_was_used_that_the_broker_had_detached(
    condition: str, wait: int, cause: str | None
) -> None:
    refuses = detaches("S", 0, condition, "no queue")
    unknown = error("amqp:session:unattached-handle", "Unattached link handle: 0")
    ends = ("S", frame("end", error=unknown), wait)
    text = said(opening(), receiver(), sender(credit=0), refuses, give("C", 10, 0), ends)
    (row,) = told_of(packets_of(text), "channel-closed-by-broker")
    assert row["cause_code"] == cause
    assert row["detail"].endswith("Unattached link handle: 0; 2 links ended with it")


OTHER = "b.handshake\nb.C1: channel.open\nb.S1: channel.open-ok\n"
CONSUMED = "b.C1: basic.consume queue=q consumer_tag=t\nb.S1: basic.consume-ok consumer_tag=t\n"
GOT = (
    "b.C1: basic.get queue=q\n"
    "b.S1: basic.get-ok delivery_tag=1 exchange= routing_key=q message_count=9 | body=1\n"
)


@pytest.mark.parametrize(
    ("rest_ms", "other", "is_told"),
    [
        (10_000, "", True),
        (10_000, OTHER, True),
        (9_980, "", False),
        (10_000, OTHER + CONSUMED, False),
        (10_000, OTHER + GOT, False),
        (
            10_000,
            OTHER + "b.C1: queue.delete queue=q\nb.S1: queue.delete-ok message_count=9",
            False,
        ),
        (10_000, OTHER + "b.C1: queue.declare queue=q auto_delete=1\n", False),
    ],
)
def test_messages_that_wait_for_a_link_without_credit(
    rest_ms: int, other: str, is_told: bool
) -> None:
    sent = sends("C", *range(10)), [settles("S", at, ACCEPTED) for at in range(10)]
    link, later = receiver(credit=0, address="/queues/q"), ("C", EMPTY, rest_ms)
    text = said(opening(), sender("/queues/q"), *sent, link, later, ("S", EMPTY))
    rows = told_of(packets_of(f"{other}\n{text}"), "credit-not-renewed")
    told = "link 'in' from '/queues/q': no credit since its attach; 10 or more messages were "
    told += "published for queue 'q', and nobody got one"
    assert [row["detail"] for row in rows] == ([told] if is_told else [])


@pytest.mark.parametrize("link", [
    receiver(credit=0, address="$cbs"),
    receiver(credit=0, address="queue/$management"),
    receiver(credit=1),
    [*receiver(credit=0), (*give("C", 1, 0, handle=1), 9_000)],
    sender(credit=0),
])  # fmt: skip
def test_links_that_need_no_credit_or_get_it(link: list[Any]) -> None:
    later = ("C", frame("flow", incoming_window=9, next_outgoing_id=0, outgoing_window=9), 11_000)
    assert not _told(opening(), link, later, code="credit-never-given")


def test_links_to_dynamic_nodes_need_no_credit() -> None:
    wanted = frame("attach", name="in", handle=1, role=True, target=target(),
                   source=composite("source", dynamic=True))  # fmt: skip
    given = frame("attach", name="in", handle=1, role=False, target=target(),
                  source=composite("source", address="tmp", dynamic=True),
                  initial_delivery_count=0)  # fmt: skip
    later = ("C", frame("flow", incoming_window=9, next_outgoing_id=0, outgoing_window=9), 11_000)
    assert not _told(opening(), ("C", wanted), ("S", given), later, code="credit-never-given")


def test_a_link_to_any_address_says_where_the_message_went() -> None:
    anonymous = [
        ("C", frame("attach", name="out", handle=0, role=False, source=source(),
                    target=composite("target"), initial_delivery_count=0)),
        ("S", frame("attach", name="out", handle=0, role=True, source=source(),
                    target=composite("target"))),
        give("S", 9, 0),
    ]  # fmt: skip
    to = message(properties=composite("properties", to="/queues/none"))
    steps = opening(RABBITMQ4), anonymous, sends("C", 0, payload=to), settles("S", 0, RELEASED)
    (detail,) = _told(*steps, code="message-unroutable")
    assert detail.startswith("delivery 0 of link 'out', sent to '/queues/none' in packet")


@pytest.mark.parametrize("condition", ["amqp:connection:forced", "amqp:link:detach-forced"])
def test_a_client_that_was_told_to_close(condition: str) -> None:
    close = ("C", frame("close", error=error(condition, "maintenance")))
    assert not _told(opening(), close, code="closed-by-client")


@pytest.mark.parametrize(("steps", "owed"), [
    ((opening(), sender()[0]), "the reply to attach of link 'out'"),
    ((opening()[:-1],), "the reply to begin"),
    ((opening(), sender()[0], receiver()[0]), "replies to 2 requests, attach of link 'out' first"),
])  # fmt: skip
def test_what_the_broker_owes(steps: tuple[Any, ...], owed: str) -> None:
    engine = amqpsniff.Engine()
    for packet in packets_of(said(*steps, ("C", EMPTY, 6_000))):
        engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type)
    engine.finish()
    (row,) = engine.take("connections").to_pylist()
    assert row["owed"].startswith(f"broker owes {owed} since 6.0")


def test_a_client_that_only_answers() -> None:
    """What the broker closed first, with the broker's error said again."""
    wrong = error("amqp:not-found", "no such queue")
    steps = [
        opening(), sender(), detaches("S", 0, "amqp:not-found", "no such queue"),
        ("C", frame("detach", handle=0, closed=True, error=wrong)),
        ("S", frame("end", error=wrong)), ("C", frame("end", error=wrong)),
        ("S", frame("close", error=wrong)), ("C", frame("close", error=wrong)),
    ]  # fmt: skip
    assert not _told(*steps, code="closed-by-client")


def test_an_idle_time_out_of_the_client_is_a_missed_heartbeat() -> None:
    late = error("amqp:resource-limit-exceeded", "local-idle-timeout expired")
    steps = opening(), ("C", frame("close", error=late), 9_000)
    assert _told(*steps, code="heartbeat-missed")
    assert not _told(*steps, code="closed-by-client")


def _findings(path: Path, *codes: str) -> list[dict[str, Any]]:
    rows = amqpsniff.open(str(path)).table("findings").to_pylist()
    return [row for row in rows if row["code"] in codes]


def test_requests_to_the_management_that_were_refused() -> None:
    """Whatever changes something, with the request and RabbitMQ's words; who asks is not told."""
    details = [row["detail"] for row in _findings(MANAGEMENT, "management-refused")]
    requests = [detail.partition(" in packet ")[0] for detail in details]
    assert requests == [
        "PUT /queues/e.q", "POST /bindings", "PUT /exchanges/amq.direct", "PUT /exchanges/amq.foo",
        "DELETE /exchanges/amq.direct", "DELETE /queues/nope/messages",
    ]  # fmt: skip
    assert [
        detail.partition(": ")[2][:3] for detail in details
    ] == "409 400 409 403 403 404".split()
    assert details[0].endswith(
        "in packet 143: 409 inequivalent arg 'x-queue-type' for queue 'e.q' in vhost '/': "
        "received 'classic' but current is 'quorum'"
    )


def test_what_was_deleted_over_the_management() -> None:
    deleted = _findings(MANAGEMENT, "operation-destructive")
    assert [row["detail"].rpartition(" from 10.27.0.2 ")[2] for row in deleted] == [
        "unbound queue 'h.q q'", "emptied queue 'h.q q'", "deleted queue 'h.q q'",
        "deleted exchange 'h.ex'", "deleted queue 'nope'", "deleted queue 'e.q'",
    ]  # fmt: skip


def test_requests_to_the_management_say_what_they_are_about() -> None:
    rows = amqpsniff.open(str(MANAGEMENT)).sql(
        "SELECT type, address FROM messages WHERE routing_key = '/management' LIMIT 3"
    )
    assert [tuple(row.values()) for row in rows.arrow().to_pylist()] == [
        ("PUT", "/exchanges/h.ex"), ("PUT", "/queues/h.q%20q"), ("POST", "/bindings")
    ]  # fmt: skip


def test_a_token_that_ran_out_is_why_the_next_logins_are_refused() -> None:
    (closed,) = _findings(LOSSES, "connection-closed-by-broker")
    refused = _findings(LOSSES, "authentication-failed")
    assert closed["detail"] == "amqp:unauthorized-access: credential expired"
    assert [row["cause_code"] for row in refused] == 3 * [closed["code"]]
    assert {row["cause_packet_number"] for row in refused} == {closed["packet_number"]}


def test_links_that_are_attached_on_a_session_that_was_ended() -> None:
    """They have no meaning, so none takes another's name."""
    assert len(_findings(LOSSES, "channel-closed-by-broker")) == 1
    assert not _findings(LOSSES, "link-stolen")


def test_deliveries_whose_queue_was_deleted() -> None:
    (deleted,) = _findings(LOSSES, "deliveries-deleted")
    assert deleted["count"] == 15
    assert deleted["detail"].startswith("15 deliveries of the link from '/queues/")
    assert "in packets 348 to 350, when the queue was deleted in packet 356" in deleted["detail"]
    assert deleted["cause_code"] == "link-detached"


@pytest.mark.parametrize("packets", [167, 175, 208])
def test_a_client_that_was_killed_in_a_capture_that_began_later(packets: int) -> None:
    """Nothing is missing of a connection since its first frame, though it began before."""
    (told,) = told_of(packets_in([LOSSES])[packets:], "disconnect-unclean")
    assert told["detail"].endswith("left open: 1 channel, 30 deliveries not acknowledged")


def test_a_close_of_a_connection_from_before_the_capture_is_no_refused_login() -> None:
    packets = packets_in([LOSSES])[22:40]
    assert len(told_of(packets, "connection-closed-by-broker")) == 1
    assert not told_of(packets, "authentication-failed")


def _of_server(*steps: Any) -> list[Any]:
    """The packets of the broker alone."""
    packets = packets_of(said(*steps))
    broker = direction_of(packets[-1])
    return [packet for packet in packets if direction_of(packet) == broker]


def test_what_is_not_settled_is_not_told_where_the_client_was_not_captured() -> None:
    gone = error("amqp:resource-deleted")
    got = opening(), receiver(), sends("S", 0, 1, handle=1), settles("C", 0, ACCEPTED, role=True)
    for last, code in (
        (detaches("S", 1, "amqp:resource-deleted"), "link-detached"),
        (("S", frame("end", error=gone)), "channel-closed-by-broker"),
    ):
        (detail,) = _told(*got, last, code=code)
        assert "1 delivery" in detail
        assert detail.endswith("not settled")
        (row,) = told_of(_of_server(*got, last), code)
        assert row["detail"].endswith("amqp:resource-deleted")


def test_a_refused_link_whose_attach_was_not_captured_leads_to_no_known_address() -> None:
    refused = [
        ("C", frame("attach", name="out", handle=0, role=False, source=source(),
                    target=target("q"), initial_delivery_count=0)),
        ("S", frame("attach", name="out", handle=0, role=True, source=source())),
        detaches("S", 0, "amqp:not-found"),
    ]  # fmt: skip
    assert _told(opening(), refused, code="link-refused") == ["link 'out' to 'q': amqp:not-found"]
    (row,) = told_of(_of_server(opening(), refused), "link-refused")
    assert row["detail"] == "link 'out': amqp:not-found"


def test_a_request_to_the_management_that_was_not_captured() -> None:
    broker = bytes([10, 27, 0, 1])
    answers = [one for one in packets_in([MANAGEMENT]) if direction_of(one).startswith(broker)]
    rows = told_of(answers, "management-refused")
    assert rows[0]["detail"].startswith("a request that was not captured: 409 inequivalent arg ")


@pytest.mark.parametrize(("side", "outcome"), [("S", "requeued"), ("C", "acked")])
def test_what_the_broker_took_back_is_not_accepted_later(side: str, outcome: str) -> None:
    """RabbitMQ 4.3.6 does so after its consumer timeout; the message stays in the queue."""
    released = settles(side, 0, RELEASED, role=side == "C", settled=False)
    engine = amqpsniff.Engine()
    for packet in packets_of(said(opening(RABBITMQ4), receiver(), sends("S", 0, handle=1),
                                  released, settles("C", 0, ACCEPTED, role=True))):  # fmt: skip
        engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type)
    engine.finish()
    (row,) = engine.take("messages").to_pylist()
    assert (row["outcome"], row["settled_by"]) == (outcome, "client")
    (link,) = engine.take("links").to_pylist()
    assert (link["accepted"], link["released"]) == ((0, 1) if side == "S" else (1, 0))


@pytest.mark.parametrize(("last", "told"), [
    (1, "2 deliveries of link 'in' from 'q', the oldest in packet 11, had not been settled for {}"),
    (0, "1 delivery of link 'in' from 'q' in packet 11 had not been settled for {}"),
])  # fmt: skip
def test_how_many_deliveries_the_broker_took_back(last: int, told: str) -> None:
    released = settles("S", 0, RELEASED, role=False, settled=False, last=last)
    steps = opening(RABBITMQ4), receiver(), sends("S", 0, 1, handle=1), (*released, 60_000)
    (detail,) = _told(*steps, code="consumer-timed-out")
    when = f"60.0 s when the broker took {'them' if last else 'it'} back"
    assert re.sub(r"packet \d+", "packet 11", detail) == told.format(when)


@pytest.mark.parametrize(
    ("link", "sending", "code"),
    [
        (sender(), sends("C", 0), "publishes-in-doubt"),
        (receiver(credit=3), sends("S", 0, handle=1), "deliveries-in-doubt"),
    ],
)
def test_a_silence_ends_what_was_under_way_if_it_ends_the_connection(
    link: Any, sending: Any, code: str
) -> None:
    idle = error("amqp:resource-limit-exceeded", "local-idle-timeout expired")
    closed = [("S", frame("close", error=idle), 21_000), ("C", frame("close"))]
    over = [("C", EMPTY, 21_000), ("C", frame("end"), 5_000), ("S", frame("end"))]
    for end, cause in ((closed, "heartbeat-missed"), (over, None)):
        steps = (opening(idle_time_out=10_000), link, sending, end)
        rows = told_of(packets_of(said(*steps)), code, "heartbeat-missed")
        assert {row["code"]: row["cause_code"] for row in rows} == {
            "heartbeat-missed": None,
            code: cause,
        }


DELETES = """
    handshake client='{"connection_name": "ops"}'
    C1: channel.open
    S1: channel.open-ok
    C1: queue.delete queue=q
    S1: queue.delete-ok
"""


def _from(port: int, packets: list[Any], end_ns: int) -> list[Any]:
    """Packets of a client with another port, the last one at a time."""
    old, new = (number.to_bytes(2) for number in (40000, port))
    later = end_ns - packets[-1].ts_ns
    return [
        one._replace(octets=one.octets.replace(old, new, 1), ts_ns=one.ts_ns + later)
        for one in packets
    ]


@pytest.mark.parametrize(
    ("address", "ms", "named"),
    [("/queues/q", 1, True), ("/queues/q", -1, True),
     ("/queues/p", 1, False), ("/queues/q", 1_100, False)],
)  # fmt: skip
@pytest.mark.parametrize("role", [True, False])
@pytest.mark.parametrize("over_management", [True, False])
def test_who_deleted_the_queue_of_a_link(
    address: str, ms: int, named: bool, role: bool, over_management: bool
) -> None:
    """The deletion is answered before or after the detach, on another connection."""
    deletes = [packet for _, packet in wired(Script(DELETES))]
    if over_management:
        deletes = packets_of(managed(204, "DELETE", server=RABBITMQ4))
        deletes = deletes[: next(at for at, one in enumerate(deletes) if b"204" in one.octets) + 1]
    link = receiver if role else sender
    gone = [
        *opening(RABBITMQ4),
        *link(address=address),
        detaches("S", int(role), "amqp:resource-deleted"),
    ]
    packets = packets_of(said(gone, [("C", EMPTY, 1_000)]))
    detached_ns = next(one.ts_ns for one in packets if b"resource-deleted" in one.octets)
    both = packets + _from(40009, deletes, detached_ns + ms * 1_000_000)
    (row,) = told_of(sorted(both, key=lambda one: one.ts_ns), "link-detached")
    assert ("; deleted in packet" in row["detail"]) is named
