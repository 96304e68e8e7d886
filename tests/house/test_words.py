"""What is in the repository speaks of the product: no machine, no stub, no note to oneself."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.house import packaging

# Spelled in pieces so that this file does not find itself.
FORBIDDEN = re.compile(
    "|".join(
        (
            r"(?<![\w.])/" + r"(?:work|farm|tmp/w)/",
            r"(?<![\w/])/" + r"(?:home|Users)/\w+/",
            "TO" + "DO",
            "FIX" + "ME",
            "X" + "XX",
            "NotImplemented" + "Error",
            "py" + r"pi\.org",
            r"deb\." + r"debian\.org",
            r"registry\." + "npmjs",
        )
    )
)


def _texts() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached"], cwd=REPO, capture_output=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [REPO / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()[:8192]]


def test_no_forbidden_word() -> None:
    found = []
    for path in _texts():
        for number, line in enumerate(
            path.read_text(encoding="utf-8", errors="replace").splitlines(), 1
        ):
            if FORBIDDEN.search(line):
                found.append(f"{path.relative_to(REPO)}:{number}: {line.strip()[:120]}")
    assert not found, "\n".join(found)


def test_nothing_names_a_page_that_is_not_installed() -> None:
    """Documentation is not part of the package: a message, a help or a page says it itself."""
    pages = re.compile(r"\b[\w/-]+\.md\b|\bdocs/")
    found = []
    for folder in packaging.INSTALLED_AS:
        for path in sorted((REPO / folder).rglob("*")):
            if path.suffix in {".py", ".js", ".css", ".json", ".tsv", ".txt"}:
                lines = path.read_text(encoding="utf-8").splitlines()
                found += [
                    f"{path.relative_to(REPO)}:{number}: {line.strip()}"
                    for number, line in enumerate(lines, 1)
                    if pages.search(line)
                ]
    assert not found, "\n".join(found)
