"""Every finding of the catalogue is raised somewhere, and none that it does not have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amqpsniff.findings import KINDS
from tests.house import packaging


def _quoted() -> str:
    """The sources of what looks at traffic."""
    return "\n".join(
        path.read_text(encoding="utf-8")
        for name, path in packaging.sources().items()
        if not name.startswith(("amqpsniff.findings.catalogue", "amqpsniff.cli"))
    )


def test_every_finding_is_raised() -> None:
    text = _quoted()
    silent = {code for code in KINDS if f'"{code}"' not in text}
    assert silent == set()


def _raised() -> Iterator[tuple[str, str]]:
    """(module, code) of every finding that is raised by a code in quotes."""
    for name, path in packaging.sources().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and _raises(node.func):
                code = node.args[0]
                if isinstance(code, ast.Constant) and isinstance(code.value, str):
                    yield name, code.value


def _raises(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("Finding", "report", "_report")


def test_every_finding_that_is_raised_is_in_the_catalogue() -> None:
    raised = list(_raised())
    assert len(raised) > 20
    assert [one for one in raised if one[1] not in KINDS] == []
