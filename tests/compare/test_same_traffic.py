"""The same connections at two places: delays, clocks, losses, alterations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.compare import spill
from amqpsniff.compare.losses import KINDS, LOST, RECEIVER_MISSED, Loss
from amqpsniff.compare.same_traffic import WAYS, Touched
from amqpsniff.compare.sighting import BLOCK_BYTES, Sighter, Vocabulary
from tests.cli.running import run, write_capture
from tests.compare.editing import PAIRS, compared, data_packets, packets, replaced, shifted, without
from tests.conftest import SAMPLES

CLIENT, BROKER = PAIRS / "path_client.pcap.gz", PAIRS / "path_broker.pcap.gz"
CLEAN = PAIRS / "before.pcap.gz"
MILLISECOND = 1_000_000


def fates(report: dict[str, Any]) -> dict[str, int]:
    """Places by what became of them, both ways together; those that are none left out."""
    sums = {kind: sum(report[way][kind]["places"] for way in WAYS) for kind in KINDS}
    sums["altered"] = report["altered"]["places"]
    return {kind: number for kind, number in sums.items() if number}


INCIDENTS = Path(__file__).parents[1] / "captures/incidents"
ALIKE = sorted(path for path in SAMPLES.rglob("*.pcap*") if "tls" not in path.name)


@pytest.mark.parametrize("path", ALIKE, ids=lambda path: path.name)
def test_a_capture_against_itself(path: Path) -> None:
    report = compared(path, path)
    assert report["connections"]["both"] == report["client_side"]["connections"] > 0
    assert report["unmatched"] == []
    assert set(fates(report)) <= {"needless", "dropped"}
    for way in WAYS:
        frames = report[way]["frames"]
        assert frames["client_side_only"] == frames["broker_side_only"] == 0
        if report[way]["delays"]:
            for form in ("raw", "corrected"):
                assert set((report[way]["delays"][form] or {"": 0}).values()) == {0}
    assert report["clock"]["offset_ns"] in (0, None)
    assert report["clock"]["drift_ppm"] is None


def test_delays_and_losses_of_a_path() -> None:
    """The program between lost packets: 14 of data to the broker and 3 back, sent again later."""
    report = compared(CLIENT, BROKER)
    assert report["connections"] == {"both": 2, "client_side_only": 0, "broker_side_only": 0}
    assert report["to-broker"]["lost"]["places"] == 12
    assert report["to-client"]["lost"]["places"] == 3
    assert set(fates(report)) == {"lost", "needless"}
    for way, least in zip(WAYS, (2 * MILLISECOND, 3 * MILLISECOND), strict=True):
        raw = report[way]["delays"]["raw"]
        assert least <= raw["min_ns"] < least + MILLISECOND
        assert raw["max_ns"] > 100 * MILLISECOND  # a retransmission
        frames = report[way]["frames"]
        assert frames["client_side_only"] == frames["broker_side_only"] == 0
    # both hosts had one clock, and the path takes 1 ms longer one way
    clock = report["clock"]
    assert clock["lowest_ns"] < 0 < clock["highest_ns"]
    assert abs(clock["offset_ns"]) < clock["uncertainty_ns"] < 3 * MILLISECOND
    assert abs(clock["offset_ns"] + MILLISECOND // 2) < MILLISECOND // 4
    assert report["slowest"][0]["delay_ns"] == max(
        report[way]["delays"]["corrected"]["max_ns"] for way in WAYS
    )
    named = {frame for row in report["losses"] for frame in row["frames"]}
    assert named & {"basic.publish", "basic.deliver", "header", "body", "basic.ack"}


def test_segments_that_the_receiving_host_dropped() -> None:
    """A firewall behind the capture dropped them: acknowledgements show that they had not come."""
    report = compared(INCIDENTS / "d_client.pcap", INCIDENTS / "d_broker.pcap")
    found = fates(report)
    assert set(found) == {"dropped", "needless"}
    assert (found["dropped"], found["needless"]) == (58, 2)


def test_losses_are_told_from_segments() -> None:
    """Each loss is a segment that the sender's side has once more than the receiver's."""
    report = compared(CLIENT, BROKER)
    for row in report["losses"]:
        assert row["packet_number"] is not None
        assert row["times"] >= 1
        assert row["bytes"] > 0


def test_captures_that_were_exchanged() -> None:
    assert not compared(CLIENT, BROKER)["clock"]["exchanged"]
    assert compared(BROKER, CLIENT)["clock"]["exchanged"]
    shown = run("diff", "--same-traffic", BROKER, CLIENT).out
    assert "the first capture must be that of the broker side" in shown


@pytest.mark.parametrize("ahead_ns", [3_600_000_000_000, -7 * MILLISECOND])
def test_clocks_that_differ(tmp_path: Path, ahead_ns: int) -> None:
    other = shifted(BROKER, tmp_path / "b.pcap", lambda ts_ns: ts_ns + ahead_ns)
    before, report = compared(CLIENT, BROKER), compared(CLIENT, other)
    assert report["clock"]["offset_ns"] == before["clock"]["offset_ns"] + ahead_ns
    assert report["clock"]["lowest_ns"] <= ahead_ns <= report["clock"]["highest_ns"]
    for way in WAYS:
        assert report[way]["delays"]["corrected"] == before[way]["delays"]["corrected"]
    raw = report["to-client"]["delays"]["raw"]
    assert raw["min_ns"] == before["to-client"]["delays"]["raw"]["min_ns"] - ahead_ns


def test_clocks_far_apart_are_written_to_the_microsecond(tmp_path: Path) -> None:
    other = shifted(BROKER, tmp_path / "b.pcap", lambda ts_ns: ts_ns + 7_200 * 10**9)
    shown = run("diff", "--same-traffic", CLIENT, other).out
    assert re.search(r"broker side 7,199\.999\d{3} s ahead of the client side", shown)
    assert re.search(r"between 7,199\.99\d{4} s and 7,200\.00\d{4} s", shown)
    assert re.search(r"client → broker +raw +183 +7,200\.002 s", shown)


def test_a_clock_that_runs_faster(tmp_path: Path) -> None:
    """200 µs a second, over the 15 s of a capture stretched in time."""
    start = packets(CLEAN)[0].ts_ns
    one = shifted(CLEAN, tmp_path / "a.pcap", lambda ts_ns: start + (ts_ns - start) * 20)
    two = shifted(one, tmp_path / "b.pcap", lambda ts_ns: ts_ns + (ts_ns - start) * 200 // 10**6)
    report = compared(one, two)
    assert report["clock"]["drift_ppm"] == pytest.approx(200, abs=2)
    assert report["clock"]["consistent"]
    for way in WAYS:
        assert report[way]["delays"]["corrected"]["max_ns"] < 50_000


def test_an_altered_byte(tmp_path: Path) -> None:
    other = replaced(CLEAN, tmp_path / "b.pcap", b"order-17", b"order-71")
    report = compared(CLEAN, other)
    assert fates(report) == {"altered": 1}
    (row,) = report["alterations"]
    assert row["bytes"] <= BLOCK_BYTES
    assert row["way"] == "to-broker"
    assert "header" in row["frames"]
    (mine,) = (one for one in report["by_connection"] if one["to-broker"]["altered"])
    assert mine["connection_name"] == "orders-publisher"


def test_translated_addresses_and_an_altered_message() -> None:
    report = compared(PAIRS / "nat_client.pcap.gz", PAIRS / "nat_broker.pcap.gz")
    assert report["connections"]["both"] == 2
    assert {row["matched_by"] for row in report["by_connection"]} == {"sequence"}
    for row in report["by_connection"]:
        assert row["translated"]
        assert row["client"].startswith("10.79.0.2:")
        assert row["broker_side_client"].startswith("10.79.0.3:")
    assert fates(report) == {"altered": 1}


@pytest.mark.parametrize("at_broker", [False, True])
def test_a_packet_that_one_capture_lacks(tmp_path: Path, at_broker: bool) -> None:
    """TCP never sent it again, so it came: the capture missed it."""
    (number,) = data_packets(CLEAN, [b"order-20"])
    other = without(CLEAN, tmp_path / "b.pcap", number)
    report = compared(CLEAN, other) if at_broker else compared(other, CLEAN)
    kind = "receiver-capture" if at_broker else "sender-capture"
    assert fates(report) == {kind: 1}
    frames = report["to-broker"]["frames"]
    lacks = "client_side_only" if at_broker else "broker_side_only"
    assert frames[lacks] >= 1
    (row,) = report["losses"]
    assert row["frames"] == ["header"]


@pytest.mark.parametrize("at_broker", [False, True])
def test_a_capture_that_lacks_the_end_of_a_frame_says_no_wrong_time(
    tmp_path: Path, at_broker: bool
) -> None:
    """It goes on where the next packet tells that something is missing: later than it was."""
    lacking = [at for at, one in enumerate(packets(CLEAN), 1) if len(one.octets) > 100][5::7]
    other = without(CLEAN, tmp_path / "b.pcap", *lacking)
    report = compared(CLEAN, other) if at_broker else compared(other, CLEAN)
    for way in WAYS:
        raw = report[way]["delays"]["raw"]
        assert raw["min_ns"] == raw["p95_ns"] == 0
    assert report["clock"]["consistent"]
    assert report["clock"]["offset_ns"] == 0


def test_captures_that_began_at_different_times(tmp_path: Path) -> None:
    """Offsets then count from different bytes, and connections have other ids."""
    listed = packets(BROKER)
    later = write_capture(tmp_path / "b.pcap", listed[150:])
    report = compared(CLIENT, later)
    assert report["connections"] == {"both": 2, "client_side_only": 0, "broker_side_only": 0}
    assert {row["matched_by"] for row in report["by_connection"]} == {"ends"}
    assert "altered" not in fates(report)
    assert report["compared_bytes"] > 0
    whole = compared(CLIENT, BROKER)
    for way in WAYS:
        frames = report[way]["frames"]
        assert frames["client_side_only"] <= 1
        assert 0 < frames["both"] < whole[way]["frames"]["both"]
        assert report[way]["lost"]["places"] <= whole[way]["lost"]["places"]
    assert report["to-broker"]["lost"]["places"]
    both = write_capture(tmp_path / "a.pcap", packets(CLIENT)[100:])
    report = compared(both, later)
    assert report["connections"]["both"] == 2
    assert "altered" not in fates(report)
    assert report["to-broker"]["delays"]["raw"]["min_ns"] >= 2 * MILLISECOND


def test_a_proxy_between_makes_other_connections() -> None:
    report = compared(CLEAN, PAIRS / "after.pcap.gz")
    assert report["connections"] == {"both": 0, "client_side_only": 2, "broker_side_only": 2}
    assert len(report["unmatched"]) == 4
    assert report["to-broker"]["delays"] is None
    assert report["clock"]["offset_ns"] is None


def test_tls_is_compared_when_it_is_opened() -> None:
    path = SAMPLES / "tls12.pcapng"
    report = compared(path, path)
    assert report["connections"]["both"] == 2
    assert report["to-broker"]["frames"]["both"] > 0
    assert fates(report) == {}


def test_rows_that_wait_in_a_file_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compared(CLIENT, BROKER)
    monkeypatch.setattr(spill.Spill.__init__, "__defaults__", (800,))
    assert compared(CLIENT, BROKER) == before


def test_a_bound_on_connections() -> None:
    sighter = Sighter(amqpsniff.open(CLEAN).passes, Vocabulary(), max_connections=1)
    assert list(sighter.read())
    assert (len(sighter.sighting.connections), sighter.sighting.forgotten) == (1, 1)


def test_frames_are_named_for_everything_that_became_of_their_bytes() -> None:
    """Bytes that one capture missed and that were lost on the way too."""
    words = Vocabulary()
    kind = words.number("basic.publish")
    touched = Touched([Loss(RECEIVER_MISSED, 100, 200, 1), Loss(LOST, 100, 200, 1)], [])
    for begin in (80, 120):
        touched.look((begin, 0, 1, 32, kind, 1), words)
    assert list(touched.frames.values()) == [["basic.publish"] * 2] * 2
