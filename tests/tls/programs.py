"""TLS conversations between programs (OpenSSL, GnuTLS): what each is given on its standard input.

A relay stands between them and keeps what passed, chunk by chunk, for a `Talk`.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.tcp.wire import Talk
from tests.tls import talk as tls
from tests.waiting import PATIENCE, wait_for


def program(name: str) -> str:
    """The path of a program; the test is skipped without it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


class Relay:
    """Listens at `port`, passes what comes on to another port, and keeps it in `talks`.

    `open` counts the directions in which something may still come.
    """

    def __init__(self, onward: int) -> None:
        self.onward = onward
        self.talks: list[Talk] = []
        self.passed = [0, 0]
        self._octets = (bytearray(), bytearray())
        self.open = 0
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                server = socket.create_connection(("127.0.0.1", self.onward))
                talk = Talk(ports=(40000 + len(self.talks), 5671)).hands()
                self.talks.append(talk)
                with self._lock:
                    self.open += 2
                for side, ends in enumerate(((client, server), (server, client))):
                    threading.Thread(
                        target=self._pass, args=(talk, side, *ends), daemon=True
                    ).start()

    def _pass(self, talk: Talk, side: int, source: socket.socket, target: socket.socket) -> None:
        try:
            while octets := source.recv(65536):
                with self._lock:
                    for at in range(0, len(octets), tls.SEGMENT):
                        talk.put(side, octets[at : at + tls.SEGMENT])
                    self.passed[side] += len(octets)
                    self._octets[side].extend(octets)
                target.sendall(octets)
        except OSError:
            pass  # one that is killed resets; the other must know, or it serves nobody else
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
        with self._lock:
            self.open -= 1

    def handshakes(self) -> int:
        """How many handshakes both sides have ended: of TLS 1.2, in one connection."""
        with self._lock:
            return min(map(_handshakes, self._octets))

    def forget(self) -> None:
        """Forget the connections so far, once all of them are over."""
        wait_for(lambda: not self.open, "a connection goes on")
        self.talks.clear()
        self.passed[:] = 0, 0
        for octets in self._octets:
            octets.clear()

    def close(self) -> None:
        self._socket.close()


def _handshakes(octets: bytearray) -> int:
    """Records of ChangeCipherSpec (20) that have a whole record, a Finished, behind them."""
    count, place, changed = 0, 0, False
    while place + 5 <= len(octets):
        end = place + 5 + int.from_bytes(octets[place + 3 : place + 5], "big")
        if end > len(octets):
            break
        count += changed
        changed = octets[place] == 20
        place = end
    return count


class Program:
    """A program with its standard input open, and what it says."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self.heard = bytearray()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        while octets := self.process.stdout.read(65536):
            self.heard += octets

    def say(self, octets: bytes) -> None:
        """Give it bytes on its standard input."""
        assert self.process.stdin is not None
        view = memoryview(octets)
        while view:
            view = view[self.process.stdin.write(view) or 0 :]

    def hears(self, octets: bytes) -> Callable[[], bool]:
        """Whether it has printed bytes since this was called."""
        mark = len(self.heard)
        return lambda: self.heard.find(octets, mark) >= 0

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._listener.join(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


@contextlib.contextmanager
def running(*command: str) -> Iterator[Program]:
    """A program, for as long as it is needed."""
    one = Program(command)
    try:
        yield one
    finally:
        one.end()


def listening(port: int) -> None:
    """Wait until somebody listens there."""

    def there() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    wait_for(there, "nobody listens")
