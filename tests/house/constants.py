"""Declarations for C of the numbers in modules of constants: `.pxd` files beside them.

A compiled module takes such a number with `from cython.cimports.amqpsniff.x import NUMBER`, and has
it in its C code as it stands; Python imports it from the module itself. After a change:

    python -m tests.house.constants
"""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = (
    "amqpsniff.decode.amqp10.codes",
    "amqpsniff.decode.codes",
    "amqpsniff.decode.method_layout",
    "amqpsniff.link_types",
    "amqpsniff.null",
    "amqpsniff.packet_numbers",
    "amqpsniff.session.codes",
    "amqpsniff.session.link_flags",
    "amqpsniff.session.method_flags",
    "amqpsniff.session.rules.occasions",
    "amqpsniff.tcp.codes",
    "amqpsniff.tcp.limits",
)
SMALL = 1 << 15
"""Numbers below this are `int`, so that a product of two of them is one; others are `long long`."""


def path_of(module: str) -> Path:
    """The file with a module's declarations."""
    return ROOT.joinpath(*module.split(".")).with_suffix(".pxd")


def declarations(module: str) -> str:
    """The text of that file."""
    lines = [
        "# Written by `python -m tests.house.constants`.",
        "cdef extern from *:",
    ]
    there = import_module(module)
    names = (one for one in ast.walk(ast.parse(inspect.getsource(there))) if type(one) is ast.Name)
    own = {one.id for one in names if type(one.ctx) is ast.Store}
    for name, value in vars(there).items():
        if type(value) is int and name.isupper() and name in own:
            kind = "int" if abs(value) < SMALL else "long long"
            lines.append(f'    const {kind} {name} "{_in_c(value)}"')
    return "\n".join(lines) + "\n"


def _in_c(value: int) -> str:
    """A number in C, where the smallest one is not written as a number with its sign."""
    suffix = "" if abs(value) < SMALL else "LL"
    return f"({value + 1}{suffix} - 1)" if value < 0 else f"{value}{suffix}"


if __name__ == "__main__":
    for one in MODULES:
        path, text = path_of(one), declarations(one)
        if not path.exists() or path.read_text() != text:  # else all that needs it is compiled
            path.write_text(text)
