"""Acknowledgements that real brokers refused, and what they delivered again afterwards."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

import amqpsniff

CAPTURES = Path(__file__).parent.parent / "captures"
NOT_TOLD = {"q-publish-missing", "q-declare-missing"}
"""Queues of channels that the broker closed because of another method than an acknowledgement."""


@pytest.mark.parametrize("name", ["rabbitmq310.pcap.gz", "rabbitmq43.pcap.gz"])
def test_what_is_left_in_the_queue_was_not_settled(name: str) -> None:
    """Every message that a second connection gets, and no other."""
    left: dict[str, set[bytes]] = defaultdict(set)
    said: dict[str, dict[bytes, str]] = defaultdict(dict)
    rows = amqpsniff.open(CAPTURES / "settling" / name, bodies=True).table("messages")
    for row in rows.to_pylist():
        if row["method"] == "basic.get-ok":
            left[row["queue"]].add(row["body"])
        elif row["method"] == "basic.deliver":
            said[row["queue"]][row["body"]] = row["outcome"]
    assert len(said) == 17
    for queue in said.keys() - NOT_TOLD:
        waits = {body for body, outcome in said[queue].items() if outcome == "unsettled"}
        assert waits == left[queue], queue


@pytest.mark.parametrize(
    ("name", "outcomes", "found"),
    [
        ("multiack_refused", ["unsettled"] * 3 + ["acked"] * 3, (18, 3)),
        ("sem2_multi_ack_settled_tag", ["unsettled", "acked", "unsettled"], (19, 2)),
        ("sem2_client_ack_then_close_ok_cross", ["unsettled"] * 2, (None, 2)),
    ],
)
def test_rows_depths_and_findings_agree(
    name: str, outcomes: list[str], found: tuple[int | None, int]
) -> None:
    source = amqpsniff.open(CAPTURES / "hostile" / f"{name}.pcap")
    assert [row["outcome"] for row in source.table("messages").to_pylist()] == outcomes
    (first, *_) = source.table("channels").to_pylist()
    assert first["unsettled_end"] == found[1]
    assert first["acknowledged"] + first["unsettled_end"] == first["delivered"]
    findings = {finding.code: finding for finding in source.findings()}
    assert findings["deliveries-in-doubt"].count == found[1]
    invalid = findings.get("acknowledgement-invalid")
    assert (invalid and invalid.packet_number) == found[0]
