"""Which connection is which, among many: no more are looked at than may be the one."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from amqpsniff.compare import matching
from amqpsniff.compare.matching import WHOLE, pairs
from amqpsniff.compare.sighting import CapturedConnection, Direction, Sighting
from amqpsniff.compare.spill import Spill
from tests.thorough import rounds

MANY = 1_000


@pytest.fixture
def spill() -> Iterator[Spill]:
    made = Spill()
    yield made
    made.close()


def midstream(
    spill: Spill,
    number: int,
    starts: tuple[int | None, int | None],
    octets: tuple[int, int],
    side: str,
    *,
    client: int = 0,
) -> CapturedConnection:
    """A connection that began before the capture; numbers and bytes of client and broker."""
    directions = (Direction(spill), Direction(spill))
    ends = (f"{side}.{number}:50000", "broker:5672")
    connection = CapturedConnection(
        None, directions, f"{side}{number}", ends, start_ns=number, client=client
    )
    for at, start, count in zip((client, 1 - client), starts, octets, strict=True):
        directions[at].start = start
        if count:
            directions[at].coverage.add(0, count, number, number)
    return connection


def sighting(spill: Spill, connections: list[CapturedConnection]) -> Sighting:
    return Sighting(
        ["capture"], spill, {connection.connection_id: connection for connection in connections}
    )


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How each pair of connections was looked at."""
    made: list[str] = []
    pair = matching.paired

    def counted(
        connection: CapturedConnection, other: CapturedConnection, how: str
    ) -> matching.Pair | None:
        made.append(how)
        return pair(connection, other, how)

    monkeypatch.setattr(matching, "paired", counted)
    return made


@pytest.mark.parametrize("partners", [0, MANY // 2])
def test_many_in_mid_stream(spill: Spill, looks: list[str], partners: int) -> None:
    random = Random(1)

    def numbers(count: int) -> list[tuple[int, int]]:
        return [(random.randrange(WHOLE), random.randrange(WHOLE)) for _ in range(count)]

    def side(name: str) -> Sighting:
        all_numbers = shared + numbers(MANY - partners)
        return sighting(
            spill,
            [
                midstream(spill, at, one, (50_000, 9_000), name)
                for at, one in enumerate(all_numbers)
            ],
        )

    shared = numbers(partners)
    found, near, far = pairs(side("n"), side("f"))
    assert [(one.client.connection_id, one.broker.connection_id) for one in found] == [
        (f"n{number}", f"f{number}") for number in range(partners)
    ]
    assert len(near) == len(far) == MANY - partners
    assert partners <= len(looks) < partners + MANY // 4  # the others overlap by chance


def test_many_that_could_all_be_the_same(spill: Spill, looks: list[str]) -> None:
    """Where two fit, there is no choice, and no more are looked at."""
    sides = [
        sighting(spill, [midstream(spill, at, (7, 9), (10, 10), side) for at in range(MANY)])
        for side in "nf"
    ]
    found, near, far = pairs(*sides)
    assert (found, len(near), len(far)) == ([], MANY, MANY)
    assert len(looks) == 2 * MANY


@pytest.mark.parametrize("seed", range(rounds(40)))
def test_what_is_looked_at_makes_no_difference(
    spill: Spill, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers that begin again, streams of any length, and sides that sent nothing."""
    random = Random(seed)
    scale = random.choice((1 << 16, 1 << 28, 1 << 31))

    def side(name: str) -> Sighting:
        connections = []
        for number in range(30):
            starts = (-random.randrange(scale) % WHOLE, random.randrange(scale) % WHOLE)
            octets = (random.randrange(scale // 8), random.choice((0, 1, 1 << 12, scale // 4)))
            one = midstream(spill, number, starts, octets, name, client=random.randrange(2))
            if not octets[1]:
                one.directions[1 - (one.client or 0)].start = random.choice((None, 5))
            connections.append(one)
        return sighting(spill, connections)

    sides = side("n"), side("f")
    known = [list(map(id, pair[:2])) for pair in pairs(*sides)[0]]
    monkeypatch.setattr(matching, "overlapping", lambda far: lambda connection: far)
    assert [list(map(id, pair[:2])) for pair in pairs(*sides)[0]] == known
    if scale > 1 << 16:
        assert known
