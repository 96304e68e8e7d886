"""A tshark that says what a test wants: the real one's words, changed on their way."""

from __future__ import annotations

import shutil
from pathlib import Path

REAL = shutil.which("tshark")


def doctored(folder: Path, *expressions: str) -> str:
    """A program like tshark whose PDML went through `sed` with these expressions."""
    path = folder / "tshark"
    words = " ".join(f"-e '{each}'" for each in expressions)
    path.write_text(
        f'#!/bin/sh\ncase "$1" in --version) exec {REAL} --version;; esac\n'
        f'{REAL} "$@" | sed {words}\n'
    )
    path.chmod(0o755)
    return str(path)


def speaking(folder: Path, script: str) -> str:
    """A program that tells a version and otherwise runs a script."""
    path = folder / "tshark"
    path.write_text(
        '#!/bin/sh\ncase "$1" in --version) echo "TShark (Wireshark) 4.0.17."; exit;; esac\n'
        f"{script}\n"
    )
    path.chmod(0o755)
    return str(path)
