"""A wheel holds the package, all of it, and nothing else; without a compiler it still works."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import amqpsniff
from tests.conftest import REPO
from tests.house import packaging
from tests.waiting import PATIENCE


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the sources on a machine whose C compiler fails."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(REPO / name, tree / name)
    for folder in packaging.INSTALLED_AS:
        # Generated C stays: Cython then need not run again.
        shutil.copytree(
            REPO / folder, tree / folder, ignore=shutil.ignore_patterns("*.so", "__pycache__")
        )
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*build, "-w", str(tree / "dist"), str(tree)],
        env={**os.environ, "CC": "false", "CXX": "false", "LDSHARED": "false"},
        check=True,
        timeout=PATIENCE,
    )
    (built,) = (tree / "dist").glob("*.whl")
    return built


def test_wheel_adds_only_the_package(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "amqpsniff",
        f"amqpsniff-{amqpsniff.__version__}.dist-info",
    }


def test_wheel_has_every_module(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {"amqpsniff/py.typed"}
    for folder, package in packaging.INSTALLED_AS.items():
        prefix = package.replace(".", "/")
        for path in (REPO / folder).rglob("*"):
            if path.suffix in {".py", ".json", ".tsv", ".txt", ".css", ".js"}:
                wanted.add(f"{prefix}/{path.relative_to(REPO / folder).as_posix()}")
    assert wanted <= names
    assert not {name for name in names if name.endswith((".c", ".so", ".pxd"))}


def test_wheel_works_without_a_compiler(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    modules = ", ".join(repr(name) for name in packaging.compiled_modules())
    script = (
        "import importlib, sys\n"
        f"for name in ({modules},):\n"
        "    file = importlib.import_module(name).__file__\n"
        f"    assert file.startswith({str(site)!r}) and file.endswith('.py'), file\n"
        "from amqpsniff.cli.entry import main\n"
        "sys.argv = ['amqpsniff', '--version']\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(site)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (0, f"amqpsniff {amqpsniff.__version__}\n"), (
        done.stderr
    )
