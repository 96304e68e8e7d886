"""The evidence of a diagnosis: its form, its frames, its bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.analysis import evidence
from tests.cli.running import process, run
from tests.conftest import REPO, SAMPLES, own_captures
from tests.thorough import some


def evidence_of(path: Path, **part: Any) -> dict[str, Any]:
    capture = amqpsniff.open(path)
    return capture.evidence(capture.diagnose(**part))


def places(document: dict[str, Any]) -> list[dict[str, Any]]:
    """All places, of consequences too."""

    def of(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [place for one in cases for place in [*one["places"], *of(one["consequences"])]]

    return of(document["cases"])


@pytest.mark.parametrize("path", some([*own_captures().values()], 2), ids=lambda path: path.name)
def test_every_document_has_the_form(path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(evidence.SCHEMA.read_text(encoding="utf-8"))
    _close(schema)
    document = json.loads(json.dumps(evidence_of(path)))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    for place in places(document):
        assert len(place["frames"]) <= 3 * (evidence.BEFORE + evidence.AFTER) + evidence.MAX_SHOWN


def _close(schema: Any) -> None:
    """Refuse keys that the schema does not name: each is documented."""
    if isinstance(schema, dict):
        if "required" in schema:
            assert set(schema["required"]) == set(schema["properties"])
            schema["additionalProperties"] = False
        for one in list(schema.values()):
            _close(one)


def test_frames_show_what_was_found() -> None:
    document = evidence_of(SAMPLES / "pika_mix.pcap", only="acknowledgement-invalid")
    (place,) = places(document)
    frames = [(one["packet_number"], one["role"], one["method"]) for one in place["frames"]]
    numbers = [number for number, *_ in frames]
    assert numbers == sorted(numbers)
    assert (place["packet_number"], "shown", "basic.ack") in frames
    assert frames[-1][1] == "after"
    assert {one["channel"] for one in place["frames"]} <= {0, place["channel"]}


def test_causes_are_above_their_consequences() -> None:
    document = evidence_of(SAMPLES / "pika_mix.pcap")
    case = next(one for one in document["cases"] if one["code"] == "acknowledgement-invalid")
    (consequence,) = case["consequences"]
    assert consequence["code"] == "channel-closed-by-broker"
    (place,) = consequence["places"]
    assert place["cause_packet_number"] == case["places"][0]["packet_number"]
    shown = [one["packet_number"] for one in place["frames"] if one["role"] == "shown"]
    assert shown == [place["cause_packet_number"], place["packet_number"]]


def test_secrets_and_bounds() -> None:
    text = json.dumps(evidence_of(SAMPLES / "pika_mix.pcap"))
    assert "s3cret" not in text
    assert "[redacted]" in text
    path = REPO / "tests/captures/own/violations.pcap"
    document = evidence_of(path)
    assert any(one["places_left_out"] for one in document["cases"])
    assert max(len(one["places"]) for one in document["cases"]) == evidence.MAX_PLACES
    assert len(json.dumps(document)) < 2_000_000


def test_command() -> None:
    name = SAMPLES / "pika_mix.pcap"
    result = run("diagnose", name, "--format", "json", "--evidence")
    assert (result.code, result.err) == (0, "")
    assert json.loads(result.out) == evidence_of(name)
    assert run("diagnose", name, "--evidence").code == 2
    piped = process("diagnose", "-", "--format", "json", "--evidence", octets=name.read_bytes())
    assert piped.code == 2
    assert "read" in piped.err
