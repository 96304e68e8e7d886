"""Each code has what shows it and a near miss; both are read, and how near they are is measured.

A near miss is as quiet where a part of it was not captured: where the capture began later, ended
sooner, lost a packet, or has one direction only.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from amqpsniff.findings import KINDS
from tests.findings import (
    pairs_of_bytes,
    pairs_of_conditions,
    pairs_of_frameworks,
    pairs_of_links,
    pairs_of_peers,
    pairs_of_rates,
)
from tests.findings.cases import Pair, case_of, distance, packets_of, sent
from tests.tcp.wire import Packet
from tests.thorough import RANDOM_SHARE

PAIRS: dict[str, Pair] = {
    **pairs_of_bytes.PAIRS,
    **pairs_of_peers.PAIRS,
    **pairs_of_rates.PAIRS,
    **pairs_of_links.PAIRS,
    **pairs_of_frameworks.PAIRS,
}
EVERY = {**PAIRS, **pairs_of_conditions.PAIRS, **pairs_of_links.CONDITIONS}
EVERY |= pairs_of_frameworks.CONDITIONS
SCRIPTS = [name for name, pair in PAIRS.items() if isinstance(pair.near, str) and not pair.bounds]
CUTS = 4
"""Places at which a near miss is cut; any place is silent, which takes 20 s to see."""


def test_every_code_has_a_pair() -> None:
    assert PAIRS.keys() == KINDS.keys()


@pytest.mark.parametrize("name", EVERY)
def test_what_shows_it_and_what_nearly_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    code = name.partition(" ")[0]
    if code.startswith("tls-"):
        pytest.importorskip("cryptography")
    if code == "capture-through-tshark" and not shutil.which("tshark"):
        pytest.skip("tshark is not installed")
    pair = EVERY[name]
    for constant, bound in pair.bounds:
        monkeypatch.setattr(constant, bound)
    shown, near = case_of(pair.shown), case_of(pair.near)
    assert code in shown.codes()
    assert code not in near.codes()
    assert 0 < distance(shown.steps, near.steps) <= pair.steps


def parts(packets: list[Packet], cuts: int) -> Iterator[list[Packet]]:
    """Captures of the same in which something is missing."""
    for port in (5672, 40000):
        yield [one for one in packets if int.from_bytes(one.octets[20:22], "big") != port]
    for place in range(1, len(packets), max(1, len(packets) // cuts)):
        yield packets[place:]
        yield packets[:place]
        yield packets[:place] + packets[place + 1 :]


@pytest.mark.parametrize(("at", "code"), list(enumerate(SCRIPTS)), ids=str)
def test_a_part_of_what_nearly_does(at: int, code: str) -> None:
    """Each direction alone, and a tenth of the other parts, others for each finding."""
    near = PAIRS[code].near
    assert isinstance(near, str)
    up, down, *others = parts(packets_of(near), CUTS)
    for packets in (up, down, *others[at % RANDOM_SHARE :: RANDOM_SHARE]):
        assert code not in sent(packets).codes()


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [("", "", 0), ("abc", "abc", 0), ("abc", "axc", 1), ("abc", "ac", 1), ("abcd", "xbcy", 2)],
)
def test_distances(one: str, other: str, apart: int) -> None:
    assert distance(one, other) == distance(other, one) == apart
