"""The `.pxd` files: what compiled modules may use of another module, declared for C.

Types stand in the `.py` files, and these are written from them. After a change:

    python -m tests.house.declarations

Of a compiled module the declarations are:

- Classes with `@cython.cclass` and their annotated attributes. Python reads and writes an attribute
  too if its name begins without an underscore.
- Functions and methods that return a C type (`-> cython.int`), or have `@cython.cfunc` and return
  an object: only C calls them. With `@cython.ccall` Python calls them too. A function of the module
  that has `@cython.cfunc` and a name with an underscore is not declared.
- Where a C type is returned, -1 may mean that an exception was raised. `@cython.exceptval(-2)` says
  another number, `@cython.exceptval(check=False)` that nothing is raised. Cython wants `exceptval`
  beside `@cython.ccall` of a method in any case.

Of a module of constants the declarations are its numbers: `from cython.cimports.amqpsniff.x import
NUMBER` puts the number itself into the C code of a compiled module. Python imports it from the
module.

A module that is used by compiled ones for the first time begins with an empty `.pxd` file.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).parents[2]
HAND_WRITTEN = ("amqpsniff.byteorder",)
"""`byteorder` has its code in the `.pxd`."""

SMALL = 1 << 15
"""Numbers below this are `int`, so that a product of two of them is one; others are `long long`."""

CALLED = {"cfunc", "ccall"}
BUILTINS = {"bytearray", "bytes", "dict", "list", "set", "str", "tuple"}
SPELLED = {
    "longlong": "long long",
    "schar": "signed char",
    "uchar": "unsigned char",
    "uint": "unsigned int",
    "ulonglong": "unsigned long long",
    "ushort": "unsigned short",
}
"""C types whose names in `cython` differ from those in C."""


@cache
def modules() -> list[str]:
    """The modules whose declarations are written here."""
    paths = sorted((ROOT / "amqpsniff").rglob("*.pxd"))
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths)
    return [name for name in names if name not in HAND_WRITTEN]


def path_of(module: str) -> Path:
    """The file with a module's declarations."""
    return ROOT.joinpath(*module.split(".")).with_suffix(".pxd")


def declarations(module: str) -> str:
    """The text of that file."""
    source = path_of(module).with_suffix(".py").read_text(encoding="utf-8")
    lines = _Compiled(module).lines() if source.startswith("# cython:") else _numbers(module)
    return "\n".join(["# Written by `python -m tests.house.declarations`.", *lines, ""])


def _numbers(module: str) -> Iterator[str]:
    yield "cdef extern from *:"
    names = (one for one in ast.walk(_tree(module)) if type(one) is ast.Name)
    own = {one.id for one in names if type(one.ctx) is ast.Store}
    for name, value in vars(import_module(module)).items():
        if type(value) is int and name.isupper() and name in own:
            kind = "int" if abs(value) < SMALL else "long long"
            yield f'    const {kind} {name} "{_in_c(value)}"'


def _in_c(value: int) -> str:
    """A number in C, where the smallest one is not written as a number with its sign."""
    suffix = "" if abs(value) < SMALL else "LL"
    return f"({value + 1}{suffix} - 1)" if value < 0 else f"{value}{suffix}"


@cache
def _tree(module: str) -> ast.Module:
    path = path_of(module).with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


def _directives(one: ast.ClassDef | ast.FunctionDef) -> dict[str, ast.expr]:
    """Cython's decorators, by name."""
    found = {}
    for decorator in one.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Attribute) and ast.unparse(called.value) == "cython":
            found[called.attr] = decorator
    return found


@cache
def _classes(module: str) -> frozenset[str]:
    """Names of a module's classes that C knows."""
    if module not in modules():
        text = path_of(module).read_text() if path_of(module).exists() else ""
        return frozenset(re.findall(r"^cdef class (\w+)", text, re.MULTILINE))
    found = (one for one in _tree(module).body if isinstance(one, ast.ClassDef))
    return frozenset(one.name for one in found if "cclass" in _directives(one))


class _Compiled:
    """A compiled module."""

    def __init__(self, module: str) -> None:
        self.body = _tree(module).body
        self.homes = {}
        for one in ast.walk(_tree(module)):
            if isinstance(one, ast.ImportFrom):
                parent = module.split(".")[: -one.level] if one.level else []
                home = ".".join([*parent, one.module or ""]).removeprefix("cython.cimports.")
                self.homes.update({name.asname or name.name: home for name in one.names})
        self.own = _classes(module)
        self.used: dict[str, set[str]] = {}
        self.early: set[str] = set()
        self.known: set[str] = set()

    def lines(self) -> list[str]:
        """All declarations, behind the imports that they need."""
        declared = [line for one in self.body for line in self._of(one)]
        imports = [
            f"from {home} cimport {', '.join(sorted(names))}"
            for home, names in sorted(self.used.items())
        ]
        if any(line.startswith("@") for line in declared):
            imports.insert(0, "cimport cython")
        early = [f"cdef class {name}" for name in sorted(self.early)]
        if declared[0]:
            declared.insert(0, "")
        return [*imports, *early, *declared]

    def _of(self, one: ast.stmt) -> Iterator[str]:
        if isinstance(one, ast.FunctionDef):
            if not (one.name.startswith("_") and "cfunc" in _directives(one)):
                yield from self._function(one)
        elif isinstance(one, ast.ClassDef) and one.name in self.own:
            yield ""
            for name, decorator in _directives(one).items():
                if name != "cclass":
                    yield f"@{ast.unparse(decorator)}"
            bases = ", ".join(self._kind(base) for base in one.bases)
            self.known.add(one.name)
            yield f"cdef class {one.name}({bases}):" if bases else f"cdef class {one.name}:"
            fields = [member for member in one.body if not _is_constant(member, one)]
            members = [f"    {line}" for member in fields for line in self._member(member)]
            yield from members or ["    pass"]

    def _member(self, one: ast.stmt) -> Iterator[str]:
        if isinstance(one, ast.FunctionDef):
            yield from self._function(one)
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            name = one.target.id
            kind, size = self._kind(one.annotation), ""
            if kind.endswith("]") and not kind.endswith("[::1]"):
                kind, size = kind[: kind.index("[")], kind[kind.index("[") :]
            yield f"cdef {'' if name.startswith('_') else 'public '}{kind} {name}{size}"

    def _function(self, one: ast.FunctionDef) -> Iterator[str]:
        directives = _directives(one)
        in_c = one.returns is not None and ast.unparse(one.returns).startswith("cython.")
        if len(directives) < len(one.decorator_list) or not (in_c or directives.keys() & CALLED):
            return
        arguments = [self._argument(argument) for argument in one.args.args]
        for place in range(len(one.args.defaults)):
            arguments[-1 - place] += "=*"
        called = "cpdef" if "ccall" in directives else "cdef"
        raising = _raising(directives.get("exceptval")) if in_c else ""
        yield f"{called} {self._kind(one.returns)} {one.name}({', '.join(arguments)}){raising}"

    def _argument(self, one: ast.arg) -> str:
        return f"{self._kind(one.annotation)} {one.arg}" if one.annotation else one.arg

    def _kind(self, one: ast.expr | None) -> str:
        """How C has what is annotated."""
        if isinstance(one, ast.BinOp) and ast.unparse(one.right) == "None":
            return self._kind(one.left)
        if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "cython":
            return SPELLED.get(one.attr, one.attr)
        if isinstance(one, ast.Subscript):
            if ast.unparse(one.value) == "cython.const":
                return f"const {self._kind(one.slice)}"
            kind = self._kind(one.value)
            in_c = ast.unparse(one.value).startswith("cython.")
            return f"{kind}[{ast.unparse(one.slice)}]" if in_c else kind
        if isinstance(one, ast.Name):
            home = self.homes.get(one.id, "")
            if one.id in self.own:
                if one.id not in self.known:
                    self.early.add(one.id)
                return one.id
            if home.startswith("amqpsniff.") and one.id in _classes(home):
                self.used.setdefault(home, set()).add(one.id)
                return one.id
            if one.id in BUILTINS:
                return one.id
        return "object"


def _is_constant(one: ast.stmt, of: ast.ClassDef) -> bool:
    """True for a value that all objects of a class have."""
    is_dataclass = any(ast.unparse(decorator) == "dataclass" for decorator in of.decorator_list)
    return isinstance(one, ast.AnnAssign) and one.value is not None and not is_dataclass


def _raising(exceptval: ast.expr | None) -> str:
    """What a function that returns a C type says of exceptions."""
    if exceptval is None:
        return " except? -1"
    assert isinstance(exceptval, ast.Call)
    sure = any(ast.unparse(one) == "check=False" for one in exceptval.keywords)
    if not exceptval.args:
        return " noexcept"
    return f" except{'' if sure else '?'} {ast.unparse(exceptval.args[0])}"


def _source_of(folder: str) -> FileFinder:
    """Finds modules of the package as Python: compiled ones may be of before the change."""
    if not folder.startswith(f"{ROOT / 'amqpsniff'}"):
        raise ImportError
    return FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))


if __name__ == "__main__":
    sys.path_hooks.insert(0, _source_of)
    for one in modules():
        path, text = path_of(one), declarations(one)
        if path.read_text() != text:  # else all that needs it is compiled
            path.write_text(text)
