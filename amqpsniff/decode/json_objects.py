"""JSON objects of the columns `arguments` and `headers`, read as Python values.

These columns hold a text that is not UTF-8 as `{"base64": …}` (`values.py` writes it). Names are
compared, counted and sorted, so `read_object` gives such a text the form that it has in columns of
text: a str with U+FFFD in place of the bytes that are not UTF-8. What shows arguments as they are
in the rows reads them with `json.loads`.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from amqpsniff.spec import METHODS

_KEYS = {"base64"}
_TABLES = frozenset(
    argument.name for method in METHODS for argument in method.arguments if argument.type == "F"
)
"""Arguments that are field tables: an object there is a table, whatever its names are."""


read_json = json.JSONDecoder().raw_decode
"""As `json.loads` of a text without spaces around it, in half the time."""


def read_object(octets: bytes | str | None) -> dict[str, Any]:
    """A JSON object as a dict; empty without bytes, or if they are not an object.

    A nested table with `base64` as its only name cannot be distinguished from bytes.
    """
    if not octets:
        return {}
    try:
        text = octets.decode() if isinstance(octets, bytes) else octets
        parsed, end = read_json(text)
    except ValueError:
        return {}
    if not isinstance(parsed, dict) or end != len(text):
        return {}
    if '{"base64":' not in text:
        return parsed
    return {
        name: _of_table(value) if name in _TABLES and isinstance(value, dict) else _plain(value)
        for name, value in parsed.items()
    }


def text_of(arguments: dict[str, Any], name: str) -> str | None:
    """A text among arguments; None without one."""
    value = arguments.get(name)
    return value if isinstance(value, str) else None


def table_of(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    """A table among arguments; empty without one."""
    value = arguments.get(name)
    return value if isinstance(value, dict) else {}


def _of_table(table: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in table.items()}


def _plain(value: Any) -> Any:
    """A value with texts in place of bytes; the decoder bounds how deep it is."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == _KEYS and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True).decode(errors="replace")
        except ValueError:
            pass
    return _of_table(value)
