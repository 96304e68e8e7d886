"""SQL expressions by DuckDB's tree of them, and errors in them as one line.

The tree is that of `json_serialize_sql`: objects with a `class` (of an expression) or a `type`.
This module only relies on one thing: names of columns and tables are strings in the tree.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from amqpsniff.tables.schema import EVERYTHING, RENAMED
from amqpsniff.units import listed

SHOWN_CHARACTERS = 60
"""How much of an expression a message repeats."""

MAX_MEANT = 3

MAX_LISTED = 12
"""Columns listed in a message if no column is similar to the given one."""

_OF_TABLES = frozenset(name for schema in EVERYTHING.values() for name in schema.names)
"""Columns that `DESCRIBE` lists; a view of the dashboard has others."""

_KINDS = {"VARCHAR": "text", "BLOB": "bytes", '"NULL"': "null"}
_NUMBERS = frozenset(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE"))

_BY_PLACE = ("SHOW_REF", "PIVOT", "POSITIONAL_REFERENCE")

_LEAD = re.compile(r"^(?:[A-Z][A-Za-z]*(?: [A-Z][A-Za-z]*)* Error|INTERNAL Error): ")
_NO_COLUMN = re.compile(r'Referenced column "([^"]*)" not found')
_UNKNOWN_TABLE = re.compile(r"Table with name (.*) does not exist")
_NOT_SELECT = "Only SELECT statements can be serialized"
_NO_TABLE = re.compile(r'Referenced table "([^"]*)" not found')
_NO_FUNCTION = re.compile(r"No function matches the given name and argument types '([^']*)'")


def nodes_of(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object in a tree of JSON."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def column_names(nodes: Iterable[dict[str, Any]], names: Collection[str]) -> Iterator[str]:
    """Names of columns that occur anywhere; all of them if there is a star."""
    exact = {name.lower(): name for name in names}
    for node in nodes:
        if node.get("class") == "STAR":
            yield from names
        for value in node.values():
            for text in value if isinstance(value, list) else (value,):
                if isinstance(text, str) and text.lower() in exact:
                    yield exact[text.lower()]


def needs_all(nodes: list[dict[str, Any]], tables: Collection[str]) -> bool:
    """True if a statement may use columns that it does not name."""
    # A table's name means all of its columns, its alias too; only tables after FROM have `sample`.
    references = [node for node in nodes if node.get("alias") and "sample" in node]
    wholes = {name.lower() for name in tables} | {str(node["alias"]).lower() for node in references}
    for node in nodes:
        if node.get("type") in _BY_PLACE or node.get("ref_type") == "NATURAL":
            return True
        names = node.get("column_names")
        if node.get("column_name_alias") or node.get("function_name") == "query":
            return True
        if isinstance(names, list) and len(names) == 1 and str(names[0]).lower() in wholes:
            return True
    return False


def said(error: object, given: str, names: Collection[str], tables: Collection[str] = ()) -> str:
    """One line for a person from DuckDB's error about `given`, a text over these columns."""
    text = str(error).strip()
    match = _UNKNOWN_TABLE.search(text)
    if match and tables:
        return f"no table `{match.group(1)}`; {listed(list(tables))}"
    if _NOT_SELECT in text:
        return f"`{shown(given)}`: only SELECT statements can be run"
    match = _NO_COLUMN.search(text)
    if match and names:
        name = match.group(1)
        if re.search(rf"(=|<>|like)\s*\"?{re.escape(name)}\b", given, re.IGNORECASE):
            return f"no column `{name}`; a text stands in single quotes: '{name}'"
        return no_column(name, names)
    match = _NO_TABLE.search(text)
    if match and names:
        return f"`{shown(given)}`: there is no `{match.group(1)}` to have columns"
    match = _NO_FUNCTION.search(text)
    if match:
        return f"`{shown(given)}`: there is no {match.group(1)}"
    line = _LEAD.sub("", text.split("\n", 1)[0]).strip()
    if line == 'syntax error at or near ")"' and given.count(")") <= given.count("("):
        line = "syntax error at its end"
    hint = re.search(r"\n(Did you mean .*)", text)
    return f"`{shown(given)}`: {line}" + (f" {hint.group(1)}" if hint else "")


def no_column(name: str, names: Iterable[str]) -> str:
    """The message for a column that a table, or several, do not have."""
    columns = list(dict.fromkeys(names))
    query = name.lower()
    if RENAMED.get(query) in columns:
        return f"no column `{name}`; it is `{RENAMED[query]}` now"
    if query in columns:
        return f"no column `{name}` at this place; a query inside the statement has to select it"
    near = get_close_matches(query, columns, n=MAX_MEANT, cutoff=0.6)
    near += [
        column for column in columns if len(query) > 1 and query in column and column not in near
    ]
    if near:
        suggestions = " or ".join(f"`{column}`" for column in near[:MAX_MEANT])
        return f"no column `{name}`; did you mean {suggestions}?"
    if len(columns) > MAX_LISTED and _OF_TABLES.issuperset(columns):
        return (
            f"no column `{name}`; `amqpsniff sql CAPTURE 'DESCRIBE TABLE'` lists those of a table"
        )
    return f"no column `{name}`; {listed(columns)}"


def kind_text(kind: object) -> str:
    """A DuckDB type in words."""
    name = str(kind)
    return _KINDS.get(name, "a number" if name in _NUMBERS else f"of type {name}")


def shown(text: str) -> str:
    """An expression on one line of bearable length."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 3]}..."
