"""The summary of a part of the traffic, and errors of AMQP 1.0."""

from collections import Counter
from typing import Any

import pytest

import amqpsniff
from tests.conftest import CAPTURES, SAMPLES
from tests.decode.amqp10.truth import capture


def test_a_part_says_how_much_it_is_of() -> None:
    part = amqpsniff.open(SAMPLES / "pika_mix.pcap").summary(connection=":43700")
    assert (part["chosen_count"], part["connection_count"]) == (1, 4)
    assert (
        part["verdict"]["text"] == "Nothing wrong was found while decoding 1 of 4 AMQP connections."
    )


def test_rates_of_a_part_of_the_time_are_over_that_time() -> None:
    """What is beyond the capture does not count: nothing was captured there."""
    opened = amqpsniff.open(SAMPLES / "pika_mix.pcap")
    whole = opened.summary()
    assert (whole["chosen_start"], whole["chosen_end"]) == (None, None)
    rest = whole["span_ns"] / 1e9 - 0.1
    for from_, to, seconds in ((0.1, 0.3, 0.2), (0.1, None, rest), (0.1, 99, rest)):
        part = opened.summary(from_=from_, to=to)
        assert part["span_ns"] == whole["span_ns"]
        assert part["messages"]
        for row in part["messages"]:
            assert row["per_second"] == pytest.approx(row["count"] / seconds, rel=0.001)
    assert part["chosen_end"] == whole["end"]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("pika_mix.pcap", {"from_": 0.05, "to": 0.2}),
        ("pika_mix.pcap", {"connection": ":43700"}),
        ("pika_mix.pcap", {"channel": 1, "to": 0.2}),
        ("node.pcap", {"from_": 0.01}),
    ],
)
def test_outcomes_and_replies_of_a_part_are_those_of_its_rows(name: str, part: Any) -> None:
    opened = amqpsniff.open(SAMPLES / name)
    found = opened.summary(**part, limit=99)
    rows = [one for one in opened.messages(**part) if one.method != "basic.return"]
    counts = Counter(one.outcome for one in rows)
    longest: dict[Any, int] = {}
    for one in rows:
        longest[one.outcome] = max(longest.get(one.outcome, 0), one.outcome_ns or 0)
    assert {one["outcome"]: one["count"] for one in found["outcomes"]} == counts
    for one in found["outcomes"]:
        assert (one["max_ns"] or 0) == longest[one["outcome"]]
    replied = [one for one in opened.frames(**part) if one.response_ns is not None]
    assert {one["method"]: one["count"] for one in found["replies"]} == Counter(
        one.method for one in replied
    )
    assert counts
    assert replied


def test_rates_where_the_clock_was_set_back() -> None:
    """By an hour, after two of four seconds."""
    path = CAPTURES / "cases/clock_set_back.pcapng.gz"
    found = amqpsniff.open(path).summary()
    assert (found["start"], found["end"]) == (
        "2026-11-29T23:08:43.371633Z", "2026-11-29T22:08:47.408753Z",
    )  # fmt: skip
    assert found["span_ns"] == 4_029_268_723
    for row in found["messages"]:
        assert row["per_second"] == pytest.approx(row["count"] / 4.0293, rel=0.001)
    with_another = amqpsniff.open(path, SAMPLES / "pika_mix.pcap").summary()
    assert with_another["start"] < with_another["end"]


def test_a_part_of_nothing_is_not_in_order() -> None:
    part = amqpsniff.open(SAMPLES / "pika_mix.pcap").summary(client="nobody")
    assert part["verdict"]["text"] == "0 of 4 AMQP connections match."


def test_what_a_passive_declaration_does_not_find() -> None:
    found = amqpsniff.open(SAMPLES / "pika_mix.pcap").summary()
    (error,) = [one for one in found["errors"] if one["reply_code"] == 404]
    assert error["close_method"] == "queue.declare"
    text = found["verdict"]["text"]
    assert text.index("6 errors such as 406") < text.index("1 failed look-up: 404 NOT_FOUND - no")


def test_errors_of_performatives() -> None:
    """Of dispositions those of the broker: a client's refusal is an outcome."""
    found = amqpsniff.open(capture("rabbit_outcomes")).summary()
    rows = amqpsniff.open(capture("rabbit_outcomes")).frames(
        where="reply_text IS NOT NULL AND (method <> 'disposition' OR sender = 'server')"
    )
    expected = {(row["method"], row["reply_text"]) for row in rows.arrow().to_pylist()}
    assert {(one["method"], one["reply_text"]) for one in found["errors"]} == expected
    assert expected


def test_a_refused_login_is_an_error() -> None:
    opened = amqpsniff.open(capture("login_not_tried"))
    found = opened.summary()
    (error,) = [one for one in found["errors"] if one["method"] == "sasl-outcome"]
    assert (error["sender"], error["reply_text"]) == ("server", "auth")
    assert "1 refused login: auth (sasl-outcome in packet" in found["verdict"]["text"]
    (row,) = opened.frames(errors=True, where="method = 'sasl-outcome'").arrow().to_pylist()
    assert row["connection_id"] == error["connection_id"]
    closes = {
        one["connection_id"]: one["close_text"] for one in opened.table("connections").to_pylist()
    }
    assert closes[row["connection_id"]] == "auth"


def test_a_depth_has_a_time() -> None:
    """What the broker said of a queue, in a flow too, is as old as that."""
    rows = amqpsniff.open(capture("rabbit_outcomes")).summary()["queues"]["rows"]
    said = [row for row in rows if row["message_count"] is not None]
    assert said
    assert all(row["said_at"] for row in said)


def test_health_checks_do_not_end_without_a_close() -> None:
    found = amqpsniff.open(CAPTURES / "cases" / "haproxy_backend.pcap.gz").summary()
    assert found["connection_count"] == 6
    assert "without a close" not in found["verdict"]["text"]


def test_unclean_ends_are_counted_beyond_the_rows() -> None:
    found = amqpsniff.open(SAMPLES / "v08_v09.pcap").summary(limit=1)
    assert len(found["connections"]) == 1
    assert "6 connections ended without a close." in found["verdict"]["text"]
