"""A broker at the other end of a cable with an MTU of 1500, watched from this end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.broker import Broker
from tests.live.clients import CLIENTS
from tests.live.sniffing import Sniffer
from tests.live.test_rows import alike, offline

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def far(namespace: str) -> Iterator[Broker]:
    """A RabbitMQ in the namespace."""
    running = Broker(f"far_{namespace.replace('-', '_')}", namespace)
    yield running
    running.close()


@pytest.mark.parametrize("interfaces", ["cable", "several", "any"])
def test_clients_of_a_broker_elsewhere(
    far: Broker, cable: str, subnet: str, tmp_path: Path, interfaces: str
) -> None:
    """Three client libraries, over packets of the size that a network has."""
    port = str(far.port)
    chosen = {"cable": ("-i", cable), "several": ("-i", "lo", "-i", cable), "any": ()}[interfaces]
    where = ("-f", f"host {subnet}.2 and tcp port {port}") if interfaces == "cable" else ()
    sniffer = Sniffer(*chosen, *where, "--port", port, "-w", "kept.pcapng", folder=tmp_path)
    for client in CLIENTS:
        client(f"{subnet}.2", far.port)
    assert sniffer.stop() == 0, sniffer.err
    live = sniffer.rows()
    assert alike(live) == alike(offline(tmp_path / "kept.pcapng", "messages", "--port", port))
    assert {row["server"] for row in live} == {f"{subnet}.2:{port}"}
    assert len(live) == 362
    assert "dropped" not in sniffer.err
