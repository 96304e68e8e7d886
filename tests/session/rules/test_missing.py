"""A damaged capture gives no finding about something missing that the whole one does not give."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from amqpsniff.findings import KINDS, Finding
from amqpsniff.live.finding_updates import FindingUpdates
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from tests.conftest import SAMPLES
from tests.findings.cases import packets_of, sent
from tests.findings.test_pairs import EVERY
from tests.session.rules.damage import (
    RESTING,
    batch_of,
    cut,
    damages,
    findings_in,
    left_of,
    more_in,
    packets_in,
    places,
    rows_of_live,
)
from tests.session.rules.found import found
from tests.session.script import MS, Script
from tests.tcp import wire

CAPTURES = Path(__file__).parents[2] / "captures"
SCRIPTS = {
    f"{name} {side}": text
    for name, pair in EVERY.items()
    for side, text in zip(("shown", "near"), (pair.shown, pair.near), strict=True)
    if isinstance(text, str) and not pair.bounds and "GAP" not in text and len(text) < 20_000
}
SEEDS = (25, 101, 102, 112, 122)
SAMPLED = 40
"""Damaged scripts in the suite of each seed: two seconds in all."""

OWN = (*(SAMPLES / name for name in (
    "aiopika_rpc.pcap", "amqplib08.pcap", "blocked.pcap", "bunny.pcapng", "kombu.pcap.gz",
    "late_consumer.pcap", "php_churn.pcap", "v08_v09.pcap",
)), *(CAPTURES / "incidents" / name for name in (
    "i_blocked_cut.pcap", "z_cancel.pcap", "t_excl.pcap", "f_ack.pcap",
)))  # fmt: skip
DAMAGED = 5
"""Damages of each capture in the suite."""


def test_the_codes_are_of_the_catalogue() -> None:
    assert set(KINDS) >= RESTING


@pytest.mark.parametrize("seed", SEEDS)
def test_scripts_with_something_missing(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(SAMPLED):
        name = chance.choice(sorted(SCRIPTS))
        (damaged,) = damages(packets_of(SCRIPTS[name]), chance, 1)
        assert not more_in(damaged), f"{name}: {damaged.what}"


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_captures_with_something_missing(path: Path) -> None:
    chance = random.Random(path.name)
    for damaged in damages(packets_in(path), chance, DAMAGED):
        assert not more_in(damaged), damaged.what


def test_a_live_run_leaves_what_a_file_shows() -> None:
    chance = random.Random(4)
    for name in chance.sample(sorted(SCRIPTS), 40):
        (damaged,) = damages(packets_of(SCRIPTS[name]), chance, 1)
        pieces = chance.choice((2, 7, len(damaged.part)))
        live = places(left_of(rows_of_live(damaged.part, pieces)))
        assert live == places(findings_in(damaged.part)), f"{name}: {damaged.what}"


@pytest.mark.parametrize(
    "name", ["replymissing_mid0_dup0", "replymissing_mid1_dup0", "loss_e", "celery_mid_loss"]
)
def test_a_reply_in_a_hole(name: str) -> None:
    """A live run does not say so for a moment either."""
    packets = packets_in(CAPTURES / "hostile" / f"{name}.pcap")
    assert "reply-missing" not in {one.code for one in findings_in(packets)}
    assert "reply-missing" not in {one.code for one in rows_of_live(packets, len(packets))}


def test_the_reply_to_a_request_whose_own_is_in_a_hole() -> None:
    """The next request of the channel gets it, and is not taken for one that waited for long."""
    lost = {7, 9, 11, 21, 26, 28, 29, 32}
    packets = [
        one._replace(ts_ns=one.ts_ns + 35_000 * MS * (at > 28))
        for at, one in enumerate(packets_of(SCRIPTS["transaction-per-message shown"]))
        if at not in lost
    ]
    assert "reply-missing" not in {one.code for one in findings_in(packets)}


def test_a_block_on_a_path_that_was_cut_while_the_client_sent_on() -> None:
    """Nothing comes from the broker any more, so the end of the block is unknown."""
    packets = packets_in(CAPTURES / "incidents" / "i_blocked_cut.pcap")
    pipeline = Pipeline(plan=Plan(("findings",)))
    pipeline.feed(batch_of([*packets[:184], packets[-1]], 1))
    pipeline.finish()
    said = {one.code: one.detail for one in pipeline.findings()}
    assert "for 6.08 s at least, until nothing came" in said["connection-blocked"]
    assert "publish-while-blocked" not in said


# while the capture goes on

DECLARED = "handshake\nC1: channel.open\nS1: channel.open-ok\nC1: queue.declare queue=q\n"
LATER = "@+6000ms C1: basic.publish exchange=e | body=5\n"
ALIVE = "@+6000ms S: connection.unblocked\n"
MORE = "C1: basic.publish exchange=e | body=5\n" * 3


def news(text: str, *lost: int) -> list[tuple[str, int]]:
    """How often a reply is said to be missing, packet by packet; `lost` lines, counted from the
    end, are not captured.
    """
    script = Script(text)
    talk = wire.Talk(step_ns=0)
    talk.hands()
    first = len(talk.packets)
    for packet in script.packets:
        talk.now = packet.ts_ns
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    gone = {len(talk.packets) + place for place in lost}
    begin = script.packets[0].ts_ns - MS
    packets = [
        one._replace(ts_ns=max(one.ts_ns, begin)) if at >= first else one._replace(ts_ns=begin)
        for at, one in enumerate(talk.packets)
        if at not in gone
    ]
    pipeline, said = Pipeline(plan=Plan(("messages", "findings"))), FindingUpdates()
    pipeline.log.watch()
    found: list[Finding] = []
    for place, packet in enumerate(packets):
        pipeline.feed(batch_of([packet], place + 1))
        found += said.add(pipeline.log.news(), place * 60 * 1000 * MS)
    pipeline.finish()
    found += said.rest(pipeline.findings())
    return [(one.code, one.count) for one in found if one.code == "reply-missing"]


def test_nothing_is_foreseen_while_a_hole_is_waited_for() -> None:
    """The client acknowledges the reply that was not captured."""
    answered = DECLARED + "S1: queue.declare-ok queue=q\n" + LATER
    assert news(answered + MORE) == []
    assert news(DECLARED + LATER + MORE)
    assert news(answered + MORE, -5) == []


def test_what_was_foreseen_is_taken_back_when_frames_are_lost() -> None:
    text = DECLARED + ALIVE
    assert news(text)[0] == ("reply-missing", 1)
    assert ("reply-missing", 0) not in news(text + ALIVE + MORE)
    assert news(text + ALIVE + MORE, -4) == [("reply-missing", 1), ("reply-missing", 0)]


def test_frames_that_were_lost_before_the_request() -> None:
    """From then on the state of the connection is not known."""
    asked = "handshake\nC1: channel.open\nS1: channel.open-ok\nS: connection.unblocked\n"
    assert news(asked + "C1: queue.declare queue=q\n" + ALIVE + MORE, -6) == []


# one for each finding that a hole made


def cut_in(path: str, without: tuple[int, ...], snap: int) -> list[Finding]:
    """Findings in a capture without some packets, with a snap length."""
    packets = packets_in(CAPTURES / path)
    part = [cut(one, snap) for at, one in enumerate(packets, 1) if at not in without]
    return findings_in(part)


def test_a_refusal_of_a_consumer_in_a_hole() -> None:
    rows = cut_in("incidents/t_excl.pcap", (52, 56), 211)
    assert [one.packet_number for one in rows if one.code == "prefetch-unlimited"] == [46]


def test_a_consumer_that_was_accepted_before_a_loss() -> None:
    """The limit would have come before it; a refusal too."""
    asked = "handshake\nC1: channel.open\nS1: channel.open-ok\nC1: basic.consume queue=q\n"
    accepted = "S1: basic.consume-ok consumer_tag=t\n"
    lost = "GAP S 100\nS1: basic.deliver consumer_tag=t delivery_tag=9 | body=5\n"
    assert found(asked + accepted + lost, "prefetch-unlimited")
    assert not found(asked + lost, "prefetch-unlimited")
    assert found(asked, "prefetch-unlimited")


def test_a_path_that_is_cut_while_publishing_is_blocked() -> None:
    """With or without a loss elsewhere, it is not known whether the broker still blocked."""
    rows = cut_in("incidents/i_blocked_cut.pcap", (155, 163), 383)
    assert "publish-while-blocked" not in {one.code for one in rows}
    packets = packets_in(CAPTURES / "incidents/i_blocked_cut.pcap")
    for part in (packets[:140] + packets[141:], packets[40:]):
        assert "publish-while-blocked" not in {one.code for one in findings_in(part)}


@pytest.mark.parametrize("without", [(32,), (43,), (46,), (43, 46)])
@pytest.mark.parametrize("later_ms", [0, 100_000])
def test_a_deletion_that_may_be_missing(without: tuple[int, ...], later_ms: int) -> None:
    """Its answer too, or the virtual host: also where the hole is given up later."""
    packets = packets_in(CAPTURES / "incidents/z_cancel.pcap")
    part = [
        one._replace(ts_ns=one.ts_ns + later_ms * MS * (at > 46))
        for at, one in enumerate(packets, 1)
        if at not in without
    ]
    for pieces in (1, 7, len(part)):
        left = {one.code for one in left_of(rows_of_live(part, pieces))}
        assert "deliveries-in-doubt" not in left


def test_a_deletion_of_which_only_the_answer_was_captured() -> None:
    """The client deleted the queue whose consumer the broker then cancelled."""
    packets = packets_in(CAPTURES / "incidents/v_shovel.pcap")[582:]
    late = [one._replace(ts_ns=one.ts_ns + 7000 * MS * (at > 0)) for at, one in enumerate(packets)]
    for pieces in (1, len(late)):
        left = {one.code for one in left_of(rows_of_live(late, pieces))}
        assert "consumer-cancelled" not in left


def test_a_message_whose_first_copy_is_missing() -> None:
    """The path was cut: the client's TCP sent the rest again and again, the client did not wait."""
    packets = packets_in(CAPTURES / "incidents/i_dead_path.pcap")
    late = [
        one._replace(ts_ns=one.ts_ns + 35_000 * MS * (at > 202))
        for at, one in enumerate(packets, 1)
        if at != 202
    ]
    for pieces in (1, len(late)):
        left = {one.code for one in left_of(rows_of_live(late, pieces))}
        assert "message-stalled" not in left


@pytest.mark.parametrize("without", [(), (6,), (6, 8), (1, 2, 3, 4, 5, 6)])
def test_what_follows_a_close_whose_answer_is_missing(without: tuple[int, ...]) -> None:
    """Or is read later, for the client's frames wait for a hole or for a beginning."""
    rows = cut_in("hostile/sec_q2.pcap", without, 245)
    assert "traffic-after-close" not in {one.code for one in rows}


def test_a_refusal_where_a_capture_begins() -> None:
    """The broker's frames are read later than the client's there."""
    packets = packets_in(CAPTURES / "incidents/t_excl.pcap")[32:]
    late = [one._replace(ts_ns=one.ts_ns + 7000 * MS * (at > 0)) for at, one in enumerate(packets)]
    assert "reply-missing" not in {one.code for one in findings_in(late)}


def test_an_answer_to_a_close_that_is_read_before_the_close() -> None:
    rows = findings_in(packets_in(CAPTURES / "hostile/bad8_vhost.pcap")[35:])
    assert "traffic-after-close" not in {one.code for one in rows}


def test_a_fin_that_is_missing() -> None:
    """The other side acknowledges it: the RST after it is no stranger's."""
    rows = cut_in("cases/published_after_fin.pcap.gz", (26,), 65_535)
    assert "connection-half-open" not in {one.code for one in rows}


def test_a_consumer_that_was_cancelled_where_a_capture_begins() -> None:
    """Deliveries come to it again, without another basic.consume."""
    packets = packets_in(CAPTURES / "cases/consumer_starved_after_timeout.pcap.gz")[74:]
    assert "consumer-cancelled" not in {one.code for one in findings_in(packets)}


@pytest.mark.parametrize(("path", "without", "code"), [
    ("amqp10/rabbitmq43_rhea.pcap.gz", (38,), "field-table-malformed"),
    ("amqp10/azure_python.pcap", range(277, 284), "protocol-version-refused"),
    ("amqp10/azure_token_refused.pcap.gz", range(5, 14), "protocol-version-refused"),
    ("amqp10/transactions.pcap", (10,), "publish-rejected"),
    ("amqp10/rabbitmq43_links.pcap.gz", range(1, 766), "link-refused"),
])  # fmt: skip
def test_what_amqp_1_0_says_before(path: str, without: Sequence[int], code: str) -> None:
    """The first transfer of a message, the protocol header, the attach of a link."""
    packets = packets_in(CAPTURES / path)
    part = [one for at, one in enumerate(packets, 1) if at not in without]
    for some in (packets, part):
        assert code not in sent(some).codes()


def test_a_link_whose_answer_is_missing() -> None:
    """Of what was deleted it was attached all the same."""
    packets = packets_of(EVERY["link-detached"].shown)
    for lost in ({10}, {3, 10}):
        codes = sent([one for at, one in enumerate(packets, 1) if at not in lost]).codes()
        assert "link-detached" in codes
        assert "link-refused" not in codes


def test_a_link_of_which_the_address_is_missing() -> None:
    """It may be for tokens, where nobody settles."""
    packets = packets_of(EVERY["token-refused"].near)
    assert "automatic-acknowledgement" not in sent(packets).codes()
    cut_ones = [cut(one, 91) for one in packets]
    assert "automatic-acknowledgement" not in sent(cut_ones).codes()


@pytest.mark.parametrize("snap", [160, 200, 256])
def test_a_tls_handshake_that_a_snap_length_cut(snap: int) -> None:
    """The client's part of it may be missing."""
    rows = cut_in("tls12_rsacbc.pcap", (), snap)
    assert not {"tls-ended-early", "connection-silent"} & {one.code for one in rows}
