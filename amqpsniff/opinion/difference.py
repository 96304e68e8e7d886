"""One thing about one frame in which the two do not agree."""

from __future__ import annotations

from typing import Any, NamedTuple

from amqpsniff.opinion.sighting import Ours, Theirs

ONLY_OURS, ONLY_THEIRS = "only-ours", "only-theirs"
KIND, CHANNEL, SIZE, METHOD = "kind", "channel", "size", "method"
ARGUMENT, PROPERTY, MALFORMED = "argument", "property", "malformed"
"""Subjects of differences; `malformed`: tshark calls a frame so, and amqpsniff reads it."""


class Difference(NamedTuple):
    """A disagreement: what it is about, and both opinions.

    `name` is that of the argument or property, with the way into a table (`headers.retries[1]`);
    None for other kinds. `ours` and `theirs` are what each says, None for nothing. `known` is the
    name of the known disagreement that explains it, None when none does.
    """

    packet_number: int
    channel: int
    method: str | None
    what: str
    name: str | None
    ours: Any
    theirs: Any
    our_frame: Ours | None
    their_frame: Theirs | None
    known: str | None = None

    def row(self) -> dict[str, Any]:
        """The difference as a row: plain values only."""
        ids = self.their_frame.ids if self.their_frame is not None else (None, None)
        return {
            "packet_number": self.packet_number,
            "connection_id": self.our_frame.connection_id if self.our_frame else None,
            "channel": self.channel,
            "method": self.method,
            "tshark_class_id": ids[0],
            "tshark_method_id": ids[1],
            "what": self.what,
            "name": self.name,
            "ours": self.ours,
            "tshark": self.theirs,
            "known": self.known,
        }
