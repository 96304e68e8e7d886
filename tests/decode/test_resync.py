"""Finding the next frame boundary: mid-stream, after holes, after framing that broke."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import own_capture
from tests.decode.feeding import (
    CLIENT,
    SERVER,
    Feeder,
    Run,
    Runs,
    Talk,
    decode,
    packets_of,
    run_packets,
    streams_of,
)
from tests.thorough import rounds

Pieces = list[tuple[int, "bytes | int"]]


def test_amqp_in_text_is_no_protocol_header() -> None:
    """A cut inside the mechanisms of connection.start, one of which is AMQPLAIN."""
    octets = streams_of(own_capture("kombu"))[1].octets
    cut = octets.index(b"AMQPLAIN")
    decoded = decode(octets[cut:], SERVER, syn_seen=False)
    assert decoded.errors == []
    assert {row["frame_type"] for row in decoded.frames()} <= {"method", "header", "body"}


@pytest.mark.parametrize(("cut", "first"), [(706, 9), (707, 1000), (708, 40)])
def test_no_whole_frame_is_lost_whatever_the_pieces(cut: int, first: int) -> None:
    octets = streams_of(own_capture("bunny"))[0].octets
    feeder = Feeder(Talk(syn_seen=False))
    feeder.data(CLIENT, octets[cut : cut + first]).data(CLIENT, octets[cut + first :])
    assert cut + feeder.finish().frames()[0]["stream_offset"] == 708


@pytest.mark.parametrize("count", [*range(1018, 1030), 2048, 4096])
@pytest.mark.parametrize("lost", [0, 10])
def test_bytes_that_fill_the_window_to_its_end(count: int, lost: int) -> None:
    """Nothing behind the last byte is looked at, where the stream ends and before a hole."""
    feeder = Feeder(Talk(syn_seen=False)).data(CLIENT, b"x" * count)
    if lost:
        feeder.gap(CLIENT, lost).data(CLIENT, b"x" * count)
    assert feeder.finish().frames() == []


def test_bodies_of_the_chain_are_captured() -> None:
    packets = [packet for packet in packets_of(own_capture("pika_mix")) if packet[0] != 315]
    whole = run_packets(packets_of(own_capture("pika_mix")), body_sha256=True).messages()
    known = {(row["packet_number"], row["delivery_tag"]): row["body_sha256"] for row in whole}
    messages = run_packets(packets, body_sha256=True).messages()
    assert [row for row in messages if row["status"] != "complete"] == []
    for row in messages:
        assert row["body_captured"] == row["body_size"]
        assert row["body_sha256"] == known[row["packet_number"], row["delivery_tag"]]


def test_a_frame_has_the_number_of_the_packet_that_completed_it() -> None:
    octets = streams_of(own_capture("bunny"))[0].octets[700:2000]
    feeder = Feeder(Talk(syn_seen=False))
    for at in range(len(octets)):
        feeder.data(CLIENT, octets[at : at + 1], at + 1)
    rows = feeder.finish().frames()
    assert len(rows) > 5
    assert [row["packet_number"] for row in rows] == [
        row["stream_offset"] + row["size"] + 8 for row in rows
    ]


def test_wrong_end_of_a_frame_that_came_in_pieces() -> None:
    """Its size may be wrong: the frames inside are found, as when it comes whole."""
    octets = bytearray(streams_of(own_capture("kombu"))[1].octets[:6000])
    octets[536] ^= 0xFF
    run = both_ways([(SERVER, bytes(octets))], [1])
    assert len(run.frames) > 40


def both_ways(pieces: Pieces, lengths: list[int]) -> Run:
    """Decode as given and cut up into these lengths over and over; assert the same."""
    cut: Pieces = []
    for direction, piece in pieces:
        if isinstance(piece, int):
            cut.append((direction, piece))
            continue
        at = turn = 0
        while at < len(piece):
            length = lengths[turn % len(lengths)]
            cut.append((direction, piece[at : at + length]))
            at += length
            turn += 1
    results = []
    for way in (pieces, cut):
        runs = Runs()
        runs.add(way)
        results.append(runs.take()[0])
    whole, split = results
    assert split.frames == whole.frames
    assert split.messages == whole.messages
    told = [[(finding.code, finding.detail) for finding in run.errors] for run in results]
    assert told[0] == told[1]
    return whole


@settings(max_examples=rounds(300))
@given(data=st.data())
def test_rows_do_not_depend_on_the_pieces(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["kombu", "bunny", "pika_mix"]))
    stream = data.draw(
        st.sampled_from(streams_of(own_capture(name))[:8]).filter(lambda s: s.octets)
    )
    octets = bytearray(stream.octets[:4000])
    places = st.integers(0, len(octets) - 1)
    for _ in range(data.draw(st.integers(0, 4))):
        at = min(data.draw(places), len(octets))
        cut = data.draw(st.integers(0, 40))
        octets[at : at + cut] = data.draw(
            st.one_of(
                st.binary(max_size=30),
                st.sampled_from([b"\x01", b"\x03\x00\x01", b"\xce", b"AMQP", b"\x08" + bytes(6)]),
            )
        )
    direction, start = stream.direction, min(data.draw(places), len(octets))
    pieces: Pieces = [(direction, bytes(octets[start:]))]
    if data.draw(st.booleans()):
        middle = min(data.draw(places), len(octets))
        hole = data.draw(st.sampled_from([1, 7, 8, 100, 5000]))
        pieces = [
            (direction, bytes(octets[:middle])),
            (direction, hole),
            (direction, bytes(octets[middle:])),
        ]
    both_ways(pieces, data.draw(st.lists(st.integers(1, 300), min_size=1, max_size=5)))
