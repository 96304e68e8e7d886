"""The Makefile where a clone stands in a folder whose name has spaces."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

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


PROJECT = """
[project]
name = "amqpsniff"
version = "0"

[tool.setuptools]
packages = ["amqpsniff"]

[tool.distutils.build_ext]
shared-utility-qualified-name = "amqpsniff._cython"
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize(("more", "wrong"), [("", ""), ("no-such-option = 1\n", "no_such_option")])
def test_compiling_says_only_what_is_wrong(tmp_path: Path, more: str, wrong: str) -> None:
    tools = tmp_path / ".venv/bin"
    tools.mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / ".venv/.tools").touch()
    (tmp_path / "pyproject.toml").write_text(PROJECT + more)
    (tmp_path / "amqpsniff").mkdir()
    (tmp_path / "amqpsniff/__init__.py").touch()
    (tools / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tools / "python").chmod(0o755)
    ran = subprocess.run(
        ["make", "--no-print-directory", "-C", str(tmp_path), ".venv/.compiled"],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if wrong:
        assert ran.returncode
        assert wrong in ran.stderr
    else:
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout.startswith("compiling the hot modules")
        assert ran.stdout.count("\n") == 1
