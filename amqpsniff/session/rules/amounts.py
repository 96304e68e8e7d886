"""How rules write names in their details, and what several of them ask of a scene."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from typing import Any

from amqpsniff.session.rules.scene import Rule, Scene, after

MAX_NAMES = 1_000
"""Names (queues, declarations, calls that wait) that a rule remembers of one connection; a client
may make up any number of them."""

MAX_OF_ALL_NAMES = 100_000
"""The same over all connections that are open: some 500 bytes each. Without it 2,000 connections
that declare 1,000 queues each took 1 GB."""


MAX_APART = 20
"""Queues and the like of a connection that have a finding each: who reads on has seen enough."""


def open_channels(session: Any) -> Iterator[Any]:
    """The channels of a connection that are open."""
    for lane in session.lanes.values():
        if lane.channel is not None:
            yield lane.channel


def queues_of(channel: Any, before: Iterable[str] = ()) -> str:
    """The queues that a channel's consumers read, and those `before`, at most three by name."""
    every = {one.queue for one in channel.by_tag.values() if one.queue}.union(before)
    names = nsmallest(3, every)
    more = f" and {len(every) - 3} more" if len(every) > 3 else ""
    return ", ".join(f"'{name}'" for name in names) + more


def remember(scene: Scene, memory: dict[Any, Any], key: Any, new: Any) -> Any:
    """What is remembered under a key, `new` when nothing was; None when there is no more room."""
    if key not in memory:
        if len(memory) >= MAX_NAMES or scene.everything.get("names", 0) >= MAX_OF_ALL_NAMES:
            return scene.forget("names")
        memory[key] = new
        _count(scene, 1)
    return memory[key]


def drop(scene: Scene, memory: dict[Any, Any], key: Any) -> Any:
    """Remember nothing under a key any more; what was remembered, None for nothing."""
    known = memory.pop(key, None)
    if known is not None and "names" in scene.memory:  # else they were counted off at once
        _count(scene, -1)
    return known


def apart(scene: Scene, name: str, key: Any) -> int | None:
    """The variant of a finding that tells a key from others on its channel: the first
    `MAX_APART` keys of a connection have findings of their own, the others one together.
    """
    known = scene.memory.setdefault(name, {})
    if key not in known and len(known) < MAX_APART:
        known[key] = len(known)
    return known.get(key, MAX_APART) or None


def _count(scene: Scene, more: int) -> None:
    """Names are remembered, or dropped: of the connection and of all."""
    for names in (scene.memory, scene.everything):
        names["names"] = names.get("names", 0) + more


@after("names")
def _ended(scene: Scene) -> None:
    scene.everything["names"] -= scene.memory.pop("names")


RULES: dict[str, tuple[Rule, ...]] = {"connection-ends": (_ended,)}
"""Rules by occasion."""


# Compiled modules read the columns of rows directly; this is for the others.


def integer_at(column: Any, row: int) -> int:
    """The value of a column of integers; `NULL` for null."""
    return int(memoryview(column.storage).cast("q")[row])
