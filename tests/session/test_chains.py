"""Nothing keeps its predecessors alive: freeing a long chain would overflow the stack."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from amqpsniff import Engine
from tests.decode.script import OPENING, method, publish
from tests.encoder import header

LONG = 4_000
STACK = 128 * 1024

Said = Iterator[tuple[str, str, bytes]]
"""Connection, sender, bytes."""


def _channels() -> Said:
    """One channel number, opened and closed again and again."""
    yield "one", "client", OPENING
    for _ in range(LONG):
        yield "one", "client", method("channel.open") + method("channel.close")
        yield "one", "server", method("channel.open-ok") + method("channel.close-ok")


def _connections() -> Said:
    """Connections that open a channel, each with the key of the one before."""
    for _ in range(LONG):
        yield "one", "client", OPENING + method("channel.open")
        yield "one", "close", b""


def _publishes() -> Said:
    """Publishes that nothing confirms."""
    yield "one", "client", OPENING + method("channel.open") + method("confirm.select")
    yield "one", "server", method("channel.open-ok") + method("confirm.select-ok")
    for _ in range(LONG):
        yield "one", "client", publish() + header(1, 60, 0)


@pytest.mark.parametrize("talk", [_channels, _connections, _publishes])
def test_long_chains_are_freed(talk: Callable[[], Said]) -> None:
    frames = []

    def run() -> None:
        engine = Engine()
        for connection, sender, octets in talk():
            if sender == "close":
                engine.close(connection)
            else:
                engine.feed_bytes(connection, sender, octets)
        engine.finish()
        frames.append(engine.take("frames").num_rows)

    before = threading.stack_size(STACK)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert frames[0] > LONG
