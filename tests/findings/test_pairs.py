"""Each code has what shows it and a near miss; both are read, and how near they are is measured."""

from __future__ import annotations

import pytest

from amqpsniff.findings import KINDS
from tests.findings import pairs_of_octets, pairs_of_peers, pairs_of_rates
from tests.findings.cases import Pair, case_of, distance

PAIRS: dict[str, Pair] = {**pairs_of_octets.PAIRS, **pairs_of_peers.PAIRS, **pairs_of_rates.PAIRS}


def test_every_code_has_a_pair() -> None:
    assert PAIRS.keys() == KINDS.keys()


@pytest.mark.parametrize("code", PAIRS)
def test_what_shows_it_and_what_nearly_does(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = PAIRS[code]
    for name, bound in pair.bounds:
        monkeypatch.setattr(name, bound)
    shown, near = case_of(pair.shown), case_of(pair.near)
    assert code in shown.codes()
    assert code not in near.codes()
    assert 0 < distance(shown.steps, near.steps) <= pair.steps


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [("", "", 0), ("abc", "abc", 0), ("abc", "axc", 1), ("abc", "ac", 1), ("abcd", "xbcy", 2)],
)
def test_distances(one: str, other: str, apart: int) -> None:
    assert distance(one, other) == distance(other, one) == apart
