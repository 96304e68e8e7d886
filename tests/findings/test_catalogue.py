"""The catalogue's rows are whole, and cover what goes wrong with AMQP."""

from __future__ import annotations

import json
import re
import string
from itertools import chain

import pytest

from amqpsniff.findings import CONFIDENCES, KINDS, SEVERITIES, SUBJECTS
from tests.conftest import SHARED

DETECTORS = SHARED / "facts" / "detectors.json"

COVERED_BY = {
    "HS01": "not-amqp",
    "HS02": "protocol-version-refused protocol-header-unknown",
    "HS03": "connection-silent",
    "HS04": "handshake-slow",
    "HS05": "authentication-failed",
    "HS06": "vhost-refused",
    "HS07": "tuning-rejected",
    "HS08": "limit-reached",
    "HS09": "capabilities-missing",
    "HS10": "connection-unnamed",
    "PV01": "frame-end-wrong",
    "PV02": "frame-too-large",
    "PV03": "frame-type-unknown frame-type-unusual",
    "PV04": "heartbeat-malformed",
    "PV05": "channel-zero-misused",
    "PV06": "channel-not-open",
    "PV07": "channel-opened-twice",
    "PV08": "content-interrupted content-unexpected-frame",
    "PV09": "content-class-wrong content-weight",
    "PV10": "content-body-longer content-body-shorter",
    "PV11": "method-unknown method-wrong-direction handshake-out-of-order",
    "PV12": "arguments-truncated arguments-trailing text-not-utf8",
    "PV13": (
        "field-tag-unknown field-table-malformed field-tag-unusual field-name-duplicate "
        "timestamp-milliseconds"
    ),
    "PV14": "property-flags-undefined properties-malformed",
    "PV15": "acknowledgement-invalid",
    "PV16": "acknowledgement-stale",
    "PV17": "feature-not-implemented",
    "PV18": "traffic-after-close",
    "PV19": "publish-while-blocked",
    "PV20": "channel-mode-mixed",
    "PV21": "prefetch-exceeded",
    "PV22": "delivery-tag-gap",
    "CE01": "channel-closed-by-broker connection-closed-by-broker",
    "CE02": "declaration-mismatch",
    "CE03": "publishes-discarded",
    "CE04": "connection-forced-closed",
    "CE05": "disconnect-unclean",
    "CE06": "consumer-cancelled",
    "CE07": "acknowledgement-timeout",
    "CE08": "message-too-large",
    "CE09": "reconnect-loop",
    "CE10": "exclusive-queue-locked",
    "RL01": "automatic-acknowledgement",
    "RL02": "publishes-unprotected",
    "RL03": "message-unroutable",
    "RL04": "",
    "RL05": "",
    "RL06": "",
    "RL07": "publish-rejected",
    "RL08": "publishes-in-doubt",
    "RL09": "deliveries-in-doubt",
    "RL10": "poison-message",
    "RL11": "requeue-storm",
    "RL12": "dead-letter-cycle",
    "RL13": "consumer-stuck",
    "RL14": "publish-repeated",
    "PF01": "connection-churn",
    "PF02": "channel-churn",
    "PF03": "declaration-repeated",
    "PF04": "queue-length-polling",
    "PF05": "get-polling",
    "PF06": "prefetch-unlimited",
    "PF07": "prefetch-too-small",
    "PF08": "backlog-in-client",
    "PF09": "acknowledgements-single",
    "PF10": "confirm-per-message",
    "PF11": "transaction-per-message",
    "PF12": "overhead-high",
    "PF13": "message-oversized",
    "PF14": "connection-shared",
    "PF15": "reply-queue-per-call",
    "PF16": "channels-leaking",
    "PF17": "connections-leaking",
    "PF18": "frame-max-small",
    "PF19": "topology-churn",
    "PF20": "fanout-amplified",
    "PF21": "synchronous-waiting",
    "TM01": "confirms-slow",
    "TM02": "consumer-slow",
    "TM03": "rpc-unanswered rpc-slow",
    "TM04": "queue-residence-long consumer-overloaded",
    "TM05": "heartbeat-missed heartbeat-disabled heartbeat-too-short path-interrupted",
    "TM06": "idle-connection-cut",
    "TM07": "broker-not-reading",
    "TM08": "client-not-reading",
    "TM09": "connection-blocked",
    "TM10": "reply-missing",
    "TM11": "tcp-retransmissions",
    "TM12": "delayed-ack-stall",
    "TM13": "message-stalled",
    "TM14": "broker-slow",
    "SE01": "credentials-in-clear",
    "SE02": "account-default account-shared",
    "SE03": "connection-unencrypted",
    "SE04": "password-guessing",
    "SE05": "operation-destructive",
    "SE06": "resource-bomb field-table-too-deep",
    "SE07": "user-id-refused",
    "SE08": "login-anonymous",
    "SE09": "software-outdated",
    "SE10": "",
    "FW01": "celery-event-noise",
    "FW02": "celery-eta-prefetch",
    "FW03": "celery-result-queues",
    "FW04": "php-short-connections",
    "FW05": "spring-channel-cache",
    "CQ01": "capture-inconclusive tcp-gap packets-cut interface-dropped midstream",
}
"""Codes of the catalogue for each kind of trouble; none where a capture could only make one
guess."""

SEVERITY = {"critical": "error", "hint": "info"}

LOWERED = frozenset(("credentials-in-clear",))
"""Findings that ordinary traffic shows everywhere, and that are no errors for it."""


def detectors() -> dict[str, dict[str, str]]:
    """Kinds of trouble by their id."""
    if not DETECTORS.is_file():
        pytest.skip("no detectors beside the repository (AMQPSNIFF_SHARED)")
    return {row["id"]: row for row in json.loads(DETECTORS.read_text(encoding="utf-8"))}


CONFIDENCE = {"A": "high", "B": "medium", "C": "low"}
"""Confidence of a kind, by the grade of a trouble in the list of them."""


def test_every_kind_of_trouble_is_covered() -> None:
    assert COVERED_BY.keys() == detectors().keys()
    assert set(chain.from_iterable(codes.split() for codes in COVERED_BY.values())) <= KINDS.keys()
    without = {name for name, codes in COVERED_BY.items() if not codes}
    assert {detectors()[name]["grade"] for name in without} <= {"D"}


def test_the_first_code_has_the_severity_and_confidence_of_the_trouble() -> None:
    for name, row in detectors().items():
        if COVERED_BY[name]:
            kind = KINDS[COVERED_BY[name].split()[0]]
            wanted = SEVERITY.get(row["severity"], row["severity"])
            if kind.code in LOWERED:
                wanted = "warning"
            assert (kind.severity, kind.confidence) == (wanted, CONFIDENCE[row["grade"]]), name


def test_codes_are_unique_and_in_kebab_case() -> None:
    codes = [kind.code for kinds in SUBJECTS.values() for kind in kinds]
    assert len(codes) == len(set(codes)) == len(KINDS)
    for code in codes:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code), code


@pytest.mark.parametrize("code", KINDS)
def test_rows_are_whole(code: str) -> None:
    kind = KINDS[code]
    assert kind.severity in SEVERITIES
    assert kind.confidence in CONFIDENCES
    assert kind.title[-1] not in string.punctuation
    for text in (kind.evidence, kind.advice, *([kind.false_alarms] if kind.false_alarms else [])):
        assert text.endswith("."), text
        assert "  " not in text
        assert text.isprintable()
    assert set(kind.causes) <= KINDS.keys() - {code}


def test_codes_that_a_text_names_are_codes() -> None:
    for text in (text for kind in KINDS.values() for text in (kind.advice, kind.false_alarms)):
        for named in re.findall(r"\bsee ([a-z]+(?:-[a-z]+)+)(?: and ([a-z]+(?:-[a-z]+)+))?", text):
            assert set(filter(None, named)) <= KINDS.keys(), text


def test_no_finding_brings_itself_about() -> None:
    """Causes of causes never lead back."""

    def beyond(code: str, path: tuple[str, ...]) -> None:
        assert code not in path, path
        for cause in KINDS[code].causes:
            beyond(cause, (*path, code))

    for code in KINDS:
        beyond(code, ())
