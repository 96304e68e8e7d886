"""Frames of AMQP 1.0 as independent decoders read them in real captures: Qpid Proton's and Azure's.

`expected` gives the rows that were made with them; `plain` puts arguments of ours into their form.
"""

import gzip
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

CAPTURES = Path(__file__).parents[2] / "captures" / "amqp10"
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def expected(name: str) -> dict[str, Any]:
    """The rows of a capture."""
    with gzip.open(CAPTURES / f"{name}.expected.json.gz") as file:
        rows: dict[str, Any] = json.load(file)
    return rows


def capture(name: str) -> Path:
    """The path of a capture."""
    return next(CAPTURES.glob(f"{name}.pcap*"))


def plain(value: Any, name: str = "") -> Any:
    """A value of ours as theirs: field names with `-`, moments in milliseconds."""
    if isinstance(value, dict):
        typed = name == "" or "type" in value
        return {
            (key.replace("_", "-") if typed else key): plain(one, key)
            for key, one in value.items()
            if key not in ("payload_bytes", "payload")
        }
    if isinstance(value, list):
        return [plain(one, name or "list") for one in value]
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        return round(datetime.fromisoformat(value).astimezone(UTC).timestamp() * 1000)
    return value
