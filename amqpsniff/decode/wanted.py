"""What somebody looks at of the rows that a decoder makes; the rest need not be made."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from amqpsniff.decode.rows import MessageRows


class Wanted:
    """Tables, and columns of `frames` and `messages` by table: all of one that is not named.

    Attributes:
        frames, messages: Whether the table is wanted.
        quiet: No arguments are, of methods that come with every message.
        unread: Nothing of messages is.
        unmade: Columns of `messages` that nobody looks at.
    """

    def __init__(
        self, tables: Collection[str], columns: Mapping[str, Collection[str]] | None = None
    ) -> None:
        columns = columns or {}
        shown = columns.get("frames", ("arguments",))
        self.frames = "frames" in tables
        self.messages = "messages" in tables
        self.unread = frozenset(tables) == {"frames"}
        self.quiet = "findings" not in tables and not (self.frames and "arguments" in shown)
        self.unmade: frozenset[str] = frozenset()
        if "messages" in columns:
            self.unmade = frozenset(MessageRows.PROPERTIES).difference(columns["messages"])
