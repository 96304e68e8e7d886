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


def test_answers_in_bytes_that_a_snap_length_cut() -> None:
    said = rows_of(packets_of(HOSTILE / "snap120_reorder.pcap"))
    assert not {"unconfirmed", "unsettled"} & {row["outcome"] for row in said.messages}


def test_replies_in_a_damaged_capture() -> None:
    """A request has its own reply or none, also where that is missing and the next one's is not."""
    assert not damage_all(SAMPLES / "pika_mix.pcap", seed=301, rounds=2).wrong
