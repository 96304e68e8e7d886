"""Captures of RabbitMQ over TLS give the rows of the same traffic without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from tests.conftest import SAMPLES
from tests.tls import talk as tls

pytest.importorskip("cryptography")

CAPTURES = Path(__file__).parents[1] / "captures"
TABLES = ("frames", "messages", "channels", "connections")
KEYS: dict[str, tuple[Path, dict[str, Any]]] = {
    "1.2, secrets inside": (SAMPLES / "tls12.pcapng", {}),
    "1.2": (CAPTURES / "tls12.pcap", {"tls_keylog": CAPTURES / "tls12.keys"}),
    "1.3": (SAMPLES / "tls13.pcap", {"tls_keylog": SAMPLES / "tls13.keys"}),
    "1.2, RSA key": (SAMPLES / "tls12_rsa.pcap", {"tls_key": SAMPLES / "tls12_rsa.key"}),
    "ChaCha20": (CAPTURES / "tls12_chacha.pcap", {"tls_keylog": CAPTURES / "tls12_chacha.keys"}),
    "CBC": (CAPTURES / "tls12_cbc.pcap", {"tls_keylog": CAPTURES / "tls12_cbc.keys"}),
    "CBC, RSA": (CAPTURES / "tls12_rsacbc.pcap", {"tls_keylog": CAPTURES / "tls12_rsacbc.keys"}),
    "CBC, RSA key": (CAPTURES / "tls12_rsacbc.pcap", {"tls_key": [SAMPLES / "tls12_rsa.key"]}),
}
"""Name → a capture, and what opens it; the broker and the client did the same each time."""


def without_ends(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    return {
        table: [{k: v for k, v in row.items() if k not in ("client", "server")} for row in found]
        for table, found in rows.items()
    }


@pytest.mark.parametrize("name", KEYS)
def test_rows_are_those_in_clear(name: str) -> None:
    path, keys = KEYS[name]
    ours = without_ends(tls.rows(path, *TABLES, **keys))
    clear = without_ends(tls.rows(CAPTURES / "clear.pcap", *TABLES))
    count = len(ours["connections"])
    assert count in (1, 2)
    if count == 2:
        assert ours == clear
    else:
        assert ours["frames"] == clear["frames"][: len(ours["frames"])]
        assert ours["messages"] == clear["messages"][: len(ours["messages"])]


def test_resumed_sessions_open_with_the_private_key() -> None:
    capture = amqpsniff.open(SAMPLES / "tls12_rsa.pcap", tls_key=SAMPLES / "tls12_rsa.key")
    capture.table("connections")
    assert [one["resumed"] for one in capture.passes.encrypted] == [False, True]
    assert all(one["opened"] for one in capture.passes.encrypted)


def test_packet_numbers_and_times_are_those_of_the_capture() -> None:
    capture = amqpsniff.open(SAMPLES / "tls13.pcap", tls_keylog=SAMPLES / "tls13.keys")
    first = next(capture.frames())
    assert (first.packet_number, first.stream_offset) == (9, 0)
