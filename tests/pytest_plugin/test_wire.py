"""The fixture `wire`: tests of a project that uses it, against a real broker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.live.broker import Broker
from tests.waiting import PATIENCE

pytestmark = pytest.mark.broker

SHOP = """
import pika
import pytest

def connected(wire):
    return pika.BlockingConnection(pika.ConnectionParameters(wire.host, wire.port))

def shop(wire, confirms=True):
    connection = connected(wire)
    channel = connection.channel()
    channel.queue_declare("orders", auto_delete=True)
    if confirms:
        channel.confirm_delivery()
    named = pika.BasicProperties(message_id="one", delivery_mode=2)
    channel.basic_publish("", "orders", b"an order", named)
    for method, _, body in channel.consume("orders"):
        channel.basic_ack(method.delivery_tag)
        break
    connection.close()

def test_what_was_said(wire):
    shop(wire)
    wire.no()
    wire.no("publishes-unprotected")
    (published,) = wire.messages(method="publish")
    assert (published.message_id, published.outcome) == ("one", "confirmed")
    (delivered,) = wire.messages(queue="orders", method="deliver")
    assert delivered.outcome == "acked"
    journey = wire.journey(message_id="one")
    assert [row["outcome"] for row in journey.rows] == ["confirmed", "acked"]
    assert [frame.method for frame in wire.frames(method="queue.*")][0] == "queue.declare"
    assert wire.url().startswith("amqp://guest:guest@127.0.0.1:")

def test_every_test_has_a_wire_of_its_own(wire):
    assert wire.messages() == []

def test_a_finding(wire):
    connection = connected(wire)
    channel = connection.channel()
    with pytest.raises(Exception, match="404"):
        channel.queue_declare("missing", passive=True)
    connection.close()
    wire.no("channel-closed-by-broker")

def test_no_such_message(wire):
    shop(wire)
    wire.journey(message_id="two")

def test_a_code_that_is_none(wire):
    with pytest.raises(Exception, match="no finding has the code"):
        wire.no("nonsense")

def test_it_can_be_saved(wire, tmp_path):
    import amqpsniff
    shop(wire, confirms=False)
    wire.save(tmp_path / "shop.pcapng")
    assert amqpsniff.open(tmp_path / "shop.pcapng").table("connections").num_rows == 1
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    running = Broker("wire")
    yield running
    running.close()


def test_a_project_that_uses_it(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(SHOP)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\namqp_broker = 127.0.0.1:{broker.port}\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "amqpsniff.pytest_plugin", "-rA", "-q"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(REPO)},
    )  # fmt: skip
    said = done.stdout
    assert "4 passed" in said, said
    assert "2 failed" in said, said
    assert "error channel-closed-by-broker in packet " in said
    assert "queue.declare q=missing passive" in said
    assert "404" in said
    assert "0 messages with message_id='two', not one" in said
    assert "rk=orders 8 B" in said, said
    assert "[confirmed" in said
