"""Key logs: without end, half written, out of a pipe."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from amqpsniff.tls import secrets as module
from amqpsniff.tls.secrets import KEY_LOG, Secrets
from tests.waiting import PATIENCE


def test_more_secrets_than_are_kept() -> None:
    """The oldest are forgotten many at once: to find the first of a dict takes ever longer."""
    most, number = 800, 8050
    found = Secrets(max_secrets=most)
    found.add(KEY_LOG, b"\n".join(b"CLIENT_RANDOM %064x %096x" % (at, at) for at in range(number)))
    known = [found.find(module.MASTER, at.to_bytes(32, "big")) for at in range(number)]
    assert known[-most * 3 // 4 :] == [
        at.to_bytes(48, "big") for at in range(number - most * 3 // 4, number)
    ]
    assert not any(known[:-most])
    assert sum(one is not None for one in known) < most - 20


@pytest.mark.parametrize("label", [*module.HANDSHAKE, *module.TRAFFIC, module.MASTER])
def test_a_line_that_is_half_written(label: bytes, tmp_path: Path) -> None:
    """What is there of a secret is none; the whole one is, once it is there."""
    path = tmp_path / "keys"
    line = b"%s %s %s" % (label, b"0a" * 32, b"cd" * 48)
    path.write_bytes(line[:-22])
    found = Secrets(path)
    assert found.find(label, b"\x0a" * 32) is None
    path.write_bytes(line)
    assert found.refresh()
    assert found.find(label, b"\x0a" * 32) == b"\xcd" * 48


def test_a_key_log_that_is_a_pipe(tmp_path: Path) -> None:
    """It is read once, and not waited for again, as it has no other writer."""
    path = tmp_path / "keys"
    os.mkfifo(path)
    line = f"CLIENT_RANDOM {'0a' * 32} {'cd' * 48}"
    with subprocess.Popen(["sh", "-c", f"echo {line} > keys"], cwd=tmp_path):
        reading = threading.Thread(target=lambda: found.append(Secrets(path)), daemon=True)
        found: list[Secrets] = []
        reading.start()
        reading.join(PATIENCE)
    assert found[0].find(module.MASTER, b"\x0a" * 32) == b"\xcd" * 48
    again = threading.Thread(target=found[0].refresh, daemon=True)
    again.start()
    again.join(PATIENCE)
    assert not again.is_alive()
