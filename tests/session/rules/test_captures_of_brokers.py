"""Real conversations: the faults that were committed in them, and nothing on healthy ones."""

from collections import Counter
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.session.rules import (
    acknowledging,
    consuming,
    deferred,
    misuse,
    publishing,
    refusals,
    requeueing,
    stuck_consumers,
)
from tests.conftest import OWN
from tests.house import packaging

MODULES = (
    acknowledging,
    consuming,
    deferred,
    misuse,
    publishing,
    refusals,
    requeueing,
    stuck_consumers,
)

FAULTS = {
    "channel-zero-misused": [463, 484],
    "channel-opened-twice": [505],
    "channel-not-open": [526, 2011],
    "method-wrong-direction": [875, 899],
    "acknowledgement-invalid": [920, 941, 962, 1003, 1034, 1066, 1099],
    "declaration-mismatch": [1123, 1144, 1249],
    "publishes-discarded": [1404],
    "feature-not-implemented": [1430, 1712, 1733, 1775],
    "message-unroutable": [1454, 1480, 2126],
    "channel-mode-mixed": [1646, 1669, 1690],
    "message-too-large": [3500],
    "acknowledgement-timeout": [3745],
    "publish-rejected": [3913],
}
"""Packets of violations.pcap, by what violations.answers.txt says was done there."""

TRUE_ERRORS = {
    "amqplib08.pcap": {"channel-closed-by-broker": 1},
    "bunny.pcapng": {"message-unroutable": 9},
    "node.pcap": {"channel-closed-by-broker": 1},
    "pika_mix.pcap": {
        "acknowledgement-invalid": 1,
        "channel-closed-by-broker": 3,
        "declaration-mismatch": 1,
    },
    "snapped.pcap": {"channel-closed-by-broker": 4},
    "v08_v09.pcap": {"channel-closed-by-broker": 1, "channel-opened-twice": 1},
}
"""Errors that the clients of the samples provoked on purpose, with their counts."""

PUBLIC_ERRORS = {
    "AMQP.pcap": {"channel-closed-by-broker": 1},
    "amqp_channel_error.pcap": {"channel-closed-by-broker": 1},
}


def _errors(path: Path) -> dict[str, int]:
    """Errors of the rules here in a capture, with their counts."""
    sources = packaging.sources()
    texts = [sources[module.__name__].read_text(encoding="utf-8") for module in MODULES]
    counts: Counter[str] = Counter()
    for finding in amqpsniff.open(path).findings():
        if finding.severity == "error" and any(f'"{finding.code}"' in text for text in texts):
            counts[finding.code] += finding.count
    return dict(counts)


def test_faults_that_a_broker_answered() -> None:
    found: dict[str, list[int | None]] = {}
    for finding in amqpsniff.open(OWN / "violations.pcap").findings():
        found.setdefault(finding.code, []).append(finding.packet_number)
    assert {code: found.get(code) for code in FAULTS} == FAULTS


def test_what_follows_from_a_fault_says_so() -> None:
    causes = {
        finding.packet_number: (finding.code, finding.cause_code, finding.cause_packet_number)
        for finding in amqpsniff.open(OWN / "violations.pcap").findings()
    }
    closed = "channel-closed-by-broker"
    assert causes[921] == (closed, "acknowledgement-invalid", 920)
    assert causes[1647] == (closed, "channel-mode-mixed", 1646)
    assert causes[1404] == ("publishes-discarded", closed, 1402)


def test_samples(samples: Path) -> None:
    found = {path.name: _errors(path) for path in sorted(samples.glob("*.pcap*"))}
    assert {name: errors for name, errors in found.items() if errors} == TRUE_ERRORS


def test_captures_of_others(public_captures: Path) -> None:
    paths = sorted(path for path in public_captures.rglob("*.pcap*") if path.is_file())
    found = {path.name: _errors(path) for path in paths}
    assert {name: errors for name, errors in found.items() if errors} == PUBLIC_ERRORS


@pytest.mark.parametrize("module", [one for one in MODULES if hasattr(one, "RULES")])
def test_rules_are_asked_on_events_that_exist(module: object) -> None:
    from amqpsniff.session.method_flags import NAMES
    from amqpsniff.session.rules.occasions import EVENTS

    assert set(module.RULES) <= {*NAMES, *EVENTS}  # type: ignore[attr-defined]
