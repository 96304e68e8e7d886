"""Ordinary traffic of real clients: nothing that is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpsniff.findings import KINDS
from tests.session.rules.found import of_capture

SAMPLES = Path(__file__).parents[3] / "samples"
TRUE = {
    "blocked.pcap": {"connection-blocked"},
    "pika_mix.pcap": {
        "channel-closed-by-broker",
        "connection-closed-by-broker",
        "message-unroutable",
        "publish-rejected",
        "declaration-mismatch",
    },
    "zerowindow.pcap": {"client-not-reading", "broker-not-reading"},
    "v08_v09.pcap": {
        "method-unknown",
        "method-wrong-direction",
        "protocol-version-refused",
        "protocol-header-unknown",
        "not-amqp",
        "credentials-in-clear",
        "connection-closed-by-broker",
    },
}
"""What is wrong indeed, by sample."""

ANYWHERE = {"credentials-in-clear", "message-unroutable"}
"""Errors that ordinary programs make."""


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.pcap*")), ids=lambda path: path.name)
def test_no_error_where_there_is_none(path: Path) -> None:
    errors = {row["code"] for row in of_capture(path) if KINDS[row["code"]].severity == "error"}
    assert errors - ANYWHERE <= TRUE.get(path.name, set())
