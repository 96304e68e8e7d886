"""What tests of live captures need: the right to capture, a broker, a network of their own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator

import pytest

from tests.live.broker import ROOTS, Broker
from tests.live.sniffing import STARTED


@pytest.fixture(scope="session", autouse=True)
def _right_to_capture() -> None:
    pytest.importorskip("scapy", reason="scapy is not installed")
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except (AttributeError, OSError):
        pytest.skip("capturing from interfaces needs Linux and CAP_NET_RAW")


@pytest.fixture(autouse=True)
def _none_left() -> Iterator[None]:
    """No sniffer outlives its test, also when that fails."""
    yield
    while STARTED:
        running = STARTED.pop()
        if running.poll() is None:
            running.kill()
            running.wait()


@pytest.fixture(scope="session", params=ROOTS, ids=lambda root: root or "other")
def broker(worker: str, broker_here: Broker, request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A RabbitMQ on loopback, of each version that is installed."""
    if not request.param:
        pytest.skip("no RabbitMQ of another version (folders in AMQPSNIFF_BROKER_ROOTS)")
    if request.param == "/":
        yield broker_here
        return
    running = Broker(f"{worker}_{request.param_index}", root=request.param)
    yield running
    running.close()


@pytest.fixture(scope="session")
def cable() -> str:
    """The interface on this side of the cable to the namespace."""
    return f"as{os.getpid() % 100000}"


@pytest.fixture(scope="session")
def subnet() -> str:
    """The network of this process's cable: others have theirs at the same time."""
    return f"10.{150 + os.getpid() % 100}.{os.getpid() // 100 % 250}"


@pytest.fixture(scope="session")
def namespace(worker: str, cable: str, subnet: str) -> Iterator[str]:
    """A network namespace at the other end of a cable; it is `subnet`.2, this side `subnet`.1."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("a network namespace needs iproute2 and root")
    name = f"amqpsniff-{worker}"
    commands = (
        f"netns add {name}",
        f"link add {cable} mtu 1500 type veth peer name far netns {name}",
        f"addr add {subnet}.1/24 dev {cable}",
        f"link set {cable} up",
        f"-n {name} addr add {subnet}.2/24 dev far",
        f"-n {name} link set far up",
        f"-n {name} link set lo up",
    )
    try:
        for command in commands:
            done = subprocess.run(["ip", *command.split()], capture_output=True, check=False)
            if done.returncode:
                pytest.skip(f"ip {command}: {done.stderr.decode().strip()}")
        yield name
    finally:
        listed = subprocess.run(["ip", "netns", "pids", name], capture_output=True, check=False)
        for number in listed.stdout.split():  # the port mapper of Erlang
            os.kill(int(number), signal.SIGKILL)
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", cable], capture_output=True, check=False)
