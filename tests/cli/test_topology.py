"""The topology: what a scripted conversation declared and sent, in every format."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.analysis.topology import Topology, TopologyLimits, TopologyResult
from amqpsniff.spec import METHODS
from tests import encoder
from tests.cli.running import run, write_capture
from tests.conftest import CAPTURES, SAMPLES
from tests.session.script import Script
from tests.tcp import wire
from tests.waiting import PATIENCE

HOSTILE = 'a"]|-->\\n<b>\x1b[2J}}#9829;'

SCRIPT = """
    p.handshake vhost=shop client='{"product": "P", "connection_name": "maker"}'
    c.handshake vhost=shop client='{"product": "C"}'
    p.C1: channel.open
    p.S1: channel.open-ok
    p.C1: exchange.declare exchange=x type=topic durable=1
    p.S1: exchange.declare-ok
    p.C1: exchange.declare exchange=refused type=nonsense
    p.S1: channel.close reply_code=503
    c.C1: channel.open
    c.S1: channel.open-ok
    c.C1: queue.declare exclusive=1 arguments='{"x-max-length": 9}'
    c.S1: queue.declare-ok queue=amq.gen-1
    c.C1: queue.bind exchange=x routing_key=a.*
    c.S1: queue.bind-ok
    c.C1: queue.bind exchange=x routing_key=b.*
    c.S1: queue.bind-ok
    c.C1: queue.unbind exchange=x routing_key=b.*
    c.S1: queue.unbind-ok
    c.C1: exchange.bind destination=y source=x routing_key=#
    c.S1: exchange.bind-ok
    c.C1: basic.qos prefetch_count=7
    c.S1: basic.qos-ok
    c.C1: basic.consume consumer_tag=t
    c.S1: basic.consume-ok consumer_tag=t
    p.C2: channel.open
    p.S2: channel.open-ok
    p.C2: basic.publish exchange=x routing_key=a.1 | body=10
    p.C2: basic.publish exchange=x routing_key=a.2 | body=20
    p.C2: basic.publish exchange=x routing_key=a.1 | body=30
    c.S1: basic.deliver consumer_tag=t delivery_tag=1 exchange=x routing_key=a.1 | body=10
    c.S1: basic.deliver consumer_tag=t delivery_tag=2 exchange=x routing_key=a.2 | body=20
"""


def capture(script: Script, path: Path) -> Path:
    """A script as a capture file."""
    talks: dict[str, wire.Talk] = {}
    packets = []
    for packet in script.packets:
        talk = talks.get(packet.connection)
        if talk is None:
            ports = (40000 + len(talks), 5672)
            talk = talks[packet.connection] = wire.Talk(ports=ports, step_ns=0).hands()
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
        packets += [each._replace(ts_ns=packet.ts_ns) for each in talk.packets]
        talk.packets.clear()
    return write_capture(path, packets)


def read(*words: str | Path) -> dict[str, Any]:
    result = run("topology", *words, "--format", "json")
    assert result.code == 0, result.err
    found: dict[str, Any] = json.loads(result.out)
    return found


@pytest.fixture
def scripted(tmp_path: Path) -> Path:
    """The conversation above."""
    return capture(Script(SCRIPT), tmp_path / "scripted.pcap")


def test_what_was_declared_and_sent(scripted: Path) -> None:
    """Every section; what was refused is not there, names that the server chose are."""
    found = read(scripted)
    assert found["exchanges"] == [
        {
            "vhost": "shop", "exchange": "x", "declared": True, "type": "topic", "durable": True,
            "auto_delete": False, "internal": False, "arguments": {}, "removed": False,
            "published": 3, "bytes": 60,
        }
    ]  # fmt: skip
    assert found["queues"] == [
        {
            "vhost": "shop", "queue": "amq.gen-1", "declared": True, "durable": False,
            "exclusive": True, "auto_delete": False, "arguments": {"x-max-length": 9},
            "server_named": True, "removed": False, "delivered": 2, "bytes": 30,
        }
    ]  # fmt: skip
    ends = ("exchange", "destination_type", "destination", "routing_key", "removed")
    assert [tuple(row[name] for name in ends) for row in found["bindings"]] == [
        ("x", "queue", "amq.gen-1", "a.*", False),
        ("x", "queue", "amq.gen-1", "b.*", True),
        ("x", "exchange", "y", "#", False),
    ]
    assert found["routes"] == [
        {"vhost": "shop", "exchange": "x", "queue": "amq.gen-1", "delivered": 2, "bytes": 30}
    ]
    assert found["publishers"] == [
        {
            "vhost": "shop", "name": "maker", "host": "10.0.0.1", "exchange": "x",
            "routing_keys": ["a.1", "a.2"], "routing_key_count": 2, "published": 3, "bytes": 60,
        }
    ]  # fmt: skip
    assert found["consumers"] == [
        {
            "vhost": "shop", "name": "C", "host": "10.0.0.1", "queue": "amq.gen-1",
            "consumers": 1, "prefetch_count": 7, "no_ack": False, "delivered": 2, "bytes": 30,
        }
    ]  # fmt: skip
    assert found["forgotten"] is False


def removed(tmp_path: Path, more: str) -> dict[str, list[str]]:
    """Names of what is removed when the conversation goes on like this."""
    found = read(capture(Script(SCRIPT + more), tmp_path / "more.pcap"))
    names = {"exchanges": "exchange", "queues": "queue", "bindings": "routing_key"}
    return {
        section: [row[name] for row in found[section] if row["removed"]]
        for section, name in names.items()
    }


def test_what_was_deleted(tmp_path: Path) -> None:
    """Queues and exchanges, and with them their bindings, until they are declared again."""
    queue = "c.C1: queue.delete queue=amq.gen-1\nc.S1: queue.delete-ok\n"
    again = "c.C1: queue.declare queue=amq.gen-1\nc.S1: queue.declare-ok queue=amq.gen-1\n"
    bound = "c.C1: queue.bind exchange=x routing_key=a.*\nc.S1: queue.bind-ok\n"
    exchange = "c.C1: exchange.delete exchange=x no_wait=1\n"
    cases = {
        queue: ([], ["amq.gen-1"], ["a.*", "b.*"]),
        queue.replace("=amq.gen-1", "="): ([], ["amq.gen-1"], ["a.*", "b.*"]),
        queue + again: ([], [], ["a.*", "b.*"]),
        queue + again + bound: ([], [], ["b.*"]),
        exchange: (["x"], [], ["a.*", "b.*", "#"]),
        # refused: it is there still
        "c.C1: queue.delete queue=amq.gen-1 if_empty=1\nc.S1: channel.close reply_code=406\n": (
            [], [], ["b.*"]
        ),
    }  # fmt: skip
    for more, (exchanges, queues, bindings) in cases.items():
        assert removed(tmp_path, more) == {
            "exchanges": exchanges, "queues": queues, "bindings": bindings,
        }, more  # fmt: skip


def test_a_deleted_queue_in_the_table(tmp_path: Path) -> None:
    more = "c.C1: queue.delete queue=amq.gen-1\nc.S1: queue.delete-ok\n"
    path = capture(Script(SCRIPT + more), tmp_path / "more.pcap")
    assert "exclusive server-named removed" in run("topology", path).out


def test_graph(scripted: Path) -> None:
    """Edges lead from the publisher to the consumer; a binding that nothing used is dashed."""
    dot = run("topology", scripted, "--format", "dot").out
    names = dict(re.findall(r'(n\d+) \[shape=\w+, label="([^"]*)"', dot))
    edges = re.findall(r'(n\d+) -> (n\d+) \[label="([^"]*)"(, style=dashed)?\]', dot)
    assert [(names[a], names[b], label, bool(dashed)) for a, b, label, dashed in edges] == [
        ("maker\\n10.0.0.1", "x", "3 · 60 B", False),
        ("x", "amq.gen-1", "a.* · 2 · 30 B", False),
        ("x", "y", "#", True),
        ("amq.gen-1", "C\\n10.0.0.1", "2 · 30 B", False),
    ]
    flowchart = run("topology", scripted, "--format", "mermaid").out
    assert flowchart.startswith("flowchart LR\n")
    assert len(re.findall(r"^  n\d+ -\.?->", flowchart, re.MULTILINE)) == 4


def test_bindings_that_differ_by_arguments_have_one_key() -> None:
    assert '"order.*.eu · 58 · 25.9 kB"' in run("topology", "pika_mix.pcap", "--format", "dot").out


@pytest.mark.parametrize("name", ["pika_mix.pcap", "aiopika_rpc.pcap", "bunny.pcapng"])
def test_counts_are_those_of_the_messages(name: str) -> None:
    """Sums over each section, counted apart from rows of messages."""
    found = read(name, "--limit", "1000")
    rows = amqpsniff.open(SAMPLES / name).table("messages").to_pylist()
    published, delivered = Counter[Any](), Counter[Any]()
    for row in rows:
        if row["method"] == "basic.publish":
            published[row["exchange"]] += 1
        elif row["method"] in ("basic.deliver", "basic.get-ok"):
            delivered[row["queue"]] += 1
    assert {
        r["exchange"]: r["published"] for r in found["exchanges"] if r["published"]
    } == published
    assert {r["queue"]: r["delivered"] for r in found["queues"] if r["delivered"]} == delivered
    for section, total in (("publishers", published), ("consumers", delivered)):
        counts = (row.get("published", row.get("delivered")) for row in found[section])
        assert sum(counts) == total.total()


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Names that are code in every format."""
    script = Script("p.handshake\np.C1: channel.open\np.S1: channel.open-ok\n")
    script.method("p", "client", 1, "exchange.declare", {"exchange": HOSTILE, "type": HOSTILE})
    script.method("p", "server", 1, "exchange.declare-ok", {})
    arguments = {"exchange": HOSTILE, "routing_key": HOSTILE}
    script.method("p", "client", 1, "basic.publish", arguments, b"")
    return capture(script, tmp_path / "hostile.pcap")


@pytest.mark.parametrize("form", ["text", "dot", "mermaid"])
def test_names_are_no_code(hostile: Path, form: str) -> None:
    """Nothing from the wire leaves its label."""
    result = run("topology", hostile, "--format", form)
    assert result.code == 0
    assert "\x1b" not in result.out
    if form == "dot":
        assert 'label="a\\"]|-->\\\\n<b>\\\\x1b[2J}}#9829;"' in result.out
    if form == "mermaid":
        labels = re.findall(r'"([^"]*)"', result.out)
        assert labels
        assert not set("".join(labels)) & set('"|<>[]{}') - set("<>")
        assert re.sub("<br/>", "", "".join(labels)).count("<") == 0
        assert re.sub(r'"[^"]*"', "", result.out).isascii()


@pytest.mark.skipif(shutil.which("dot") is None, reason="no Graphviz")
@pytest.mark.parametrize("name", ["scripted", "hostile"])
def test_graphviz_draws_it(name: str, request: pytest.FixtureRequest) -> None:
    """DOT is what Graphviz takes, and the labels are the names."""
    dot = run("topology", request.getfixturevalue(name), "--format", "dot").out
    done = subprocess.run(
        ["dot", "-Tplain"], input=dot, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert not done.stderr
    assert done.stdout.count("\nedge ") == dot.count(" -> ")


def learnt(path: Path, **limits: int) -> TopologyResult:
    """The topology of a capture, of which not much is remembered."""
    topology = Topology(TopologyLimits(**limits))
    for table, batch in amqpsniff.open(path).tables("frames", "messages"):
        topology.add(table, batch)
    return topology.result()


def test_names_beyond_the_limit_are_forgotten(scripted: Path) -> None:
    """And the report says so."""
    found = learnt(scripted, names=1)
    assert len(found["bindings"]) == 1
    assert found["forgotten"] is True


def test_connections_and_channels_beyond_the_limit(scripted: Path) -> None:
    """Later connections are told by their address, and have no virtual host."""
    found = learnt(scripted, connections=1, channels=1)
    assert [(row["vhost"], row["name"]) for row in found["consumers"]] == [(None, None)]
    assert found["forgotten"] is True


def test_messages_with_a_routing_key_each_are_counted(tmp_path: Path) -> None:
    """Of very many keys the rarer ones are not listed, and what had them counts."""
    talk = wire.Talk(step_ns=0).hands()
    script = "c.handshake vhost=shop\nc.C1: channel.open\nc.S1: channel.open-ok"
    script += "\nc.C1: basic.publish exchange=x routing_key=00000 | body=10"
    *before, publish = Script(script).packets
    for packet in before:
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    numbers = [*range(1, 90_001), 7, 7]
    for at in range(0, len(numbers), 500):
        keys = (b"%05d" % number for number in numbers[at : at + 500])
        talk.client(b"".join(publish.octets.replace(b"00000", key) for key in keys))
    result = read(write_capture(tmp_path / "keys.pcap", talk.packets))
    (publisher,) = result["publishers"]
    assert (publisher["published"], publisher["bytes"]) == (90_002, 900_020)
    assert (publisher["routing_keys"][0], publisher["routing_key_count"]) == ("00007", None)
    (exchange,) = result["exchanges"]
    assert (exchange["exchange"], exchange["published"]) == ("x", 90_002)


def test_consumers_of_amqp_1_0() -> None:
    """Links on which the broker sends; those of which nothing is settled beforehand, and one."""
    found = read(SAMPLES.parent / "tests/captures/amqp10/rabbit_outcomes.pcap")
    told = [(row["queue"], row["consumers"], row["no_ack"]) for row in found["consumers"]]
    assert told == [("orders", 4, False), ("mixed", 1, True)]  # names at random are none
    assert {row["name"] for row in found["consumers"]} == {None}
    assert [row["exchange"] for row in found["exchanges"]] == ["", "amq.topic"]


def test_an_unknown_format() -> None:
    """One line, and what there is."""
    result = run("topology", "pika_mix.pcap", "--format", "svg")
    assert result.code == 2
    assert "no format `svg` here; there are text, dot, mermaid, json" in result.err


def test_what_was_announced_and_never_sent_is_not_counted(tmp_path: Path) -> None:
    publish = next(row for row in METHODS if row.name == "basic.publish")
    values = {"ticket": 0, "exchange": b"x", "routing_key": b"k"} | dict.fromkeys(
        ("mandatory", "immediate"), False
    )
    whole = b"".join(encoder.content(publish, values, bytes(10)))
    begun = encoder.method(publish, values) + encoder.header(1, 60, 10**12)
    talk = wire.Talk().hands()
    talk.client(encoder.PROTOCOL_HEADERS["0-9-1"] + whole + begun + encoder.body(1, bytes(20)))
    path = write_capture(tmp_path / "announced.pcap", talk.packets)
    (exchange,) = read(path)["exchanges"]
    assert (exchange["published"], exchange["bytes"]) == (2, 30)
    summary = json.loads(run("summary", path, "--format", "json").out)
    (published,) = summary["messages"]
    assert (published["bytes"], published["size_max"]) == (30, 20)
    assert summary["exchanges"]["rows"][0]["published_bytes"] == 30
    sizes = run("sql", path, "SELECT max(body_size) AS size FROM messages", "--format", "csv").out
    assert sizes.split()[1] == f"{10**12}"


def test_bytes_of_messages_whose_sizes_are_not_known() -> None:
    """No content header of a delivery was captured: they are not said to have 0 bytes."""
    result = read(SAMPLES / "snapped.pcap")
    unnamed = next(row for row in result["queues"] if row["queue"] is None)
    assert (unnamed["delivered"], unnamed["bytes"]) == (41, None)
    idle = next(row for row in result["queues"] if row["queue"] == "dlq")
    assert (idle["delivered"], idle["bytes"]) == (0, 0)
    orders = next(row for row in result["exchanges"] if row["exchange"] == "orders")
    assert (orders["published"], orders["bytes"]) == (51, 22_875)
    rows = json.loads(run("summary", "snapped.pcap", "--format", "json").out)["exchanges"]["rows"]
    (orders, unnamed) = rows[:2]
    assert (orders["published_bytes"], orders["delivered_bytes"]) == (22_875, 0)
    assert (unnamed["published_bytes"], unnamed["delivered_bytes"]) == (0, None)


def test_nothing_to_show(tmp_path: Path) -> None:
    """A protocol that is not decoded: empty answers say so, and how it ended is known."""
    talk = wire.Talk().hands()
    for send in (talk.client, talk.server):
        send(b"AMQP\x03\x01\x00\x00")
    talk.goodbye()
    path = write_capture(tmp_path / "one.pcap", talk.packets)
    assert "nothing was declared, published or delivered" in run("topology", path).err
    assert "no channels in what was captured" in run("channels", path).err
    assert "no row matches the options" in run("channels", path, "--channel", "1").err
    (connection,) = json.loads(run("summary", path, "--format", "json").out)["connections"]
    assert connection["closed_by"] == "fin"


def test_both_protocols_of_rabbitmq_are_in_one_virtual_host() -> None:
    found = amqpsniff.open(CAPTURES / "amqp10" / "rabbitmq43_cross.pcap.gz").topology()
    sides = (*found["publishers"], *found["consumers"], *found["queues"])
    assert {one["vhost"] for one in sides} == {"/"}
