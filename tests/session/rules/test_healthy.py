"""Ordinary traffic of real clients: nothing that is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpsniff.findings import KINDS
from tests.session.rules.found import of_capture

SAMPLES = Path(__file__).parents[3] / "samples"
TRUE = {
    "blocked.pcap": {"connection-blocked"},
    "bunny.pcapng": {"message-unroutable"},
    "amqplib08.pcap": {"channel-closed-by-broker"},
    "node.pcap": {"channel-closed-by-broker"},
    "pika_mix.pcap": {
        "acknowledgement-invalid",
        "authentication-failed",
        "channel-closed-by-broker",
        "declaration-mismatch",
        "vhost-refused",
    },
    "snapped.pcap": {
        "authentication-failed",
        "channel-closed-by-broker",
        "connection-closed-by-broker",
    },
    "zerowindow.pcap": {"broker-not-reading", "client-not-reading", "connection-blocked"},
    "v08_v09.pcap": {
        "channel-closed-by-broker",
        "channel-opened-twice",
        "connection-closed-by-broker",
        "method-unknown",
        "not-amqp",
        "protocol-header-unknown",
        "protocol-version-refused",
    },
}
"""What is wrong indeed, by sample."""


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.pcap*")), ids=lambda path: path.name)
def test_no_error_where_there_is_none(path: Path) -> None:
    errors = {row["code"] for row in of_capture(path) if KINDS[row["code"]].severity == "error"}
    assert errors <= TRUE.get(path.name, set())
