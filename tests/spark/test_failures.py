"""What makes a job fail that somebody can mend is told in one line: the place, and the cause."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.archive import Batch
from tests.processes import children, kill, told, workers
from tests.thorough import only_thorough
from tests.waiting import PATIENCE, wait_for

from .conftest import Job

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

if shutil.which("java") is None:
    pytest.skip("no java", allow_module_level=True)

PROGRAM = str(Path(sys.executable).with_name("amqpsniff"))

IN_PROC = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="processes are found in /proc"
)

HIDDEN = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
"""Has a program see mounts that nobody else sees; they end with it."""


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


BY_SPARK = """
import sys
from amqpsniff.spark_jobs.batch import main

capture, output = sys.argv[1:]
sys.exit(main([capture, "--master", "local[2]", "-o", output]))
"""


WITHOUT_SPARK = """
import sys
from amqpsniff.archive import Batch
from amqpsniff.spark_jobs.errors import tell

try:
    Batch(sys.argv[1:2], sys.argv[2]).run()
except Exception as error:
    sys.exit(tell(error))
"""


@pytest.mark.parametrize(
    "program",
    [WITHOUT_SPARK, pytest.param(BY_SPARK, marks=only_thorough)],
    ids=["without-spark", "by-spark"],
)
def test_the_disk_of_the_tables_is_full(program: str, samples: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    given = (str(samples / "node.pcap"), str(disk / "out"))
    said = said_on_small_disk("64k", disk, sys.executable, "-c", program, *given)
    full = "tables cannot be written there: No space left on device"
    assert told(said) == [f"{disk}/out: {full}"]


@only_thorough
def test_sparks_own_disk_is_full(samples: Path, tmp_path: Path) -> None:
    disk, out = tmp_path / "disk", tmp_path / "out"
    Batch([str(samples / "pika_mix.pcap")], str(out)).run()
    job = [sys.executable, "-m", "amqpsniff.spark_jobs.reports", "closes", str(out)]
    said = said_on_small_disk("16k", disk, *job, SPARK_LOCAL_DIRS=str(disk))
    assert f"amqpsniff: Spark's temporary files ({disk}): No space left on device;" in said


@pytest.mark.parametrize(
    "program", [(PROGRAM, "batch"), (sys.executable, "-m", "amqpsniff.spark_jobs.batch")]
)
def test_the_temporary_folder_is_full(
    program: tuple[str, ...], samples: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    given = (str(samples / "node.pcap"), "-o", str(tmp_path / "out"))
    said = said_on_small_disk("4k", disk, *program, *given, TMPDIR=str(disk))
    full = f"temporary files ({disk}): No space left on device; set TMPDIR to another disk"
    assert told(said) == [full]


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


@IN_PROC
def test_a_worker_is_killed_again_and_again(
    job: Job, spark: Any, samples: Path, tmp_path: Path
) -> None:
    ended = threading.Event()

    def kill_workers() -> None:
        while not ended.wait(0.005):
            for one in workers(spark.sparkContext._gateway.proc.pid):
                kill(one)

    with ThreadPoolExecutor(1) as beside:
        beside.submit(kill_workers)
        try:
            made = job(samples / "node.pcap", "-o", tmp_path / "out", "--progress", "json")
        finally:
            ended.set()
    assert made.code == 3
    (line,) = told(made.err)
    assert line.startswith("a worker of Spark was killed again and again")


@IN_PROC
def test_the_job_is_killed(samples: Path, tmp_path: Path) -> None:
    command = [PROGRAM, "batch", str(samples / "node.pcap"), "-o", str(tmp_path / "out")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: children(process.pid), "no job")
        (started,) = children(process.pid)
        kill(started)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3
    assert said.startswith("amqpsniff: the Spark job was killed")
    assert said.count("\n") == 1


def test_another_connection_is_not_that_to_java(spark: object) -> None:
    from amqpsniff.spark_jobs.errors import explained

    assert spark is not None
    assert explained(RuntimeError("s3.example:443: Connection refused")) is None


@pytest.mark.parametrize(
    "place",
    ["security.SocketAuthHelper.readUtf8", "api.python.PythonWorkerFactory.createWorker$1"],
)
@pytest.mark.parametrize("error", ["io.EOFException", "net.SocketException: Connection reset"])
def test_a_worker_that_ends_before_it_has_told_who_it_is(
    spark: object, place: str, error: str
) -> None:
    from amqpsniff.spark_jobs.errors import explained

    trace = f"java.{error}\n\tat java.base/java.io.DataInputStream.readInt(D.java:386)\n"
    trace += "\tat {}(S.scala:116)"
    worker = trace.format(f"org.apache.spark.{place}")
    assert "a worker of Spark was killed" in str(explained(RuntimeError(worker)))
    assert "a worker of Spark" not in str(explained(RuntimeError(trace.format("org.other.Read"))))


def test_object_storage_that_does_not_answer(spark: object) -> None:
    from amqpsniff.spark_jobs.errors import explained

    text = "When listing objects in bucket 'cap': AWS Error NETWORK_CONNECTION: no answer"
    told = str(explained(OSError(text)))
    assert "AWS_ENDPOINT_URL" in told
    assert "bucket 'cap'" in told
