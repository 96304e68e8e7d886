"""Values of columns as Python has them; any one value as JSON text, the slow way, for types that
tables of ours do not have.

The rules are those of the table contract: octets that are not UTF-8 are `{"base64": …}`, timestamps
RFC 3339, decimals numbers with their digits, floats that JSON has no number for strings.
"""

from __future__ import annotations

import base64
import json
import math
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any


def values(batch: Any, name: str) -> list[Any]:
    """A column as Python values; repeated strings are one object."""
    column = batch.column(name)
    dictionary = getattr(column, "dictionary", None)
    if dictionary is None:
        return column.to_pylist()  # type: ignore[no-any-return]
    texts = dictionary.to_pylist()
    return [None if code is None else texts[code] for code in column.indices.to_pylist()]


def json_text(value: Any) -> str:
    """A Python value, as Arrow's `to_pylist` gives it, as JSON text."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, (bool, int)):
        return json.dumps(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else json.dumps(_infinite(value))
    if isinstance(value, Decimal):
        return f"{value:f}" if value.is_finite() else json.dumps(str(value))
    if isinstance(value, bytes):
        return octets_text(value)
    if isinstance(value, dict):
        fields = (f"{json_text(str(name))}:{json_text(one)}" for name, one in value.items())
        return f"{{{','.join(fields)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(json_text, value))}]"
    if isinstance(value, datetime):
        return json.dumps(_rfc3339(value))
    if isinstance(value, (date, time)):
        return json.dumps(value.isoformat())
    return json_text(str(value))


def octets_text(octets: bytes) -> str:
    """Octets as JSON text: a string when they are UTF-8, else `{"base64": …}`."""
    try:
        return json.dumps(octets.decode(), ensure_ascii=False)
    except UnicodeDecodeError:
        return f'{{"base64":"{base64.b64encode(octets).decode()}"}}'


def _infinite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _rfc3339(value: datetime) -> str:
    """With a Z where the zone is known; a time of no zone has none."""
    text = value.astimezone(timezone.utc) if value.tzinfo else value
    return text.replace(tzinfo=None).isoformat(timespec="microseconds") + (
        "Z" if value.tzinfo else ""
    )
