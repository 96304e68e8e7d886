"""Parts of real captures: whatever is missing, nothing is found that the whole does not show.

Packets are taken out at random, alone or many in a row; captures begin late and end early; a snap
length cuts all packets.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from amqpsniff import Engine
from amqpsniff.capture import open_capture
from amqpsniff.findings import KINDS, SUBJECTS
from tests.conftest import own_capture
from tests.thorough import rounds

Packets = list[tuple[bytes, int, int]]
"""Bytes, time and link type of each packet."""

CUTS = rounds(40)
"""Parts that are made of each capture."""

NAMES = (
    "aiopika_rpc amqplib08 blocked bunny delayed_ack kombu late_consumer node php_churn pika_mix "
    "v08_v09 violations zerowindow"
).split()

SAID_OF_CAPTURES = {kind.code for kind in SUBJECTS["capture"]} | {
    "delivery-tag-gap",
    "arguments-cut",
}

LESS_EXACT = {
    "pika_mix": {"connection-closed-by-broker"},  # where the login that was refused is missing
    "amqplib08": {"publishes-unprotected"},  # where the tx.select at its end is missing
}
"""What is true of a part only because it does not show what the whole does."""

SNAPPED = {
    "aiopika_rpc": (80, 96, 114, 144, 176, 204, 240),
    "blocked": (84, 180, 300, 396),
    "late_consumer": (78, 84),
    "node": (90, 108, 240, 392),
    "php_churn": (84, 324),
    "pika_mix": (78, 84, 102, 240, 396),
    "v08_v09": (102, 114),
    "violations": (84, 102, 138, 198),
}
"""Lengths to which the packets of captures are cut: there arguments that rules ask for are cut."""


def _paths() -> list[Path]:
    return [own_capture(name) for name in NAMES]


def _packets(path: Path) -> Packets:
    return [
        (batch.octets[start : start + captured], batch.ts_ns[row], batch.link_type[row])
        for batch in open_capture(str(path))
        for row in range(batch.begin, batch.end)
        for start, captured in [(batch.start[row], batch.captured[row])]
    ]


def _codes(packets: Packets, snap: int | None = None) -> dict[str, str]:
    """What is found in packets, cut to `snap` octets: the first detail of each code."""
    engine = Engine()
    for octets, ts_ns, link_type in packets:
        engine.feed_packet(octets[:snap], ts_ns, link_type, len(octets))
    engine.finish()
    found: dict[str, str] = {}
    for row in engine.take("findings").to_pylist():
        found.setdefault(row["code"], f"packet {row['packet_number']}: {row['detail']}")
    return found


def _part(packets: Packets, chance: random.Random) -> tuple[str, Packets]:
    """A part of a capture, and what it is."""
    first, last = sorted((chance.randrange(len(packets)), chance.randrange(len(packets))))
    few = min(len(packets), first + chance.randrange(1, 200))
    kept = 1 - chance.choice((0.002, 0.01, 0.05, 0.3))
    return chance.choice(
        (
            (f"from {first} on", packets[first:]),
            (f"up to {last}", packets[: last + 1]),
            (f"from {first} to {last}", packets[first : last + 1]),
            (f"without {first} to {few}", packets[:first] + packets[few:]),
            (f"without {first}", packets[:first] + packets[first + 1 :]),
            (f"some {kept:.1%}", [one for one in packets if chance.random() < kept]),
        )
    )


@pytest.mark.parametrize("path", _paths(), ids=lambda path: path.name)
def test_nothing_is_found_that_the_whole_does_not_show(path: Path) -> None:
    packets = _packets(path)
    name = path.name.split(".")[0]
    known = {*_codes(packets), *SAID_OF_CAPTURES, *LESS_EXACT.get(name, ())}
    chance = random.Random(name)
    for _ in range(CUTS):
        what, part = _part(packets, chance)
        more = {code: said for code, said in _codes(part).items() if code not in known}
        more = {code: said for code, said in more.items() if KINDS[code].severity != "info"}
        assert not more, what


@pytest.mark.parametrize(
    "path", [path for path in _paths() if path.name.split(".")[0] in SNAPPED], ids=lambda p: p.name
)
def test_nothing_is_found_at_a_snap_length_either(path: Path) -> None:
    packets = _packets(path)
    name = path.name.split(".")[0]
    known = {*_codes(packets), *SAID_OF_CAPTURES, *LESS_EXACT.get(name, ())}
    for snap in SNAPPED[name]:
        found = _codes(packets, snap)
        assert not {code: said for code, said in found.items() if code not in known}, snap
