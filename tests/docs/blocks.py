"""Console blocks of the documentation: found, run, and written again.

A block is fenced as `console`. Lines that begin with `$ ` are commands, run by bash in the root of
the repository; the lines after one are all that it printed. `python -m tests.docs.blocks FILE…`
runs the commands of those files and puts what they print in the blocks.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.cli import running
from tests.waiting import PATIENCE

REPO = Path(__file__).parent.parent.parent
SHOWN = {"COLUMNS": "100", "NO_COLOR": "1"}
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[tuple[str, str]]:
    """(command, what the text says it prints) of every console block."""
    found = []
    for block in _BLOCK.findall(text):
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = piece.partition("\n")
            found.append((command, output.rstrip("\n")))
    return found


_OURS = re.compile(r"amqpsniff (?!batch )[^|&;<>$`\n]*")
"""A command that needs no shell, and no process of its own."""


def run(command: str) -> str:
    """What a command prints on standard output, without colour, 100 columns wide."""
    if _OURS.fullmatch(command):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in SHOWN.items():
                patch.setenv(name, value)
            code, out, err = running.run(*shlex.split(command)[1:], folder=REPO)
    else:
        code, out, err = _in_bash(command)
    assert code in (0, 1, 141), f"$ {command}\n{err}"
    return "\n".join(line.rstrip() for line in out.splitlines())


def _in_bash(command: str) -> tuple[int, str, str]:
    scripts = sysconfig.get_path("scripts")
    environment = os.environ | {
        "PATH": f"{scripts}:{os.environ['PATH']}",
        **SHOWN,
    }
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=REPO,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout, done.stderr


def rewritten(text: str) -> str:
    """The text with every console block's output as it is now."""

    def block(match: re.Match[str]) -> str:
        pieces = [f"$ {command}\n{run(command)}" for command, _ in commands(match.group(0))]
        return "```console\n" + "\n\n".join(piece.rstrip("\n") for piece in pieces) + "\n```"

    return _BLOCK.sub(block, text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
