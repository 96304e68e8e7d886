"""The programs of docs/recipes.md, and what they print.

A block fenced as `python` is a program; the block fenced as `text` behind it is what it prints.
`python -m tests.docs.recipes` writes these blocks again.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.blocks import REPO

PAGE = REPO / "docs" / "recipes.md"
_RECIPE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)


def recipes(text: str) -> list[tuple[str, str]]:
    """Programs, each with what the page says it prints."""
    return [(program, shown or "") for program, shown in _RECIPE.findall(text)]


def run(program: str) -> str:
    """The output of a program that runs in the root of the repository."""
    out = io.StringIO()
    with in_repository(), contextlib.redirect_stdout(out):
        exec(program, {"__name__": "recipe"})
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


@contextlib.contextmanager
def in_repository() -> Iterator[None]:
    """The root of the repository as the working directory."""
    before = Path.cwd()
    os.chdir(REPO)
    try:
        yield
    finally:
        os.chdir(before)


def page(text: str) -> str:
    """The page with every output as it is now."""
    return _RECIPE.sub(lambda one: f"```python\n{one[1]}```\n\n```text\n{run(one[1])}```\n", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
