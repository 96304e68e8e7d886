"""Golden rows of our own, of all five tables: what captures gave when they were reviewed.

`python -m tests.golden.rows` writes them anew; look at the difference before you commit it. Columns
that say the same as others are not kept, nulls left out, a row a line. Of captures of others, which
are many, digests are kept: how many frames and messages there are, and a hash of their rows.
"""

import contextlib
import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import amqpsniff
from amqpsniff.errors import NotACapture
from tests.conftest import CAPTURES, SHARED, own_capture

KEPT = Path(__file__).parent / "kept"
PUBLIC = SHARED / "captures" / "public"
DIGESTS = Path(__file__).parent / "digests.json"

Columns = dict[str, tuple[str, ...]]

COLUMNS: Columns = {
    "frames": (
        "packet_number", "client", "sender", "stream_offset", "channel", "frame_type", "size",
        "method", "arguments", "response_packet_number", "response_ns",
    ),
    "messages": (
        "packet_number", "last_packet_number", "client", "sender", "channel", "method", "exchange",
        "routing_key", "delivery_tag", "redelivered", "queue", "publish_number", "body_size",
        "body_captured", "body_sha256", "status", "headers", "content_type", "message_id",
        "outcome", "outcome_packet_number", "outcome_ns", "published_packet_number", "published_ns",
        "link_confidence", "delivery_number", "request_packet_number", "request_ns", "reply_late",
    ),
    "connections": (
        "connection_id", "client", "server", "first_packet_number", "last_packet_number",
        "protocol", "midstream", "vhost", "user", "mechanism", "client_product", "client_version",
        "client_platform", "connection_name", "server_product", "server_version", "channel_max",
        "frame_max", "heartbeat", "channels", "client_packets", "server_packets", "client_bytes",
        "server_bytes", "published", "delivered", "acknowledged", "retransmissions", "gaps",
        "lost_bytes", "blocked_ns", "closed_by", "close_code", "close_text", "close_method",
    ),
    "channels": (
        "client", "channel", "incarnation", "opened_packet_number", "closed_packet_number", "mode",
        "prefetch_count", "published", "confirmed", "returned", "delivered", "acknowledged",
        "unsettled_max", "unsettled_end", "unconfirmed_max", "unconfirmed_end", "consumers",
        "closed_by", "close_code", "close_text", "close_method", "server_channel", "client_window",
        "client_window_min", "server_window", "server_window_min", "stalled_ns",
    ),
    "links": (
        "client", "channel", "incarnation", "link", "role", "client_handle", "server_handle",
        "attached_packet_number", "detached_packet_number", "source", "target", "queue",
        "exchange", "routing_key", "dynamic", "durable", "expiry_policy", "distribution_mode",
        "filter", "sender_settle_mode", "receiver_settle_mode", "max_message_size", "refused",
        "deliveries", "accepted", "rejected", "released", "modified", "presettled", "aborted",
        "unsettled_max", "unsettled_end", "message_bytes", "flows", "drains", "delivery_count",
        "credit_granted", "credit_max", "credit_end", "starved_ns", "closed_by",
        "close_condition", "close_text", "suspended",
    ),
    "findings": (
        "packet_number", "last_packet_number", "client", "channel", "code", "detail", "count",
        "cause_code", "cause_packet_number",
    ),
}  # fmt: skip

DIGESTED: Columns = {
    "frames": (*COLUMNS["frames"], "ts_ns"),
    "messages": (
        *COLUMNS["messages"], "content_encoding", "delivery_mode", "priority", "correlation_id",
        "reply_to", "expiration", "message_timestamp", "type", "user_id", "app_id", "cluster_id",
    ),
}  # fmt: skip

NAMES = (
    "TLSv1_3", "aiopika_multi", "aiopika_rpc", "amqp10", "amqplib08", "blocked", "bunny",
    "delayed_ack", "kombu", "late_consumer", "lost", "midstream", "node", "php_churn", "pika_mix",
    "snapped", "v08_v09", "violations", "zerowindow",
)  # fmt: skip


CASES = (
    "client_killed", "connect_unreachable", "half_open", "head_of_line", "proxy_detection",
    "published_after_fin", "tls_refused",
)  # fmt: skip
"""Cases of `tests/captures/cases` whose findings rest on TCP and TLS."""


def captures() -> dict[str, Path]:
    """Captures that have golden rows here, by name."""
    cases = {name: CAPTURES / "cases" / f"{name}.pcap.gz" for name in CASES}
    return {name: own_capture(name) for name in NAMES} | cases


def lines(path: Path, columns: Columns = COLUMNS) -> Iterator[str]:
    """Golden rows of a capture: a JSON array of the table and a row's columns a line."""
    kept: dict[str, list[dict[str, Any]]] = {table: [] for table in columns}
    capture = amqpsniff.open(path, body_sha256=True, reader="own")
    for table, batch in capture.tables(*columns, columns=columns):
        kept[table] += batch.select(columns[table]).to_pylist()
    for table, rows in kept.items():
        for row in rows:
            shown = {name: value for name, value in row.items() if value is not None}
            yield json.dumps([table, shown], ensure_ascii=False, default=str)


def digest(path: Path) -> list[int | str]:
    """How many frames and messages a capture has, and the hash of their rows."""
    rows = list(lines(path, DIGESTED))
    frames = sum(row.startswith('["frames"') for row in rows)
    return [frames, len(rows) - frames, hashlib.sha256("\n".join(rows).encode()).hexdigest()]


def digests() -> dict[str, list[int | str]]:
    """Digests of every capture of others that is there and is read here."""
    found = {}
    for path in sorted(PUBLIC.glob("*/*")):
        if path.is_file():
            with contextlib.suppress(NotACapture):
                found[path.relative_to(PUBLIC).as_posix()] = digest(path)
    return found


def kept_digests() -> dict[str, list[int | str]]:
    """The digests that are kept."""
    found: dict[str, list[int | str]] = json.loads(DIGESTS.read_text())
    return found


def kept(name: str) -> list[str]:
    """The golden rows that are kept of a capture."""
    return gzip.decompress((KEPT / f"{name}.ndjson.gz").read_bytes()).decode().splitlines()


def rewrite() -> None:
    """Write the golden rows of every capture, and digests where captures of others are there."""
    KEPT.mkdir(exist_ok=True)
    for name, path in captures().items():
        text = "".join(f"{line}\n" for line in lines(path))
        (KEPT / f"{name}.ndjson.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    if PUBLIC.exists():
        rows = ",\n".join(
            f"{json.dumps(name)}: {json.dumps(row)}" for name, row in digests().items()
        )
        DIGESTS.write_text(f"{{\n{rows}\n}}\n")


if __name__ == "__main__":
    rewrite()
