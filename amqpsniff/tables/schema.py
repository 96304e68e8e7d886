"""The schemas of the tables: the names and types that every command, file and API serves."""

from typing import Final

import pyarrow as pa

from amqpsniff.errors import UsageError

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_INT64, _INT32, _BOOL, _STRING = pa.int64(), pa.int32(), pa.bool_(), pa.string()


def _schema(text: str) -> pa.Schema:
    """A schema from lines of `type: names`, in order."""
    types = {
        "int64": _INT64,
        "int32": _INT32,
        "bool": _BOOL,
        "string": _STRING,
        "binary": pa.binary(),
        "timestamp": TIMESTAMP,
    }
    fields = []
    for line in text.split("\n"):
        kind, _, names = line.strip().partition(": ")
        fields += [pa.field(name, types[kind]) for name in names.split()]
    return pa.schema(fields)


FRAMES: Final = _schema(
    """string: capture
    int64: packet_number ts_ns
    timestamp: timestamp
    string: connection_id client server sender
    int64: stream_offset
    int32: channel
    string: frame_type
    int64: size
    string: method arguments exchange routing_key queue consumer_tag reply_text
    int64: delivery_tag
    int32: reply_code
    int64: response_packet_number response_ns"""
)

MESSAGES: Final = _schema(
    """string: capture
    int64: packet_number ts_ns
    timestamp: timestamp
    string: connection_id client server sender
    int32: channel
    int64: last_packet_number
    string: method exchange routing_key consumer_tag reply_text
    int64: delivery_tag
    int32: reply_code
    bool: redelivered mandatory immediate
    string: queue
    int64: publish_number
    string: content_type content_encoding correlation_id reply_to expiration message_id type
    string: user_id app_id cluster_id
    int32: delivery_mode priority
    timestamp: message_timestamp
    string: headers
    int64: body_size body_captured
    binary: body
    string: body_sha256 status outcome
    int64: outcome_packet_number outcome_ns"""
)

DELIVERIES: Final = _schema(
    """int32: transfers delivery_count
    int64: message_format message_bytes
    string: tag address annotations state state_error settled_by transaction"""
)
"""Columns of messages that only AMQP 1.0 fills: made only if they are named."""

_LINKED = _schema(
    """int64: published_packet_number
    string: published_connection_id
    int64: published_ns delivery_number
    string: link_confidence
    int64: request_packet_number
    string: request_connection_id
    int64: request_ns
    bool: reply_late"""
)

_MEANINGS = _schema(
    """string: framework operation error_type message_key conversation_key parent_key
    string: trace_id span_id
    int64: retry_count
    timestamp: not_before"""
)

_CLIENTS = _schema("string: client_framework client_application")

_PROCESSES = _schema(
    """int64: pid
    string: process container pod
    int64: server_pid
    string: server_process server_container server_pod"""
)

PROCESSES: Final = frozenset(_PROCESSES.names)
"""Columns of connections that packet comments fill: made only where they are named."""

MEANINGS: Final = frozenset((*_MEANINGS.names, *_CLIENTS.names))
"""Columns that packs fill: made only where they are named."""

LINKED: Final = frozenset(_LINKED.names)
"""Columns of messages that link them across connections: made only where they are named."""

OUTCOME: Final = frozenset("publish_number outcome outcome_packet_number outcome_ns".split())
"""Columns of messages for which the tracker follows what becomes of them."""

CONNECTIONS: Final = _schema(
    """string: capture connection_id client server
    int64: first_packet_number last_packet_number start_ns end_ns
    timestamp: start end
    string: protocol
    bool: midstream
    string: vhost user mechanism client_product client_version client_platform connection_name
    string: server_product server_version
    int32: channel_max
    int64: frame_max
    int32: heartbeat channels
    int64: client_packets server_packets client_bytes server_bytes
    int64: published delivered acknowledged retransmissions gaps lost_bytes blocked_ns
    string: closed_by
    int32: close_code
    string: close_text close_method owed
    string: tls_version tls_cipher tls_server_name"""
)

CHANNELS: Final = _schema(
    """string: capture connection_id client server
    int32: channel incarnation
    int64: opened_packet_number closed_packet_number start_ns end_ns
    timestamp: start end
    string: mode
    int32: prefetch_count
    int64: published confirmed returned delivered acknowledged
    int64: unsettled_max unsettled_end unconfirmed_max unconfirmed_end consumers
    string: closed_by
    int32: close_code
    string: close_text close_method
    int32: server_channel
    int64: client_window client_window_min server_window server_window_min stalled_ns"""
)

LINKS: Final = _schema(
    """string: capture connection_id client server
    int32: channel incarnation
    string: link role
    int64: client_handle server_handle
    int64: attached_packet_number detached_packet_number start_ns end_ns
    timestamp: start end
    string: source target queue exchange routing_key
    bool: dynamic
    string: durable expiry_policy distribution_mode filter
    string: sender_settle_mode receiver_settle_mode
    int64: max_message_size
    bool: refused
    int64: deliveries accepted rejected released modified presettled aborted
    int64: unsettled_max unsettled_end message_bytes flows drains
    int64: delivery_count credit_granted credit_max credit_end starved_ns
    string: closed_by close_condition close_text
    bool: suspended"""
)

FINDINGS: Final = _schema(
    """string: capture
    int64: packet_number ts_ns
    timestamp: timestamp
    string: connection_id client server
    int32: channel
    string: code severity title detail advice
    int64: count last_packet_number
    string: confidence cause_code
    int64: cause_packet_number"""
)

TABLES: Final[dict[str, pa.Schema]] = {
    "frames": FRAMES,
    "messages": MESSAGES,
    "connections": CONNECTIONS,
    "channels": CHANNELS,
    "links": LINKS,
    "findings": FINDINGS,
}

LINKED_MESSAGES: Final = pa.schema([*MESSAGES, *_LINKED])
"""The messages of a batch that links them."""


def batch_schema(table: str, *, links: bool = False, frameworks: bool = False) -> pa.Schema:
    """The schema of a table that a batch writes, with columns of links and of packs or without."""
    further = {"messages": [*(_MEANINGS if frameworks else ()), *(_LINKED if links else ())]}
    if frameworks:
        further["connections"] = list(_CLIENTS)
    return pa.schema([*schema_of(table), *further.get(table, ())])


EVERYTHING: Final = TABLES | {
    "messages": pa.schema([*LINKED_MESSAGES, *DELIVERIES, *_MEANINGS]),
    "connections": pa.schema([*CONNECTIONS, *_CLIENTS, *_PROCESSES]),
}
"""The schemas with all columns that can be named."""

IN_EVERY_ROW: Final = {
    "frames": frozenset(
        "packet_number connection_id client server stream_offset channel frame_type size".split()
    )
}
"""Columns that are never null, by table, where it is worth while to tell Parquet so: it need not
note then for each row that it has a value, which takes 3 % of the time of an export."""

RENAMED: Final = {
    "grade": "confidence",
    "match": "link_confidence",
    "late": "reply_late",
    "client_octets": "client_bytes",
    "server_octets": "server_bytes",
    "lost_octets": "lost_bytes",
}
"""Columns that had other names before: the old one to the new one."""

JSON_COLUMNS: Final = frozenset(("arguments", "headers", "annotations", "filter"))
"""String columns that hold one JSON object each."""


ROWS_FORM: Final = 5
"""Number of the rows that captures give: raised whenever rows, columns or findings of any capture
change, or the layout of archives. An archive with another value is decoded again."""


def schema_of(table: str, *, everything: bool = False) -> pa.Schema:
    """The schema of a table by name; the `UsageError` for another name lists the tables.

    With `everything` also the columns that are made only where they are named.
    """
    try:
        return EVERYTHING[table] if everything else TABLES[table]
    except KeyError:
        tables = ", ".join(TABLES)
        raise UsageError(f"no table `{table}`; the tables are {tables}") from None
