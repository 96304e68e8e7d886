"""Where each code of the catalogue is shown: a real capture, or a test that makes the case."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.findings import KINDS
from tests.conftest import CAPTURES, REPO, SHARED
from tests.findings.scripts import CONVERSATIONS

SEEN_IN: dict[str, str] = {
    "cases/consumer_not_restored.pcap.gz": ("consumer-not-restored"),
    "cases/consumer_overloaded.pcap.gz": ("consumer-overloaded"),
    "cases/consumer_starved_after_timeout.pcap.gz": (
        "consumer-timed-out consumer-starved-after-timeout"
    ),
    "cases/consumer_hangs_midstream.pcap.gz": ("publishes-unreceived"),
    "cases/closed_by_client.pcap.gz": "closed-by-client",
    "cases/slow_path.pcap.gz": "transfer-slow",
    "cases/links_attached_again.pcap.gz": "credit-never-given",
    "cases/clock_set_back.pcapng.gz": "clock-set-back",
    "cases/two_queues.pcap.gz": "packets-out-of-order",
    "cases/caller_gone.pcap.gz": ("rpc-caller-gone"),
    "cases/consumer_left.pcap.gz": ("queue-abandoned"),
    "cases/queue_expired.pcap.gz": ("queue-expired"),
    "cases/transaction_forgotten.pcap.gz": ("transaction-uncommitted"),
    "cases/queue_dropped.pcap.gz": ("messages-dropped"),
    "hostile/proxy.pcap": ("proxy-on-both-sides"),
    "cases/delivery_limit.pcap.gz": ("delivery-limit-bystander"),
    "incidents/u_stream_quorum.pcap": ("delivery-limit-near automatic-acknowledgement"),
    "cases/feature_deprecated.pcap.gz": ("feature-deprecated"),
    "cases/half_open.pcap.gz": ("connection-half-open"),
    "cases/head_of_line.pcap.gz": ("head-of-line-wait"),
    "cases/proxy_detection.pcap.gz": ("connection-start-delayed"),
    "cases/publish_incomplete.pcap.gz": ("publish-incomplete"),
    "cases/tls_refused.pcap.gz": ("tls-alert-encrypted"),
    "cases/tls_ended_early.pcap.gz": ("tls-ended-early"),
    "cases/traffic_stopped.pcap.gz": ("traffic-stopped"),
    "own/rabbitmq43_changes.pcap": ("prefetch-global-ignored"),
    "own/TLSv1_3.pcap": ("tls-unreadable"),
    "own/violations.pcap": (
        "tuning-rejected limit-reached frame-end-wrong frame-type-unknown frame-type-unusual "
        "frame-too-large heartbeat-malformed method-wrong-direction arguments-truncated "
        "arguments-trailing field-tag-unknown field-tag-unusual text-not-utf8 "
        "feature-not-implemented content-unexpected-frame content-interrupted "
        "content-body-longer "
        "content-body-shorter content-class-wrong content-weight property-flags-undefined "
        "channel-zero-misused channel-not-open channel-mode-mixed publishes-discarded "
        "connection-forced-closed acknowledgement-timeout message-too-large reconnect-loop "
        "publish-rejected message-oversized deliveries-in-doubt heartbeat-missed "
        "message-stalled broker-slow resource-bomb user-id-refused"
    ),
    "public/formats/andreevdan__AMQP_Proto__tcp-badsegments.pcap": ("tcp-overlap-conflict"),
    "public/formats/hadrielk__pcapng-test-generator__pcapng-le-test102-all-blocks.pcapng": (
        "interface-dropped"
    ),
    "public/negative/rohanyh101__Go-RabbitMQ-Streams__rabbitmq-streams-5552-pub.pcap": (
        "capture-truncated"
    ),
    "incidents/m_rpc.pcap": ("rpc-server-lost"),
    "incidents/i_router_down.pcap": ("path-interrupted"),
    "incidents/w_formats.pcap": ("serialized-code"),
    "packs/amqplib.pcap.gz": ("dead-lettered"),
    "packs/celery.pcap.gz": ("operation-failed"),
    "packs/dead_letters.pcap.gz": (
        "dead-letter-unread dead-letter-target-missing celery-protocol-mixed fanout-by-header "
        "celery-delay-direct-exchange eta-beyond-consumer-timeout trace-context-never"
    ),
    "packs/order.pcap.gz": ("trace-context-lost"),
    "packs/streams.pcap.gz": (
        "delay-queues-many stream-reread stream-start-next trace-context-mixed"
    ),
    "packs/stream_gap.pcap.gz": ("stream-offset-gap"),
    "packs/firehose.pcap.gz": ("firehose-on"),
    "packs/workers.pcap.gz": (
        "task-result-unread delay-missed operation-retried workers-controlled"
    ),
    "samples/aiopika_rpc.pcap": (
        "connection-shared credentials-in-clear connection-unencrypted software-outdated"
    ),
    "samples/amqplib08.pcap": (
        "capabilities-missing connection-unnamed channel-closed-by-broker prefetch-unlimited "
        "heartbeat-disabled"
    ),
    "samples/blocked.pcap": (
        "publish-while-blocked publishes-unprotected connection-blocked operation-destructive"
    ),
    "samples/bunny.pcapng": ("message-unroutable heartbeat-too-short"),
    "samples/delayed_ack.pcap": ("delayed-ack-stall account-default"),
    "samples/late_consumer.pcap": ("queue-residence-long"),
    "samples/lost.pcap": ("capture-inconclusive tcp-gap"),
    "samples/midstream.pcap": ("midstream"),
    "samples/php_churn.pcap": ("connection-churn php-short-connections"),
    "samples/pika_mix.pcap": (
        "authentication-failed vhost-refused acknowledgement-invalid declaration-mismatch "
        "exclusive-queue-locked confirm-per-message"
    ),
    "samples/snapped.pcap": ("packets-cut arguments-cut connection-closed-by-broker"),
    "samples/v08_v09.pcap": (
        "not-amqp protocol-version-refused protocol-header-unknown protocol-not-decoded "
        "method-unknown channel-opened-twice traffic-after-close disconnect-unclean"
    ),
    "amqp10/amqp10_rabbitmq43.pcap.gz": "filter-ignored",
    "amqp10/azure_lock_lost.pcap.gz": "message-lock-lost",
    "amqp10/azure_renewals.pcap.gz": "lock-renewals-many",
    "amqp10/azure_token_expired.pcap.gz": "token-refused",
    "amqp10/erlang_shovel.pcap": "credit-exceeded",
    "amqp10/login_not_tried.pcap.gz": "login-not-tried",
    "amqp10/links.pcap": ("link-refused link-detached-idle link-reattach-loop publish-released"),
    "amqp10/proton_window.pcap.gz": "session-window-violated",
    "amqp10/rabbitmq43_window.pcap.gz": "connection-blocked",
    "amqp10/rabbitmq43_management.pcap.gz": "management-refused",
    "amqp10/rhea_blocked.pcap.gz": "session-links-blocked",
    "amqp10/rhea_unsettled.pcap.gz": "outcome-not-settled",
    "amqp10/rabbitmq43_links.pcap.gz": (
        "login-demanded deliveries-rejected credit-single credit-exhausted credit-not-renewed "
        "link-detached link-limit-reached address-deprecated"
    ),
    "amqp10/transactions.pcap": "transaction-failed",
    "amqp10/violations_proton.pcap": "field-type-wrong",
    "amqp10/violations_rhea.pcap": "link-stolen delivery-aborted",
    "samples/zerowindow.pcap": ("delivery-tag-gap broker-not-reading client-not-reading"),
}
"""Codes by the capture that shows them: of samples, or beside the repository."""

MADE_IN: dict[str, str] = {
    "capture-damaged": "capture/test_pcapng.py",
    "capture-unreadable": "capture/test_merge.py",
    "capture-through-tshark": "capture/test_tshark_reader.py",
    "tcp-buffer-limit": "tcp/test_holes.py",
    "tcp-conversation-limit": "tcp/test_ends.py",
    "tcp-impossible-sequence": "tcp/test_ends.py",
    "tunnel-unreadable": "tcp/test_headers.py",
    "tcp-reset-ignored": "tcp/test_doubts.py",
    "tcp-syn-ignored": "tcp/test_doubts.py",
    "body-limit": "decode/test_content.py",
    "channel-limit": "decode/test_content.py",
    "number-out-of-range": "decode/test_content.py",
    "session-limit": "session/rules/test_bounds.py",
    "channel-stopped": "session/rules/test_stopping.py",
    "rules-limit": "session/rules/test_bounds.py",
    "tls-keys-wrong": "tls/test_keys.py",
    "tls-record-damaged": "tls/test_troubles.py",
    "findings-limit": "findings/test_log.py",
    "broker-stopped": "findings/test_attempts.py",
    "connect-refused": "findings/test_attempts.py",
    "connect-unanswered": "findings/test_attempts.py",
    "server-not-amqp": "findings/test_wrong_protocols.py",
    "protocol-header-unanswered": "findings/test_wrong_protocols.py",
    "session-window-closed": "findings/pairs_of_links.py",
    "consumer-interrupted": "session/rules/test_consuming.py",
    "deliveries-after-cancel": "session/rules/test_cancelling.py",
    "deliveries-deleted": "session/rules/test_queues.py",
    "tls-alert": "tls/test_troubles.py",
    "tls-handshake-unanswered": "tls/test_troubles.py",
    "tls-outdated": "tls/test_troubles.py",
    "tls-certificate-expired": "tls/test_troubles.py",
    **dict.fromkeys(
        "message-skipped retries-exhausted delay-too-long message-loops message-expired "
        "rpc-answered-twice delayed-mandatory publish-number-wrong headers-near-frame-limit "
        "header-secret attempts-exceeded message-id-missing delay-levels-old clocks-differ "
        "trace-unsampled trace-id-reused notifications-unread federation-hops".split(),
        "findings/pairs_of_frameworks.py",
    ),
}
"""Codes of limits, damaged files, TLS and failed connects by the test that makes a case of them."""

SHOWN = {code: name for name, codes in SEEN_IN.items() for code in codes.split()}


@cache
def _codes(name: str) -> set[str]:
    folders = {"samples": REPO, "public": SHARED / "captures"}
    path = folders.get(name.partition("/")[0], CAPTURES) / name
    if name.startswith("public/") and not path.is_file():
        pytest.skip("the capture is not beside the repository (AMQPSNIFF_SHARED)")
    return {finding.code for finding in amqpsniff.open(path).findings()}


def test_every_code_is_shown_somewhere() -> None:
    assert {*SHOWN, *MADE_IN, *CONVERSATIONS} == KINDS.keys()
    assert not {*SHOWN, *MADE_IN} & CONVERSATIONS.keys()


@pytest.mark.parametrize("code", SHOWN)
def test_what_a_capture_shows(code: str) -> None:
    assert code in _codes(SHOWN[code])


@pytest.mark.parametrize("code", MADE_IN)
def test_the_test_that_makes_it_names_it(code: str) -> None:
    path = Path(__file__).parents[1] / MADE_IN[code]
    assert f'"{code}"' in path.read_text(encoding="utf-8")
