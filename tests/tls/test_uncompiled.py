"""TLS gives the same events compiled and as plain Python."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.fuzz.fuzz_tls import CONVERSATIONS

SCRIPT = """
import hashlib, random, sys
from amqpsniff.tls import opening, stage
from tests.fuzz import fuzz_tls

print(opening.__file__.endswith(".py"), stage.__file__.endswith(".py"))
choose = random.Random(5)
for which in range(len(fuzz_tls.CONVERSATIONS)):
    keys = fuzz_tls.CONVERSATIONS[which][1].read_bytes()
    for turn in range(8):
        data = bytes((which,)) + choose.randbytes(4 * turn)
        told = fuzz_tls.events(fuzz_tls.changed(data), keys, 10)
        print(hashlib.sha256(repr(told).encode()).hexdigest())
"""


def run(folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout.splitlines()


def test_same_events(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    ignored = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    for name in ("amqpsniff", "tests", "samples"):
        shutil.copytree(REPO / name, tmp_path / name, ignore=ignored)
    plain = run(tmp_path)
    assert plain[0] == "True True"
    assert plain[1:] == run(REPO)[1:]
    assert len(plain) == 1 + 8 * len(CONVERSATIONS)
