"""The package as plain Python: a copy of its sources without what was compiled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import REPO
from tests.waiting import PATIENCE


def copied(folder: Path, *names: str) -> Path:
    """The package, and other folders, without what was compiled; gives `folder`."""
    without = shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__")
    for name in ("amqpsniff", *names):
        shutil.copytree(REPO / name, folder / name, ignore=without)
    return folder


def bytes_of(folder: Path, script: str, *arguments: str) -> bytes:
    """What a script writes that imports the package from a folder."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    return done.stdout


def lines_of(folder: Path, script: str, *arguments: str) -> list[str]:
    """The same as lines of text."""
    return bytes_of(folder, script, *arguments).decode().splitlines()
