"""Journeys of messages as spans: trees, ids, times, attributes, and files that others read."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.otlp import conventions
from tests.cli.running import process, run
from tests.conftest import REPO, SAMPLES, own_captures
from tests.thorough import some

PIKA = SAMPLES / "pika_mix.pcap"
TRACED = REPO / "tests/captures/incidents/x_traceparent.pcap"

Span = dict[str, Any]


def spans(path: Path, **part: Any) -> list[Span]:
    return [
        span
        for one in amqpsniff.open(path).traces(**part)
        for resource in one["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def said(span: Span) -> dict[str, Any]:
    """The attributes of a span."""
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def test_the_journey_of_a_message() -> None:
    found = spans(PIKA, message_id="m13")
    assert len({span["traceId"] for span in found}) == 1
    names = Counter(span["name"] for span in found)
    assert names == {
        "publish orders": 1, "confirm orders": 1, "queue orders": 2, "deliver orders": 2,
        "requeue orders": 1, "ack orders": 1,
    }  # fmt: skip
    by_id = {span["spanId"]: span for span in found}
    assert len(by_id) == len(found)
    (publish,) = (span for span in found if span["kind"] == conventions.PRODUCER)
    assert "parentSpanId" not in publish
    for span in found:
        if span["name"].startswith(("confirm", "queue", "deliver")):
            assert by_id[span["parentSpanId"]] is publish
        elif span is not publish:
            assert by_id[span["parentSpanId"]]["name"] == "deliver orders"
    times = [int(publish[name]) for name in ("startTimeUnixNano", "endTimeUnixNano")]
    (row,) = amqpsniff.open(PIKA).messages(message_id="m13", method="publish")
    assert times == [row.ts_ns, row.ts_ns + row.outcome_ns]
    assert said(publish)["messaging.message.id"] == "m13"
    assert said(publish)["amqp.packet_number"] == str(row.packet_number)
    failed = [said(span)["error.type"] for span in found if span.get("status")]
    assert failed == ["requeued", "requeued"]


def test_a_traceparent_is_the_parent() -> None:
    found = spans(TRACED)
    publish = found[0]
    assert publish["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4730"
    assert publish["parentSpanId"] == "00f067aa0ba902b7"
    assert publish["traceState"] == "vendor=1"
    deliveries = [span for span in found if span["name"].startswith("deliver")]
    own = {span["spanId"] for span in found}
    assert deliveries
    assert all(span["parentSpanId"] in own for span in deliveries)


@pytest.mark.parametrize("path", some([*own_captures().values()], 2), ids=lambda path: path.name)
def test_every_capture(path: Path) -> None:
    """Spans end after they begin, parents are there, and a second run gives the same."""
    found = spans(path)
    assert found == spans(path)
    for span in found:
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        assert len(bytes.fromhex(span["traceId"])) == 16
        assert len(bytes.fromhex(span["spanId"])) == 8
        assert all(one["value"] for one in span["attributes"])
    rows = amqpsniff.open(path).messages(where="method <> 'basic.return' AND ts_ns IS NOT NULL")
    assert sum(span["kind"] in (4, 5) for span in found) == len(list(rows))


def test_services_are_clients() -> None:
    names = {
        attribute["value"]["stringValue"]
        for one in amqpsniff.open(PIKA).traces()
        for resource in one["resourceSpans"]
        for attribute in resource["resource"]["attributes"]
    }
    assert "order-service-1" in names


def test_files(tmp_path: Path) -> None:
    lines, octets = tmp_path / "spans.json", tmp_path / "spans.pb"
    words = ("export", TRACED, "-t", "messages", "--format", "otlp")
    assert run(*words, "-o", lines) == (0, "", "")
    documents = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    assert documents == list(amqpsniff.open(str(TRACED)).traces())
    assert run(*words).out == lines.read_text("utf-8")

    trace_pb2 = pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2")
    assert run(*words, "-o", octets) == (0, "", "")
    data = trace_pb2.TracesData.FromString(octets.read_bytes())
    read = as_otlp_json(data)
    assert read["resourceSpans"] == [one for each in documents for one in each["resourceSpans"]]


def as_otlp_json(message: Any) -> Any:
    """A message of protobuf as OTLP/JSON: its ids are hexadecimal, its enumerations numbers."""
    from google.protobuf.json_format import MessageToDict

    def hexadecimal(value: Any) -> Any:
        if isinstance(value, list):
            return [hexadecimal(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {
            name: base64.b64decode(one).hex() if name.endswith(("Id", "_id")) else hexadecimal(one)
            for name, one in value.items()
        }

    return hexadecimal(MessageToDict(message, use_integers_for_enums=True))


def test_what_cannot_be() -> None:
    assert run("export", PIKA, "-t", "frames", "--format", "otlp").code == 2
    assert run("export", PIKA, "-t", "messages", "--format", "otlp", "--limit", "3").code == 2
    piped = process("export", "-", "-t", "messages", "--format", "otlp", octets=PIKA.read_bytes())
    assert piped.code == 0
    assert json.loads(piped.out.splitlines()[0])["resourceSpans"]


def test_every_attribute_is_documented() -> None:
    page = (REPO / "docs" / "otlp.md").read_text("utf-8")
    for column, name in conventions.ATTRIBUTES.items():
        assert f"| `{column}` | `{name}` |" in page
    assert conventions.VERSION in page
