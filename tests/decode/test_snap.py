"""Packets cut by a snap length: frames keep their numbers and sizes, and none is invented."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.decode.feeding import packets_of, run_file, run_packets
from tests.decode.strategies import parsed

CAPTURES = [
    "aiopika_rpc.pcap", "blocked.pcap", "bunny.pcapng", "kombu.pcap.gz", "node.pcap",
    "php_churn.pcap", "pika_mix.pcap",
]  # fmt: skip
PLACE = ("client", "sender", "stream_offset", "channel", "frame_type", "size")
MESSAGE = ("client", "sender", "packet_number", "channel", "method")
KEPT = ("delivery_tag", "body_size", "message_id", "content_type", "routing_key")


def keyed(rows: list[dict[str, Any]], names: tuple[str, ...]) -> dict[tuple[Any, ...], Any]:
    """Rows by some of their columns."""
    return {tuple(row[name] for name in names): row for row in rows}


def fits(row: dict[str, Any], want: dict[str, Any]) -> bool:
    """Whether what is known of a message is what it is."""
    known = all(row[name] in (None, want[name]) for name in KEPT)
    return known and bool(row["body_captured"] <= want["body_captured"])


@pytest.mark.parametrize("octets", [96, 128, 200])
@pytest.mark.parametrize("name", CAPTURES)
def test_snap_lengths(name: str, octets: int) -> None:
    packets = packets_of(SAMPLES / name)
    cut = [(number, ts, data[:octets], length, link) for number, ts, data, length, link in packets]
    whole, done = run_packets(packets), run_packets(cut)
    assert done.errors == []
    frames, found = keyed(whole.frames(), PLACE), keyed(done.frames(), PLACE)
    assert found.keys() - frames.keys() == set()
    for key, row in found.items():
        assert row["method"] in (None, frames[key]["method"])
        if row["arguments"]:
            shown, there = parsed(row["arguments"]), parsed(frames[key]["arguments"])
            for argument, value in shown.items():
                if not isinstance(value, (dict, list)):
                    assert value == there[argument]
    messages: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in whole.messages():
        messages.setdefault(tuple(row[name] for name in MESSAGE), []).append(row)
    for row in done.messages():
        rivals = messages[tuple(row[name] for name in MESSAGE)]
        assert any(fits(row, want) for want in rivals), row


@pytest.mark.parametrize("octets", [96, 128, 200])
def test_most_frames_are_there(octets: int) -> None:
    """Where a capture has one frame a packet, a snap length costs few of them."""
    packets = packets_of(SAMPLES / "php_churn.pcap")
    cut = [(number, ts, data[:octets], length, link) for number, ts, data, length, link in packets]
    assert run_packets(cut).count > 0.8 * run_packets(packets).count


def test_the_sample() -> None:
    """A capture that was recorded with one: every frame is one of the whole capture's."""
    snapped, whole = (run_file(SAMPLES / name) for name in ("snapped.pcap", "pika_mix.pcap"))
    assert snapped.errors == []
    assert "packets-cut" in snapped.codes
    assert keyed(snapped.frames(), PLACE).keys() <= keyed(whole.frames(), PLACE).keys()
