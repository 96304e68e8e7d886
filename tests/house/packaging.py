"""What pyproject.toml says about packages and compiled modules, and what the tree holds."""

import tomllib
from pathlib import Path
from typing import Any

from tests.conftest import REPO

# Where each top-level folder of sources is installed.
INSTALLED_AS = {
    "amqpsniff": "amqpsniff",
    "cli": "amqpsniff.cli",
    "spark_jobs": "amqpsniff.spark_jobs",
}


def tool_table(name: str) -> dict[str, Any]:
    """The table `[tool.NAME]` of pyproject.toml."""
    with (REPO / "pyproject.toml").open("rb") as file:
        table: dict[str, Any] = tomllib.load(file)["tool"][name]
    return table


def sources() -> dict[str, Path]:
    """Every module of the product: dotted name as installed -> path of its file."""
    found = {}
    for folder, package in INSTALLED_AS.items():
        for path in sorted((REPO / folder).rglob("*.py")):
            parts = path.relative_to(REPO / folder).with_suffix("").parts
            names = [package, *(part for part in parts if part != "__init__")]
            found[".".join(names)] = path
    return found


def compiled_modules() -> dict[str, Path]:
    """Modules that begin with a `# cython:` line."""
    return {
        name: path
        for name, path in sources().items()
        if path.read_text(encoding="utf-8").startswith("# cython:")
    }
