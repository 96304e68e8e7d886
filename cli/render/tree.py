"""Fields by name, one a line, tables and lists indented under their name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from amqpsniff.analysis.in_full import Raw
from amqpsniff.analysis.one_line import base64_of
from amqpsniff.wire_text import harmless, quoted, word

from .text import Paint, cells

INDENT = "    "


def tree(fields: dict[str, Any], paint: Paint, depth: int = 2) -> Iterator[str]:
    """Names and values, tables and lists under their name."""
    width = max((cells(harmless(name)) for name in fields), default=0)
    for name, value in fields.items():
        key = word(name) if depth > 2 else harmless(name)
        children = _children(value)
        if children is None:
            gap = " " * (width - cells(key) + 1)
            yield f"{INDENT * depth}{paint('key', key)}{gap}{_leaf(value)}"
        else:
            yield f"{INDENT * depth}{paint('key', key)}"
            yield from tree(children, paint, depth + 1)


def _children(value: Any) -> dict[str, Any] | None:
    """The names below a name; None for a value that fits its line."""
    if isinstance(value, dict) and value and base64_of(value) is None:
        return value
    if isinstance(value, list) and value:
        return {str(index): item for index, item in enumerate(value)}
    return None


def _leaf(value: Any) -> str:
    if isinstance(value, Raw):
        return value
    if isinstance(value, str):
        return quoted(harmless(value))
    if isinstance(value, dict):
        text = base64_of(value)
        return "{}" if text is None else f"base64 {word(text)}"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return json.dumps(value)
