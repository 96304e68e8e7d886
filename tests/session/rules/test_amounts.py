"""What several rules count and name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from amqpsniff.session.rules import format
from tests.session.rules.found import details
from tests.session.rules.test_topology import DECLARE, OPEN


@pytest.mark.parametrize(
    ("queues", "words"),
    [
        ([], ""),
        ([None], ""),
        (["b", None, "a", "b"], "'a', 'b'"),
        (["c", "b", "a"], "'a', 'b', 'c'"),
        (["d", "c", "b", "a"], "'a', 'b', 'c' and 1 more"),
        (["e", "d", "c", "b", "a"], "'a', 'b', 'c' and 2 more"),
    ],
)
def test_queues_that_are_named(queues: list[str | None], words: str) -> None:
    consumers = {
        number: SimpleNamespace(queue=queue, no_ack=False) for number, queue in enumerate(queues)
    }
    channel: Any = SimpleNamespace(by_tag=consumers, amqp10=None)
    assert format.queues_of(channel) == words


@pytest.mark.parametrize(("names", "forgotten"), [(1000, []), (1001, ["forgotten: names (1)"])])
def test_names_that_are_remembered(names: int, forgotten: list[str]) -> None:
    declared = "".join(DECLARE.replace("jobs", f"q{n}") for n in range(names))
    assert details(OPEN + declared, "rules-limit") == forgotten
