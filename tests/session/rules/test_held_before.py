"""Deliveries from before the capture that are acknowledged late."""

from __future__ import annotations

import pytest

from tests.session.rules.saying import said

WAITS = "midstream\nC2: channel.open\nS2: channel.open-ok\n"
"""From before the capture, with a client that is known by what it asks for."""


def late(wait_ms: int, first: str = WAITS, more: str = "") -> list[str]:
    text = f"{first}[ack] @+{wait_ms}ms C1: basic.ack delivery_tag=7 {more}\n"
    return said(text, "consumer-slow")


def test_a_late_acknowledgement() -> None:
    (line,) = late(31_000)
    assert "delivery 7 came before the capture, and was acknowledged 31.0 s after it began" in line


def test_several_deliveries() -> None:
    (line,) = late(31_000, more="multiple=1")
    assert "deliveries up to 7 came before the capture" in line


@pytest.mark.parametrize(
    ("wait_ms", "first"),
    [
        (29_000, WAITS),
        (31_000, WAITS + "GAP C 30\n"),
    ],
)
def test_near_misses(wait_ms: int, first: str) -> None:
    """Sooner, and where a delivery of the capture may be missing."""
    assert not late(wait_ms, first)
