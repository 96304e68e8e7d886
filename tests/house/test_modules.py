"""The tree and pyproject.toml agree, and modules are as the house wants them."""

import ast
import importlib.machinery
import importlib.util
import re
import shutil

import pytest

from tests.conftest import REPO
from tests.house import packaging

OF_OBJECTS = {
    "amqpsniff.decode.values._unsigned",
    "amqpsniff.decode.state.body_rest",
    "amqpsniff.session.census._name",
    "amqpsniff.session.linkables._signed",
    "amqpsniff.session.links.id_number",
    "amqpsniff.session.links.id_text",
    "amqpsniff.session.relinking._unsigned",
    "amqpsniff.tcp.shares._numbers",
}
"""Functions of compiled modules with large literals that meet Python objects, or are seldom met."""


def test_every_module_with_a_cython_line_is_listed_and_no_other() -> None:
    listed = {
        module["name"]: module["sources"]
        for module in packaging.tool_table("setuptools")["ext-modules"]
    }
    marked = {
        name: [str(path.relative_to(REPO))] for name, path in packaging.compiled_modules().items()
    }
    shared = packaging.tool_table("distutils")["build_ext"]["shared-utility-qualified-name"]
    assert listed.pop(shared) == [shared.replace(".", "/") + ".c"]
    assert listed == marked


def test_the_module_that_the_others_share_is_named_in_one_way() -> None:
    shared = packaging.tool_table("distutils")["build_ext"]["shared-utility-qualified-name"]
    assert f"SHARED := {shared}\n" in (REPO / "Makefile").read_text(encoding="utf-8")


def test_mypy_is_told_which_modules_cython_checks() -> None:
    overrides = packaging.tool_table("mypy")["overrides"]
    (told,) = (rows["module"] for rows in overrides if "ignore_errors" in rows)
    assert sorted(told) == sorted(packaging.compiled_modules())


def test_every_compiled_module_may_stay_uncompiled() -> None:
    assert all(module["optional"] for module in packaging.tool_table("setuptools")["ext-modules"])


def test_large_numbers_of_hot_functions_are_declared() -> None:
    """A literal of 2^31 or more is a Python object in C, made and compared anew each time."""
    found = set()
    for name, path in packaging.compiled_modules().items():
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                if any(_number(one) >= 1 << 31 for one in ast.walk(function)):
                    found.add(f"{name}.{function.name}")
    assert found == OF_OBJECTS


def _number(node: ast.AST) -> int:
    """The integer that a literal or a shifted literal is; 0 for anything else."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift):
        return _number(node.left) << _number(node.right)
    value = getattr(node, "value", None)
    return value if isinstance(value, int) else 0


def test_numbers_of_compiled_modules_are_declared() -> None:
    """An annotation makes no C variable of one outside functions: it is looked up each time."""
    for name, path in packaging.compiled_modules().items():
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            kind = ast.unparse(getattr(statement, "annotation", ast.Constant("")))
            assert not kind.startswith("cython."), f"{name}: {ast.unparse(statement)}"


def test_every_package_is_listed_and_no_other() -> None:
    packages = {name for name, path in packaging.sources().items() if path.name == "__init__.py"}
    assert sorted(packaging.tool_table("setuptools")["packages"]) == sorted(packages)


def test_every_folder_with_modules_is_a_package() -> None:
    for path in packaging.sources().values():
        assert (path.parent / "__init__.py").is_file(), f"{path.parent} has no __init__.py"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_compiled_modules_are_compiled() -> None:
    for name in packaging.compiled_modules():
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert isinstance(spec.loader, importlib.machinery.ExtensionFileLoader), (
            f"{name} runs uncompiled: `make compile`"
        )


def test_every_module_has_a_docstring() -> None:
    for path in packaging.sources().values():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), f"{path.relative_to(REPO)} has no docstring"


def test_no_module_has_a_name_that_says_nothing() -> None:
    names = {path.stem for path in packaging.sources().values()}
    assert not names & {"utils", "util", "common", "helpers", "misc"}


def test_architecture_has_the_layers_that_are_checked() -> None:
    """The lines of ARCHITECTURE.md are those of the contract, with a place for every module."""
    text = (REPO / "ARCHITECTURE.md").read_text(encoding="utf-8")
    _, _, behind = text.partition("checked by `make lint`:\n\n")
    told = [line.strip() for line in behind.partition("\n\n")[0].splitlines()]
    layers = packaging.tool_table("importlinter")["contracts"][0]["layers"]
    assert [set(re.findall(r"\w+", line)) for line in told] == [
        set(re.findall(r"\w+", layer)) for layer in layers
    ]
    assert [" | " in line for line in told] == [" | " in layer for layer in layers]
