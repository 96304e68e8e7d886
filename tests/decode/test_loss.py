"""A packet that is missing from the capture costs the frames in it, and little more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.decode.feeding import Decoded, packets_of, run_file, run_packets

MOST_LOST = 2
"""Frames beyond those in the packet that may be lost while framing is found again."""

MESSAGE = ("client", "sender", "packet_number", "channel", "method", "delivery_tag", "exchange")
Key = tuple[Any, ...]


def frame_keys(done: Decoded) -> dict[Key, int]:
    """What each frame is, and the packet that completed it."""
    columns = (
        "client", "sender", "stream_offset", "channel", "frame_type", "method", "size", "arguments",
    )  # fmt: skip
    return {tuple(row[name] for name in columns): row["packet_number"] for row in done.frames()}


def message_keys(done: Decoded) -> dict[Key, dict[str, Any]]:
    """Messages by the method that opened them."""
    return {
        tuple(row[name] for name in MESSAGE): row
        for row in done.messages()
        if row["method"] is not None
    }


CAPTURES = ["bunny.pcapng", "blocked.pcap", "kombu.pcap.gz"]


@pytest.mark.parametrize("name", CAPTURES)
def test_every_single_packet(name: str) -> None:
    packets = packets_of(SAMPLES / name)
    whole = run_packets(packets)
    frames, messages = frame_keys(whole), message_keys(run_packets(packets))
    for place, packet in enumerate(packets):
        rest = packets[:place] + packets[place + 1 :]
        done = run_packets(rest)
        assert done.errors == [], packet[0]
        found = frame_keys(done)
        assert found.keys() - frames.keys() == set(), packet[0]
        also = [key for key in frames.keys() - found.keys() if frames[key] != packet[0]]
        assert len(also) <= MOST_LOST, packet[0]
        for key, row in message_keys(done).items():
            assert key in messages, packet[0]
            want = messages[key]
            assert row["body_captured"] <= want["body_captured"]
            if row["body_size"] is not None:
                assert row["body_size"] == want["body_size"], packet[0]
            if row["status"] == "complete":
                assert row["body_captured"] == row["body_size"]


def _subset(found: dict[Key, int], there: dict[Key, int]) -> None:
    assert found.keys() - there.keys() == set()


@pytest.mark.parametrize("step", [2, 3, 5, 11])
@pytest.mark.parametrize("name", CAPTURES)
def test_many_packets(name: str, step: int) -> None:
    """Whatever is lost, nothing is invented."""
    packets = packets_of(SAMPLES / name)
    frames = frame_keys(run_packets(packets))
    done = run_packets([packet for place, packet in enumerate(packets) if place % step])
    assert done.errors == []
    _subset(frame_keys(done), frames)


def test_holes_inside_bodies() -> None:
    """A hole in a body of known size is stepped over: the message is truncated, the next is not."""
    lost = run_file(SAMPLES / "lost.pcap")
    assert lost.codes == ["tcp-gap"]
    assert Counter(row["status"] for row in lost.messages())["truncated"] == 2


def test_holes_of_a_capture_against_the_whole(own_captures: Path) -> None:
    """Rows of the sample with holes are rows of the capture that it was made from."""
    whole = run_file(own_captures / "aiopika_multi.pcap")
    lost = run_file(SAMPLES / "lost.pcap")
    there = {key[:-1] for key in frame_keys(whole)}
    found = {key[:-1] for key in frame_keys(lost)}
    assert found - there == set()
