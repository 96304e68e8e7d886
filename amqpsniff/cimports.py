"""Cython's names and its imports, for modules that are not compiled.

A compiled module takes classes and C functions of another one with
`from cython.cimports.amqpsniff.x import Y`, which only the compiler understands. As plain Python
the same line means `from amqpsniff.x import Y`. Of `cython` itself, where it is absent, types are
only ever named, decorators leave what they decorate, and a cast or a declaration is its value.
"""

from __future__ import annotations

import sys
from types import ModuleType

_PREFIX = "cython.cimports."

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any


class _Cimports:
    """Finds and loads `cython.cimports.amqpsniff.x`: the module `amqpsniff.x` itself."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not name.startswith(_PREFIX + "amqpsniff."):
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, cls, is_package=True)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Make a module of the usual kind, for `exec_module` to replace."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        from importlib import import_module

        name = module.__name__
        sys.modules[name] = import_module(name.removeprefix(_PREFIX))


def install() -> None:
    """Let the interpreter find them. First: the usual finder would load each module twice."""
    sys.modules[_PREFIX + "amqpsniff"] = sys.modules["amqpsniff"]
    sys.meta_path.insert(0, _Cimports)
    sys.meta_path.append(Finder)


class _Type:
    """A C type: it can be called, subscripted and named inside another."""

    def __call__(self, *values: Any) -> Any:
        return values[0] if values else None

    def __getitem__(self, item: Any) -> _Type:
        return self


def _same(decorated: Any) -> Any:
    return decorated


class _Directive:
    """A decorator, or the block of a `with`, that is given arguments first."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        pass

    def __call__(self, decorated: Any) -> Any:
        return decorated

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def _value(kind: Any, value: Any = None, **named: Any) -> Any:
    """A declaration's or a cast's value."""
    return value


class _Names(ModuleType):
    """The module `cython`; any name that is not listed is a type."""

    compiled = False
    NULL = None
    declare = cast = staticmethod(_value)
    cfunc = ccall = cclass = final = inline = address = staticmethod(_same)
    exceptval = boundscheck = freelist = _Directive

    def __getattr__(self, name: str) -> _Type:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Type()


class Finder:
    """Finds and loads the module `cython`, if nothing else does."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != "cython":
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, cls, is_package=True)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        return _Names(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Nothing is left to do."""
