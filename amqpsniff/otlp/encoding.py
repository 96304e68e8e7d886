"""Traces as files: OTLP/JSON, a line for each batch, or protobuf.

A file of protobuf is one `TracesData`: messages of protobuf that follow each other are one message
with all that they hold, so that it is written batch by batch.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from typing import IO, Any

from amqpsniff.errors import UsageError
from amqpsniff.installation import how_to_add

JSON, PROTOBUF = "json", "protobuf"
_IDS = ("traceId", "spanId", "parentSpanId")


def write(traces: Iterable[dict[str, Any]], sink: IO[bytes], form: str) -> int:
    """Write traces in a form; the number of spans."""
    encode = _protobuf() if form == PROTOBUF else _line
    number = 0
    for trace in traces:
        number += sum(
            len(scope["spans"])
            for resource in trace["resourceSpans"]
            for scope in resource["scopeSpans"]
        )
        sink.write(encode(trace))
    return number


def _line(traces: dict[str, Any]) -> bytes:
    return json.dumps(traces, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"


def _protobuf() -> Any:
    """Encodes by the official definitions; raises UsageError where they are not installed."""
    try:
        from google.protobuf.json_format import ParseDict
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ImportError:
        raise UsageError(
            f"OTLP as protobuf needs more: {how_to_add('otlp')}; JSON does not"
        ) from None

    def encode(traces: dict[str, Any]) -> bytes:
        octets: bytes = ParseDict(_with_bytes(traces), TracesData()).SerializeToString()
        return octets

    return encode


def _with_bytes(value: Any) -> Any:
    """The same with ids as protobuf's own JSON has bytes; OTLP/JSON has hexadecimal digits."""
    if isinstance(value, list):
        return [_with_bytes(item) for item in value]
    if isinstance(value, dict):
        return {
            name: b64encode(bytes.fromhex(item)).decode() if name in _IDS else _with_bytes(item)
            for name, item in value.items()
        }
    return value
