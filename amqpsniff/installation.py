"""The installation: which modules are compiled, and the command that adds a missing package."""

from __future__ import annotations

import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

LIBRARIES = ("pyarrow", "duckdb", "scapy", "cryptography", "pyspark")
"""Packages whose versions matter for what this program does."""

_MARK = b"# cython:"


def how_to_add(extra: str) -> str:
    """The command that adds an extra to the installed amqpsniff, without an index."""
    return how_to_install(f"amqpsniff[{extra}]")


def how_to_install(package: str) -> str:
    """The command that installs a package into the environment of this program."""
    quoted = shlex.quote(package)
    environment = Path(sys.prefix)
    if (environment / "pipx_metadata.json").exists():
        return f"pipx runpip {shlex.quote(environment.name)} install {quoted}"
    if (environment / "uv-receipt.toml").exists() or find_spec("pip") is None:
        return f"uv pip install --python {shlex.quote(sys.prefix)} {quoted}"
    if os.environ.get("VIRTUAL_ENV") == sys.prefix:
        return f"pip install {quoted}"
    return f"{shlex.quote(sys.executable)} -m pip install {quoted}"


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
