"""A Spark in this machine listens on loopback only, whoever starts it, unless it is told else."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPO
from tests.processes import descendants
from tests.thorough import only_thorough

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not Path("/proc/net/tcp6").exists(), reason="sockets are found in /proc"),
]

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}
"""127.0.0.1 as the two tables of the kernel have it, where the least byte comes first."""


STARTED = """
import os, sys
from amqpsniff.spark_jobs.reports import parser
from amqpsniff.spark_jobs.session import context
from tests.spark.test_listening import listens

spark = context(parser().parse_args(["closes", "tables"]).master)
print("listens", *listens(os.getpid()))
spark.stop()
"""
"""A job that is given no master, as `spark-submit` runs it."""


def listens(process: int) -> set[str]:
    """Addresses at which a process and its children listen."""
    own, addresses = set(), set()
    for one in descendants(process):
        with contextlib.suppress(OSError):  # it has ended
            own |= {str(file.readlink()) for file in Path(f"/proc/{one}/fd").iterdir()}
    for name in ("tcp", "tcp6"):
        for line in Path("/proc/net", name).read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in own:
                addresses.add(local.partition(":")[0])
    return addresses


@pytest.mark.skipif(sys.byteorder != "little", reason="addresses are written otherwise")
def test_a_spark_in_this_machine_listens_on_loopback_only(spark: Any) -> None:
    found = listens(spark.sparkContext._gateway.proc.pid)
    assert found
    assert found <= LOOPBACK


def test_a_job_without_a_master_is_given_loopback(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from amqpsniff.spark_jobs.session import configuration

    for name in [name for name in os.environ if name.startswith("SPARK_")]:
        monkeypatch.delenv(name)
    told = configuration()
    names = ("spark.driver.host", "spark.driver.bindAddress", "spark.ui.enabled")
    assert [told.get(name) for name in names] == ["127.0.0.1", "127.0.0.1", "false"]


@only_thorough
@pytest.mark.parametrize("told", [False, True])
def test_a_job_listens_where_it_is_told(told: bool) -> None:
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no java")
    where = "--conf spark.ui.enabled=true --conf spark.driver.bindAddress=0.0.0.0 pyspark-shell"
    given = {name: one for name, one in os.environ.items() if not name.startswith("SPARK_")}
    ran = subprocess.run(
        [sys.executable, "-c", STARTED], check=True, capture_output=True, text=True, cwd=REPO,
        env=given | ({"PYSPARK_SUBMIT_ARGS": where} if told else {}),
    )  # fmt: skip
    (line,) = [line for line in ran.stdout.splitlines() if line.startswith("listens ")]
    found = set(line.split()[1:])
    assert found
    assert bool(found - LOOPBACK) == told
