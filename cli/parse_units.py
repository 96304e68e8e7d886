"""Amounts as a person types them: sizes in bytes, spans of time."""

from __future__ import annotations

import re

from amqpsniff.analysis.times import SECOND_NS, nanoseconds
from amqpsniff.errors import UsageError

_SIZE = re.compile(r"(\d{1,15})(?:\.(\d{1,6}))?\s*([kMGT]?)(i?)B?", re.IGNORECASE)
_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def size(text: str, option: str) -> int:
    """Bytes: `500000`, `100MB`, `1.5G`, `64MiB`; raises UsageError for what is none."""
    match = _SIZE.fullmatch(text.strip())
    if match:
        whole, digits, prefix, binary = match.groups()
        base = 1024 if binary else 1000
        octets = round(float(f"{whole}.{digits or 0}") * float(base ** _PREFIXES[prefix.lower()]))
        if octets > 0:
            return octets
    raise UsageError(f"--{option} {text!r} is no size; write 500kB, 100MB or 2GB")


def span(text: str, option: str) -> float:
    """Seconds: `30`, `30s`, `1m30s`, `1.5h`; raises UsageError for what is none."""
    found = nanoseconds(text)
    if found is None:
        raise UsageError(f"--{option} {text!r} is no span of time; write 30s, 5m or 1h")
    return found / SECOND_NS
