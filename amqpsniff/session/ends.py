"""Being told of every connection that ends, by whatever takes a `Census`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amqpsniff.session.census import Census


class ToldOfEnds(Census):
    """Counts nothing: `told` is called with each `decode.state.Connection` that is over."""

    def __init__(self, told: Callable[[Any], None]) -> None:
        super().__init__()
        self._told = told

    def look(self, *_: Any) -> None:
        """Rows are of no interest."""

    def end(self, connection: Any, session: Any) -> None:
        """A connection is over."""
        self._told(connection)
