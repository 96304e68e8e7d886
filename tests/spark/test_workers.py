"""The process that workers are forked from takes PySpark from where it is compiled."""

import subprocess
import sys
from pathlib import Path

import pytest

from amqpsniff.spark_jobs.workers import path_without_zips


def test_zips_of_an_installed_pyspark_are_left_out(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    lib = site / "pyspark" / "python" / "lib"
    lib.mkdir(parents=True)
    zips = [str(lib / "pyspark.zip"), str(lib / "py4j-0.10.9.9-src.zip")]
    others = ["", str(tmp_path / "own.zip"), str(site)]
    assert path_without_zips([*zips, *others]) == [*zips, *others]  # nothing is installed there
    (site / "pyspark" / "worker.py").touch()
    assert path_without_zips([*zips, *others]) == others
    assert path_without_zips(zips) == zips  # it is not on the path


def test_zips_of_a_spark_elsewhere_stay(tmp_path: Path) -> None:
    lib = str(tmp_path / "spark" / "python" / "lib" / "pyspark.zip")
    assert path_without_zips([lib, str(tmp_path)]) == [lib, str(tmp_path)]


PREPARED = """
import os, sys
from amqpsniff.spark_jobs.workers import ARROW, NEEDED, prepare
prepare()
assert all(one in sys.modules for one in NEEDED)
child = os.fork()
if child == 0:
    import pyarrow.compute
    assert pyarrow.compute.sum(pyarrow.array([1, 2])).as_py() == 3
    os._exit(0)
print(len(os.listdir("/proc/self/task")), os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_a_process_that_workers_are_forked_from_has_one_thread() -> None:
    pytest.importorskip("pyspark")
    ran = subprocess.run(
        [sys.executable, "-c", PREPARED], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["1", "0"]
