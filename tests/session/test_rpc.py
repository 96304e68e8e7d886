"""Requests that wait under several addresses, and are forgotten in the order they were asked."""

from __future__ import annotations

from amqpsniff.null import NULL
from amqpsniff.session.linker import Requester, RpcRequest, RpcRequests

MS = 1_000_000


def test_the_last_that_is_remembered_answers() -> None:
    """One asked first may come to an address last; forgotten, it stands in nobody's way."""
    calls, requester = RpcRequests(2, 1_000 * MS), Requester.__new__(Requester)
    first, second, third = (
        RpcRequest(requester, number, number * MS, 0, NULL) for number in range(3)
    )
    calls.add(first, 1)
    calls.add(second, 2)
    calls.wait(second, 9)
    calls.wait(first, 9)
    for wanted in (second, first, first):
        found = calls.find(9, False)
        assert found is wanted
        found.replied = True
    calls.add(third, 3)  # two are remembered
    assert first.forgotten
    assert calls.find(9, False) is second
    fourth = RpcRequest(requester, 4, 4 * MS, 0, NULL)
    calls.add(fourth, 9)
    assert calls.find(9, False) is fourth
