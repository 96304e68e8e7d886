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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import PATIENCE, free_port

PROGRAMS = ("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")
CONTROLS = ("/usr/lib/rabbitmq/bin/rabbitmqctl", "rabbitmqctl")
"""Debian's own scripts on the PATH become another user, in a session that cannot be ended."""

ROOTS = ["/", *os.environ.get("AMQPSNIFF_BROKER_ROOTS", "").split(os.pathsep)]
"""Roots of systems with a broker that tests run against: this one, and others (see `chroot`).

The empty one stands for the versions that are not here.
"""


@pytest.fixture(scope="session")
def worker() -> str:
    """The name of this process among those that run tests."""
    return f"{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}_{os.getpid()}"


@pytest.fixture(scope="session")
def broker_here(worker: str) -> Iterator[Broker]:
    """The RabbitMQ of this machine, on loopback."""
    running = Broker(worker)
    yield running
    running.close()


class Broker:
    """A server on loopback, or in a network namespace; `port` is that of AMQP.

    `root` is a folder with a system of its own, in which another version is installed.
    """

    def __init__(self, name: str, namespace: str | None = None, root: str = "/") -> None:
        self.port = free_port()
        self._root = Path(root)
        self._folder = Path(tempfile.mkdtemp(prefix="amqpsniff-broker-", dir=self._root / "tmp"))
        self._folder.chmod(0o777)
        self._namespace = namespace
        folder = Path("/") / self._folder.relative_to(self._root)
        self._environment = os.environ | {
            "RABBITMQ_NODENAME": f"amqpsniff_{name}@localhost",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "HOME": str(folder),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2 +sbwt none -rabbit loopback_users []",
        }
        (self._folder / "plugins").write_text("[].")
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = self._command(PROGRAMS)
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

    def _command(self, programs: tuple[str, ...]) -> list[str]:
        """How the first of these programs is run; the test is skipped where none is installed."""
        elsewhere = self._root != Path("/")
        if elsewhere and not (self._root / "proc" / "self").exists():
            pytest.skip(f"/proc is not mounted in {self._root}")
        path = os.pathsep.join(str(self._root / one) for one in ("usr/sbin", "usr/bin"))
        for program in programs:
            name = self._root / program[1:] if elsewhere and program[0] == "/" else program
            if shutil.which(name, path=path if elsewhere else None):
                return ["chroot", str(self._root), program] if elsewhere else [program]
        pytest.skip(f"RabbitMQ is not installed in {self._root}")

    def says(self, question: str) -> list[dict[str, Any]]:
        """What `rabbitmqctl` lists: `list_queues name messages`, for instance."""
        command = [*self._command(CONTROLS), "--quiet", "--formatter", "json", *question.split()]
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
