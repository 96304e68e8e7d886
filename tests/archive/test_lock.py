"""One run at a time writes to a folder; one that was killed keeps nobody waiting."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.archive import Batch
from amqpsniff.archive.batch import run_in_process
from amqpsniff.archive.filesystem import Folder, is_part
from amqpsniff.archive.listing import MANIFEST
from amqpsniff.archive.lock import LOCKS, STALE_SECONDS, FolderLock, LockOwner
from amqpsniff.errors import OutputError
from tests.waiting import wait_for

from .tables import everything, files_there, manifest

HOLDS = """
import sys, time
from amqpsniff.archive.filesystem import Folder
from amqpsniff.archive.lock import FolderLock

lock = FolderLock(Folder(sys.argv[1]))
lock.acquire()
print("has", flush=True)
time.sleep(600)
"""

TAKES = """
import sys, time
from amqpsniff.archive.filesystem import Folder
from amqpsniff.archive.lock import FolderLock
from amqpsniff.errors import OutputError
from tests.waiting import wait_for

lock = FolderLock(Folder(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
try:
    lock.acquire()
    print("has", flush=True)
except OutputError:
    print("gave way", flush=True)
sys.stdin.readline()
"""


def sign(output: Path) -> Path:
    """The sign of the only run there, which may be written anew at this moment."""
    (found,) = (one for one in (output / LOCKS).iterdir() if not is_part(one.name))
    return found


def elsewhere(output: Path, **owner: str) -> None:
    """Make the sign that of another machine."""
    facts = json.loads(sign(output).read_text())
    facts["owner"].update({"machine": "another", "host": "far", **owner})
    sign(output).write_text(json.dumps(facts))


def test_two_runs_at_once(captures: Path, tmp_path: Path) -> None:
    output, other = tmp_path / "tables", tmp_path / "other"
    refused: list[str] = []

    def meanwhile(function: Callable[[Any], Any], items: Sequence[Any], watch: Any) -> list[Any]:
        results = run_in_process(function, items, watch)
        with pytest.raises(OutputError) as raised:
            Batch([str(captures / "blocked.pcap")], str(output)).run()
        refused.append(str(raised.value))
        return results

    Batch([str(captures)], str(output)).run(meanwhile)
    assert f"{output}: another run is writing there since " in refused[0]
    assert f"process {os.getpid()} on " in refused[0]
    Batch([str(captures)], str(other)).run()
    assert everything(output) == everything(other)
    assert files_there(output) == files_there(other)
    assert not list((output / LOCKS).iterdir())


def test_a_run_that_failed_has_no_lock_any_more(captures: Path, tmp_path: Path) -> None:
    output = tmp_path / "tables"

    def fails(function: Callable[[Any], Any], items: Sequence[Any], watch: Any) -> list[Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Batch([str(captures)], str(output)).run(fails)
    assert not list((output / LOCKS).iterdir())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="elsewhere time must pass")
@pytest.mark.parametrize("reaped", [True, False])
def test_a_run_that_was_killed_keeps_nobody_waiting(tmp_path: Path, reaped: bool) -> None:
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "has\n"
        lock = FolderLock(Folder(str(tmp_path)))
        with pytest.raises(OutputError, match=f"process {process.pid} on "):
            lock.acquire()
        process.send_signal(signal.SIGKILL)
        process.stdout.read()
        if reaped:
            process.wait()
        else:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        lock.acquire()
        assert sign(tmp_path).name in lock.name
        lock.release()


def test_another_machine_counts_until_its_sign_is_old(tmp_path: Path) -> None:
    one, other = FolderLock(Folder(str(tmp_path))), FolderLock(Folder(str(tmp_path)))
    one.acquire()
    elsewhere(tmp_path)
    with pytest.raises(OutputError, match=r"on far\); if it was killed, it counts for 120 s more"):
        other.acquire()
    then = time.time() - STALE_SECONDS - 1
    os.utime(sign(tmp_path), (then, then))
    other.acquire()
    with pytest.raises(OutputError, match="another run has begun there"):
        one.check()
    one.release()
    other.check()
    other.release()


def test_a_run_that_stood_still_changes_nothing(captures: Path, tmp_path: Path) -> None:
    output = tmp_path / "tables"
    before: list[str] = []

    def slowly(function: Callable[[Any], Any], items: Sequence[Any], watch: Any) -> list[Any]:
        results = run_in_process(function, items, watch)
        elsewhere(output)
        os.utime(sign(output), (1, 1))
        Batch([str(captures / "blocked.pcap")], str(output)).run()
        before.append((output / MANIFEST).read_text())
        return results

    with pytest.raises(OutputError, match="another run has begun there"):
        Batch([str(captures)], str(output)).run(slowly)
    assert [(output / MANIFEST).read_text()] == before
    assert files_there(output) >= {
        name for names in manifest(output)["tables"].values() for name in names
    }


def test_a_sign_is_renewed(tmp_path: Path) -> None:
    lock = FolderLock(Folder(str(tmp_path)), renew_seconds=0.01)
    lock.acquire()
    os.utime(sign(tmp_path), (1, 1))
    wait_for(lambda: sign(tmp_path).stat().st_mtime >= 2, "it is not renewed")
    lock.release()
    assert not list((tmp_path / LOCKS).iterdir())


def test_of_many_that_begin_at_once_one_has_the_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TAKES, str(tmp_path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    many = [subprocess.Popen(command, **pipes) for _ in range(4)]
    said = [one.stdout.readline() for one in many if one.stdout]
    assert said == ["ready\n"] * 4
    for line in ("go\n", "end\n"):
        for one in many:
            assert one.stdin
            one.stdin.write(line)
            one.stdin.flush()
        if line == "go\n":
            said = [one.stdout.readline() for one in many if one.stdout]
    for one in many:
        one.communicate()
    assert sorted(said) == ["gave way\n"] * 3 + ["has\n"]


def test_a_number_that_another_process_has_now(tmp_path: Path) -> None:
    owner = LockOwner.current()
    if owner.lives is None:
        pytest.skip("this system does not tell processes apart")
    assert owner.lives
    assert not replace(owner, started="1").lives
    assert replace(owner, machine="another").lives is None


def test_other_file_systems() -> None:
    pytest.importorskip("fsspec")
    one, other = (FolderLock(Folder("memory://turns")) for _ in range(2))
    one.acquire()
    with pytest.raises(OutputError, match="another run is writing there"):
        other.acquire()
    one.release()
    other.acquire()
    other.release()


UNSEEN = """
mount -t proc -o hidepid=2 proc /proc || exit 9
sleep 600 &
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$0" -c '
import sys
from dataclasses import replace
from amqpsniff.archive.lock import LockOwner

print(replace(LockOwner.current(), process=int(sys.argv[1]), started="1").lives)
print(replace(LockOwner.current(), process=999_999_999, started="1").lives)' $!
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs two users")
def test_a_process_of_another_user_that_is_not_shown(tmp_path: Path) -> None:
    command = ["unshare", "-mpf", "--kill-child", "sh", "-c", UNSEEN, sys.executable]
    made = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    if made.returncode == 9 or not made.stdout:
        pytest.skip(f"cannot be tried here: {made.stderr}")
    assert made.stdout.split() == ["None", "False"]
