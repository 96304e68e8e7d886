"""The notebooks of the documentation, and what their cells show.

`python -m tests.docs.notebook` runs them and writes the outputs again.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

from tests.docs.blocks import REPO
from tests.docs.recipes import in_repository

PAGE = REPO / "docs" / "notebook.ipynb"

SPARK_PAGE = REPO / "docs" / "spark.ipynb"


def executed(page: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs that its code cells have now, run one after the other."""
    names: dict[str, Any] = {"__name__": "notebook"}
    number = 0
    for cell in page["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            cell["execution_count"] = number
            cell["outputs"] = _run("".join(cell["source"]), number, names)
    return page


def _run(source: str, number: int, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Outputs of a cell: what it printed, and the value of an expression at its end."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with in_repository(), contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        shown = {"text/plain": repr(value).splitlines(keepends=True)}
        outputs.append(
            {
                "data": shown,
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def read(path: Path = PAGE) -> dict[str, Any]:
    """A notebook as it is in the repository."""
    page: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return page


if __name__ == "__main__":
    for path in (PAGE, SPARK_PAGE):
        text = json.dumps(executed(read(path)), indent=1, ensure_ascii=False)
        path.write_text(f"{text}\n", encoding="utf-8")
