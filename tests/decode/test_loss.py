"""A packet that is missing from the capture costs the frames in it, and little more."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.conftest import OWN, SAMPLES
from tests.decode.feeding import (
    CLIENT,
    SERVER,
    Decoded,
    Feeder,
    Runs,
    packets_of,
    run_file,
    run_packets,
)
from tests.decode.script import OPENING, method, publish
from tests.encoder import HEARTBEAT_FRAME, Field, body, header
from tests.thorough import some

MAX_LOST = 2
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
    """Of a fifth of the packets, unless all cases are tried."""
    packets = packets_of(SAMPLES / name)
    whole = run_packets(packets)
    frames, messages = frame_keys(whole), message_keys(run_packets(packets))
    for place, packet in some(list(enumerate(packets))):
        rest = packets[:place] + packets[place + 1 :]
        done = run_packets(rest)
        assert done.errors == [], packet[0]
        found = frame_keys(done)
        assert found.keys() - frames.keys() == set(), packet[0]
        also = [key for key in frames.keys() - found.keys() if frames[key] != packet[0]]
        assert len(also) <= MAX_LOST, packet[0]
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


def test_holes_of_a_capture_against_the_whole() -> None:
    """Rows of the sample with holes are rows of the capture that it was made from."""
    whole = run_file(OWN / "aiopika_multi.pcap")
    lost = run_file(SAMPLES / "lost.pcap")
    there = {key[:-1] for key in frame_keys(whole)}
    found = {key[:-1] for key in frame_keys(lost)}
    assert found - there == set()


def message(key: bytes, text: bytes, pieces: int = 1) -> list[bytes]:
    """The frames of a message whose body is so many frames of the same text."""
    opening = method("basic.publish", exchange=b"x", routing_key=key)
    return [opening, header(1, 60, pieces * len(text)), *[body(1, text)] * pieces]


def without(frames: list[bytes], lost: range, **options: Any) -> list[tuple[Any, ...]]:
    """(routing key, status, size, captured, body) of the messages when these frames are lost."""
    feeder = Feeder(bodies=True, **options).data(CLIENT, OPENING)
    for place, octets in enumerate(frames):
        if place not in lost:
            feeder.data(CLIENT, octets)
        elif place == lost[0]:
            feeder.gap(CLIENT, sum(len(frames[at]) for at in lost))
    done = feeder.finish()
    assert done.findings == []
    columns = ("routing_key", "status", "body_size", "body_captured", "body")
    return [tuple(row[name] for name in columns) for row in done.messages()]


SEALED = [HEARTBEAT_FRAME, *message(b"c", b"ghi")]
LAST = ("c", "complete", 3, 3, b"ghi")


@pytest.mark.parametrize("lost", [range(1, 4), range(1, 5)])
def test_a_header_after_a_hole_is_of_a_later_message(lost: range) -> None:
    """Of the method before the hole nothing more is known."""
    frames = message(b"a", b"abc") + message(b"b", b"defgh") + SEALED
    assert without(frames, lost) == [("a", "truncated", None, 0, None), LAST]


@pytest.mark.parametrize("text", [b"abc", b"de", b"defg"])
def test_a_body_after_a_hole_is_of_a_later_message(text: bytes) -> None:
    """As soon as the hole may hide the rest of the one, and the other's method and header."""
    frames = message(b"a", b"abc") + message(b"b", text) + SEALED
    assert without(frames, range(2, 5)) == [("a", "truncated", 3, 0, b""), LAST]
    frames = message(b"a", b"abc", 2) + message(b"b", text) + SEALED
    assert without(frames, range(3, 6)) == [("a", "truncated", 6, 3, b"abc"), LAST]


def test_a_body_after_a_hole_too_small_for_another() -> None:
    """What follows is the rest of it: how much of it is missing, the next method tells."""
    frames = message(b"a", b"abc", 9) + SEALED
    assert without(frames, range(3, 5)) == [("a", "truncated", 27, 21, b"abc"), LAST]
    frames = message(b"a", b"abc" * 99, 9) + message(b"b", b"defgh") + SEALED
    found = without(frames, range(4, 6))
    assert found[0] == ("a", "truncated", 2673, 2079, b"abc" * 198)
    assert [row[:2] for row in found[1:]] == [("b", "complete"), ("c", "complete")]


def test_a_hole_beside_a_body() -> None:
    """A message is complete when all of it is there, whatever was lost between its frames."""
    frames = message(b"a", b"abc", 2)
    frames.insert(3, HEARTBEAT_FRAME)
    assert without(frames + SEALED, range(3, 4)) == [("a", "complete", 6, 6, b"abcabc"), LAST]


def test_holes_that_add_up() -> None:
    """Several holes hide together what none of them could alone."""
    heart = HEARTBEAT_FRAME
    frames = [publish(), header(1, 60, 30), body(1, b"abc")] + [heart, body(1, b"abc")] * 9
    feeder = Feeder(bodies=True).data(CLIENT, OPENING)
    for octets in frames:
        if octets == heart:
            feeder.gap(CLIENT, 11)
        else:
            feeder.data(CLIENT, octets)
    (row,) = feeder.data(CLIENT, b"".join(SEALED)).finish().messages()[:1]
    assert (row["status"], row["body_size"]) == ("truncated", 30)
    assert row["body_captured"] < 30


def test_every_hole_of_a_few_bytes() -> None:
    """No row where no frame is, no argument that was not captured, nobody accused."""
    deliver = [
        method("basic.deliver", channel, consumer_tag=b"tag", delivery_tag=tag, exchange=b"ex",
               redelivered=True, routing_key=b"key")
        for channel, tag in ((1, 7), (1, 8), (2, 9))
    ]  # fmt: skip
    frames = [
        deliver[0], header(1, 60, 5), body(1, b"abc"), body(1, b"de"),
        deliver[1], header(1, 60, 3), deliver[2], header(2, 60, 0), body(1, b"fgh"),
        deliver[0], header(1, 60, 3), body(1, b"ijk"), HEARTBEAT_FRAME, deliver[2],
    ]  # fmt: skip
    octets = b"".join(frames)
    runs = Runs()
    runs.add([(SERVER, octets)], syn_seen=True)
    begin = len(frames[0])
    for at in range(begin, len(octets) - len(b"".join(frames[-5:]))):
        for missing in (1, 2, 5, 9, 30):
            pieces = [(SERVER, octets[:at]), (SERVER, missing), (SERVER, octets[at + missing :])]
            runs.add(pieces, syn_seen=True)
    whole, *others = runs.take()
    places = {frame[:2] for frame in whole.frames}
    for run in others:
        assert run.errors == []
        assert {frame[:2] for frame in run.frames} <= places
        for text in run.frames + run.messages:
            assert "|false|" not in str(text)


def test_the_rest_of_a_header_is_no_body() -> None:
    """A body size of 3 and headers alone: from there on it reads as a body on channel 8192."""
    table = header(1, 60, 3, properties={"headers": [(b"a", Field("I", 7))]})
    frames = [publish(), table, body(1, b"abc"), publish(), table, body(1, b"abc"), *SEALED]
    octets = b"".join(frames)
    begin = len(b"".join(frames[:3]))
    mimic = octets.index(b"\x03\x20\x00\x00\x00\x00", begin)
    runs = Runs()
    runs.add([(CLIENT, octets)])
    for at in range(begin, mimic):
        for missing in range(1, mimic - at):
            pieces = [(CLIENT, octets[:at]), (CLIENT, missing), (CLIENT, octets[at + missing :])]
            runs.add(pieces)
    for at in range(begin, mimic):
        runs.add([(CLIENT, octets[at:])])
    whole, *others = runs.take()
    assert not any("8192" in text for _, _, text in whole.frames)
    for run in others:
        assert not any("8192" in text for _, _, text in run.frames)
        assert len(run.frames) >= len(SEALED)


def test_a_body_that_is_awaited_needs_no_end_byte_before_it() -> None:
    """The frame before it is broken: what its channel awaits is known all the same."""
    broken = body(1, b"abc")[:-1] + b"\0"
    frames = [publish(), header(1, 60, 9), broken, body(1, b"def"), body(1, b"ghi"), *SEALED]
    done = Feeder().data(CLIENT, OPENING + b"".join(frames)).finish()
    offset = len(OPENING + b"".join(frames[:3]))
    assert offset in {row["stream_offset"] for row in done.frames()}
