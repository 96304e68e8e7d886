"""`amqpsniff batch` from the outside: its tables, its reports, its refusals, and being killed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.archive import Batch
from tests.archive.splits import by_one_engine, deal, packets_of, rows_of
from tests.archive.tables import everything, manifest, written_rows
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.spark

TABLES = ("frames", "messages", "connections", "channels", "links", "findings")


def amqpsniff(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = [str(Path(sys.executable).with_name("amqpsniff")), *arguments]
    given = os.environ | environment
    return subprocess.run(program, check=False, capture_output=True, text=True, env=given)


@pytest.fixture
def java() -> None:
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no java")


@pytest.mark.usefixtures("java")
def test_tables_reports_and_a_page(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captures = ["-p.pcap", str(samples / "node.pcap"), str(samples / "kombu.pcap.gz")]
    output = tmp_path / "tables"
    shutil.copy(samples / "pika_mix.pcap", tmp_path / captures[0])
    monkeypatch.chdir(tmp_path)
    more = ("--master", "local[2]", "--html", "--report", "closes", "--limit", "3")
    made = amqpsniff("batch", "-o", str(output), *more, "--", *captures)
    assert made.returncode == 0, made.stderr
    assert "Close codes" in made.stdout
    assert "3 files" in made.stderr
    assert "WARN" not in made.stderr
    assert (output / "report.html").stat().st_size > 500_000
    alone = by_one_engine([Path(name) for name in captures])
    for table in TABLES:
        assert written_rows(output, table) == alone[table]


def _processes(session: int) -> dict[int, int]:
    """The processes of a session that still run: their parents, by their own number.

    Spark's Python workers are in it, though in process groups of their own.
    """
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found[int(folder.name)] = int(fields[1])
    return found


def _kill_all(session: int) -> None:
    """Kill every process of a session: a worker that lives on would end the task it has begun."""
    while running := _processes(session):
        for one in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        time.sleep(0.005)


def _worker(job: subprocess.Popen[str]) -> int:
    """A Python worker of a job: the process that its daemon has forked."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and job.poll() is None:
        running = _processes(job.pid)
        daemons = {one for one in running if b"-m\0amqpsniff.spark_jobs.workers" in _command(one)}
        forked = [one for one in daemons if running[one] in daemons]
        if forked:
            return forked[0]
        time.sleep(0.005)
    pytest.fail("no worker")


def _command(process: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
@pytest.mark.usefixtures("java")
def test_a_run_that_is_killed_goes_on(samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    for at in range(4):
        for name in ("pika_mix.pcap", "node.pcap", "blocked.pcap"):
            shutil.copy(samples / name, folder / f"{at}-{name}")
    output, other = tmp_path / "tables", tmp_path / "other"
    job = [sys.executable, "-m", "amqpsniff.spark_jobs.batch", str(folder), "--master", "local[2]"]
    job += ["--task-bytes", "50000"]
    process = subprocess.Popen(
        [*job, "-o", str(output)], start_new_session=True, stderr=subprocess.DEVNULL
    )
    wait_for(lambda: list(output.glob("_work/tasks/*.json")), "no task was done")
    _kill_all(process.pid)
    process.wait()
    _, *later = output.glob("_work/tasks/*.json")
    for one in later:  # as if it had been killed before, so that there is something left to do
        one.unlink()
    again = subprocess.Popen([*job, "-o", str(output), "--progress", "json"],
                             start_new_session=True, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    os.kill(_worker(again), signal.SIGKILL)
    said, _ = again.communicate()
    assert again.returncode == 0
    (summary,) = [json.loads(line) for line in said.splitlines() if "summary" in line]
    assert summary["summary"]["done_before"] == 1
    Batch([str(folder)], str(other), task_bytes=50_000).run()
    assert everything(output) == everything(other)
    assert manifest(output)["rows"] == manifest(other)["rows"]


def test_what_makes_no_sense_is_one_line(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyspark")
    from amqpsniff.spark_jobs.batch import main

    capture, output = str(samples / "pika_mix.pcap"), str(tmp_path / "out")
    for arguments, code, words in (
        ([capture, "--report", "weather"], 2, "no report `weather`"),
        ([capture, "--tables", "letters"], 2, "no table `letters`"),
        ([capture, "--storage", "{"], 2, "no JSON object"),
        ([capture, "--format", "delta"], 2, "--format delta needs --writer spark"),
        ([capture, "--master", "lokal"], 2, "no Spark master `lokal`"),
        ([capture, "--master", "local[0]"], 2, "no Spark master `local[0]`"),
        ([capture, "--master", "local[two]"], 2, "no Spark master `local[two]`"),
        ([capture, "--master", "yarn"], 2, "--master yarn needs HADOOP_CONF_DIR or YARN_CONF_DIR"),
        (["nothere.pcap"], 3, "no such file"),
    ):
        assert main([*arguments, "-o", output]) == code
        said = capsys.readouterr()
        assert words in said.err
        assert said.err.count("\n") == 1
        assert said.out == ""
        assert not Path(output).exists()
    made = amqpsniff("batch", capture, "-o", output, "--writer", "quill", COLUMNS="400")
    assert made.returncode == 2
    assert "quill" in made.stderr
    assert made.stderr.count("\n") == 1


def test_a_job_may_hold_as_many_files_as_any_process_of_the_user(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    job = f"""
import resource
from amqpsniff.spark_jobs.batch import main

_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))
assert main(["nothere.pcap", "-o", {str(tmp_path / "out")!r}]) == 3
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
"""
    subprocess.run([sys.executable, "-c", job], check=True)


@pytest.mark.usefixtures("java")
def test_nothing_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    for name in ("a.pcap", "b.pcap"):
        (tmp_path / "captures" / name).write_bytes(b"these are no packets")
    output = tmp_path / "tables"
    made = amqpsniff("batch", str(tmp_path / "captures"), "-o", str(output), "--report", "quality")
    assert made.returncode == 3
    assert "none of 2 files could be read; the first: " in made.stderr
    assert "Traceback" not in made.stderr
    assert len(written_rows(output, "errors")) == 2


def test_without_java(samples: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    capture = str(samples / "pika_mix.pcap")
    made = amqpsniff("batch", capture, "-o", str(tmp_path), PATH="", JAVA_HOME="")
    assert made.returncode == 2
    assert "Java 17" in made.stderr
    assert "apt install" in made.stderr
    assert made.stderr.count("\n") == 1


def test_a_java_that_cannot_start_spark(samples: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho too old >&2\nexit 1\n")
    java.chmod(0o755)
    capture, output = str(samples / "pika_mix.pcap"), str(tmp_path / "out")
    made = amqpsniff("batch", capture, "-o", output, JAVA_HOME=str(tmp_path), COLUMNS="400")
    assert made.returncode == 2
    assert f"{java} did not start Spark, which needs Java 17 or later" in made.stderr
    assert made.stderr.count("\n") == 1


def test_the_writer_of_spark(spark: Any, samples: Path, tmp_path: Path) -> None:
    from amqpsniff.spark_jobs.dataframe_writer import write_frames
    from amqpsniff.spark_jobs.reports import Config, make

    capture, output = tmp_path / "kombu.pcap.gz", tmp_path / "out"
    shutil.copy2(samples / capture.name, capture)
    (tmp_path / "none.pcap").write_bytes(b"these are no packets")
    config = Config((str(output),))
    Batch([str(capture)], str(output)).run()
    traffic = make(spark, "traffic", config).table.to_pylist()
    assert traffic
    tables = ["messages", "findings"]
    for _ in range(2):  # the tables are below what is read
        summary = write_frames(spark, Batch([str(tmp_path)], str(output), tables=tables), "parquet")
        assert (summary.files, summary.bad_files, summary.unreadable_files) == (2, 1, 1)
    alone = by_one_engine([capture], ("messages", "findings"))
    assert summary.rows["messages"] == len(alone["messages"])
    assert summary.bytes > 10_000
    assert list((output / "messages").glob("capture_date=2026-*/*.parquet"))
    assert not list(output.glob("frames/**/*.parquet"))
    assert make(spark, "traffic", config).table.to_pylist() == traffic
    assert make(spark, "quality", config).table.column("error")[0].as_py() == "capture-unreadable"
    Batch([str(capture)], str(output)).run()
    assert written_rows(output, "messages") == alone["messages"]
    assert make(spark, "traffic", config).table.to_pylist() == traffic


def test_the_writer_of_spark_with_links(spark: Any, samples: Path, tmp_path: Path) -> None:
    from amqpsniff.spark_jobs.dataframe_writer import write_frames

    paths = deal(packets_of([samples / "aiopika_rpc.pcap"]), tmp_path, random.Random(2), 4)
    batch = Batch(
        map(str, paths), str(tmp_path / "out"), tables=["messages"], links=True, task_bytes=9_000
    )
    for _ in range(2):
        summary = write_frames(spark, batch, "parquet")
        alone = by_one_engine(paths, ("messages",), links=True)["messages"]
        assert summary.rows["messages"] == len(alone)
        made = spark.read.parquet(str(tmp_path / "out" / "messages")).drop("capture_date")
        assert rows_of(made.toArrow()) == alone
