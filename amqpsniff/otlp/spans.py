"""Rows of messages as spans, in the form of OTLP/JSON.

A publish is a span until its confirm, which is a span inside it. A delivery is a span until it is
settled, and the time in the queue one before it; both hang below the publish, if that is known by
its link. A message with a `traceparent` header belongs to that trace, and its publish hangs below
the span which that names; else the publish is the root of a trace of its own.

Ids are hashes of values of the rows, so that a second run gives the same, and no row waits for
another. A publish is identified by connection, packet, and the values that deliveries repeat: of
messages in one packet that are alike in id, correlation id and size, the spans are one.

Source: https://github.com/open-telemetry/opentelemetry-proto, trace.proto; W3C Trace Context §3.2.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from amqpsniff.otlp.conventions import (
    ATTRIBUTES,
    CONFIRM,
    DELIVER,
    FAILED,
    GET,
    OPERATIONS,
    PUBLISH,
    QUEUED,
    SCHEMA_URL,
    SETTLE,
    SYSTEM,
    JourneyStep,
)
from amqpsniff.spec import DELIVERIES, PUBLISHES
from amqpsniff.tables.values import rows_of

COLUMNS = (
    *ATTRIBUTES, "ts_ns", "method", "client", "server", "outcome_ns", "headers", "reply_text",
    "published_packet_number", "published_connection_id", "published_ns",
)  # fmt: skip
"""Columns of messages that are read."""

ERROR = 2
"""A status code, as in trace.proto."""

MAX_TRACESTATE = 512
"""Characters of a `tracestate`, as W3C Trace Context §3.3.1.1 has them."""

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?")
_DELIVERIES = dict.fromkeys(DELIVERIES, DELIVER) | {"basic.get-ok": GET}

Row = dict[str, Any]
Span = dict[str, Any]


def traces(
    batches: Iterable[Any], services: Mapping[str, str], version: str
) -> Iterator[dict[str, Any]]:
    """A `TracesData` of OTLP/JSON for each batch of `messages` that has spans.

    `services` are names of clients by connection id; others are called by their address. `version`
    is that of the program.
    """
    for batch in batches:
        spans: dict[str, list[Span]] = defaultdict(list)
        for row in rows_of(batch):
            service = services.get(row["connection_id"]) or (row["client"] or "").rpartition(":")[0]
            spans[service] += spans_of(row)
        scope = {"name": "amqpsniff", "version": version}
        resource_spans = [
            {
                "resource": {"attributes": _attributes({"service.name": service or "unknown"})},
                "scopeSpans": [{"scope": scope, "spans": listed, "schemaUrl": SCHEMA_URL}],
                "schemaUrl": SCHEMA_URL,
            }
            for service, listed in spans.items()
            if listed
        ]
        if resource_spans:
            yield {"resourceSpans": resource_spans}


def spans_of(row: Row) -> list[Span]:
    """The spans of one message; empty for a message without a time, and for a return."""
    if row["ts_ns"] is None:
        return []
    if row["method"] in PUBLISHES:
        return _published(row)
    step = _DELIVERIES.get(row["method"])
    return [] if step is None else _delivered(row, step)


def _published(row: Row) -> list[Span]:
    publish = row["connection_id"], row["packet_number"]
    trace_id, parent, state = _context(row, publish)
    span_id = _publish_id(trace_id, row, publish)
    begin, end = row["ts_ns"], row["ts_ns"] + (row["outcome_ns"] or 0)
    spans = [_span(PUBLISH, row, (trace_id, span_id, parent, state), begin, end)]
    if row["outcome_ns"] is not None:
        ids = trace_id, _id(8, trace_id, span_id, "confirm"), span_id, state
        spans.append(_span(CONFIRM, row, ids, begin, end))
    return spans


def _delivered(row: Row, step: JourneyStep) -> list[Span]:
    published = row["published_packet_number"] is not None
    delivery = row["connection_id"], row["packet_number"]
    publish = delivery
    if published:
        publish = row["published_connection_id"], row["published_packet_number"]
    trace_id, parent, state = _context(row, publish)
    if published:
        parent = _publish_id(trace_id, row, publish)
    tag = row["delivery_tag"]
    span_id = _id(8, trace_id, "deliver", *delivery, row["channel"], tag)
    begin, end = row["ts_ns"], row["ts_ns"] + (row["outcome_ns"] or 0)
    spans = []
    if published and row["published_ns"] is not None:
        ids = trace_id, _id(8, trace_id, span_id, "queue"), parent, state
        spans.append(_span(QUEUED, row, ids, begin - row["published_ns"], begin))
    spans.append(_span(step, row, (trace_id, span_id, parent, state), begin, end))
    operation = OPERATIONS.get(row["outcome"] or "")
    if operation is not None and row["outcome_ns"] is not None:
        ids = trace_id, _id(8, trace_id, span_id, "settle"), span_id, state
        spans.append(_span(SETTLE._replace(operation=operation), row, ids, end, end))
    return spans


def _context(row: Row, packet: tuple[Any, Any]) -> tuple[str, str, str]:
    """Trace id, id of the parent span or "", and `tracestate`."""
    headers = json.loads(row["headers"]) if row["headers"] else {}
    header = headers.get("traceparent")
    match = _TRACEPARENT.fullmatch(header) if isinstance(header, str) else None
    if match and match[1] != "0" * 32 and match[2] != "0" * 16:
        state = headers.get("tracestate")
        return match[1], match[2], state[:MAX_TRACESTATE] if isinstance(state, str) else ""
    return _id(16, "trace", *_identity(row, packet)), "", ""


def _publish_id(trace_id: str, row: Row, packet: tuple[Any, Any]) -> str:
    return _id(8, trace_id, "publish", *_identity(row, packet))


def _identity(row: Row, packet: tuple[Any, Any]) -> tuple[Any, ...]:
    """The values that a publish and its deliveries have in common."""
    return *packet, row["message_id"], row["correlation_id"], row["body_size"]


def _id(octets: int, *parts: Any) -> str:
    """An id in hexadecimal digits; never all zeros, which would be no id."""
    digest = sha256(json.dumps(parts).encode()).digest()[:octets]
    return (digest if any(digest) else b"\1" * octets).hex()


def _span(
    step: JourneyStep, row: Row, ids: tuple[str, str, str, str], start_ns: int, end_ns: int
) -> Span:
    trace_id, span_id, parent, state = ids
    attributes: Row = {**SYSTEM, "messaging.operation.name": step.operation}
    if step.type is not None:
        attributes["messaging.operation.type"] = step.type
    attributes |= {name: row[column] for column, name in ATTRIBUTES.items()}
    for side, name in (("server", row["server"]), ("client", row["client"])):
        host, _, port = (name or "").rpartition(":")
        attributes[f"{side}.address"] = host.strip("[]") or None
        attributes[f"{side}.port"] = int(port) if port.isdecimal() else None
    failed = row["outcome"] in FAILED and step not in (QUEUED,)
    if failed:
        attributes["error.type"] = row["outcome"]
    destination = row["exchange"] or row["queue"] or row["routing_key"] or ""
    span = {
        "traceId": trace_id,
        "spanId": span_id,
        "name": f"{step.operation} {destination}".strip(),
        "kind": step.kind,
        "startTimeUnixNano": str(start_ns),
        "endTimeUnixNano": str(max(start_ns, end_ns)),
        "attributes": _attributes(attributes),
    }
    if parent:
        span["parentSpanId"] = parent
    if state:
        span["traceState"] = state
    if failed:
        span["status"] = {"code": ERROR, "message": row["reply_text"] or row["outcome"]}
    return span


def _attributes(attributes: Mapping[str, Any]) -> list[Row]:
    """Attributes with their types; null ones are left out."""
    return [
        {"key": key, "value": _value(value)}
        for key, value in attributes.items()
        if value is not None
    ]


def _value(value: Any) -> Row:
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}
