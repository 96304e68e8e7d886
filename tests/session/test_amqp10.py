"""Outcomes of deliveries of AMQP 1.0, compared with independent decoders on real captures."""

from __future__ import annotations

import gc
import gzip
import io
import json
import re
from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from amqpsniff import open as open_capture
from tests.amqp10 import Symbol, composite, message
from tests.conftest import SAMPLES
from tests.decode.amqp10.truth import CAPTURES, capture, expected, plain
from tests.findings.cases import file_of, packets_of
from tests.findings.pairs_of_links import ACCEPTED, opening, receiver, said, sender, sends, settles

NAMES = sorted(path.name.partition(".")[0] for path in CAPTURES.glob("*.expected.json.gz"))
OUTCOMES = {
    "send": {
        "accepted": "confirmed",
        "declared": "confirmed",
        "transactional:accepted": "confirmed",
        "rejected": "rejected",
        "released": "returned",
        "modified": "returned",
        "settled": None,
        "unsettled": "unconfirmed",
    },
    "receive": {
        "accepted": "acked",
        "transactional:accepted": "acked",
        "rejected": "discarded",
        "released": "requeued",
        "modified": "requeued",
        "settled": "automatic",
        "unsettled": "unsettled",
    },
}


def opened(name: str) -> Any:
    """A capture, with its keys; the port tells who the server is where the beginning is missing."""
    keys = CAPTURES / f"{name}.keys"
    keylog = str(keys) if keys.exists() else None
    return open_capture(
        str(capture(name)), tls_keylog=keylog, ports=[5675] if name == "midstream" else []
    )


def wanted(name: str) -> dict[tuple[Any, ...], tuple[dict[str, Any], dict[str, Any]]]:
    """Deliveries and their connections by client, packet of the first transfer, side and number."""
    return {
        (one["client"], each["n"], each["sender"], each["id"]): (each, one)
        for one in expected(name)["connections"]
        for each in one["deliveries"]
    }


@pytest.mark.parametrize("name", NAMES)
def test_deliveries_are_those_of_other_decoders(name: str) -> None:
    rows = [row.as_dict() for row in opened(name).messages()]
    found = {
        (row["client"], row["packet_number"], row["sender"], row["delivery_tag"]): row
        for row in rows
    }
    truth = wanted(name)
    assert found.keys() == truth.keys()
    for at, (delivery, connection) in truth.items():
        row = found[at]
        assert row["last_packet_number"] == delivery["last"], at
        assert row["status"] == delivery["status"], at
        link = delivery["link"]
        known = None if link is None else connection["links"][link]["name"]
        assert row["consumer_tag"] == known, at
        method = "send" if delivery["sender"] == "client" else "receive"
        assert row["method"] == method, at
        if delivery["outcome"] is None or (name == "midstream" and row["outcome"] is None):
            continue
        outcome = OUTCOMES[method][delivery["outcome"]]
        if delivery["outcome"] == "unsettled" and row["outcome"] is None:
            # no disposition names it: it has no delivery-id, or no session that it is of
            assert row["delivery_tag"] is None or (link is None and name.startswith("violations"))
            continue
        assert row["outcome"] == outcome, at
        if "outcome_n" in delivery:
            assert row["outcome_packet_number"] == delivery["outcome_n"], at


@pytest.mark.parametrize("name", NAMES)
def test_properties_are_those_of_other_decoders(name: str) -> None:
    rows = [row.as_dict() for row in opened(name).messages()]
    found = {
        (row["client"], row["packet_number"], row["sender"], row["delivery_tag"]): row
        for row in rows
    }
    for at, (delivery, _) in wanted(name).items():
        if "sections" not in delivery:
            continue  # theirs stop at what is not the standard's
        sections = {one["type"]: one for one in delivery["sections"]}
        properties, row = sections.get("properties", {}), found[at]
        for theirs, ours in (
            ("message-id", "message_id"),
            ("correlation-id", "correlation_id"),
            ("reply-to", "reply_to"),
            ("subject", "type"),
            ("content-type", "content_type"),
        ):
            value = properties.get(theirs)
            value = None if isinstance(value, list) else value
            assert row[ours] == (None if value is None else str(value)), (at, theirs)
        header = sections.get("header", {})
        assert row["priority"] == header.get("priority"), at
        ttl = header.get("ttl")
        assert row["expiration"] == (None if ttl is None else str(ttl)), at


@pytest.mark.parametrize("name", NAMES)
def test_connections_are_those_of_other_decoders(name: str) -> None:
    rows = {row["client"]: row for row in opened(name).table("connections").to_pylist()}
    for one in expected(name)["connections"]:
        row = rows[one["client"]]
        if not one["open"]:
            continue  # the client's protocol header was refused
        client = (one["open"] or {}).get("client") or {}
        sasl = one["sasl"] or {}
        assert row["protocol"] == "1.0"
        assert row["connection_name"] == client.get("container-id")
        assert row["mechanism"] == sasl.get("mechanism")
        assert row["user"] == sasl.get("user")
        host = client.get("hostname")
        if row["server_product"] == "RabbitMQ" and not (host or "").startswith("vhost:"):
            host = "/"
        assert row["vhost"] == (None if host is None else host.removeprefix("vhost:"))
        if name.startswith("violations"):
            continue  # theirs tell which of two sessions was meant otherwise
        assert row["channels"] == sum(each["by"] is not None for each in one["sessions"])
        sent = [each for each in one["deliveries"] if each["sender"] == "client"]
        assert (row["published"], row["delivered"]) == (
            len(sent),
            len(one["deliveries"]) - len(sent),
        )


def _is_unfinished(connection: dict[str, Any], link: int) -> bool:
    """True if a delivery of the link never ended: theirs do not count it."""
    return any(
        one["link"] == link and one["status"] == "incomplete" for one in connection["deliveries"]
    )


@pytest.mark.parametrize("name", NAMES)
def test_links_are_those_of_other_decoders(name: str) -> None:
    rows = opened(name).table("links").to_pylist()
    found = {
        (row["client"], row["attached_packet_number"], row["link"], row["role"]): row
        for row in rows
        if row["link"] is not None
    }
    truth = {
        (
            one["client"],
            min(link["attach"].values()),
            link["name"],
            "sender" if link["sender"] == "client" else "receiver",
        ): link
        for one in expected(name)["connections"]
        for number, link in enumerate(one["links"])
        if one["sessions"][link["session"]]["by"] is not None and not _is_unfinished(one, number)
    }
    if name.startswith("violations"):
        truth = {at: link for at, link in truth.items() if at in found}  # not outside a session
    else:
        assert found.keys() == truth.keys()
    for at, link in truth.items():
        row = found[at]
        for ours, theirs in (
            ("flows", "flows"),
            ("deliveries", "deliveries"),
            ("credit_end", "credit_end"),
            ("delivery_count", "delivery_count_end"),
        ):
            assert row[ours] == link[theirs], (at, ours)
        for side in ("client", "server"):
            assert row[f"{side}_handle"] == link["handle"].get(side), at
        detached = link["detach"][0] if link["detach"] else {"by": row["closed_by"]}
        assert row["detached_packet_number"] == detached.get("n"), at
        assert row["closed_by"] == detached["by"], at
        error = next((one["error"] for one in link["detach"] if one["error"]), None) or {}
        assert row["close_condition"] == error.get("condition"), at
        assert row["close_text"] == error.get("description"), at


def test_links_say_what_became_of_their_deliveries() -> None:
    rows = {
        (row["link"], row["attached_packet_number"]): row
        for row in opened("links").table("links").to_pylist()
    }
    outcomes = next(row for (name, _), row in rows.items() if name == "tx-outcomes")
    counted = ("accepted", "rejected", "released", "modified", "unsettled_max", "unsettled_end")
    assert [outcomes[name] for name in counted] == [0, 3, 3, 3, 12, 3]
    drained = next(row for (name, _), row in rows.items() if name == "rx-drain")
    assert (drained["drains"], drained["credit_max"], drained["credit_end"]) == (1, 10, 0)
    one_by_one = next(row for (name, _), row in rows.items() if name == "rx-a")
    assert one_by_one["starved_ns"] > 500_000_000
    secret = next(row for (name, _), row in rows.items() if name == "rx-secret")
    assert (secret["refused"], secret["closed_by"]) == (True, "server")
    assert secret["close_condition"] == "amqp:unauthorized-access"
    sessions = opened("links").table("channels").to_pylist()
    assert {row["channel"]: row["consumers"] for row in sessions}[secret["channel"]] == 1


@pytest.mark.parametrize("name", NAMES)
def test_windows_are_those_of_other_decoders(name: str) -> None:
    rows = {
        (row["client"], row["channel"], row["server_channel"], row["opened_packet_number"]): row
        for row in opened(name).table("channels").to_pylist()
    }
    for one in expected(name)["connections"]:
        for session in one["sessions"]:
            channel, begin = session["channel"], session["begin"]
            if session["by"] is None or len(channel) < 2 or name.startswith("violations"):
                continue
            at = (one["client"], channel["client"], channel["server"], min(begin.values()))
            if name == "links" and at not in rows:
                continue  # a session that only the server began
            row = rows[at]
            for side in ("client", "server"):
                assert row[f"{side}_window"] is not None, at
                least = row[f"{side}_window_min"]
                assert least is None or 0 <= least <= row[f"{side}_window"], at


def test_columns_that_only_deliveries_have() -> None:
    names = ["transfers", "state", "state_error", "settled_by", "address", "tag", "message_bytes"]
    capture = opened("links")
    statement = f"SELECT {', '.join(names)} FROM messages WHERE state = 'rejected' LIMIT 1"
    (row,) = next(iter(capture.sql(statement))).to_pylist()
    assert [row[name] for name in ("state", "settled_by", "address", "transfers")] == [
        "rejected", "server", "qo", 1,
    ]  # fmt: skip
    assert not set(names) & set(capture.table("messages").schema.names)
    assert capture.table("messages", columns=names).schema.names == [
        "transfers", "message_bytes", "tag", "address", "state", "state_error", "settled_by",
    ]  # fmt: skip


def test_connections_of_other_protocols_have_no_links() -> None:
    capture = open_capture("samples/pika_mix.pcap")
    assert capture.table("links").num_rows == 0
    (row, *_) = capture.table("channels").to_pylist()
    assert (row["client_window"], row["server_channel"]) == (None, None)


def test_stories_of_rabbitmq_43() -> None:
    """Proton and pika against RabbitMQ 4.3.6; what happened is in the README of the captures."""
    capture = open_capture(str(CAPTURES / "amqp10_rabbitmq43.pcap.gz"))
    rows = list(capture.findings())
    found = {row.code: row for row in rows}
    assert {
        "message-unroutable", "publish-rejected", "link-refused", "poison-message",
        "publishes-unprotected", "deliveries-in-doubt", "filter-ignored", "authentication-failed",
    } <= found.keys()  # fmt: skip
    assert found["publish-rejected"].count == 2
    assert found["deliveries-in-doubt"].count == 10
    assert any("no queue 'missing'" in row.detail for row in rows if row.code == "link-refused")
    messages = [row.as_dict() for row in capture.messages()]
    assert {row["outcome"] for row in messages if row["method"] == "send"} == {
        "confirmed", "returned", "rejected", None,
    }  # fmt: skip
    failed = [row["delivery_count"] for row in messages if row["message_id"] == "o-13"]
    assert failed == [None, 0, 1, 2, 3, 4, 5]
    (lost,) = [row for row in messages if row["message_id"] == "u-0"]
    assert (lost["exchange"], lost["routing_key"]) == ("amq.direct", "no key")
    assert (lost["state"], lost["settled_by"]) == ("released", "server")


def _linked(name: str, method: str) -> list[Any]:
    capture = open_capture(str(CAPTURES / name), body_sha256=True)
    return [row for row in capture.messages() if row.method == method]


def test_deliveries_are_linked_with_what_was_sent() -> None:
    received = _linked("rabbit_outcomes.pcap", "receive")
    sent = {
        (row.packet_number, row.message_id, row.body_sha256)
        for row in _linked("rabbit_outcomes.pcap", "send")
    }
    assert {row.link_confidence for row in received} == {"exact"}
    assert sent >= {
        (row.published_packet_number, row.message_id, row.body_sha256) for row in received
    }


def test_messages_are_linked_across_protocols() -> None:
    """Published by 0-9-1 and received by 1.0, and the other way."""
    name = "amqp10_rabbitmq43.pcap.gz"
    received = [row for row in _linked(name, "receive") if str(row.message_id).startswith("p-")]
    sent = {row.packet_number: row for row in _linked(name, "basic.publish")}
    assert [sent[row.published_packet_number].message_id for row in received] == [
        row.message_id for row in received
    ]
    assert [(row.link_confidence, row.delivery_number) for row in received] == [("exact", 1)] * 6
    delivered = _linked(name, "basic.deliver")
    back = {row.packet_number: row for row in _linked(name, "send")}
    assert [back[row.published_packet_number].message_id for row in delivered] == [
        f"b-{number}" for number in range(5)
    ]


def test_ids_of_other_types_and_ids_used_again() -> None:
    """RabbitMQ 4.3.6 writes a UUID as `urn:uuid:…` for 0-9-1; ids that are used again are told
    apart by size. A binary id and none go without a link.
    """
    rows = [row.as_dict() for row in opened("rabbitmq43_ids").messages()]
    sent: dict[int, int] = {}
    came = []
    for row in rows:
        if row["queue"]:
            came.append((row["published_packet_number"], row["link_confidence"]))
        else:
            sent[row["packet_number"]] = len(sent)
    own = [(sent.get(number), confidence) for number, confidence in came]
    exact = {0, 1, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 18}
    assert own == [
        (place, "exact") if place in exact else (place, "likely") if place > 12 else (None, None)
        for place in range(20)
    ]
    ids = [row["message_id"] for row in rows if row["packet_number"] in (104, 108)]
    assert ids == [str(UUID(int=9)), f"urn:uuid:{UUID(int=9)}"]


def test_every_message_of_two_protocols() -> None:
    """What pika and Proton logged of 15 messages with RabbitMQ 4.3.6: where each came, whether
    again, what the receiver said, and whose it was. Without message-id it is not known whose.
    """
    rows = [row.as_dict() for row in opened("rabbitmq43_cross").messages()]
    names = {row["packet_number"]: row["message_id"] for row in rows if row["exchange"] == "shop"}
    sent = [(row["message_id"], row["outcome"]) for row in rows if not row["queue"]]
    assert sent == [
        *((f"p-{number}" if number < 6 else None, "confirmed") for number in range(8)),
        *((f"b-{number}" if number < 5 else None, "confirmed") for number in range(6)),
        ("lost", "returned"),
    ]
    came = [
        (row["queue"], row["message_id"], row["redelivered"], row["outcome"])
        for row in rows
        if row["queue"]
    ]
    assert came == [
        ("xorders", "p-0", False, "acked"),
        ("xorders", "p-1", False, "acked"),
        ("xorders", "p-2", False, "discarded"),
        ("xorders", "p-3", False, "requeued"),
        ("xorders", "p-4", False, "requeued"),
        ("xorders", "p-5", False, "discarded"),
        ("xorders", None, False, "acked"),
        ("xorders", None, False, "acked"),
        ("xorders", "p-3", True, "acked"),
        ("xdead", "p-2", True, "acked"),
        ("xorders", "p-4", True, "acked"),
        ("xdead", "p-5", False, "acked"),
        ("xback", "b-0", False, "acked"),
        ("xback", "b-1", False, "acked"),
        ("xback", "b-2", False, "discarded"),
        ("xback", "b-3", False, "requeued"),
        ("xback", "b-4", False, "acked"),
        ("xback", None, False, "acked"),
        ("xdead10", "b-2", True, "acked"),
        ("xback", "b-3", True, "acked"),
    ]
    of_one_packet = {146: {f"b-{number}" for number in range(5)}}  # Proton sent them at once
    for row in rows:
        published = row["published_packet_number"]
        assert (published is None) == (not row["queue"] or row["message_id"] is None)
        if published is not None:
            whose = of_one_packet.get(published, {names[published]})
            assert row["message_id"] in whose


def test_replies_are_linked_with_requests() -> None:
    """Of 20 requests one has no answer, and one is answered without correlation-id."""
    requests = [row for row in _linked("rpc.pcap", "send") if row.reply_to]
    replies = [row for row in _linked("rpc.pcap", "receive") if row.request_packet_number]
    assert (len(requests), len(replies)) == (20, 19)
    known = {(row.packet_number, row.correlation_id or row.message_id) for row in requests}
    assert known > {(row.request_packet_number, row.correlation_id) for row in replies}


def test_what_no_disposition_names_has_no_outcome() -> None:
    """A transfer after its session's end, and one without a delivery-id: Proton's broker takes it
    for delivery 0, which no rule allows, and accepts that.
    """
    rows = {row.packet_number: row for row in opened("violations_proton").messages()}
    for number in (279, 507):
        assert (rows[number].outcome, rows[number].state) == (None, None)
    said = {row.packet_number: row for row in opened("violations_proton").frames()}
    after = [row for row in said.values() if row.client == rows[507].client]
    (accepted,) = (row for row in after if row.method == "disposition")
    assert accepted.arguments["first"] == 0


def _told(name: str) -> dict[str, list[Any]]:
    """Findings by the name of their connection, else by the client's address."""
    found = opened(name)
    names = {
        row["connection_id"]: row["connection_name"] or row["client"]
        for row in found.table("connections").to_pylist()
    }
    told: dict[str, list[Any]] = {}
    for row in found.findings():
        told.setdefault(names.get(row.connection_id, ""), []).append(row)
    return told


def test_consumers_that_hold_or_put_back_and_requests_without_answer() -> None:
    """Each client of RabbitMQ 4.3.6 that is in trouble, beside one that is nearly so."""
    told = _told("rabbitmq43_consumers")
    codes = {name: {row.code for row in rows} for name, rows in told.items()}
    assert codes["worker-stuck"] == {"consumer-stuck", "deliveries-in-doubt"}
    assert codes["worker-storm"] == {"poison-message", "requeue-storm", "credit-exhausted"}
    assert codes["asker"] == {"rpc-unanswered"}
    near = {"worker-slow", "worker-shutdown", "patient", "price-server"}
    assert not near & codes.keys()
    (stuck,) = (row for row in told["worker-stuck"] if row.code == "consumer-stuck")
    assert "held 5 deliveries of 5 that its credit allows" in stuck.detail
    (storm,) = (row for row in told["worker-storm"] if row.code == "requeue-storm")
    assert storm.detail == "245 of 245 deliveries put back in 10.2 s (from 'storm')"
    (unanswered,) = told["asker"]
    assert unanswered.count == 2
    again = Counter(
        row.redelivered
        for row in opened("rabbitmq43_consumers").messages()
        if row.consumer_tag == "worker-storm" and row.method == "receive"
    )
    assert again == {False: 10, True: 330}


def test_a_frame_is_larger_than_the_broker_takes() -> None:
    """RabbitMQ takes frames of 131,072 bytes, and closes the connection for one byte more."""
    told = _told("rabbitmq43_frames")
    assert "frame-of-131072" not in {
        name for name, rows in told.items() if any(row.code == "frame-too-large" for row in rows)
    }
    (large,) = (row for row in told["frame-of-131073"] if row.code == "frame-too-large")
    assert large.detail == "a frame of 131073 bytes of the client; the other side takes 131072"
    assert "connection-closed-by-broker" in {row.code for row in told["frame-of-131073"]}


def test_other_protocols_on_a_port_of_amqp_10() -> None:
    """HTTP, MQTT and TLS to RabbitMQ's port; a client that begins with SASL is none of them."""
    rows = [row for row in opened("other_protocols").findings() if row.code == "not-amqp"]
    assert [row.detail.rpartition(" ")[2] for row in rows] == ["HTTP", "MQTT", "TLS"]
    assert {row.server for row in rows} == {"127.0.0.1:5672"}


REFUSED = "user 'orders' from 127.0.0.1: the broker ended TCP"


@pytest.mark.parametrize(
    ("port", "code", "words"),
    [
        (5681, "protocol-version-refused", "AMQP 1.0 SASL, the broker offers AMQP 1.0"),
        (5682, "authentication-failed", f"{REFUSED} [0-9.]+ ms after it had named PLAIN"),
        (5683, "disconnect-unclean", "the broker ended TCP after .* and did not answer open"),
        (5684, "disconnect-unclean", "the broker ended TCP after .* and did not answer open"),
        (5685, None, ""),
        (5692, "protocol-header-unanswered", "the server ended TCP after .* ms"),
    ],
)
def test_handshakes_that_stop(port: int, code: str | None, words: str) -> None:
    """Proton and rhea with servers that break off, and one that does not (5685)."""
    rows = [row for row in opened("handshakes").findings() if row.server.endswith(f":{port}")]
    assert {row.code for row in rows} == ({code} if code else set())
    assert len(rows) == (1 if port == 5684 else 2 if code else 0)  # Proton was not sent to 5684
    assert all(re.search(words, row.detail) for row in rows)


def test_logins_that_the_client_does_not_finish() -> None:
    """RabbitMQ 4.3.6 waits 10 s; the client that opens after its login is left in peace."""
    rows = [row for row in opened("handshakes").findings() if row.server.endswith(":5672")]
    slow = sorted(row.detail for row in rows if row.code == "handshake-slow")
    assert slow == [
        f"the broker gave up after 10.0 s, waiting for the client's {step}"
        for step in ("open", "open", "sasl-init")
    ]
    assert {row.code for row in rows} == {"handshake-slow", "account-default"}


def test_links_on_sessions_of_their_own_do_not_block_each_other() -> None:
    """The near miss of `session-links-blocked`: the same traffic, a session a link."""
    codes = [
        {row.code for row in open_capture(str(capture(name))).findings()}
        for name in ("rhea_blocked", "rhea_own_sessions")
    ]
    assert [("session-links-blocked" in one, "credit-exhausted" in one) for one in codes] == [
        (True, True),
        (False, True),
    ]


def test_websocket_in_tls() -> None:
    rows = [row for row in opened("wss").messages() if row.method == "send"]
    assert [(row.message_id, row.outcome) for row in rows] == [
        (f"w{number}", "confirmed") for number in range(5)
    ]


def test_summary_of_two_protocols() -> None:
    """What is counted of captures of both is what is counted of each."""
    paths = str(SAMPLES / "pika_mix.pcap"), str(CAPTURES / "rabbit_outcomes.pcap")
    *each, both = (open_capture(*some).summary() for some in (paths[:1], paths[1:], paths))

    def counted(summary: Any) -> Counter[tuple[str, str | None]]:
        methods = {("method", name): count for name, count in summary["methods"].items()}
        outcomes = {("outcome", row["outcome"]): row["count"] for row in summary["outcomes"]}
        return Counter(methods | outcomes)

    assert counted(both) == counted(each[0]) + counted(each[1])


RHEA = sorted(path.name.partition(".")[0] for path in CAPTURES.glob("*.rhea.json.gz"))
"""Captures of which rhea's decoder read the frames and what was said of each delivery."""


@pytest.mark.parametrize("name", RHEA)
def test_frames_and_outcomes_are_those_of_rhea(name: str) -> None:
    with gzip.open(CAPTURES / f"{name}.rhea.json.gz") as file:
        truth = json.load(file)
    opened_capture = open_capture(str(capture(name)))
    found, wanted_frames = [], []
    for row in opened_capture.frames():
        client = int(row.client.rpartition(":")[2])
        kind = row.method or ("empty" if row.frame_type == "heartbeat" else "protocol-header")
        said = plain(row.arguments or {})
        said |= {"payload-bytes": row.arguments.get("payload_bytes", 0)} if said else {}
        found.append((row.packet_number, client, row.sender, row.channel, kind, said))
    for number, client, side, channel, kind, *fields in truth["frames"]:
        sender = ("client", "server")[side]
        wanted_frames.append((number, client, sender, channel, kind, (fields or [{}])[0]))
    # rows are in the order of packets; two frames of one packet are in that of the stream
    for ours, theirs in zip(found, wanted_frames, strict=True):
        assert ours[:5] == theirs[:5]
        for field, value in theirs[5].items():
            at = field.replace("_", "-")
            mine = ours[5].get(at)
            assert (mine["type"] if field == "state" else mine) == value, (ours, field)
    messages = {
        (row["packet_number"], row["sender"], row["delivery_tag"]): row
        for row in (one.as_dict() for one in opened_capture.messages())
    }
    assert len(messages) == len(truth["deliveries"])
    for one in truth["deliveries"]:
        row = messages[one["n"], ("client", "server")[one["side"]], one["id"]]
        assert (row["transfers"], row["message_bytes"]) == (one["transfers"], one["bytes"])
        if one["settled"] or row["state"]:
            assert row["state"] == one["state"], row


def test_sessions_that_are_over_need_no_garbage_collector() -> None:
    """Each would hold its links and connection until Python looks for cycles, which is seldom."""
    gc.collect()
    gc.disable()
    try:
        opened_capture = open_capture(str(capture("rabbit_outcomes")))
        assert opened_capture.table("messages").num_rows
        assert not [one for one in gc.get_objects() if type(one).__name__ == "Amqp10Session"]
    finally:
        gc.enable()


@pytest.mark.parametrize("table", ["connections", "channels", "links", "messages", "findings"])
def test_many_messages_of_another_protocol_behind_deliveries(table: str) -> None:
    """Both in one batch, also where no rows of messages are asked for."""
    others = CAPTURES.parent / "cases" / "deliveries_after_cancel.pcap.gz"
    paths = [capture("rpc"), others]
    together = open_capture(*paths).table(table).num_rows
    assert together == sum(open_capture(path).table(table).num_rows for path in paths)


def test_properties_without_a_column() -> None:
    """They are in `annotations`, in which the section may be cut anywhere."""
    fields = {"group_id": "g", "group_sequence": 7, "reply_to_group_id": "r"}
    properties = composite("properties", message_id="m", absolute_expiry_time=1000, **fields)
    annotated = message(properties=properties, message_annotations={Symbol("x-opt-a"): 1})
    said_of = {"absolute_expiry_time": 1000, **fields}
    assert _annotations(annotated) == {"message": {"x-opt-a": 1}, "properties": said_of}
    assert _annotations(message(properties=properties)) == {"properties": said_of}
    plain = composite("properties", message_id="m", creation_time=1000)
    assert _annotations(message(properties=plain)) is None
    for length in range(len(annotated)):
        _annotations(annotated[:length])


def _annotations(payload: bytes) -> dict[str, Any] | None:
    packets = packets_of(said(opening(), sender(), sends("C", 0, payload=payload)))
    with open_capture(io.BytesIO(file_of(packets))) as found:
        (text,) = found.table("messages", columns=["annotations"])["annotations"].to_pylist()
    said_of: dict[str, Any] | None = json.loads(text or "null")
    return said_of


@pytest.mark.parametrize("lost", range(4, 14))
def test_a_session_whose_begin_lies_before_the_capture_is_one_channel(lost: int) -> None:
    """Of eight packets that are left out the last is the client's begin, which the next answers."""
    steps = (opening(), sender(), sends("C", 0, 1), settles("S", 0, ACCEPTED),
             receiver(credit=3), sends("S", 0, handle=1))  # fmt: skip
    packets = list(packets_of(said(*steps)))[lost:]
    with open_capture(io.BytesIO(file_of(packets))) as found:
        rows = found.table("channels").to_pylist()
    assert [(row["channel"], row["delivered"]) for row in rows] == [(0, 1)]
