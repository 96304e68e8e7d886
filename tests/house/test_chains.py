"""Compiled objects that could hang on one another in a chain, to any depth.

The last reference to the first of them frees the next inside itself, and so on: a stack overflows
that Python does not watch. Cython ignores `trashcan` in a `.pxd` beside a `.py`.
"""

from __future__ import annotations

import ast
import re

from tests.conftest import REPO

CLASS = re.compile(r"cdef class (\w+)(?:\((\w+)\))?:")
ATTRIBUTE = re.compile(r"    cdef (?:public |readonly )?([A-Za-z]\w*) \w[\w, ]*$")

BOUNDED = {
    "Channel": "its session is that of its lane, whose channel it is",
    "Lane": "its channel does not know the one before it",
    "Session": "its last lane is one of its own",
}
"""Classes of which one may lead to another, and why chains of them have an end or are undone."""

Classes = dict[str, tuple[str | None, set[str]]]


def declared() -> Classes:
    """Compiled classes: what each inherits from, and the types of its attributes."""
    found: Classes = {}
    for path in (REPO / "amqpsniff").rglob("*.pxd"):
        name = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if begin := CLASS.match(line):
                name = begin[1]
                found[name] = (begin[2], set())
            elif line and not line.startswith(" "):
                name = ""
            elif name and (attribute := ATTRIBUTE.match(line)):
                found[name][1].add(attribute[1])
    for path in (REPO / "amqpsniff").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and "cython.cclass" in map(
                ast.unparse, node.decorator_list
            ):
                types = {
                    ast.unparse(n.annotation) for n in node.body if isinstance(n, ast.AnnAssign)
                }
                found[node.name] = (ast.unparse(node.bases[0]) if node.bases else None, types)
    return found


def leads_to(name: str, classes: Classes) -> set[str]:
    """The classes whose objects an object of a class can hold, in as many steps as it takes."""
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        one: str | None = waiting.pop()
        while one in classes:
            base, types = classes[one]
            meant = {each for each in classes if {each, classes[each][0]} & types} - reached
            reached |= meant
            waiting += meant
            one = base
    return reached


def test_no_compiled_object_leads_to_another_of_its_class() -> None:
    classes = declared()
    assert len(classes) > 80
    assert {name for name in classes if name in leads_to(name, classes)} == BOUNDED.keys()
