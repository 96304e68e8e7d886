"""Messages and octets by name, in bounded memory."""

from __future__ import annotations

from typing import Any

MOST_NAMES = 20_000
"""Names counted exactly. A client that makes a routing key per order has millions, and few that
matter; when there are more, the rarer half is forgotten, so that frequent ones stay exact."""

WAYS = ("published", "delivered")
"""A message is published, or delivered; a get counts as a delivery, a return as neither."""


class Amounts:
    """Messages and octets by name, both ways; `forgotten` says that rare names are missing."""

    def __init__(self) -> None:
        self.counts: dict[Any, list[int]] = {}
        self.forgotten = False

    def add(self, name: Any, way: str, messages: int, octets: int) -> None:
        """Count messages of one name, that went one of `WAYS`."""
        count = self.counts.get(name)
        if count is None:
            if len(self.counts) >= 2 * MOST_NAMES:
                self._forget()
            count = self.counts[name] = [0, 0, 0, 0]
        at = 2 * WAYS.index(way)
        count[at] += messages
        count[at + 1] += octets

    def top(self, most: int) -> list[tuple[Any, list[int]]]:
        """The most frequent names, with messages and octets published and delivered."""
        ranked = sorted(self.counts.items(), key=lambda item: -(item[1][0] + item[1][2]))
        return ranked[:most]

    def _forget(self) -> None:
        self.counts = dict(self.top(MOST_NAMES))
        self.forgotten = True
