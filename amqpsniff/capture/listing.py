"""The captures of names while other programs write and remove them: next ones and lost ones.

A look reads the state of every file, and opens those that are new or were written since. A capture
waits until it is read. It is lost if it is removed or overwritten before, if it continues after the
reader turned to another one, or if it may not be read; losses are reported.

A file that was compressed after it was read has a second name, `trace.pcap.gz`, and is not read
again: it is left out while the file of the first name is there, or when that one was read.

A look at a large folder may take long, so such looks are rare: `due` has the time of the next.
"""

from __future__ import annotations

import glob
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from amqpsniff.capture.formats import is_remote, missing, shown
from amqpsniff.capture.push_reader import PushReader
from amqpsniff.errors import CaptureError

HEAD_BYTES = 4096
"""Bytes that distinguish a file that was begun again from one that continues: the time of the first
packet is among them."""

SPARE = 20
"""Looks take one part in this many of the time: they cost some 5 µs a file."""

MAX_TOLD = 1000
"""Notes remembered, so that each is given once: a ring may turn for months."""

COMPRESSED = (".gz", ".zst", ".zstd")
"""Endings that programs put behind the name of a file that they compressed."""

Identity = tuple[int, int]
Ask = Callable[[], os.stat_result]

READ, WAITING, OTHER = "read", "waiting", "other"
"""States of a file: read, or older than the first one read; still to be read; no capture."""


class Lost(NamedTuple):
    """A capture that is not read, or not further: its name and why."""

    path: str
    text: str


class _State(NamedTuple):
    """The state of a file that changes when it is written, and when its rights do."""

    modified_ns: int
    octets: int
    changed_ns: int


@dataclass
class _File:
    """A file; `head` are its first bytes, empty if it was not opened."""

    path: str
    state: _State
    kind: str
    head: bytes = b""


class Listing:
    """The files of the names, looked at repeatedly.

    Attributes:
        present: The files at the last look, by identity.
        lost: Losses since the list was emptied.
        notes: Messages for the user, likewise.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)
        self.present: dict[Identity, str] = {}
        self.lost: list[Lost] = []
        self.notes: list[str] = []
        self._known: dict[Identity, _File] = {}
        self._read_names: set[str] = set()
        self._noted: set[str] = set()
        self._due = 0.0

    def newest(self) -> str | None:
        """The capture that is read first; the others count as read. None without files.

        Raises CaptureError for a name that is not there, and where all there is may not be read.
        """
        explicit = {name for name in self.names if not Path(name).is_dir()}
        paths = sorted(self._files(first=True), key=lambda item: (item[1].st_mtime_ns, item[0]))
        self._due = 0.0
        chosen = None
        for path, status in reversed(paths):
            if chosen is None and (path in explicit or self._judged(path, status).kind == WAITING):
                chosen = path
            else:
                self.read(path, status, b"")
                self._read_names.add(path)
        if chosen is None and self.notes:
            raise CaptureError(self.notes[0])
        return chosen

    @property
    def due(self) -> bool:
        """True if it is time for another look."""
        return time.monotonic() >= self._due

    def look(self, current: Identity | None) -> list[str]:
        """The captures that wait, the oldest first; `current` is the file that is being read."""
        began = time.monotonic()
        self.present = {}
        for path, status in self._files():
            identity = _identity(status)
            if identity not in self.present and identity != current:
                self._judge(identity, path, status)
            self.present[identity] = path
        paths = set(self.present.values())
        for identity in self._known.keys() - self.present.keys():
            self._vanished(self._known.pop(identity), paths)
        names = paths | self._read_names
        waiting = [
            file
            for file in self._known.values()
            if file.kind == WAITING and _plain(file.path) not in names
        ]
        self._read_names = {
            name for name in self._read_names if name in paths or paths & _compressed(name)
        }
        now = time.monotonic()
        self._due = now + SPARE * (now - began)
        return [
            waiting_file.path
            for waiting_file in sorted(waiting, key=lambda file: (file.state, file.path))
        ]

    def turned(self, path: str, status: os.stat_result) -> None:
        """A capture is being read, which waited until now."""
        self._known.pop(_identity(status), None)
        self._read_names.add(path)

    def read(self, path: str, status: os.stat_result, head: bytes) -> None:
        """A capture was read to its end. Without a `head`, all of its later bytes will be read."""
        self._known[_identity(status)] = _File(path, _state(status), READ, head)

    def _files(self, *, first: bool = False) -> Iterator[tuple[str, os.stat_result]]:
        """Regular files of the names, with their state."""
        for name in self.names:
            for path, ask in self._entries(name, first=first):
                try:
                    status = ask()
                except OSError:  # gone again, or a link to nothing
                    continue
                if stat.S_ISREG(status.st_mode):
                    yield path, status

    def _entries(self, name: str, *, first: bool) -> Iterator[tuple[str, Ask]]:
        """Paths, each with the function that gets its state."""
        try:
            if name and Path(name).is_dir():
                with os.scandir(name) as entries:
                    yield from [(entry.path, entry.stat) for entry in entries]
                return
        except OSError as error:
            text = f"{shown(name)}: cannot be looked into: {error.strerror}"
            if first:
                raise CaptureError(text) from None
            self._note(text)
            return
        if os.path.lexists(name):
            yield name, Path(name).stat
        elif glob.has_magic(name) and not is_remote(name):
            yield from ((path, Path(path).stat) for path in glob.glob(name))  # noqa: PTH207
        elif first:
            raise missing(name)

    def _judge(self, identity: Identity, path: str, status: os.stat_result) -> None:
        """Identify a file that is new or was replaced."""
        state, file = _state(status), self._known.get(identity)
        if file is None:
            self._read_names.discard(path)
            self._known[identity] = self._judged(path, status)
            return
        (before, old_path), (file.state, file.path) = (file.state, file.path), (state, path)
        if state == before or (file.kind == READ and state[:2] == before[:2]):
            return
        head = self._head(path)
        goes_on = state.octets >= before.octets and head.startswith(file.head)
        if file.kind == READ and file.head and goes_on:
            self._note(
                f"{shown(path)} goes on after another file was begun: what it has since is not read"
            )
        elif file.kind == WAITING and goes_on:
            file.head = head
        else:
            if file.kind == WAITING:
                anew = "begun anew" if old_path == path else "removed"
                self._lose(old_path, before.octets, f"was {anew} before it was read")
            self._read_names.discard(path)
            self._known[identity] = self._judged(path, status)

    def _judged(self, path: str, status: os.stat_result) -> _File:
        """The kind of a file, by its first bytes; an empty file is not a capture yet."""
        head = self._head(path)
        octets = PushReader(path)
        try:
            deque(octets.feed(head), 0)
            octets.refuse()
        except CaptureError:
            return _File(path, _state(status), OTHER)
        return _File(path, _state(status), WAITING, head)

    def _vanished(self, file: _File, paths: set[str]) -> None:
        """A file was removed: it is lost if it waited, unless its contents have another name."""
        plain = _plain(file.path)
        is_present = paths & {plain, *_compressed(file.path)}
        if file.kind == WAITING and plain not in self._read_names and not is_present:
            self._lose(file.path, file.state.octets, "was removed before it was read")

    def _head(self, path: str) -> bytes:
        """The first bytes of a file; empty if it cannot be read."""
        try:
            with open(path, "rb", 0) as file:  # noqa: PTH123 (a Path for each costs as much again)
                return file.read(HEAD_BYTES)
        except FileNotFoundError:
            return b""
        except OSError as error:
            self._note(f"{shown(path)}: cannot be opened: {error.strerror}")
            return b""

    def _lose(self, path: str, octets: int, event: str) -> None:
        self.lost.append(Lost(path, f"{shown(path)} {event}: {octets} bytes are lost"))

    def _note(self, text: str) -> None:
        if text not in self._noted:
            if len(self._noted) >= MAX_TOLD:
                self._noted.clear()
            self._noted.add(text)
            self.notes.append(text)


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _state(status: os.stat_result) -> _State:
    return _State(status.st_mtime_ns, status.st_size, status.st_ctime_ns)


def _plain(path: str) -> str:
    """The name of a file before it was compressed; empty when it does not look like that."""
    return next((path[: -len(suffix)] for suffix in COMPRESSED if path.endswith(suffix)), "")


def _compressed(path: str) -> set[str]:
    """The names that a file may have once it was compressed."""
    return {path + suffix for suffix in COMPRESSED}
