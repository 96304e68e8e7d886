"""The fixture `wire`: tests of a project that uses it, against a real broker."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from amqpsniff.errors import UsageError
from amqpsniff.pytest_plugin import broker_address
from tests.conftest import REPO
from tests.live.broker import Broker
from tests.waiting import PATIENCE, free_port

pytestmark = pytest.mark.broker

SHOP = """
import os
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
    assert wire.recorder == os.environ["RECORDED_BY"]
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
    assert "guest:p%40ss@" in wire.url("guest", "p@ss")
    ends = [wire.url(vhost=name).rpartition("/")[2] for name in ("/", "%2F", "a b/c")]
    assert ends == ["%2F", "%2F", "a%20b%2Fc"]

def test_every_test_has_a_wire_of_its_own(wire):
    assert wire.messages() == []

def test_a_finding(wire):
    connection = connected(wire)
    channel = connection.channel()
    with pytest.raises(Exception, match="404"):
        channel.queue_declare("missing", passive=True)
    connection.close()
    wire.no("channel-closed-by-broker")

def test_an_assertion_of_its_own(wire):
    connected(wire).close()
    assert wire.messages(exchange="orders"), "no order"

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


SHARED = """
import pika
import pytest
from amqpsniff.pytest_plugin import Wire

def connected(wire: Wire):
    return pika.BlockingConnection(pika.ConnectionParameters(wire.host, wire.port))

@pytest.fixture
def queue(wire):
    connected(wire).channel().queue_declare("missing in setup", passive=True)

def test_a_fixture_fails(queue):
    pass

@pytest.fixture
def leaving(wire):
    connection = connected(wire)
    yield connection
    connection.channel().queue_declare("missing at the end", passive=True)

def test_a_fixture_fails_at_its_end(leaving):
    pass

@pytest.fixture(scope="class")
def channel(class_wire):
    connection = connected(class_wire)
    yield connection.channel()
    connection.close()

class TestOneConnection:
    def test_first(self, class_wire, channel):
        channel.queue_declare("shared", exclusive=True)
        assert len(class_wire.frames(method="queue.declare")) == 1

    def test_second(self, class_wire, channel):
        channel.queue_declare("shared", exclusive=True)
        assert len(class_wire.frames(method="queue.declare")) == 2
        assert len(class_wire.frames(method="connection.open")) == 1

    def test_that_fails(self, channel):
        assert False

class TestAnother:
    def test_has_a_wire_of_its_own(self, class_wire):
        assert class_wire.frames() == []

def test_wider_ones(module_wire, session_wire):
    connected(module_wire).close()
    connected(session_wire).close()
    assert module_wire.frames(method="connection.open")
    assert session_wire.frames(method="connection.open")
"""


def may_capture() -> bool:
    """True if this process may open a packet socket."""
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except OSError:
        return False
    return True


def run(port: int, folder: Path, *options: str, project: str = SHOP, **environment: str) -> str:
    """What pytest says of the project."""
    (folder / "test_shop.py").write_text(project)
    (folder / "pytest.ini").write_text(f"[pytest]\namqp_broker = 127.0.0.1:{port}\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "amqpsniff.pytest_plugin", "-rA", "-q", *options],
        cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE,
        env=os.environ
        | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(REPO)}
        | {"PYTEST_XDIST_WORKER_COUNT": "1"} | environment,
    )  # fmt: skip
    return done.stdout


def test_beside_other_tests_a_proxy_records(broker_here: Broker, tmp_path: Path) -> None:
    """A capture would have what they say to the broker too."""
    several = {"PYTEST_XDIST_WORKER_COUNT": "2", "RECORDED_BY": "proxy"}
    assert "1 passed" in run(broker_here.port, tmp_path, "-k", "was_said", **several)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost", ("localhost", 5672)),
        ("broker.example:5673", ("broker.example", 5673)),
        ("127.0.0.1", ("127.0.0.1", 5672)),
        ("::1", ("::1", 5672)),
        ("[::1]:5673", ("::1", 5673)),
        ("amqp://guest:guest@localhost:5673/%2F", ("localhost", 5673)),
        ("amqp://localhost/", ("localhost", 5672)),
        ("amqps://[::1]", ("::1", 5671)),
    ],
)
def test_forms_of_the_brokers_address(text: str, address: tuple[str, int]) -> None:
    assert broker_address(text) == address


@pytest.mark.parametrize("text", ["localhost:http", "host:70000", "host:0", ":5672", "http://host"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match=f"amqp_broker is '{text}', no address; write localhost"):
        broker_address(text)


def test_an_unknown_recorder(broker_here: Broker, tmp_path: Path) -> None:
    wanted = {"AMQP_WIRE": "wireshark", "RECORDED_BY": ""}
    said = run(broker_here.port, tmp_path, "-k", "was_said", **wanted)
    assert "amqp_wire is 'wireshark'; it is one of auto, capture, proxy" in said


RECORDERS = [
    ("proxy", "proxy"),
    pytest.param(
        "auto",
        "capture",
        marks=pytest.mark.skipif(not may_capture(), reason="this process may not capture"),
    ),
]


@pytest.mark.parametrize(("wanted", "recorder"), RECORDERS)
def test_fixtures_that_fail_and_fixtures_of_a_class(
    broker_here: Broker, tmp_path: Path, wanted: str, recorder: str
) -> None:
    said = run(broker_here.port, tmp_path, project=SHARED, AMQP_WIRE=wanted)
    assert "1 failed, 5 passed, 2 errors" in said, said
    sections = said.split(f"AMQP on the wire, recorded by {recorder}")[1:]
    in_setup, at_the_end, of_a_class = sections
    assert 'queue.declare q="missing in setup" passive' in in_setup
    assert 'queue.declare q="missing at the end" passive' in at_the_end
    assert of_a_class.count("queue.declare q=shared") == 2


@pytest.mark.parametrize(("wanted", "recorder"), RECORDERS)
def test_no_broker(tmp_path: Path, wanted: str, recorder: str) -> None:
    """It is said which one is missing, and who names another."""
    port = free_port()
    said = run(port, tmp_path, "-k", "assertion_of_its_own", AMQP_WIRE=wanted)
    assert f"AMQP on the wire, recorded by {recorder}" in said
    assert (
        f"no broker at 127.0.0.1:{port}: Connection refused; the variable AMQP_BROKER or the "
        "setting amqp_broker names another\n"
    ) in said, said


@pytest.mark.parametrize(("wanted", "recorder"), RECORDERS)
def test_a_project_that_uses_it(
    broker_here: Broker, tmp_path: Path, wanted: str, recorder: str
) -> None:
    said = run(broker_here.port, tmp_path, AMQP_WIRE=wanted, RECORDED_BY=recorder)
    assert "4 passed" in said, said
    assert "3 failed" in said, said
    assert said.count(f"AMQP on the wire, recorded by {recorder}") == 3
    assert "connection.close 200" in said[said.index("no order") :]
    assert "error channel-closed-by-broker in packet " in said
    assert "queue.declare q=missing passive" in said
    assert "404" in said
    assert "0 messages with message_id='two', not one" in said
    assert "rk=orders 8 B" in said, said
    assert "[confirmed" in said
