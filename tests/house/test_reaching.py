"""Tests ask for what is public: private attributes and constants stay with their modules.

Whoever changes the inside of a module then has its own tests to read and no others. A bound is met
as it is, or is a field of a `Limits` or an argument that a test gives a lower one.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tests.conftest import REPO

PUBLIC = {"_asdict", "_exit", "_fields", "_make", "_replace", "_repr_html_"}
"""Names with an underscore that Python and IPython document."""

PRIVATE = {
    # a row has no column of a private name
    ("tests/api/test_objects.py", "_hidden"): 1,
    # how often bytes are looked at shows in nothing but the time
    ("tests/capture/test_splits.py", "_read"): 1,
    # a program that fails in place of one that takes seconds
    ("tests/report/test_page.py", "_BUNDLER"): 4,
    # attributes of typer, pyspark and Python
    ("tests/cli/test_choices.py", "_custom_shell_complete"): 1,
    ("tests/cli/test_errors.py", "tempfile._candidate_tempdir_list"): 1,
    ("tests/spark/test_batch_command.py", "_gateway"): 1,
    ("tests/spark/test_failures.py", "_gateway"): 1,
    ("tests/spark/test_listening.py", "_gateway"): 1,
}
"""Private attributes that tests use nevertheless."""

PATCHED = {
    # archives of the size at which these count take minutes
    ("tests/archive/test_equality.py", "MAX_KEPT"): 1,
    ("tests/archive/test_equality.py", "MAX_MESSAGES"): 1,
    ("tests/archive/test_equality.py", "MAX_REDELIVERED"): 1,
    ("tests/archive/test_linking.py", "GROUP_ROWS"): 1,
    ("tests/archive/test_linking.py", "ROWS"): 1,
    ("tests/archive/test_plan.py", "LOOKED_UP"): 1,
    ("tests/archive/test_surveys.py", "MAX_REMEMBERED"): 1,
    # a system without that folder
    ("tests/cli/test_completions.py", "INTERFACES"): 1,
    ("tests/report/test_page.py", "_BUNDLER"): 4,
    # a Spark that starts sooner and is asked more often
    ("tests/spark/conftest.py", "BRIEF_JAVA"): 1,
    ("tests/spark/test_runner.py", "LOOK_PART"): 1,
    ("tests/spark/test_runner.py", "LOOK_SECONDS"): 1,
    # more rows than DuckDB has memory for
    ("tests/spark/test_batch_command.py", "FILES_MEMORY"): 1,
}
"""Constants that tests replace nevertheless."""


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((REPO / "tests").rglob("*.py")):
        yield str(path.relative_to(REPO)), ast.parse(path.read_text(encoding="utf-8"))


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def _is_constant(name: str) -> bool:
    last = name.rpartition(".")[2].lstrip("_")
    return last.isidentifier() and last.isupper()


def _private(tree: ast.AST) -> Iterator[str]:
    """Private names of others: attributes but of `self` and `cls`, imports, names as text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("amqpsniff"):
            yield from (one.name for one in node.names if _is_private(one.name))
        elif isinstance(node, ast.Call) and _called(node) in ("getattr", "hasattr", "setattr"):
            yield from (one for one in _texts(node)[:2] if _is_private(one.rpartition(".")[2]))


def _patched(tree: ast.AST) -> Iterator[str]:
    """Constants that are replaced: `setattr(module, "NAME", …)`, `patch("module.NAME", …)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in ("setattr", "patch", "object"):
            yield from (one.rpartition(".")[2] for one in _texts(node)[:2] if _is_constant(one))


def _called(node: ast.Call) -> str:
    return str(getattr(node.func, "id", getattr(node.func, "attr", "")))


def _texts(node: ast.Call) -> list[str]:
    """The arguments of a call that are texts."""
    values = (one.value for one in node.args if isinstance(one, ast.Constant))
    return [one for one in values if isinstance(one, str)]


def test_no_private_attribute_of_the_product_is_used() -> None:
    found = Counter((path, name) for path, tree in _trees() for name in _private(tree))
    assert found == PRIVATE


def test_no_constant_of_the_product_is_replaced() -> None:
    found = Counter((path, name) for path, tree in _trees() for name in _patched(tree))
    assert found == PATCHED


def test_what_is_looked_for_is_found() -> None:
    tree = ast.parse(
        "from amqpsniff.x import _y, Z\none._two.three\nself._four\nrow._replace(a=1)\n"
        "patch.setattr(x, '_five', 6)\npatch.setattr(x, 'MAX_SIX', 6)\n"
        "patch.setattr('amqpsniff.x.MAX_SEVEN', 7)\npatch.setattr(x, 'name', 8)"
    )
    assert sorted(_private(tree)) == ["_five", "_two", "_y"]
    assert sorted(_patched(tree)) == ["MAX_SEVEN", "MAX_SIX"]
