"""Frames that come late: where framing has to be found, behind later ones of the other side."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.capture.pcap import PcapReader
from amqpsniff.options import Options
from amqpsniff.pipeline import Pipeline
from amqpsniff.tables.batches import Maker, plan_for
from tests.session.script import HEARTBEATS, Script
from tests.tcp import wire
from tests.thorough import rounds

Row = dict[str, Any]

FRAMES = ("packet_number", "channel", "method", "arguments", "response_packet_number")
MESSAGES = (
    "packet_number", "channel", "method", "delivery_tag", "queue", "outcome",
    "outcome_packet_number", "outcome_ns",
)  # fmt: skip
CUTS = rounds(24)


def decoded(pipeline: Pipeline, makers: list[Maker]) -> tuple[list[Row], list[Row]]:
    pipeline.finish()
    taken = list(pipeline.rest())
    frames, messages = (
        list(chain.from_iterable(maker.make(each).to_pylist() for each in taken))
        for maker in makers
    )
    return frames, messages


def joined(text: str) -> tuple[list[Row], list[Row]]:
    """The rows of a conversation whose beginning was not captured: a packet for each line."""
    makers = [Maker("frames", columns=FRAMES), Maker("messages", columns=MESSAGES)]
    pipeline = Pipeline(Options(), plan_for(makers))
    talk = wire.Talk()
    for packet in Script("midstream\n" + text).packets:
        octets = packet.octets.removeprefix(HEARTBEATS)  # that frame a side at once
        talk.put(0 if packet.sender == "client" else 1, octets)
    pipeline.feed(wire.batch(talk.packets))
    return decoded(pipeline, makers)


def test_requests_behind_their_replies() -> None:
    frames, messages = joined(
        """
        S1: queue.bind-ok
        C1: basic.consume queue=q1 consumer_tag=tag1 no_ack=1
        S1: basic.consume-ok consumer_tag=tag1
        C1: queue.declare queue=q2
        S1: queue.declare-ok queue=q2
        C1: basic.consume queue=q2 consumer_tag=tag2
        S1: basic.consume-ok consumer_tag=tag2
        S1: basic.deliver consumer_tag=tag2 delivery_tag=1 | body=1
        C1: basic.ack delivery_tag=1
        """
    )
    asked = [one for one in frames if one["method"] in ("basic.consume", "queue.declare")]
    assert [one["packet_number"] for one in asked] == [2, 4, 6]
    assert [one["response_packet_number"] for one in asked] == [3, 5, 7]
    (message,) = messages
    assert (message["queue"], message["outcome"]) == ("q2", "acked")


def test_acks_behind_deliveries_that_were_sent_after_them() -> None:
    deliver = "S1: basic.deliver consumer_tag=t delivery_tag={} | body=1\n"
    first, second = ("".join(map(deliver.format, tags)) for tags in ((1, 2, 3), (4, 5, 6)))
    _, messages = joined(
        f"""{first}
        C1: basic.ack delivery_tag=0 multiple=1
        {second}
        C1: basic.nack delivery_tag=0 multiple=1 requeue=1
        C1: basic.qos prefetch_count=1
        S1: basic.qos-ok
        """
    )
    assert [one["outcome"] for one in messages] == 3 * ["acked"] + 3 * ["requeued"]
    assert all(one["outcome_ns"] > 0 for one in messages)


def test_a_recover_behind_deliveries_that_were_sent_after_it() -> None:
    deliver = "S1: basic.deliver consumer_tag=t delivery_tag={} | body=1\n"
    _, messages = joined(
        f"""{deliver.format(1)}{deliver.format(2)}
        C1: basic.recover requeue=1
        {deliver.format(3)}
        C1: basic.ack delivery_tag=3
        C1: basic.qos prefetch_count=1
        S1: basic.qos-ok
        """
    )
    assert [one["outcome"] for one in messages] == ["requeued", "requeued", "acked"]
    assert all(one["outcome_ns"] > 0 for one in messages)


def records_of(path: Path) -> tuple[bytes, list[bytes]]:
    """The header of a pcap file and its records."""
    octets = path.read_bytes()
    records = []
    at = 24
    while at + 16 <= len(octets):
        (count,) = struct.unpack_from("<I", octets, at + 8)
        records.append(octets[at : at + 16 + count])
        at += 16 + count
    return octets[:24], records


def told(header: bytes, records: list[bytes], kept: list[int]) -> dict[Any, Any]:
    """What is told of requests and messages, by their places, of a capture's records so numbered.

    Packets have the numbers that they have in the whole capture.
    """
    makers = [Maker("frames", columns=FRAMES), Maker("messages", columns=MESSAGES)]
    pipeline = Pipeline(Options(), plan_for(makers))
    batch = PcapReader("x").feed(header + b"".join(records[at] for at in kept))
    assert batch is not None
    pipeline.feed(batch)
    frames, messages = decoded(pipeline, makers)
    found: dict[Any, Any] = {}
    times: Counter[Any] = Counter()
    for row in (*frames, *messages):
        if row["method"] is None:
            continue
        number = kept[row["packet_number"] - 1]
        place = (number, *(row.get(name) for name in ("channel", "method", "arguments")))
        for name in ("response_packet_number", "queue", "outcome"):
            if row.get(name) is not None:
                value = kept[row[name] - 1] if name.startswith("response") else row[name]
                found[(*place, times[place], name)] = value
        times[place] += 1
        assert (row.get("outcome_ns") or 0) >= 0
    return found


def parts(count: int) -> Iterator[list[int]]:
    """The packets of captures that began late, and of captures that lost one."""
    for at in range(1, count, count // CUTS):
        yield list(range(at, count))
        yield [one for one in range(count) if one != at]


@pytest.mark.parametrize("name", ["aiopika_rpc", "pika_mix", "node", "blocked"])
def test_what_a_part_of_a_capture_tells_is_what_the_whole_one_does(
    name: str, samples: Path
) -> None:
    header, records = records_of(samples / f"{name}.pcap")
    whole = told(header, records, list(range(len(records))))
    compared = 0
    for kept in parts(len(records)):
        for place, value in told(header, records, kept).items():
            if place[-1] != "outcome" or value == "automatic":
                assert value == whole.get(place), (place, kept[0], len(kept))
                compared += 1
    assert compared > 10
