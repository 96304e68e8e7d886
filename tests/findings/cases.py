"""A case that raises a finding beside one that is nearly the same and does not, as a `Pair`.

A `Case` is something that can be read, with the codes that are found in it, and its steps: what two
cases are compared by. A step is a packet with the time since the one before, or a byte of a file;
`distance` counts the steps in which two cases differ. So a near miss is near by measure: where one
packet was changed, one is added or one is missing, that packet makes the finding.

Cases are scripts in the language of `tests.session.script`, which has three more lines here:

    BYTES C 08000000000000ce       bytes in hexadecimal, as a packet
    HOSTS 127.0.0.1 127.0.0.1       addresses of client and broker
    WAIT 5000                       milliseconds before the next line
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

import amqpsniff
from amqpsniff import Engine
from amqpsniff.tcp import Limits
from tests.capture.build import NANOSECONDS, pcap_header, pcap_record
from tests.session import script as scripts
from tests.session.script import MS, Script
from tests.tcp import wire

HOSTS = ("10.0.0.1", "10.0.0.2")
NS = 1_000_000_000


class Case(NamedTuple):
    """What is compared of a case, and what is found in it."""

    steps: Sequence[Any]
    codes: Callable[[], set[str]]


class Pair(NamedTuple):
    """What shows a code and what nearly does, as text of a script or as what makes a case.

    `steps`: how many steps they may differ in. `bounds`: limits that are set lower for both, by the
    dotted names of constants.
    """

    shown: str | Callable[[], Case]
    near: str | Callable[[], Case]
    steps: int = 1
    bounds: tuple[tuple[str, Any], ...] = ()


def case_of(written: str | Callable[[], Case]) -> Case:
    """The case that a side of a pair writes."""
    return said(written) if isinstance(written, str) else written()


def distance(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Steps to change, add or take away to make one of the other."""
    first, least = 0, min(len(one), len(other))
    while first < least and one[first] == other[first]:
        first += 1
    last = 0
    while last < least - first and one[-1 - last] == other[-1 - last]:
        last += 1
    rest = one[first : len(one) - last], other[first : len(other) - last]
    matched = SequenceMatcher(None, *rest, autojunk=False).get_opcodes()
    return sum(max(b - a, d - c) for kind, a, b, c, d in matched if kind != "equal")


# scripts


def said(text: str, *edits: tuple[bytes, bytes], **options: Any) -> Case:
    """A script; `edits` are bytes that stand in it once, and what stands there instead."""
    script, hosts = _script(text)
    for before, after in edits:
        assert sum(packet.octets.count(before) for packet in script.packets) == 1, before
        script.packets = [
            packet._replace(octets=packet.octets.replace(before, after))
            for packet in script.packets
        ]

    def codes() -> set[str]:
        if hosts == HOSTS:
            return _codes(scripts.feed(script, **options).engine)
        return sent(_wired(script, hosts), **options).codes()

    return Case((hosts, *options, *_steps(script)), codes)


def edited(text: str, *edits: tuple[bytes, bytes], **options: Any) -> Callable[[], Case]:
    """The same for later."""
    return lambda: said(text, *edits, **options)


def _script(text: str) -> tuple[Script, tuple[str, str]]:
    script, hosts = Script(), HOSTS
    for line in text.splitlines():
        word, *more = line.split() or [""]
        if word == "BYTES":
            script.wait()
            octets = bytes.fromhex("".join(more[1:]))
            name = more[0].rpartition(".")[0] or "a"
            side = scripts.SIDES[more[0][-1]]
            script.packets.append(scripts.Packet(script.now_ns, name, side, octets))
        elif word == "WAIT":
            script.now_ns += MS * int(more[0])
        elif word == "HOSTS":
            hosts = (more[0], more[1])
        else:
            script.add(line)
    return script, hosts


def _steps(script: Script) -> list[Any]:
    steps, before = [], scripts.START_NS
    for packet in script.packets:
        steps.append((packet.ts_ns - before, *packet[1:]))
        before = packet.ts_ns
    return [tuple(sorted(script.midstream)), *steps]


def _wired(script: Script, hosts: tuple[str, str]) -> list[wire.Packet]:
    """Its packets, between these hosts instead of `HOSTS`."""
    usual, other = ([ip_address(host).packed for host in each] for each in (HOSTS, hosts))
    addresses = dict(zip(usual, other, strict=True))
    return [
        packet._replace(
            octets=packet.octets[:12]
            + addresses[packet.octets[12:16]]
            + addresses[packet.octets[16:20]]
            + packet.octets[20:]
        )
        for _, packet in scripts.wired(script)
    ]


def _codes(engine: Engine) -> set[str]:
    found = list(engine.findings())
    assert not [one for one in found if one.packet_number is not None and one.ts_ns is None]
    return {finding.code for finding in found}


def packets_of(text: str) -> list[wire.Packet]:
    """The packets of a script."""
    return _wired(*_script(text))


# packets and files


def sent(packets: Iterable[wire.Packet], **options: Any) -> Case:
    """Packets, each with its time."""
    every = list(packets)

    def codes() -> set[str]:
        engine = Engine(**options)
        for packet in every:
            engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type, packet.original)
        engine.finish()
        return _codes(engine)

    return Case(_packet_steps(every), codes)


def reassembled(packets: Iterable[wire.Packet], limits: Limits) -> Case:
    """Packets for reassembly alone, with its limits."""
    every = list(packets)
    return Case(_packet_steps(every), lambda: set(wire.run(every, limits=limits).codes()))


def _packet_steps(packets: list[wire.Packet]) -> list[Any]:
    steps, before = [], wire.START_NS
    for packet in packets:
        steps.append(packet._replace(ts_ns=packet.ts_ns - before))
        before = packet.ts_ns
    return steps


def kept(*files: bytes, **options: Any) -> Case:
    """Files of packets, read together."""

    def codes() -> set[str]:
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / str(place) for place in range(len(files))]
            for path, octets in zip(paths, files, strict=True):
                path.write_bytes(octets)
            return {finding.code for finding in amqpsniff.open(*paths, **options).findings()}

    steps = [*b"".join(files), *map(str, sorted(options.items()))]
    return Case(steps, codes)


def file_of(packets: Iterable[wire.Packet]) -> bytes:
    """A pcap file of packets of one link type."""
    every = list(packets)
    header = pcap_header(magic=NANOSECONDS, link=every[0].link_type)
    return header + b"".join(
        pcap_record("<", one.ts_ns // NS, one.ts_ns % NS, one.octets, original=one.original)
        for one in every
    )
