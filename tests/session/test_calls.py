"""Requests that wait under several addresses, and are forgotten in the order they were asked."""

from __future__ import annotations

from amqpsniff.columns import NULL
from amqpsniff.session.calls import Asker, Call, Calls

MS = 1_000_000


def test_the_last_that_is_remembered_answers() -> None:
    """One asked first may come to an address last; forgotten, it stands in nobody's way."""
    calls, asker = Calls(2, 1_000 * MS), Asker.__new__(Asker)
    first, second, third = (Call(asker, number, number * MS, 0, NULL) for number in range(3))
    calls.ask(first, 1)
    calls.ask(second, 2)
    calls.wait(second, 9)
    calls.wait(first, 9)
    for wanted in (second, first, first):
        found = calls.find(9, False)
        assert found is wanted
        found.replied = True
    calls.ask(third, 3)  # two are remembered
    assert first.forgotten
    assert calls.find(9, False) is second
    fourth = Call(asker, 4, 4 * MS, 0, NULL)
    calls.ask(fourth, 9)
    assert calls.find(9, False) is fourth
