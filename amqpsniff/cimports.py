"""Imports of compiled names, where nothing is compiled.

A compiled module takes classes and C functions of another one with
`from cython.cimports.amqpsniff.x import Y`, which only the compiler understands. As plain Python
the same line means `from amqpsniff.x import Y`.
"""

from __future__ import annotations

import sys

from amqpsniff.cython_names import Finder

_PREFIX = "cython.cimports."

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType


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
