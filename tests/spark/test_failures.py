"""What makes a job fail that somebody can mend is told in one line: the place, and the cause."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from amqpsniff.archive import Batch
from tests.thorough import only_thorough
from tests.waiting import PATIENCE

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

if shutil.which("java") is None:
    pytest.skip("no java", allow_module_level=True)

PROGRAM = str(Path(sys.executable).with_name("amqpsniff"))

HIDDEN = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
"""Has a program see mounts that nobody else sees; they end with it."""


def run_on_small_disk(size: str, folder: Path, *arguments: str, **environment: str) -> str:
    """Run `batch` where a folder has little room; the only line that it says."""
    program = [PROGRAM, "batch", "--master", "local[2]"]
    return said_on_small_disk(size, folder, *program, *arguments, **environment)


def said_on_small_disk(size: str, folder: Path, *program: str, **environment: str) -> str:
    """Run a program that fails where a folder has little room; its standard error."""
    folder.mkdir()
    mount = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
    command = [*HIDDEN, "sh", "-c", mount, str(folder)]
    with contextlib.suppress(OSError):
        if not subprocess.run([*command, "true"], check=False, capture_output=True).returncode:
            command += program
            given = os.environ | environment
            made = subprocess.run(command, check=False, capture_output=True, text=True, env=given)
            assert made.returncode == 3, made.stderr
            assert made.stdout == ""
            return made.stderr
    pytest.skip("no disk can be made here")


def test_the_disk_of_the_tables_is_full(samples: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    said = run_on_small_disk("64k", disk, str(samples / "node.pcap"), "-o", str(disk / "out"))
    told = f"{disk}/out: tables cannot be written there: No space left on device"
    assert said == f"amqpsniff: {told}\n"


def test_the_disk_of_the_writer_of_spark_is_full(samples: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    arguments = (str(samples / "node.pcap"), "-o", str(disk / "out"), "--writer", "spark")
    said = run_on_small_disk("64k", disk, *arguments)
    told = f"{disk}/out/_work/direct: tables cannot be written there: No space left on device"
    assert said == f"amqpsniff: {told}\n"


@only_thorough
def test_sparks_own_disk_is_full(samples: Path, tmp_path: Path) -> None:
    disk, out = tmp_path / "disk", tmp_path / "out"
    Batch([str(samples / "pika_mix.pcap")], str(out)).run()
    job = [sys.executable, "-m", "amqpsniff.spark_jobs.reports", "closes", str(out)]
    said = said_on_small_disk("16k", disk, *job, SPARK_LOCAL_DIRS=str(disk))
    assert f"amqpsniff: Spark's temporary files ({disk}): No space left on device;" in said


def test_spark_may_not_write_at_all(samples: Path, tmp_path: Path) -> None:
    command = [PROGRAM, "batch", str(samples / "pika_mix.pcap"), "-o", str(tmp_path / "out")]
    made = subprocess.run(
        command, check=False, capture_output=True, text=True,
        env=os.environ | {"SPARK_LOCAL_DIRS": "/proc/nothing", "COLUMNS": "400"},
    )  # fmt: skip
    assert made.returncode == 3
    assert made.stderr.startswith(
        "amqpsniff: Spark's temporary files (/proc/nothing): No such file"
    )
    assert made.stderr.count("\n") == 1


def _forked(job: int) -> list[int]:
    """Workers of a job: processes that one of the same name has forked."""
    daemons = {}
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError, ValueError):
            parent, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[1:4]
            name = (folder / "cmdline").read_bytes()
            if int(session) == job and b"-m\0amqpsniff.spark_jobs.workers" in name:
                daemons[int(folder.name)] = int(parent)
    return [one for one, parent in daemons.items() if parent in daemons]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("who", ["worker", "java", "job"])
def test_who_is_killed_again_and_again(samples: Path, tmp_path: Path, who: str) -> None:
    command = [PROGRAM, "batch", str(samples / "node.pcap"), "-o", str(tmp_path / "out")]
    with subprocess.Popen(
        [*command, "--master", "local[1]"], stderr=subprocess.PIPE, text=True
    ) as process:
        killed = False
        while process.poll() is None and not (killed and who != "worker"):
            for job in _children(process.pid):
                forked = _forked(job)
                victims = {"worker": forked, "java": _children(job, "java"), "job": [job]}[who]
                for victim in victims if forked else ():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)
                        killed = True
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3
    whom = {"worker": "a worker of Spark was killed again and again", "java": "Spark's Java has",
            "job": "the Spark job was killed"}[who]  # fmt: skip
    assert said.startswith(f"amqpsniff: {whom}")
    assert said.count("\n") == 1


def _children(process: int, name: str = "") -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError, ValueError):
            head, _, rest = (folder / "stat").read_text().rpartition(")")
            if int(rest.split()[1]) == process and name in head:
                found.append(int(folder.name))
    return found


def test_another_connection_is_not_that_to_java(spark: object) -> None:
    from amqpsniff.spark_jobs.errors import explained

    assert spark is not None
    assert explained(RuntimeError("s3.example:443: Connection refused")) is None


def test_object_storage_that_does_not_answer(spark: object) -> None:
    from amqpsniff.spark_jobs.errors import explained

    text = "When listing objects in bucket 'cap': AWS Error NETWORK_CONNECTION: no answer"
    told = str(explained(OSError(text)))
    assert "AWS_ENDPOINT_URL" in told
    assert "bucket 'cap'" in told
