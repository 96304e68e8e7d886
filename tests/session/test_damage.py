"""Damaged captures say less than whole ones, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from tests.decode.feeding import packets_of
from tests.session.damaging import damage_all, rows_of

CAPTURES = Path(__file__).parent.parent / "captures"
HOSTILE = CAPTURES / "hostile"
DAMAGED = [
    *(SAMPLES / name for name in ("bunny.pcapng", "amqplib08.pcap", "pika_mix.pcap")),
    *(CAPTURES / "incidents" / name for name in ("f_ack.pcap", "c_maxlen.pcap", "z_cancel.pcap")),
    HOSTILE / "multiack_refused.pcap",
    HOSTILE / "sem2_multi_ack_settled_tag.pcap",
]


@pytest.mark.parametrize("path", DAMAGED, ids=lambda path: path.name)
def test_a_damaged_capture_contradicts_nothing(path: Path) -> None:
    """Outcomes, numbers of publishes, counts and depths of channels."""
    verdict = damage_all(path, seed=25, rounds=1)
    assert not verdict.wrong
    assert verdict.counts["same"]
    assert verdict.counts["less"]


@pytest.mark.parametrize("name", ["loss_a.pcap", "loss_k.pcap"])
def test_a_confirm_that_may_be_missing(name: str) -> None:
    """The only confirm is lost, or every packet of the broker."""
    said = rows_of(packets_of(HOSTILE / name))
    assert {row["outcome"] for row in said.messages} == {None}
    assert {row["unconfirmed_end"] for row in said.channels} == {None}


def test_an_acknowledgement_that_may_be_missing() -> None:
    said = rows_of(packets_of(HOSTILE / "loss_b.pcap"))
    assert [row["outcome"] for row in said.messages] == [None, "acked", "acked"]
    assert [row["unsettled_max"] for row in said.channels] == [None]


def test_an_acknowledgement_refused_while_the_broker_is_not_captured() -> None:
    """The hole is known before the acknowledgement, and goes on until the broker is heard again."""
    packets = packets_of(HOSTILE / "sem2_multi_ack_settled_tag.pcap")
    said = rows_of([one for one in packets if one[0] not in (5, 12, 16, 17, 20)])
    assert [(row["delivery_tag"], row["outcome"]) for row in said.messages] == [(1, None)]


def test_a_late_nack_of_several_behind_a_loss() -> None:
    """What of it was sent before the loss may have been confirmed in the hole."""
    packets = packets_of(CAPTURES / "incidents" / "c_maxlen.pcap")
    said = rows_of([one for one in packets if one[0] not in (121, 122)])
    outcomes = {row["packet_number"]: row["outcome"] for row in said.messages}
    assert (outcomes[112], outcomes[117]) == ("confirmed", None)


@pytest.mark.parametrize("begin", [12, 18, 20])
def test_a_channel_opened_again_where_the_client_was_not_captured(begin: int) -> None:
    """Three deliveries, and the same three on the next opening, whose tags begin at 1 again."""
    packets = packets_of(HOSTILE / "multiack_refused.pcap")
    client = packets[0][2][26:30]
    said = rows_of([one for one in packets if one[0] < begin or one[2][26:30] != client])
    assert [row["delivered"] for row in said.channels] == [3, 3]
    assert "unsettled" not in {row["outcome"] for row in said.messages}


@pytest.mark.parametrize("server", [False, True])
def test_a_session_begun_again_where_one_direction_was_not_captured(server: bool) -> None:
    """Outcomes of earlier deliveries are unknown: the other side may have settled them."""
    packets = packets_of(CAPTURES / "amqp10" / "rabbitmq310_rhea.pcap.gz")
    said = rows_of([one for one in packets if (one[2][34:36] == packets[0][2][36:38]) is server])
    assert len(said.messages) > 5
    assert not {"unconfirmed", "unsettled"} & {row["outcome"] for row in said.messages}


@pytest.mark.parametrize("lost", [{97}, {97, 99}])
def test_an_outcome_that_was_said_before_a_settlement_that_is_missing(lost: set[int]) -> None:
    """Azure settles as rejected, with an error, what the client had accepted."""
    packets = packets_of(CAPTURES / "amqp10" / "azure_lock_lost.pcap.gz")
    (whole,) = [row for row in rows_of(packets).messages if row["packet_number"] == 94]
    assert (whole["outcome"], whole["settled_by"]) == ("discarded", "server")
    said = rows_of([one for one in packets if one[0] not in lost])
    (row,) = [row for row in said.messages if row["packet_number"] == 94]
    assert (row["outcome"], row["state"], row["settled_by"]) == (None, None, None)


def test_a_return_behind_a_loss() -> None:
    """It may be of the same message published again, which is missing with the first confirm."""
    packets = packets_of(HOSTILE / "bad8_blk.pcap")
    outcomes = {row["packet_number"]: row["outcome"] for row in rows_of(packets).messages}
    assert (outcomes[23], outcomes[24]) == ("confirmed", "returned")
    for lost in ({24, 25}, {25}):
        said = rows_of([one for one in packets if one[0] not in lost])
        outcomes = {row["packet_number"]: row["outcome"] for row in said.messages}
        assert (outcomes[23], outcomes.get(24)) == (None, None)


def test_an_acknowledgement_whose_commit_may_have_been_answered() -> None:
    packets = packets_of(CAPTURES / "settling" / "rabbitmq310.pcap.gz")
    for lost, wanted in ((0, ["acked", *["unsettled"] * 3]), (736, [None] * 4)):
        said = rows_of([one for one in packets if one[0] != lost])
        assert [r["outcome"] for r in said.messages if r["packet_number"] == 730] == wanted


@pytest.mark.parametrize(
    ("name", "snap"),
    [
        ("hostile/snap120_reorder.pcap", 65_535),
        ("cases/deliveries_after_cancel.pcap.gz", 120),  # the tag of the last delivery is cut too
    ],
)
def test_answers_in_bytes_that_a_snap_length_cut(name: str, snap: int) -> None:
    packets = packets_of(CAPTURES / name)
    said = rows_of([(n, t, octets[:snap], full, link) for n, t, octets, full, link in packets])
    assert not {"unconfirmed", "unsettled"} & {row["outcome"] for row in said.messages}


def test_an_outcome_in_bytes_that_a_snap_length_cut() -> None:
    packets = packets_of(CAPTURES / "amqp10" / "azure_lock_lost.pcap.gz")
    cut = [(n, t, o[: 110 if n == 97 else 65_535], full, link) for n, t, o, full, link in packets]
    assert [r["outcome"] for r in rows_of(cut).messages if r["packet_number"] == 94] == [None]


def test_replies_in_a_damaged_capture() -> None:
    """A request has its own reply or none, also where that is missing and the next one's is not."""
    assert not damage_all(SAMPLES / "pika_mix.pcap", seed=301, rounds=2).wrong


def test_a_delivery_whose_settlement_is_read_before_its_end() -> None:
    """The last packet of a transfer is lost, and given up behind the disposition of it."""
    packets = packets_of(CAPTURES / "amqp10" / "websocket.pcap.gz")
    channel = {"client": "10.78.0.2:34580", "opened_packet_number": 17}
    whole = rows_of(packets)
    said = rows_of([one for one in packets if one[0] != 170])
    (known,), (damaged,) = (
        [row for row in one.channels if channel.items() <= row.items()] for one in (whole, said)
    )
    assert (known["delivered"], known["unsettled_max"], known["unsettled_end"]) == (16, 4, 0)
    assert (damaged["delivered"], damaged["unsettled_max"], damaged["unsettled_end"]) == (
        16, None, None,
    )  # fmt: skip
    (row,) = [
        row
        for row in said.messages
        if row["status"] == "truncated" and row["client"] == channel["client"]
    ]
    assert (row["delivery_tag"], row["outcome"]) == (15, None)
