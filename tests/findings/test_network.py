"""What the network does to connections: a real capture of each case, and one that is nearly it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.conftest import CAPTURES, SAMPLES
from tests.session.events import Row
from tests.session.rules.found import of_capture

CASES = CAPTURES / "cases"
CONVERSATIONS = Path(__file__).parent / "captures"

SHOWN = {
    ("cases/half_open.pcap.gz", "connection-half-open"): (
        63,
        "path-interrupted",
        (
            "the client had been silent for 15.2 s when its end answered the broker's "
            "packets with a RST, as one that has no such connection; TCP of the broker had it "
            "until then, with 1 channel, 1 consumer, 2 deliveries not acknowledged"
        ),
    ),
    ("cases/half_open.pcap.gz", "disconnect-unclean"): (
        63,
        "connection-half-open",
        "the client ended TCP after 15.2 s (RST)",
    ),
    ("cases/proxy_detection.pcap.gz", "connection-start-delayed"): (
        14,
        None,
        "connection.start came 9.01 s after the client's protocol header",
    ),
    ("cases/head_of_line.pcap.gz", "head-of-line-wait"): (
        147,
        None,
        (
            "3 deliveries came without a pause behind large ones of other channels, each 369 ms on "
            "its way on average; the longest, 300 kB on channel 1, kept channel 2 waiting for up "
            "to 373 ms"
        ),
    ),
    ("cases/slow_path.pcap.gz", "transfer-slow"): (
        59,
        None,
        (
            "8 publishes of 60.0 kB took 395 ms each from the first byte to the last, 152 kB a "
            "second or 10.6 kB in each round trip of 69.7 ms"
        ),
    ),
    ("cases/tls_refused.pcap.gz", "tls-alert-encrypted"): (
        10,
        None,
        "what the client sent encrypted, 35 bytes, has the size of an alert; TLS 1.3",
    ),
    ("cases/tls_ended_early.pcap.gz", "tls-ended-early"): (
        10,
        None,
        "the client ended TCP after the server's messages of the handshake (FIN); TLS 1.3",
    ),
    ("cases/tls_certificate_demanded.pcap.gz", "tls-alert-encrypted"): (
        8,
        None,
        "all that the server sent after the client's handshake, 19 bytes, has the size of an alert",
    ),
    ("cases/connect_unreachable.pcap.gz", "connect-unanswered"): (
        22,
        None,
        (
            "10.77.1.2 sent 11 SYN packets to 10.77.0.1:5672 in 3.22 s, and was not "
            "connected; ICMP said: host unreachable; nobody connected to it in that time"
        ),
    ),
    ("cases/connect_unreachable.pcap.gz", "connect-refused"): (
        62,
        None,
        (
            "10.77.1.2 was refused by 10.77.0.1:5671 3 times in 2.65 s; ICMP said: "
            "administratively prohibited; nobody connected to it in that time"
        ),
    ),
    ("cases/published_after_fin.pcap.gz", "publishes-discarded"): (
        28,
        None,
        (
            "to the default exchange, routing key 'orders', sent after the broker's FIN in packet "
            "26, and dropped"
        ),
    ),
    ("cases/publish_incomplete.pcap.gz", "publish-incomplete"): (
        18,
        "disconnect-unclean",
        "40.0 kB of the message of 100 kB to the default exchange were sent on channel 1 when the",
    ),
    ("incidents/p_tls.pcap", "tls-alert"): (65, None, "the client sent unknown_ca; TLS 1.3"),
    ("incidents/m_rpc.pcap", "rpc-server-lost"): (
        66,
        None,
        (
            "price-server had the request to the default exchange with routing key 'price.rpc' "
            "since packet 70 when its connection ended (FIN in packet 71); no answer came in the "
            "16.1 s after it"
        ),
    ),
    ("incidents/m_rpc.pcap", "rpc-unanswered"): (66, "rpc-server-lost", "3 requests without"),
    ("incidents/o_restart.pcap", "connect-refused"): (
        1159,
        "connection-forced-closed",
        (
            "10.91.11.2 was refused by 10.91.11.1:5672 6,481 times "
            "in 22.4 s, 5.71 ms after it had ended 15 connections; nobody connected to it in that "
            "time; it took the next one 30.0 ms after; 289 attempts a second"
        ),
    ),
}
"""Packet, cause and the beginning of the detail, by capture and code."""

SILENT = {
    "connection-half-open": CASES / "client_killed.pcap.gz",
    "heartbeat-missed": CASES / "half_open.pcap.gz",
    "connection-start-delayed": CONVERSATIONS / "shown" / "handshake-slow.pcap.gz",
    "handshake-slow": CASES / "proxy_detection.pcap.gz",
    "head-of-line-wait": CAPTURES / "own" / "aiopika_multi.pcap",
    "transfer-slow": CASES / "head_of_line.pcap.gz",
    "tls-alert-encrypted": CAPTURES / "own" / "TLSv1_3.pcap",
    "tls-ended-early": CASES / "tls_certificate_demanded.pcap.gz",
    "tls-unreadable": CASES / "tls_refused.pcap.gz",
    "rpc-server-lost": SAMPLES / "aiopika_rpc.pcap",
    "connect-refused": CASES / "client_killed.pcap.gz",
    "publishes-discarded": CASES / "client_killed.pcap.gz",
    "publish-incomplete": CASES / "published_after_fin.pcap.gz",
}
"""A capture in which a code is not found."""


@cache
def _rows(path: Path) -> list[Row]:
    return of_capture(path)


@pytest.mark.parametrize(("name", "code"), SHOWN)
def test_what_is_said(name: str, code: str) -> None:
    number, cause, detail = SHOWN[name, code]
    row = next(row for row in _rows(CAPTURES / name) if row["code"] == code)
    assert (row["packet_number"], row["cause_code"]) == (number, cause)
    assert row["detail"].startswith(detail)


@pytest.mark.parametrize("code", SILENT)
def test_what_is_not_said(code: str) -> None:
    assert code not in {row["code"] for row in _rows(SILENT[code])}
