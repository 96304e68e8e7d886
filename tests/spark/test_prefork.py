"""The process that workers are forked from is got ready before Spark asks for it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

pytest.importorskip("pyspark")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")

SPARKS_OWN = [sys.executable, "-m", "amqpsniff.spark_jobs.workers", "pyspark.worker"]

DRIVER = """
import json, os, subprocess, sys
from amqpsniff.spark_jobs import prefork

with prefork.offered(sys.executable):
    environment = dict(os.environ)
assert prefork.PLACE in environment and prefork.PLACE not in os.environ
waiting = prefork._kept[1]
if sys.argv[1] == "lost":
    waiting.kill()
    waiting.wait()
own = subprocess.Popen(
    sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
)
port = int.from_bytes(own.stdout.read(4), "big")
alive = own.poll() is None
own.stdin.close()  # so Spark ends it
left = os.path.exists(os.path.dirname(environment[prefork.PLACE]))
print(json.dumps([port > 0, alive, left, own.wait(), waiting.wait()]))
"""

STARTS = """
import os, sys
from amqpsniff.spark_jobs import prefork

with prefork.offered(sys.executable):
    print(os.environ.get(prefork.PLACE))
"""


def end_of(how: str) -> list[object]:
    """Whether Spark's own process told a port and lived, and the socket is left; the exit code of
    that process and of the other.
    """
    ran = subprocess.run(
        [sys.executable, "-c", DRIVER, how, *SPARKS_OWN],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ran.returncode == 0, ran.stderr
    told: list[object] = json.loads(ran.stdout)
    return told


def test_it_takes_over_what_sparks_own_process_was_started_for() -> None:
    assert end_of("taken") == [True, True, False, 0, 1]  # 1 is how PySpark's daemon ends


def test_without_one_sparks_own_process_does_the_work() -> None:
    assert end_of("lost") == [True, True, True, 1, -9]


def test_one_that_nobody_takes_ends_with_the_driver() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", STARTS], check=True, capture_output=True, text=True, timeout=PATIENCE
    )
    # standard error is the other's as well: it was read to its end
    assert (ran.stderr, Path(ran.stdout.strip()).exists()) == ("", False)


def test_a_folder_in_which_there_can_be_no_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", STARTS],
        env={**os.environ, "TMPDIR": str(folder)},
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (ran.stdout, ran.stderr, list(folder.iterdir())) == ("None\n", "", [])
