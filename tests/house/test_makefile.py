"""The Makefile where a clone stands in a folder whose name has spaces."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize("target", ["lint", "fuzz"])
def test_a_clone_may_have_spaces_in_its_name(tmp_path: Path, target: str) -> None:
    clone = tmp_path / "a clone of it"
    tools = clone / ".venv/bin"
    tools.mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", clone)
    for name in ("pyproject.toml", ".venv/.tools", ".venv/.compiled", ".venv/.installed"):
        (clone / name).touch()
    for name in ("amqpsniff/spec", "cli", "spark_jobs", "tests", "samples"):
        (clone / name).mkdir(parents=True)
    for name in ("python", "ruff", "mypy", "lint-imports"):
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    ran = subprocess.run(
        ["make", "-C", str(clone), target, "HARNESSES=fuzz_one"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert not ran.returncode, ran.stdout + ran.stderr
    links = [one for one in clone.rglob("build/*/**/*") if one.is_symlink()]
    assert links
    assert all(one.exists() for one in links)
