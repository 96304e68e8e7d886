"""What the rules say of real captures: of violations what is true, of healthy traffic no error."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import amqpsniff
from tests.conftest import OWN, SAMPLES

TRUE = {
    "credentials-in-clear",  # all but those of one host log in with a password in clear
    "connection-blocked",
    "vhost-refused",
    "authentication-failed",
}
"""Errors that some samples have."""

ODD = ("v08_v09", "zerowindow", "snapped", "lost")
"""Samples that were made to show errors, or that are damaged."""

HEALTHY = sorted(path for path in SAMPLES.glob("*.pcap*") if not path.name.startswith(ODD))

_MINE = (
    "authentication-failed capture-inconclusive connection-blocked connection-closed-by-broker "
    "connection-forced-closed exclusive-queue-locked heartbeat-missed heartbeat-too-short "
    "limit-reached resource-bomb tuning-rejected user-id-refused vhost-refused"
).split()


def _codes(path: Path) -> Counter[str]:
    return Counter(finding.code for finding in amqpsniff.open(path).findings())


@pytest.mark.parametrize("path", HEALTHY, ids=lambda path: path.name)
def test_healthy_traffic_has_no_errors_of_connections(path: Path) -> None:
    assert {"disconnect-unclean", "traffic-after-close", "capture-inconclusive"}.isdisjoint(
        _codes(path)
    )
    errors = {
        finding.code
        for finding in amqpsniff.open(path).findings()
        if finding.severity == "error" and finding.code in (*_MINE, "credentials-in-clear")
    }
    assert errors <= TRUE


def test_what_a_broker_answered_to_violations() -> None:
    codes = _codes(OWN / "violations.pcap")
    assert {code: codes[code] for code in _MINE} == {
        "authentication-failed": 3,
        "capture-inconclusive": 0,
        "connection-blocked": 2,
        "connection-closed-by-broker": 50,
        "connection-forced-closed": 2,
        "exclusive-queue-locked": 1,
        "heartbeat-missed": 1,
        "heartbeat-too-short": 1,
        "limit-reached": 3,
        "resource-bomb": 1,
        "tuning-rejected": 3,
        "user-id-refused": 1,
        "vhost-refused": 2,
    }
