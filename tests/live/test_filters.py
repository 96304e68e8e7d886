"""Capture filters that ask about Ethernet, and interfaces that have none."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator

import pytest

from amqpsniff.capture.filter import needs_ethernet
from amqpsniff.capture.live_capture import InterfaceCapture
from amqpsniff.errors import UsageError
from tests.waiting import wait_for

MINE = 0x88B5
"""An EtherType for experiments (IEEE 802)."""


@pytest.mark.parametrize(
    ("expression", "needs"),
    [
        ("", False),
        ("port 5672", False),
        ("not arp", False),
        ("ether host 00:11:22:33:44:55", True),
        ("port 5672 or (vlan and port 5672)", True),
        ("arp", True),
    ],
)
def test_what_asks_about_ethernet(expression: str, needs: bool) -> None:
    assert needs_ethernet(expression) is needs


def test_what_is_no_filter() -> None:
    with pytest.raises(UsageError, match="invalid capture filter"):
        InterfaceCapture(["lo"], "ether nonsense")


def test_a_filter_of_ethernet() -> None:
    """It captures what it says."""
    source = InterfaceCapture(["lo"], f"ether proto {MINE}")
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind(("lo", MINE))
        sender.send(bytes(12) + MINE.to_bytes(2, "big") + bytes(50))
    wait_for(lambda: list(source.take(1 << 40)))
    assert source.packets == 1
    assert not source.notes
    source.close()


@pytest.fixture
def tunnel() -> Iterator[str]:
    """An interface whose packets have no Ethernet header."""
    name = f"as{os.getpid() % 10_000}t"
    command = ["ip", "tuntap", "add", "dev", name, "mode", "tun"]
    if shutil.which("ip") is None or subprocess.run(command, check=False).returncode:
        pytest.skip("no tunnels can be made here")
    subprocess.run(["ip", "link", "set", name, "up"], check=True)
    yield name
    subprocess.run(["ip", "link", "del", name], check=False)


def test_an_interface_without_ethernet(tunnel: str) -> None:
    """Alone it is refused, among others it is said that nothing of it is captured."""
    with pytest.raises(UsageError, match=f"needs Ethernet headers, which are not on {tunnel}"):
        InterfaceCapture([tunnel], "vlan and port 5672")
    source = InterfaceCapture(["lo", tunnel], "vlan and port 5672")
    assert [tunnel in note for note in source.notes] == [True]
    source.close()
    source = InterfaceCapture(["lo", tunnel], "port 5672")
    assert not source.notes
    source.close()
