"""How rules write times and places in a finding's detail."""

from __future__ import annotations


def lasting(ns: int) -> str:
    """A time in the unit that suits it: `380 ms`, `2.4 s`, `12 min`."""
    if ns < 10_000_000:
        return f"{ns / 1e6:.1f} ms"
    if ns < 1_000_000_000:
        return f"{ns // 1_000_000} ms"
    if ns < 120_000_000_000:
        return f"{ns / 1e9:.1f} s"
    return f"{ns // 60_000_000_000} min"


def in_packet(number: int | None) -> str:
    """Where something was, ` in packet 9`; empty where that is not known."""
    return "" if not number else f" in packet {number}"
