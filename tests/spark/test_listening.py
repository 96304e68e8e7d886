"""A Spark in this machine listens on loopback only, whoever starts it, unless it is told else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.thorough import only_thorough

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not Path("/proc/net/tcp6").exists(), reason="sockets are found in /proc"),
]

LISTENS = """
import json, os, pathlib
from amqpsniff.spark_jobs.reports import _parser
from amqpsniff.spark_jobs.session import context

spark = context(_parser().parse_args(["closes", "tables"]).master)
own, sockets = set(), {}
for process in pathlib.Path("/proc").iterdir():
    try:
        if int((process / "stat").read_text().rpartition(")")[2].split()[3]) == os.getsid(0):
            own |= {os.readlink(one) for one in (process / "fd").iterdir()}
    except (OSError, ValueError, IndexError):
        continue
for name in ("tcp", "tcp6"):
    for line in pathlib.Path("/proc/net", name).read_text().splitlines()[1:]:
        _, local, _, state, *_, inode = line.split()[:10]
        if state == "0A" and f"socket:[{inode}]" in own:
            sockets[inode] = local.partition(":")[0]
print("listens", json.dumps(sorted(set(sockets.values()))))
spark.stop()
"""

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}
"""127.0.0.1 as the two tables of the kernel have it, where the least byte comes first."""


def listens(**environment: str) -> set[str]:
    """Addresses at which the processes of a job listen that is given no master."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no java")
    given = {name: one for name, one in os.environ.items() if not name.startswith("SPARK_")}
    ran = subprocess.run(
        [sys.executable, "-c", LISTENS], env=given | environment, start_new_session=True,
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    (told,) = [line for line in ran.stdout.splitlines() if line.startswith("listens ")]
    return set(json.loads(told.removeprefix("listens ")))


@pytest.mark.skipif(sys.byteorder != "little", reason="addresses are written otherwise")
def test_a_job_without_a_master_listens_on_loopback_only() -> None:
    found = listens()
    assert found
    assert found <= LOOPBACK


@only_thorough
def test_a_job_listens_where_it_is_told() -> None:
    told = "--conf spark.ui.enabled=true --conf spark.driver.bindAddress=0.0.0.0 pyspark-shell"
    assert listens(PYSPARK_SUBMIT_ARGS=told) - LOOPBACK
