"""The installation: which modules are compiled, and the command that adds a missing package."""

from __future__ import annotations

import sys
from pathlib import Path

LIBRARIES = ("pyarrow", "duckdb", "scapy", "cryptography", "pyspark")
"""Packages whose versions matter for what this program does."""

_MARK = b"# cython:"


def how_to_add(extra: str) -> str:
    """The command that installs an extra, for the installer that made this environment."""
    wanted = f"'amqpsniff[{extra}]'"
    here = Path(sys.prefix)
    if (here / "pipx_metadata.json").exists():
        return f"pipx install --force {wanted}"
    if (here / "uv-receipt.toml").exists():
        return f"uv tool install {wanted}"
    return f"pip install {wanted}"


def compiled_modules() -> tuple[int, int]:
    """(modules that are compiled, modules that can be)."""
    compiled = found = 0
    for path in Path(__file__).parent.rglob("*.py"):
        with path.open("rb") as file:
            if not file.read(len(_MARK)).startswith(_MARK):
                continue
        found += 1
        compiled += any(path.parent.glob(f"{path.stem}.*.so"))
    return compiled, found


def versions() -> list[tuple[str, str | None]]:
    """Python and the libraries with their versions; None for one that is not installed."""
    from importlib.metadata import PackageNotFoundError, version  # half of what a start takes

    found: list[tuple[str, str | None]] = [("Python", sys.version.split()[0])]
    for name in LIBRARIES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            found.append((name, None))
    return found
