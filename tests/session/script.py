"""Conversations as scripts, one packet a line, as events for the reference and into an engine.

    C1: basic.publish exchange=a routing_key=k mandatory=1 | body=5 message_id=x
    [ack1] S1: basic.ack delivery_tag=3 multiple=1

`C` or `S` sends on the channel of that number, 0 when there is none; `b.C1:` on another connection
(`a` when none is named). A label in brackets names the packet for the expected rows. Arguments not
given are empty, zero or false; values are text, numbers, JSON objects for tables, and `\\0` is an
byte 0. `|` begins the content: `body` is its size (or `body=text:…`), the rest are properties.
A line is 1 ms after the one before, or `@+5ms` after it; `& C1: …` stands in the packet before.

    handshake user=u vhost=v        everything up to connection.open-ok: seven packets; also
                                    `client='{"product": "p"}'` and `server=` for the properties
    hello                           the client's protocol header
    midstream                       the connection began before the capture (before its first line);
                                    heartbeats begin what each side says, as after a GAP
    FIN C, RST S                    TCP ends
    GAP C 100                       bytes of one direction are lost, between two frames; heartbeats
                                    begin what follows, so that frames are known for what they are

Empty lines and what follows `#` count for nothing.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from amqpsniff import Engine
from amqpsniff.engine import ENGINE_TABLES, Streams
from amqpsniff.findings import Finding
from amqpsniff.limits import Limits
from amqpsniff.options import Options
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from amqpsniff.spec import Method, properties_for
from amqpsniff.tables.batches import Maker
from tests import encoder
from tests.capture.build import pcap_header, pcap_record
from tests.encoder import Field
from tests.session.events import DEFINED, FIN, LOSS, RST, Event
from tests.tcp import wire

START_NS = 1_700_000_000_000_000_000
MS = 1_000_000
FRAME = 131_064
"""Bytes of a body frame at most, by the handshake's frame-max."""
SEGMENT = 60_000
"""Bytes of a packet beyond which it is sent as several."""
KEY = ("10.0.0.1:40000", "10.0.0.2:5672")
"""Of a connection without packets."""
HEARTBEATS = 4 * encoder.HEARTBEAT_FRAME
SIDES = {"C": "client", "S": "server"}
_LINE = re.compile(
    r"(?P<join>&\s*)?(?:\[(?P<label>\w+)\]\s*)?(?:@\+(?P<wait>\d+)ms\s*)?(?:(?P<name>\w+)\.)?"
    r"(?:(?P<side>[CS])(?P<channel>\d*):\s*(?P<method>[a-z.-]+)(?P<rest>.*)"
    r"|(?P<word>handshake|hello|midstream)(?P<more>.*)"
    r"|(?P<end>FIN|RST|GAP)\s+(?P<ender>[CS])\s*(?P<bytes>\d*))$"
)
_EMPTY: dict[str, Any] = {"b": False, "s": "", "S": "", "F": {}}


class Packet(NamedTuple):
    """One packet: the bytes of `sender`, or how many are missing, or none at an end of TCP."""

    ts_ns: int
    connection: str
    sender: str
    octets: bytes
    missing: int = 0
    end: str = ""


class Script:
    """A conversation: packets, what they mean, and their numbers by label."""

    def __init__(self, text: str = "") -> None:
        self.packets: list[Packet] = []
        self.events: list[Event] = []
        self.labels: dict[str, int] = {}
        self.midstream: set[str] = set()
        self._begun: set[str] = set()
        self._lost: set[tuple[str, str]] = set()
        self.now_ns = START_NS
        self.add(text)

    def add(self, text: str) -> Script:
        """More lines."""
        for written in text.splitlines():
            line = written.partition(" #")[0].strip()
            if line and not line.startswith("#"):
                self._line(line)
        return self

    def _line(self, line: str) -> None:
        found = _LINE.match(line)
        assert found, f"not a line of a script: {line}"
        name = found["name"] or "a"
        if found["word"] == "midstream":
            self.midstream.add(name)
            self._lost |= {(name, "client"), (name, "server")}
        elif found["word"] == "hello":
            self._hello(name)
        elif found["word"] == "handshake":
            self._handshake(name, found["more"])
        elif found["end"]:
            self.wait(found["wait"])
            self._end(name, found["end"], SIDES[found["ender"]], int(found["bytes"] or 0))
        else:
            if not found["join"]:
                self.wait(found["wait"])
            channel = int(found["channel"] or 0)
            self.method(
                name,
                SIDES[found["side"]],
                channel,
                found["method"],
                *_words(DEFINED[found["method"]], found["rest"]),
                join=bool(found["join"]),
            )
        if found["label"]:
            self.labels[found["label"]] = len(self.packets)

    def wait(self, ms: str | None = None) -> None:
        """Time goes on, by 1 ms when not said."""
        self.now_ns += MS * int(ms or 1)

    def method(
        self,
        connection: str,
        sender: str,
        channel: int,
        method: str,
        arguments: dict[str, Any],
        body: bytes | None = None,
        properties: dict[str, Any] | None = None,
        join: bool = False,
    ) -> None:
        """A method with its content, in a packet of its own or in the one before."""
        row = DEFINED[method]
        given = {each.name: _EMPTY.get(each.type, 0) for each in row.arguments} | arguments
        assert len(given) == len(row.arguments), (method, arguments)
        if row.content and body is None:
            body = b""
        pieces = [encoder.method(row, _encoded(row, given), channel)]
        if body is not None:
            written = {name: _property(each) for name, each in (properties or {}).items()}
            pieces.append(encoder.header(channel, row.class_id, len(body), properties=written))
            for start in range(0, len(body), FRAME):
                pieces.append(encoder.body(channel, body[start : start + FRAME]))
        octets = b"".join(pieces)
        if (connection, sender) in self._lost:
            self._lost.remove((connection, sender))
            octets = HEARTBEATS + octets
        if join:
            before = self.packets[-1]
            assert (before.connection, before.sender) == (connection, sender), method
            self.packets[-1] = before._replace(octets=before.octets + octets)
        else:
            self.packets.append(Packet(self.now_ns, connection, sender, octets))
        if connection not in self._begun | self.midstream and sender == "client":
            octets = encoder.PROTOCOL_HEADERS["0-9-1"] + self.packets[-1].octets
            self.packets[-1] = self.packets[-1]._replace(octets=octets)
        self._begun.add(connection)
        number, ts_ns = len(self.packets), self.now_ns
        event = Event(number, ts_ns, connection, sender, channel, method, given, body)
        self.events.append(event._replace(properties=properties or {}))

    def _end(self, name: str, end: str, sender: str, octets: int) -> None:
        if end == "GAP":
            self._lost.add((name, sender))
        kind = {"FIN": FIN, "RST": RST, "GAP": LOSS}[end]
        self.packets.append(Packet(self.now_ns, name, sender, b"", octets, end))
        self.events.append(Event(len(self.packets), self.now_ns, name, sender, 0, kind))

    def _hello(self, name: str) -> None:
        self.wait()
        self.packets.append(Packet(self.now_ns, name, "client", encoder.PROTOCOL_HEADERS["0-9-1"]))
        self._begun.add(name)

    def _handshake(self, name: str, more: str) -> None:
        given: dict[str, Any] = {"user": "guest", "vhost": "/", "client": {}, "server": {}}
        for word in _split(more):
            key, _, value = word.partition("=")
            given[key] = json.loads(value) if value.startswith("{") else value
        response = f"\0{given['user']}\0secret"
        tuned = {"channel_max": 2047, "frame_max": 131072, "heartbeat": 60}
        self._hello(name)
        start = {"version_minor": 9, "server_properties": given["server"], "mechanisms": "PLAIN"}
        ok = {"client_properties": given["client"], "mechanism": "PLAIN", "response": response}
        steps: list[tuple[str, str, dict[str, Any]]] = [
            ("server", "connection.start", start),
            ("client", "connection.start-ok", ok),
            ("server", "connection.tune", tuned),
            ("client", "connection.tune-ok", tuned),
            ("client", "connection.open", {"virtual_host": given["vhost"]}),
            ("server", "connection.open-ok", {}),
        ]
        for sender, method, arguments in steps:
            self.wait()
            self.method(name, sender, 0, method, arguments)


def _split(text: str) -> list[str]:
    """Words as a shell has them, but a backslash is one."""
    words = shlex.shlex(text, posix=True)
    words.whitespace_split = True
    words.escape = words.commenters = ""
    return list(words)


def _words(row: Method, rest: str) -> tuple[dict[str, Any], bytes | None, dict[str, Any]]:
    """Arguments, body and properties as a line writes them."""
    types = {each.name: each.type for each in row.arguments}
    kinds = {each.name: each.type for each in properties_for("0-9-1", row.class_id)}
    arguments: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    body: bytes | None = None
    before, bar, after = rest.partition("|")
    for word in _split(before):
        name, _, text = word.partition("=")
        arguments[name] = _value(types[name], text)
    for word in _split(after) if bar else []:
        name, _, text = word.partition("=")
        if name == "body":
            body = text[5:].encode() if text.startswith("text:") else b"x" * int(text)
        else:
            value = _value(kinds[name], text)
            if isinstance(value, dict):
                value = list(_fields(value))
            properties[name] = value.encode() if isinstance(value, str) else value
    return arguments, body, properties


def _value(kind: str, text: str) -> Any:
    if text.startswith("{"):
        return json.loads(text)
    if kind in "sS":
        return text.replace("\\0", "\0")
    return bool(int(text)) if kind == "b" else int(text)


def _encoded(row: Method, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments as the encoder takes them."""
    values = {}
    for each in row.arguments:
        value = given[each.name]
        if each.type == "F":
            value = list(_fields(value))
        elif isinstance(value, dict):  # AMQPLAIN: a table without its length
            value = encoder.pairs(_fields(value))
        elif isinstance(value, str):
            value = value.encode()
        values[each.name] = value
    return values


def _fields(table: dict[str, Any]) -> Iterator[tuple[bytes, Field]]:
    for name, value in table.items():
        yield name.encode(), _field(value)


def _field(value: Any) -> Field:
    if isinstance(value, bool):
        return Field("t", value)
    if isinstance(value, int):
        return Field("I", value)
    if isinstance(value, dict):
        return Field("F", list(_fields(value)))
    if isinstance(value, list):
        return Field("A", [_field(each) for each in value])
    return Field("S", value.encode())


def _property(value: Any) -> Any:
    """A property as the encoder takes it: a table as its fields."""
    return list(_fields(value)) if isinstance(value, dict) else value


# into an engine


def _ports(names: Iterable[str]) -> dict[str, int]:
    return {name: 40000 + place for place, name in enumerate(dict.fromkeys(names))}


class Remembering:
    """A pipeline that is fed the bytes of one connection, to see what it remembers of it."""

    def __init__(
        self,
        script: Script | None = None,
        limits: Limits | None = None,
        tables: Collection[str] = ENGINE_TABLES,
    ) -> None:
        self.pipeline = Pipeline(Options(limits=limits or Limits()), Plan(tables))
        self.pipeline.capture = "-"
        self._streams = Streams(self.pipeline.decoder)
        self._number = 0
        self._given: list[Any] = []
        if script is not None:
            self.feed(script)

    def feed(self, script: Script) -> Remembering:
        """All packets of a script of one connection."""
        for packet in script.packets:
            self.say(packet)
        return self

    def say(self, packet: Packet) -> None:
        """The bytes of a script's packet, or the end of TCP."""
        if packet.end:
            self._streams.close(KEY)
            self._follow()
            return
        way = 0 if packet.sender == "client" else 1
        self._streams.data(KEY, way, packet.octets, self._next(), packet.ts_ns)
        self._follow()

    def lose(self, sender: str, missing: int) -> None:
        """Bytes that are missing."""
        way = 0 if sender == "client" else 1
        self._streams.gap(KEY, way, missing, self._next(), START_NS)
        self._follow()

    def _next(self) -> int:
        """The number of the next packet."""
        self.pipeline.decoder.use_capture("-")
        self._number += 1
        return self._number

    def _follow(self) -> None:
        self.pipeline.follow()
        self._given += self.pipeline.settled()

    @property
    def session(self) -> Any:
        """The connection, as the tracker knows it."""
        return self.pipeline.decoder.look()[2][0].session

    def end(self) -> Remembering:
        """The connection ends, if it has not, and the capture with it."""
        self._streams.close_all()
        self.pipeline.finish()
        return self

    def findings(self, code: str) -> list[Finding]:
        """The findings of a code, in the end."""
        return [one for one in self.end().pipeline.findings() if one.code == code]

    def messages(self) -> list[dict[str, Any]]:
        """The rows of all messages, in the end."""
        self.end()
        maker = Maker("messages", everything=True)
        batches = [maker.make(one) for one in (*self._given, *self.pipeline.rest())]
        return [row for batch in batches for row in batch.to_pylist()]


class Fed(NamedTuple):
    """An engine that was fed, the script's number of each of its packets, and names by client."""

    engine: Engine
    numbers: dict[int, int]
    names: dict[str, str]


def feed(script: Script, **options: Any) -> Fed:
    """A script into an engine: as packets, or as bytes where something is lost."""
    if any(packet.end == "GAP" for packet in script.packets):
        assert not any(packet.end in ("FIN", "RST") for packet in script.packets)
        return _feed_bytes(script, **options)
    return _feed_packets(script, **options)


def _feed_bytes(script: Script, **options: Any) -> Fed:
    engine = Engine(**options)
    ports = _ports(packet.connection for packet in script.packets)
    for packet in script.packets:
        key = (f"10.0.0.1:{ports[packet.connection]}", "10.0.0.2:5672")
        if packet.end:
            engine.gap(key, packet.sender, packet.missing, packet.ts_ns)
        else:
            engine.feed_bytes(key, packet.sender, packet.octets, packet.ts_ns)
    engine.finish()
    names = {f"10.0.0.1:{port}": name for name, port in ports.items()}
    return Fed(engine, {n: n for n in range(1, len(script.packets) + 1)}, names)


def _feed_packets(script: Script, **options: Any) -> Fed:
    engine = Engine(**options)
    numbers: dict[int, int] = {}
    for fed, (number, packet) in enumerate(wired(script), 1):
        engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type)
        numbers[fed] = number
    engine.finish()
    ports = _ports(packet.connection for packet in script.packets)
    names = {f"10.0.0.1:{port}": name for name, port in ports.items()}
    return Fed(engine, numbers, names)


def written(script: Script, path: Path, lost: Collection[int] = ()) -> Path:
    """A capture of a script, without its `lost` packets: their numbers, from 1 on."""
    octets = pcap_header(link=wire.IPV4_LINK)
    for number, packet in wired(script):
        seconds, rest = divmod(packet.ts_ns, 10**9)
        if number not in lost:
            octets += pcap_record("<", seconds, rest // 1000, packet.octets)
    path.write_bytes(octets)
    return path


def repeated(path: Path, count: int) -> Path:
    """A capture of so many publishes with routing key `a`, many in a packet."""
    script = Script("handshake\nC1: channel.open\nS1: channel.open-ok\n")
    script.add("C1: basic.publish routing_key=a | body=1")
    last = script.packets.pop()
    for at in range(0, count, 500):
        octets = last.octets * min(500, count - at)
        script.packets.append(last._replace(octets=octets, ts_ns=last.ts_ns + at * MS))
    return written(script, path)


def wired(script: Script) -> Iterator[tuple[int, wire.Packet]]:
    """The packets of a script as they are on the wire, each with the script's number of it."""
    ports = _ports(packet.connection for packet in script.packets)
    talks: dict[str, wire.Talk] = {}
    for number, packet in enumerate(script.packets, 1):
        name = packet.connection
        if name not in talks:
            talks[name] = wire.Talk(ports=(ports[name], 5672), step_ns=0)
            if name not in script.midstream:
                talks[name].hands()
        talk = talks[name]
        ends = {"FIN": wire.FIN, "RST": wire.RST}.get(packet.end, 0)
        side = 0 if packet.sender == "client" else 1
        for start in range(0, len(packet.octets) or 1, SEGMENT):
            talk.put(side, packet.octets[start : start + SEGMENT], flags=wire.ACK | ends)
        for each in talk.packets:
            yield number, each._replace(ts_ns=packet.ts_ns)
        talk.packets.clear()
