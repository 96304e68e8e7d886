"""Captures give the rows they gave when those were reviewed, and what they show is really there."""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.findings.catalogue import SUBJECTS
from tests.conftest import OWN
from tests.golden import rows

Row = dict[str, Any]

VIOLATIONS = OWN / "violations.pcap"

BROKEN = {kind.code for subject in ("frames", "methods", "contents") for kind in SUBJECTS[subject]}
"""Codes of what is wrong with frames; what follows from it is not compared here."""

# Title in violations.answers.txt, client, codes of the findings, the broker's close.
CONVERSATIONS: tuple[tuple[str, int, list[str], int | None], ...] = (
    ("frame payload == frame_max-8 (legal max)", 53066, [], None),
    ("frame payload == frame_max+1", 53096, ["frame-too-large"], 501),
    ("bad frame end 0x00", 53112, ["frame-end-wrong"], 501),
    ("wrong length (short by 1)", 53122, ["arguments-truncated", "frame-end-wrong"], 501),
    ("frame type 0 on ch1", 54472, ["frame-type-unknown"], 501),
    ("frame type 4 on ch1", 54474, ["frame-type-unusual"], 501),
    ("frame type 255 on ch1", 54532, ["frame-type-unknown"], 501),
    ("heartbeat frame type 8 on channel 1", 54548, ["heartbeat-malformed"], 505),
    ("heartbeat type 8 ch0 with payload", 54552, ["heartbeat-malformed"], 501),
    ("content header on channel 0", 53592, ["content-unexpected-frame"], 505),
    ("content body without header", 53668, ["content-unexpected-frame"], 505),
    ("body right after publish (no header)", 38100, ["content-interrupted"], 505),
    ("header class 50 != method class 60", 38110, ["content-class-wrong"], 505),
    ("header weight != 0", 38118, ["content-weight"], 505),
    ("body longer than header size", 38124, ["content-body-longer"], None),
    ("body shorter then new method (interleave)", 38134, ["content-body-shorter"], 505),
    ("empty body frame when size 0", 38144, ["content-unexpected-frame"], 505),
    ("two publishes interleaved on 2 channels (legal)", 38160, [], None),
    ("unknown class 99 method 10", 38164, ["method-unknown"], None),
    ("unknown method 60/99", 38176, ["method-unknown"], None),
    ("truncated args queue.declare", 38180, ["arguments-truncated"], 501),
    ("trailing args basic.qos", 38196, ["arguments-trailing"], 501),
    ("ack unknown delivery tag", 44326, [], 406),
    ("property flags undefined bit 0x0002", 49148, ["property-flags-undefined"], None),
)


@pytest.mark.parametrize("name", rows.captures())
def test_rows(name: str) -> None:
    assert list(rows.lines(rows.captures()[name])) == rows.kept(name)


@pytest.mark.parametrize("name", rows.kept_digests())
def test_rows_of_others(name: str) -> None:
    """Frames and messages, with their properties and bodies, of captures from public places."""
    path = rows.PUBLIC / name
    if not path.exists():
        pytest.skip("no such capture beside the repository (AMQPSNIFF_SHARED)")
    assert rows.digest(path) == rows.kept_digests()[name]


def test_every_capture_of_others_has_a_digest() -> None:
    if not rows.PUBLIC.exists():
        pytest.skip("no such captures beside the repository (AMQPSNIFF_SHARED)")
    assert set(rows.digests()) == set(rows.kept_digests())


@cache
def violations() -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
    """Frames and findings of each client."""
    frames: dict[str, list[Row]] = defaultdict(list)
    findings: dict[str, list[Row]] = defaultdict(list)
    sorted_into = {"frames": frames, "findings": findings}
    for table, batch in amqpsniff.open(VIOLATIONS).tables(*sorted_into):
        for row in batch.to_pylist():
            sorted_into[table][row["client"]].append(row)
    return frames, findings


@pytest.mark.parametrize(
    ("title", "port", "codes", "close"), CONVERSATIONS, ids=[row[0] for row in CONVERSATIONS]
)
def test_violations(title: str, port: int, codes: list[str], close: int | None) -> None:
    """Each breaks one rule; what we say of it is what the broker, by its answer, saw."""
    frames, findings = violations()
    client = f"127.0.0.1:{port}"
    assert sorted(row["code"] for row in findings[client] if row["code"] in BROKEN) == codes
    closing = [
        row
        for row in frames[client]
        if row["sender"] == "server" and row["method"] in ("connection.close", "channel.close")
    ]
    assert [row["reply_code"] for row in closing] == ([] if close is None else [close])
    answers = VIOLATIONS.with_name("violations.answers.txt").read_text(encoding="utf-8")
    (answer,) = (
        line
        for line in answers.splitlines()
        if line.startswith((f"{title}  ", f"{title} conn", f"{title} TIME"))
    )
    for row in closing:
        assert row["method"] in answer
        assert f" {close} " in answer
        shown = re.sub(r'<<"\w*">>', "<<[redacted]>>", answer.replace("\\'", "'"))
        assert row["reply_text"] in shown
    if not closing:
        assert ".close" not in answer


def test_kept_rows_are_few() -> None:
    """The golden rows are small enough to keep."""
    kept: list[Path] = list(rows.KEPT.iterdir())
    assert {path.name.removesuffix(".ndjson.gz") for path in kept} == set(rows.captures())
    assert sum(path.stat().st_size for path in kept) < 400_000
