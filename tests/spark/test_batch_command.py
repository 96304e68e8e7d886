"""`amqpsniff batch` from the outside: its tables, its reports, its refusals, and being killed."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.archive import Batch
from amqpsniff.spark_jobs import reports
from tests.archive.splits import by_one_engine
from tests.archive.tables import everything, manifest, written_rows
from tests.processes import children, kill, told, workers
from tests.waiting import PATIENCE, wait_for

from .conftest import Job

pytestmark = pytest.mark.spark

TABLES = ("frames", "messages", "connections", "channels", "links", "findings")


def amqpsniff(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = [str(Path(sys.executable).with_name("amqpsniff")), *arguments]
    given = os.environ | environment
    return subprocess.run(program, check=False, capture_output=True, text=True, env=given)


@pytest.mark.usefixtures("spark")
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


def test_spark_makes_a_report_that_duckdb_has_no_memory_for(
    job: Job, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = (samples / "pika_mix.pcap", "-o", tmp_path / "tables", "--report", "losses")
    by_duckdb = job(*given)
    monkeypatch.setattr("amqpsniff.tables.query.FILES_MEMORY", "1KB")
    asked: list[str] = []
    monkeypatch.setattr(
        "amqpsniff.spark_jobs.reports.make",
        lambda spark, name, *of, make=reports.make, **more: (
            asked.append(name),
            make(spark, name, *of, **more),
        )[1],
    )
    by_spark = job(*given)
    assert (by_duckdb.code, by_spark.code, asked) == (0, 0, ["losses"])
    assert "Publishes at risk" in by_spark.out
    assert by_spark.out.count("Publishes at risk") == 1
    told = [text[text.index("Publishes at risk") :] for text in (by_duckdb.out, by_spark.out)]
    assert told[0] == told[1]


def killed_at_a_task(
    tasks: Callable[[], Iterable[Path]], *arguments: str
) -> tuple[int | None, str]:
    """Run the job until a task is done, and kill its Java: the exit code, and standard error."""
    program = [sys.executable, "-m", "amqpsniff.spark_jobs.batch", *arguments]
    with subprocess.Popen(
        program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: list(tasks()), "no task was done")
        for java in children(process.pid, "java"):
            kill(java)
        _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
def test_a_run_that_is_killed_goes_on(job: Job, spark: Any, samples: Path, tmp_path: Path) -> None:
    """Java is killed where a task is done, and a worker of the next run."""
    folder = tmp_path / "captures"
    folder.mkdir()
    for at in range(2):
        for name in ("pika_mix.pcap", "node.pcap", "blocked.pcap"):
            shutil.copy(samples / name, folder / f"{at}-{name}")
    code, attempts = 0, count()
    while code == 0:  # it was done before it could be killed
        output = tmp_path / f"tables{next(attempts)}"
        given = (str(folder), "-o", str(output), "--task-bytes", "50000", "--progress", "json")
        tasks = functools.partial(output.glob, "_work/tasks/*.result")
        code, said = killed_at_a_task(tasks, "--master", "local[1]", *given)
    assert code == 3
    (line,) = told(said)
    assert line.startswith("Spark's Java has")
    _, *later = tasks()
    for one in later:  # as if it had been killed before, so that there is something left to do
        one.unlink()

    def kill_worker() -> None:
        wait_for(lambda: len(list(tasks())) > 1, "no further task was done")
        for worker in workers(spark.sparkContext._gateway.proc.pid)[:1]:
            kill(worker)

    with ThreadPoolExecutor(1) as beside:
        killed = beside.submit(kill_worker)
        again = job(*given)
        killed.result()
    assert again.code == 0
    (summary,) = [json.loads(line) for line in again.out.splitlines() if "summary" in line]
    assert summary["summary"]["done_before"] == 1
    other = tmp_path / "other"
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
        ([capture, "--storage", "{"], 2, "not a JSON object"),
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


def test_nothing_that_can_be_read(job: Job, tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    for name in ("a.pcap", "b.pcap"):
        (tmp_path / "captures" / name).write_bytes(b"these are no packets")
    output = tmp_path / "tables"
    made = job(tmp_path / "captures", "-o", output, "--report", "quality")
    assert made.code == 3
    (line,) = told(made.err)
    assert "none of 2 files could be read; the first: " in line
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
