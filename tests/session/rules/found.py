"""What the rules find in a script, or in a capture."""

from __future__ import annotations

from pathlib import Path

import amqpsniff
from tests.session.events import Row
from tests.session.script import Script, feed


def findings(text: str | Script) -> list[Row]:
    """The findings of a script; packets are numbered as the script numbers them."""
    script = text if isinstance(text, Script) else Script(text)
    fed = feed(script)
    rows: list[Row] = fed.engine.take("findings").to_pylist()
    for row in rows:
        for name in ("packet_number", "last_packet_number", "cause_packet_number"):
            row[name] = fed.numbers.get(row[name])
        if row["packet_number"] is not None:  # evidence: a packet, and the time of that packet
            assert row["ts_ns"] == script.packets[row["packet_number"] - 1].ts_ns, row
    return rows


def found(text: str | Script, code: str) -> Row | None:
    """The first finding of a code in a script, or None."""
    return next((row for row in findings(text) if row["code"] == code), None)


def details(text: str | Script, code: str) -> list[str]:
    """The details of all findings of a code."""
    return [row["detail"] for row in findings(text) if row["code"] == code]


def of_capture(path: Path) -> list[Row]:
    """The findings of a capture."""
    batches = amqpsniff.open(str(path)).batches("findings")
    return [row for batch in batches for row in batch.to_pylist()]
