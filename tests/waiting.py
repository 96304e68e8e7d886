"""How tests wait for other processes: for what these do, however long it takes them."""

from __future__ import annotations

import contextlib
import random
import socket
import time
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds after which something that never came is given up.

No test waits for it that passes, so it may be many times what a machine takes that is slow, cold
and busy with other things.
"""

LOOK_SECONDS = 0.005

PORTS = range(10_000, 32_000)
"""Below those that systems choose for clients: any of those may be taken at any time."""

_taken: list[socket.socket] = []


def wait_for(holds: Callable[[], object], what: str = "it never was so") -> None:
    """Wait until something holds; `what` is said when it never does."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(LOOK_SECONDS)


def free_port() -> int:
    """A TCP port that nobody listens on, and that no other test gets while this process runs.

    Whoever has the UDP port of the same number has it.
    """
    choice = random.SystemRandom()
    while True:
        port = choice.choice(PORTS)
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.bind(("", port))
            mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            _taken.append(mark)
            mark.bind(("", port))
            return port
