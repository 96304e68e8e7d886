"""What lines say of replies and outcomes, and what they do not claim."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.analysis.one_line import outcome_parts, outcome_text, reply_parts
from amqpsniff.analysis.timeline import Entry
from tests.cli.running import PROGRAM, run


def entry(method: str, sender: str | None = "client", reply: int | None = None) -> Entry:
    place = ("x.pcap", 1, 0, "0" * 16, None, None, sender, 0, 1, "method", 10)
    return Entry(*place, method, "{}", reply, None if reply is None else 1_200_000)


def said(parts: Any) -> str:
    return " ".join(part.fixed + part.text for part in parts)


@pytest.mark.parametrize(
    ("method", "sender", "reply", "arguments", "text"),
    [
        ("queue.declare", "client", 5, {"no_wait": False}, "→ ok 1.20 ms"),
        ("queue.declare", "client", None, {"no_wait": False}, "→ no reply"),
        ("queue.declare", "client", None, {"no_wait": True}, ""),
        ("queue.declare", "client", None, {}, ""),  # cut before its flags
        ("queue.declare", "server", None, {"no_wait": False}, ""),
        ("queue.declare", None, None, {"no_wait": False}, ""),
        ("channel.open", "client", None, {}, "→ no reply"),
        ("channel.close", "server", None, {}, "→ no reply"),
        ("connection.start", "server", 5, {}, "→ ok 1.20 ms"),
        ("basic.get", "client", 5, {}, "→ answered 1.20 ms"),
        ("basic.ack", "client", None, {}, ""),
        ("99.10", "client", None, {}, ""),
    ],
)
def test_replies(
    method: str, sender: str | None, reply: int | None, arguments: dict[str, Any], text: str
) -> None:
    assert said(reply_parts(entry(method, sender, reply), arguments)) == text


def test_what_may_still_come_is_not_missing() -> None:
    early = entry("channel.open")
    early.early = True
    assert said(reply_parts(early, {})) == ""
    message = {"outcome": "unsettled", "outcome_packet_number": None, "outcome_ns": None}
    assert said(outcome_parts(message)) == "→ unsettled"
    assert said(outcome_parts(message, early=True)) == ""


def test_outcomes() -> None:
    message = {"outcome": "confirmed", "outcome_packet_number": 7, "outcome_ns": 8_000_000}
    assert said(outcome_parts(message)) == "→ confirmed 8.00 ms"
    assert outcome_text(message) == "confirmed in packet 7 after 8.00 ms"
    message |= {"outcome": "automatic", "outcome_ns": 0}
    assert said(outcome_parts(message)) == "→ automatic"
    assert outcome_text(message) == "automatic in packet 7"
    message |= {"outcome": None, "outcome_packet_number": None, "outcome_ns": None}
    assert said(outcome_parts(message)) == ""
    assert outcome_text(message) is None


def _records(capture: Path, number: int) -> bytes:
    """The beginning of a little-endian pcap file, so many packets of it."""
    octets = capture.read_bytes()
    end = 24
    for _ in range(number):
        (length,) = struct.unpack_from("<I", octets, end + 8)
        end += 16 + length
    return octets[:end]


def test_standard_input_that_waits_is_shown_without_claims(samples: Path) -> None:
    command = (*PROGRAM, "inspect", "-")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **pipes) as running:  # type: ignore[call-overload]
        running.stdin.write(_records(samples / "pika_mix.pcap", 24))
        running.stdin.flush()
        line = ""
        while "queue.declare q=orders.eu" not in line:
            line = running.stdout.readline().decode()
            assert line
        running.stdin.close()
        assert "no reply" not in line
        assert "durable" in line
    assert " ok 158 µs          queue.declare" in run("inspect", "pika_mix.pcap", "-n", "25").out
