"""Types of DuckDB that Arrow has no values for, and what to cast them to.

DuckDB gives Arrow bytes of its own of some of them, of others less than the value: the largest
UHUGEINT is -1 then, and a time with a zone has none. So they are given as DuckDB's own text.
"""

from __future__ import annotations

from typing import Any

TEXT = "VARCHAR"

DIGITS = frozenset(("UHUGEINT", "BIGNUM"))
"""Types whose text is a number of JSON."""

_AS_TEXT = DIGITS | {"BIT", "TIME WITH TIME ZONE", "GEOMETRY", "VARIANT", "TYPE"}


def carried(kind: Any) -> str:
    """The type, in SQL, whose values are those of a type and are in Arrow too; often itself."""
    name = str(kind)
    if name.partition("(")[0] in _AS_TEXT:
        return TEXT
    nested = _NESTED.get(kind.id)
    if nested is None:
        return name
    children = kind.children
    if kind.id == "struct" and not all(field for field, _ in children):
        # what DuckDB 1.5 has for a tuple, which cannot be written
        return name if all(carried(one) == str(one) for _, one in children) else TEXT
    return nested(children)


def _list(children: list[tuple[str, Any]]) -> str:
    return f"{carried(children[0][1])}[]"


def _array(children: list[tuple[str, Any]]) -> str:
    (_, kind), (_, size) = children
    return f"{carried(kind)}[{size}]"


def _fields(children: list[tuple[str, Any]]) -> str:
    return ", ".join(f"{quoted(name)} {carried(kind)}" for name, kind in children if name)


def _unnamed(children: list[tuple[str, Any]]) -> str:
    return ", ".join(carried(kind) for _, kind in children)


_NESTED = {
    "list": _list,
    "array": _array,
    "struct": lambda children: f"STRUCT({_fields(children)})",
    "union": lambda children: f"UNION({_fields(children)})",  # its tag has no name
    "map": lambda children: f"MAP({_unnamed(children)})",
    "tuple": lambda children: f"TUPLE({_unnamed(children)})",
}


def quoted(name: str) -> str:
    """A name in SQL, whatever its characters."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
