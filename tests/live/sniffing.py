"""A sniffer that runs beside a test, in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from amqpsniff.capture.packets import PacketBatch
from tests.cli.running import PROGRAM, environment
from tests.waiting import PATIENCE

STARTED: list[subprocess.Popen[bytes]] = []
"""Every sniffer of the test that runs."""


class Sniffer:
    """`amqpsniff live` with these arguments, which captures when the object is there.

    Attributes:
        err: What it wrote to standard error, once it is over.
    """

    def __init__(self, *arguments: str | Path, folder: Path, **more: Any) -> None:
        self.out = folder / f"out-{time.monotonic_ns()}"
        self.err = ""
        self._file = self.out.open("wb")
        self.running: subprocess.Popen[bytes] = subprocess.Popen(
            (*PROGRAM, "live", *map(str, arguments)), stdout=more.pop("stdout", self._file),
            stderr=subprocess.PIPE, cwd=folder, env=environment(), bufsize=0, **more,
        )  # fmt: skip
        # unbuffered: `communicate` does not ask for what was read along with a line
        STARTED.append(self.running)
        assert self.running.stderr is not None
        for line in self.running.stderr:
            self.err += line.decode()
            if b"Ctrl-C ends it" in line:
                return
        raise AssertionError(f"it does not capture: {self.err}")

    def stop(self, number: int = signal.SIGINT) -> int:
        """End it with a signal; its exit code."""
        self.running.send_signal(number)
        return self.finish()

    def finish(self) -> int:
        """Wait for its end; its exit code."""
        _, err = self.running.communicate(timeout=PATIENCE)
        self.err += err.decode()
        self._file.close()
        return self.running.returncode

    def rows(self) -> list[dict[str, Any]]:
        """The rows that it wrote so far, whole ones."""
        octets = self.out.read_bytes()
        return rows_of(octets[: octets.rfind(b"\n") + 1].decode())


def taken(source: Any) -> list[PacketBatch]:
    """What a source has by now, however seldom it looks for that."""
    batches = [batch for batch, _ in source.take(1 << 40)]
    while source.held():
        batches += [batch for batch, _ in source.take(1 << 40)]
    return batches


def rows_of(text: str) -> list[dict[str, Any]]:
    """Rows of NDJSON."""
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]
