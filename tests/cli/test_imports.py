"""What commands import: what they do not need costs each of them its start."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import SAMPLES
from tests.waiting import PATIENCE

HEAVY = "pyshark scapy lxml asyncio pyarrow pyarrow.compute pyarrow.fs duckdb numpy pandas pyspark"
SCRIPT = f"""
import sys
import amqpsniff.cli.entry as entry
sys.argv = ["amqpsniff", *sys.argv[1:]]
entry.main()
print(*sorted(name for name in {HEAVY!r}.split() if sys.modules.get(name)))
"""


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("inspect bunny.pcapng", "pyarrow"),
        ("report bunny.pcapng -o /dev/null", ""),
        ("spec basic.publish", ""),
    ],
)
def test_only_what_a_command_needs_is_imported(command: str, needed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *command.split(), *(() if "spec" in command else ("-q",))],
        cwd=SAMPLES, capture_output=True, text=True, check=True, timeout=PATIENCE,
    )  # fmt: skip
    imported = set(done.stdout.splitlines()[-1].split())
    assert imported == set(needed.split())
