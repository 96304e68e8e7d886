"""A RabbitMQ server of its own for tests that need a real one."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import PATIENCE, free_port

PROGRAMS = ("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")
CONTROLS = ("/usr/lib/rabbitmq/bin/rabbitmqctl", "rabbitmqctl")
"""Debian's own scripts on the PATH become another user, in a session that cannot be ended."""


class Broker:
    """A server on loopback, or in a network namespace; `port` is that of AMQP."""

    def __init__(self, name: str, namespace: str | None = None) -> None:
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="amqpsniff-broker-"))
        self._folder.chmod(0o777)
        self._namespace = namespace
        self._environment = os.environ | {
            "RABBITMQ_NODENAME": f"amqpsniff_{name}@localhost",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "HOME": str(self._folder),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2 +sbwt none -rabbit loopback_users []",
        }
        (self._folder / "plugins").write_text("[].")
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        program = next((one for one in PROGRAMS if shutil.which(one)), None)
        if program is None:
            pytest.skip("RabbitMQ is not installed")
        command = [program]
        if self._namespace is not None:
            command = ["ip", "netns", "exec", self._namespace, *command]
        self._running: subprocess.Popen[Any] = subprocess.Popen(
            command, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        end = time.monotonic() + PATIENCE
        log = self._folder / "log"
        while time.monotonic() < end:
            texts = [one.read_text(errors="replace") for one in log.glob("*.log")]
            if any("Server startup complete" in text for text in texts):
                return
            if self._running.poll() is not None:
                break
            time.sleep(0.1)
        self.stop()
        pytest.skip("RabbitMQ does not start on this machine")

    def says(self, question: str) -> list[dict[str, Any]]:
        """What `rabbitmqctl` lists: `list_queues name messages`, for instance."""
        program = next((one for one in CONTROLS if shutil.which(one)), None)
        if program is None:
            pytest.skip("rabbitmqctl is not installed")
        command = [program, "--quiet", "--formatter", "json", *question.split()]
        done = subprocess.run(command, env=self._environment, capture_output=True, check=True)
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        return rows

    def stop(self) -> None:
        """Stop the server at once, as a crash would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._running.pid, signal.SIGKILL)
        self._running.wait()
        for one in (self._folder / "log").glob("*.log"):
            one.unlink(missing_ok=True)

    def close(self) -> None:
        """Stop the server and remove what it wrote."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
