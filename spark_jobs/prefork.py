"""Starting the process that workers are forked from while Java starts.

Spark starts this process (`workers`) for the first task, and waits while it imports. So the driver
of an embedded Spark starts one earlier, which imports and then waits at a socket. The process that
Spark starts hands over its streams, environment and path, and ends when the other ends. Without a
waiting process it does the work itself. A waiting process that is not used ends with the driver.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PLACE = "AMQPSNIFF_PREFORK"
"""Environment variable with the name of the socket."""

FLAG = "--prefork"

_STREAMS = (0, 1, 2)

_LENGTH_BYTES = 8

_TAKEN = b"\1"

_kept: list[Any] = []
"""Objects that live as long as this process."""


@contextlib.contextmanager
def offered(python: str) -> Iterator[None]:
    """Start a waiting process, which the first Java that this process starts will use."""
    if _kept or not hasattr(os, "fork"):
        yield
        return
    with contextlib.suppress(OSError):
        _start(python)
    try:
        yield
    finally:
        os.environ.pop(PLACE, None)


def _start(python: str) -> None:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="amqpsniff-"))
        place = str(Path(folder) / "socket")
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(place)
        listener.listen()
        process = subprocess.Popen(
            [python, "-m", "amqpsniff.spark_jobs.workers", FLAG, str(listener.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            env={"PYTHONHASHSEED": "0", **os.environ, PLACE: place},  # the same as Spark sets
        )
        os.environ[PLACE] = place
        listener.close()
        _kept.extend((stack.pop_all(), process))


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        (folder / "socket").unlink()
        folder.rmdir()


def hand_over() -> bool:
    """Let the waiting process do the work of this one; False if there is none."""
    given = {
        "arguments": sys.argv,
        "environment": dict(os.environ),
        "path": sys.path,
        "home": str(Path.cwd()),
    }
    octets = json.dumps(given).encode()
    try:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(os.environ[PLACE])
            socket.send_fds(peer, [len(octets).to_bytes(_LENGTH_BYTES, "big")], _STREAMS)
            peer.sendall(octets)
            if peer.recv(1) != _TAKEN:
                return False
            peer.recv(1)  # nothing, when the other has ended
    except (KeyError, OSError):
        return False
    return True


def wait(prepare: Callable[[], None]) -> None:
    """Prepare, then wait for a process that hands over; return in its place, or exit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # that of a terminal is for the driver
    with socket.socket(fileno=int(sys.argv[2])) as listener:
        prepare()
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.register(sys.stdin, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll()]
        _remove(Path(os.environ[PLACE]).parent)  # a driver that is killed leaves it
        if listener.fileno() not in ready:  # the driver has ended
            sys.exit()
        peer, _ = listener.accept()
    head, streams, _, _ = socket.recv_fds(peer, _LENGTH_BYTES, len(_STREAMS))
    with peer.makefile("rb") as file:
        given = json.loads(file.read(int.from_bytes(head, "big")))
    for stream, own in zip(streams, _STREAMS, strict=True):
        os.dup2(stream, own)
        os.close(stream)
    sys.argv[:], sys.path[:] = given["arguments"], given["path"]
    os.environ.clear()
    os.environ.update(given["environment"])
    os.chdir(given["home"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    peer.sendall(_TAKEN)
    _kept.append(peer)
