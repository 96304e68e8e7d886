"""Captures whose times cannot be: of another age, out of order, or none at all."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from tests.capture.build import enhanced, interface, section
from tests.cli.running import run
from tests.conftest import SAMPLES

COMMANDS = (
    "summary", "inspect", "connections", "channels", "messages", "diagnose", "topology", "trace",
    "bodies", "report", "diff", "same-traffic", "sanitize", "export", "cut",
    "annotate",
)  # fmt: skip
"""The commands that read captures; `same-traffic` is that option of `diff`."""


def _wild(path: Path) -> Path:
    """The packets of a sample at times of one interface in 2⁻⁶³ s since long ago, and another."""
    octets = (SAMPLES / "pika_mix.pcap").read_bytes()
    rng = random.Random(1)
    fine = interface("<", (9, bytes([0x80 | 63])), (14, struct.pack("<q", -(2**60))))
    made = [section(), fine, interface("<", (9, b"\0"))]
    at = 24
    while at + 16 <= len(octets):
        (size,) = struct.unpack_from("<I", octets, at + 8)
        time = rng.choice([0, 2**63 - 1, 2**64 - 1, 5, len(made) * 1000, 2**33])
        packet = octets[at + 16 : at + 16 + size]
        made.append(enhanced("<", time, packet, index=len(made) % 2))
        at += 16 + size
    path.write_bytes(b"".join(made))
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_ends_well(command: str, tmp_path: Path) -> None:
    wild = _wild(tmp_path / "wild.pcapng")
    more: dict[str, list[str | Path]] = {
        "report": ["-o", tmp_path / "page.html"],
        "diff": [SAMPLES / "pika_mix.pcap"],
        "same-traffic": [SAMPLES / "pika_mix.pcap", "--same-traffic"],
        "cut": ["-o", tmp_path / "part.pcapng"],
        "annotate": ["-o", tmp_path / "told.pcapng"],
        "sanitize": ["-o", tmp_path / "safe.pcapng"],
        "bodies": ["-o", tmp_path / "bodies"],
        "export": ["--table", "messages", "-o", tmp_path / "rows.parquet"],
        "trace": ["--message-id", "m6"],
    }
    name = "diff" if command == "same-traffic" else command
    result = run(name, wild, *more.get(command, []))
    assert result.code == 0, result.err
    assert "internal error" not in result.err
