"""Golden rows of our own: what captures without another decoder's rows gave when reviewed.

`python -m tests.golden.rows` writes them anew; look at the difference before you commit it. Only
columns that say what a frame, message or finding is are kept, nulls left out, a row a line.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import amqpsniff
from tests.conftest import SAMPLES, SHARED

KEPT = Path(__file__).parent / "kept"
OWN = SHARED / "captures" / "own"

COLUMNS = {
    "frames": (
        "packet_number", "client", "sender", "stream_offset", "channel", "frame_type", "size",
        "method", "arguments",
    ),
    "messages": (
        "packet_number", "last_packet_number", "client", "sender", "channel", "method", "exchange",
        "routing_key", "body_size", "body_captured", "body_sha256", "status", "headers",
        "content_type", "message_id",
    ),
    "findings": ("packet_number", "client", "channel", "code", "detail", "count"),
}  # fmt: skip


def captures() -> dict[str, Path]:
    """Captures that have golden rows here, by name."""
    own = ("amqp10", "violations")
    samples = ("amqplib08", "v08_v09", "zerowindow")
    return {name: OWN / f"{name}.pcap" for name in own} | {
        name: SAMPLES / f"{name}.pcap" for name in samples
    }


def lines(path: Path) -> Iterator[str]:
    """Golden rows of a capture: a JSON array of the table and a row's columns a line."""
    kept: dict[str, list[dict[str, Any]]] = {table: [] for table in COLUMNS}
    for table, batch in amqpsniff.open(path, body_sha256=True).tables(*COLUMNS):
        kept[table] += batch.select(COLUMNS[table]).to_pylist()
    for table, rows in kept.items():
        for row in rows:
            shown = {name: value for name, value in row.items() if value is not None}
            yield json.dumps([table, shown], ensure_ascii=False)


def kept(name: str) -> list[str]:
    """The golden rows that are kept of a capture."""
    return gzip.decompress((KEPT / f"{name}.ndjson.gz").read_bytes()).decode().splitlines()


def rewrite() -> None:
    """Write the golden rows of every capture that is there."""
    KEPT.mkdir(exist_ok=True)
    for name, path in captures().items():
        if path.exists():
            text = "".join(f"{line}\n" for line in lines(path))
            (KEPT / f"{name}.ndjson.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    rewrite()
