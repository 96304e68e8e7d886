"""`poll` for one descriptor, since `select` takes none from 1024 on."""

from __future__ import annotations

import select
from typing import Protocol


class HasDescriptor(Protocol):
    """A file, a socket."""

    def fileno(self) -> int:
        """Its descriptor."""


def readable(source: int | HasDescriptor, seconds: float | None = 0) -> bool:
    """True if a read would not wait, now or after at most these seconds; None for no limit.

    Reads at the end of a pipe, and reads that fail, do not wait either.
    """
    poll = select.poll()
    poll.register(source, select.POLLIN)
    return bool(poll.poll(None if seconds is None else 1000 * seconds))
