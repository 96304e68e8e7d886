"""The tree and pyproject.toml agree, and modules are as the house wants them."""

import ast
import importlib.machinery
import importlib.util
import re
import shutil

import pytest

from tests.conftest import REPO
from tests.house import packaging


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
    (told,) = (rows["module"] for rows in overrides if "strict_optional" in rows)
    assert sorted(told) == sorted(packaging.compiled_modules())


def test_every_compiled_module_may_stay_uncompiled() -> None:
    assert all(module["optional"] for module in packaging.tool_table("setuptools")["ext-modules"])


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


def test_no_module_has_a_name_that_says_nothing() -> None:
    names = {path.stem for path in packaging.sources().values()}
    assert not names & {"utils", "util", "common", "helpers", "misc"}


def test_no_text_names_a_page_that_is_not_installed() -> None:
    """Documentation is not part of the package: a message, a help or a page says it itself."""
    pages = re.compile(r"\b[\w/-]+\.md\b|\bdocs/")
    found = []
    for folder in packaging.INSTALLED_AS:
        for path in sorted((REPO / folder).rglob("*")):
            if path.suffix in {".py", ".js", ".css", ".json", ".tsv", ".txt"}:
                lines = path.read_text(encoding="utf-8").splitlines()
                found += [
                    f"{path.relative_to(REPO)}:{number}: {line.strip()}"
                    for number, line in enumerate(lines, 1)
                    if pages.search(line)
                ]
    assert not found, "\n".join(found)
