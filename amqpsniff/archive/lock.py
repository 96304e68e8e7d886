"""A lock on a folder, on any file system and on object storage: one run writes at a time.

A run writes a lock file with a unique name, and lists those of others: without others it has the
lock. The file system only has to create a file in one step and to list files: of two runs that both
listed, one listed after the other had written. A lock file holds the lock only after its run was
alone. A run that finds a holder gives way. Of several candidates, all give way to the one with the
least name, which waits for them to go.

A lock file counts as long as its run lives. On one machine the system shows this; elsewhere the
file is a lease, which is renewed regularly and expires. So a killed run does not block others for
long. A run that was only suspended, and continues after another took the lock, detects this before
it commits (`check`).
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

from amqpsniff.errors import OutputError

from .filesystem import Folder, is_part

LOCKS = "_work/turns"
"""Folder of the lock files of a batch."""

RENEW_SECONDS = 10.0
"""Time after which a lock file is renewed."""

STALE_SECONDS = 120.0
"""Age at which a lease has ended: nothing that holds a process up takes so long, as a rule."""

ASK_SECONDS = 0.05
"""Time between two looks at others that ask as well."""


@dataclass(frozen=True)
class LockOwner:
    """A process: `machine` is empty if the system has no machine id."""

    machine: str
    process: int
    started: str
    host: str
    since: str

    @classmethod
    def current(cls) -> LockOwner:
        """This process, now."""
        process = os.getpid()
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return cls(_machine(), process, _started(process), socket.gethostname(), since)

    @property
    def lives(self) -> bool | None:
        """True if the process lives; None if this machine cannot see it."""
        if not self.machine or self.machine != _machine():
            return None
        started = _started(self.process)
        if not started and _is_unseen(self.process):
            return None
        return bool(started) and self.started == started


LockFile = tuple[bool, str, LockOwner | None]
"""The lock file of a run: whether it still asks, its name, its owner (None while it is written)."""


class Locked(OutputError):
    """The lock is another run's."""


class FolderLock:
    """A run's lock: `acquire` it, `check` it before a commit, `release` it.

    Its lock file, `name`, is in the folder `place` of `folder`.
    """

    def __init__(
        self, folder: Folder, place: str = LOCKS, renew_seconds: float = RENEW_SECONDS
    ) -> None:
        self._folder = folder
        self._renew_seconds = renew_seconds
        self._place = place
        self.name = f"{place}/{uuid.uuid4().hex}.json"
        self._owner = LockOwner.current()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._taken = False
        self._stale_files: list[str] = []

    def is_taken(self) -> bool:
        """True if another run has the lock or requests it."""
        return bool(self._others())

    def acquire(self) -> None:
        """Acquire the lock; raises Locked while another run has it."""
        if self._taken:
            return
        self._owner = LockOwner.current()
        self._write(has=False)
        try:
            while others := self._others():
                asks, name, owner = min(others, key=itemgetter(0, 1))
                if not asks or name < self.name:
                    raise Locked(self._refusal(owner))
                time.sleep(ASK_SECONDS)
            self._write(has=True)
        except BaseException:
            with contextlib.suppress(OSError):
                self._folder.delete(self.name)
            raise
        for name in self._stale_files:
            self._folder.delete(name)
        self._taken = True
        self._ended.clear()
        threading.Thread(target=self._renew, daemon=True).start()

    def check(self) -> None:
        """Raise OutputError if another run has taken the lock from this one."""
        if not self._taken:
            return
        if self._folder.read(self.name) is None:
            raise OutputError(
                f"{self._folder.name}: another run has begun there, for this one stood still for "
                "too long; what it has done is lost, start it again"
            )
        for asks, _, owner in self._others():
            if not asks:
                raise OutputError(self._refusal(owner))

    def release(self) -> None:
        """Let others have the lock."""
        with self._lock:
            self._ended.set()
            if self._taken:
                self._taken = False
                with contextlib.suppress(OSError):
                    self._folder.delete(self.name)

    def _renew(self) -> None:
        while not self._ended.wait(self._renew_seconds):
            with self._lock, contextlib.suppress(OSError, OutputError):
                if self._ended.is_set() or self._folder.read(self.name) is None:
                    return
                self._write(has=True)

    def _write(self, *, has: bool) -> None:
        facts = {"has": has, "renewed_ns": time.time_ns(), "owner": asdict(self._owner)}
        self._folder.write(self.name, json.dumps(facts).encode())

    def _others(self) -> list[LockFile]:
        """Lock files of other runs that live."""
        changed = {name: file.mtime_ns for name, file in self._folder.files(self._place).items()}
        now = changed.pop(self.name, None)  # as the file system's clock says, if it says so
        found = []
        self._stale_files = []
        for name, changed_ns in changed.items():
            octets = None if is_part(name) else self._folder.read(name)
            if octets is None:
                continue
            asks, owner, renewed_ns = True, None, time.time_ns()
            with contextlib.suppress(ValueError, KeyError, TypeError):
                facts = json.loads(octets)
                asks, renewed_ns = not facts["has"], int(facts["renewed_ns"])
                owner = LockOwner(**facts["owner"])
            lives = owner.lives if owner else None
            if lives is None:
                comparable = now is not None and changed_ns is not None
                age = now - changed_ns if comparable else time.time_ns() - renewed_ns
                lives = age < STALE_SECONDS * 1e9
            if lives:
                found.append((asks, name, owner))
            else:
                self._stale_files.append(name)
        return found

    def _refusal(self, owner: LockOwner | None) -> str:
        folder = self._folder.name
        if owner is None:
            return f"{folder}: another run begins there at this moment"
        process = f"process {owner.process} on {owner.host}"
        line = f"{folder}: another run is writing there since {owner.since} ({process})"
        if owner.lives is None:
            line += f"; if it was killed, it counts for {STALE_SECONDS:.0f} s more at most"
        return line


def _machine() -> str:
    """This machine, as long as it runs, and the table of processes that numbers are of."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 (it is no path)
    return ""


def _is_unseen(process: int) -> bool:
    """True if a process lives that is another user's, where the system shows none of these."""
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def _started(process: int) -> str:
    """Start time of a process, in the system's own format; empty without such a process."""
    with contextlib.suppress(OSError, IndexError):
        facts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return "" if facts[0] in "ZX" else facts[19]
    return ""
