"""Rows do not depend on how packets come in batches, nor on when rows are given out."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.capture import CaptureSet
from amqpsniff.limits import Limits
from amqpsniff.options import Options
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from amqpsniff.tables.batches import Maker
from amqpsniff.tables.schema import TABLES
from tests.cli.running import write_capture
from tests.decode.feeding import packets_of
from tests.decode.script import publish
from tests.encoder import header
from tests.session.damaging import Damage, damages
from tests.tcp import wire
from tests.thorough import some

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.pcap*"))
SMALL = [path for path in SAMPLES if path.stat().st_size < 100_000]

CAPTURES = Path(__file__).parents[1] / "captures"
DAMAGED = [
    *sorted((CAPTURES / "amqp10").glob("*.pcap*")),
    *sorted((CAPTURES / "cases").glob("*.pcap*")),
    *SMALL,
]

Rows = dict[str, list[dict[str, Any]]]


def told(path: Path, at_once: int, **limits: int) -> Rows:
    """All rows of a capture whose packets come so many at a time."""
    joined = Pipeline(Options(limits=Limits(**limits)), Plan(TABLES))
    makers = {table: Maker(table) for table in TABLES}
    rows: Rows = {table: [] for table in TABLES}

    def keep(batches: Any) -> None:
        for taken in batches:
            for table in ("frames", "messages"):
                rows[table] += makers[table].make(taken).to_pylist()

    with CaptureSet([str(path)]) as packets:
        for batch in packets:
            for begin in range(batch.begin, batch.end, at_once):
                joined.feed(
                    batch.slice(begin, min(begin + at_once, batch.end)), packets.take_secrets()
                )
                keep(joined.settled())
        joined.finish()
        found = [*packets.findings, *joined.findings(packets.findings)]
    keep(joined.rest())
    for table, records in joined.records().items():
        rows[table] += makers[table].make(records).to_pylist()
    rows["findings"] = makers["findings"].make(found).to_pylist()
    return rows


def written(folder: Path, damage: Damage) -> Path:
    """The packets of a damaged capture as a file."""
    packets = [
        wire.Packet(octets, ts_ns, original, link_type)
        for _, ts_ns, octets, original, link_type in damage.packets
    ]
    return write_capture(folder / "damaged.pcap", packets)


@pytest.mark.parametrize(
    ("path", "at_once"),
    [(path, 7) for path in some(SAMPLES)] + [(path, 1) for path in some(SMALL)],
    ids=lambda value: getattr(value, "name", value),
)
def test_rows_are_those_of_the_whole(path: Path, at_once: int) -> None:
    capture = amqpsniff.open(path)
    whole = {table: capture.table(table).to_pylist() for table in TABLES}
    assert told(path, at_once, rows_per_batch=1) == whole


@pytest.mark.parametrize("path", some(DAMAGED, 16), ids=lambda path: path.name)
def test_rows_of_a_damaged_capture_are_those_of_the_whole(path: Path, tmp_path: Path) -> None:
    """A loss shows in later packets; rows may not depend on whether these were read already."""
    packets = packets_of(path)
    for damage in [Damage("none", packets), *damages(packets, seed=6, rounds=1)]:
        if damage.packets:
            damaged = written(tmp_path, damage)
            at_once = told(damaged, len(damage.packets))
            assert told(damaged, 1, rows_per_batch=1) == at_once, damage.kind


def test_a_handshake_behind_what_does_not_look_like_a_begin(tmp_path: Path) -> None:
    """The connection is read as it was opened, in mid-stream; its SYN may be in the batch."""
    talk = wire.Talk()
    talk.client(publish() + header(1, 60, 0), at=8)
    talk.client(flags=wire.SYN, at=0)
    talk.server(flags=wire.SYN | wire.ACK, ack=0)
    talk.client(publish() + header(1, 60, 0))
    path = write_capture(tmp_path / "late.pcap", talk.packets)
    whole = told(path, len(talk.packets))
    assert told(path, 1) == whole
    assert whole["frames"]
    assert whole["connections"][0]["midstream"]


def test_a_message_that_ends_in_the_first_frame_of_a_batch(tmp_path: Path) -> None:
    """Its row is of its own connection, not of the one that the code named in the batch before."""
    path = CAPTURES / "cases" / "traffic_stopped.pcap.gz"
    *_, damage = islice(damages(packets_of(path), seed=33, rounds=1), 2)
    damaged = written(tmp_path, damage)
    assert told(damaged, 1, rows_per_batch=1) == told(damaged, len(damage.packets))
