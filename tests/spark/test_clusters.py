"""The same rows from separate processes: two workers, a cluster in one machine, two machines'."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.archive.broker import ACROSS, traffic
from tests.archive.splits import by_one_engine, deal, packets_of
from tests.archive.tables import manifest, written_rows
from tests.cli.running import Result
from tests.thorough import only_thorough
from tests.waiting import PATIENCE, free_port, wait_for

from .conftest import Job

pytestmark = pytest.mark.spark

CHANCE = random.Random(6)

TABLES = ("frames", "messages", "connections", "channels", "links", "findings")


@pytest.fixture(scope="module")
def archive(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures cut anywhere, and a bad file among them."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no java")
    folder = tmp_path_factory.mktemp("archive")
    packets = []
    for name in ("pika_mix", "php_churn", "aiopika_rpc", "node"):
        packets += packets_of([samples / f"{name}.pcap"])
    packets.sort(key=lambda one: one.ts_ns)
    deal(packets, folder, random.Random(5), 10)
    for path in deal(traffic(random.Random(5), 500), tmp_path_factory.mktemp("broker"), CHANCE):
        path.rename(folder / f"broker-{path.name}")
    (folder / "bad.pcap").write_bytes(b"nothing")
    return folder


@contextlib.contextmanager
def worker_folder() -> Iterator[None]:
    """Remove what workers leave in PySpark's own folder."""
    import pyspark

    folder = Path(pyspark.__file__).parent / "work"
    there = folder.exists()
    try:
        yield
    finally:
        if not there:
            shutil.rmtree(folder, ignore_errors=True)


def checked(archive: Path, output: Path, run: Callable[..., Result]) -> None:
    """Run the batch and compare its tables with one engine's."""
    more = ("--task-bytes", "60000", "--progress", "json", "--links")
    made = run(str(archive), "-o", str(output), *more)
    assert made.code == 0, made.err[-3000:]
    (fact,) = [json.loads(line) for line in made.out.splitlines() if '"summary"' in line]
    assert fact["summary"]["tasks"] > 4
    assert manifest(output)["plan"].startswith("dealt out by conversation")
    good = [one for one in archive.iterdir() if one.name != "bad.pcap"]
    alone = by_one_engine(good, links=True)
    for table in TABLES:
        rows = [row for row in written_rows(output, table) if row[0] != str(archive / "bad.pcap")]
        assert rows == alone[table], table
    assert {value for row in alone["findings"] for value in row} >= ACROSS


def on(master: str) -> Callable[..., Result]:
    """The job on a master, in a process of its own."""
    program = [sys.executable, "-m", "amqpsniff.spark_jobs.batch", "--master", master]

    def run(*arguments: str) -> Result:
        made = subprocess.run(
            [*program, *arguments], check=False, capture_output=True, text=True,
            timeout=4 * PATIENCE,
        )  # fmt: skip
        return Result(made.returncode, made.stdout, made.stderr)

    return run


def test_two_workers(archive: Path, tmp_path: Path, job: Job) -> None:
    checked(archive, tmp_path / "tables", job)


@only_thorough
def test_a_cluster_in_one_machine(archive: Path, tmp_path: Path) -> None:
    with worker_folder():
        checked(archive, tmp_path / "tables", on("local-cluster[2,1,2048]"))


@only_thorough
def test_a_master_and_two_workers(archive: Path, tmp_path: Path) -> None:
    import pyspark

    home = Path(pyspark.__file__).parent
    port = free_port()
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    run = [str(home / "bin" / "spark-class")]
    deploy = "org.apache.spark.deploy"
    ui = ["--webui-port", "0"]
    master = f"spark://127.0.0.1:{port}"
    commands = [
        [*run, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), *ui],
        *(
            [*run, f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory",
             "1200m", "--work-dir", str(tmp_path / f"worker{at}"), *ui, master]
            for at in range(2)
        ),
    ]  # fmt: skip
    processes = []
    try:
        for at, command in enumerate(commands):
            log = tmp_path / f"log{at}"
            with log.open("wb") as file:
                processes.append(
                    subprocess.Popen(command, env=environment, stdout=file, stderr=file)
                )
            words = b"Successfully registered with master" if at else b"New state: ALIVE"
            wait_for(lambda: words in log.read_bytes(), f"{log}: not {words!r}")  # noqa: B023
        checked(archive, tmp_path / "tables", on(master))
        assert len(list(tmp_path.glob("worker*/app-*"))) == 2
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(PATIENCE)
