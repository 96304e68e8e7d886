"""How a process ends: without looking for garbage, where nothing would complain of what is left."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import SAMPLES
from tests.waiting import PATIENCE

SCRIPT = """
import sys
import amqpsniff.cli.entry as entry
class Ring:
    def __init__(self):
        self.ring = self
    def __del__(self, write=sys.stderr.write):
        write("collected")
entry.main()
Ring()
"""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["export", "bunny.pcapng", "-q", "--table", "frames"], ""),
        (["sql", "bunny.pcapng", "-q", "SELECT method FROM frames"], "collected"),
    ],
)
def test_no_last_look_for_cycles_but_after_duckdb(command: list[str], said: str) -> None:
    """DuckDB complains on standard error of every object of its own that is left."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *command],
        cwd=SAMPLES, capture_output=True, text=True, check=True, timeout=PATIENCE,
    )  # fmt: skip
    assert (len(done.stdout.splitlines()) > 10, done.stderr) == (True, said)
