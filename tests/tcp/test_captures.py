"""Real captures: the bytes of a plain reassembly with dpkt, and the payload that tshark counts."""

import gzip
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import dpkt
import pytest

from amqpsniff.capture import open_capture
from amqpsniff.errors import CaptureError
from amqpsniff.tcp import CLOSE, DATA, GAP, Reassembler, StreamBatch
from tests.conftest import SHARED, own_captures
from tests.thorough import some

CUT = {"lost", "midstream", "snapped"}
"""Captures that a plain reassembly cannot put together."""

OWN = {name: path for name, path in own_captures().items() if name not in CUT}
PUBLIC = some(
    sorted(
        path
        for folder in (SHARED / "captures" / "public").glob("*")
        if folder.name != "raw"
        for path in folder.glob("*")
        if ".result" not in path.name
    )
)

Key = tuple[str, str]


def outputs(path: Path) -> list[StreamBatch]:
    machine = Reassembler()
    return [*(machine.feed(batch) for batch in open_capture(str(path))), machine.finish()]


def plain(path: Path) -> dict[Key, list[bytes]]:
    """Bytes by direction: segments sorted by sequence number, what was captured first stays."""
    segments: dict[Key, list[tuple[int, bytes]]] = defaultdict(list)
    streams: dict[Key, list[bytes]] = defaultdict(list)
    begun: dict[Key, int] = {}
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        for _, octets in dpkt.pcap.UniversalReader(file):
            ip = dpkt.ethernet.Ethernet(octets).data
            if not isinstance(ip, dpkt.ip.IP) or not isinstance(ip.data, dpkt.tcp.TCP):
                continue
            tcp = ip.data
            key = (
                f"{'.'.join(map(str, ip.src))}:{tcp.sport}",
                f"{'.'.join(map(str, ip.dst))}:{tcp.dport}",
            )
            if tcp.flags & dpkt.tcp.TH_SYN and begun.get(key) != tcp.seq:
                begun[key] = tcp.seq
                streams[key].append(_joined(segments.pop(key, [])))
            elif tcp.data:
                offset = (tcp.seq - begun[key] - 1) & 0xFFFFFFFF if key in begun else tcp.seq
                segments[key].append((offset, bytes(tcp.data)))
    for key, waiting in segments.items():
        streams[key].append(_joined(waiting))
    return {key: [part for part in parts if part] for key, parts in streams.items()}


def _joined(segments: list[tuple[int, bytes]]) -> bytes:
    octets: dict[int, int] = {}
    for offset, payload in segments:
        if offset >= 1 << 31:
            continue  # a keep-alive before the first byte
        for index, octet in enumerate(payload):
            octets.setdefault(offset + index, octet)
    return bytes(octets[position] for position in sorted(octets))


@pytest.mark.parametrize("path", OWN.values(), ids=OWN)
def test_own_captures(path: Path) -> None:
    found: dict[Key, list[bytes]] = defaultdict(list)
    current: dict[int, list[bytes]] = defaultdict(list)
    for output in outputs(path):
        for row in range(output.count):
            half = output.half[row]
            if output.kind[row] == DATA:
                current[half].append(output.payload(row))
            elif output.kind[row] == CLOSE:
                talk = output.conversations[half >> 1]
                assert talk is not None
                for direction, key in enumerate(((talk.a, talk.b), (talk.b, talk.a))):
                    octets = b"".join(current.pop(half + direction, []))
                    if octets:
                        found[key].append(octets)
                    assert talk.octets[direction] == len(octets)
        assert not output.findings
    expected = {key: parts for key, parts in plain(path).items() if parts}
    assert found == expected


def tshark_payload(path: Path) -> dict[tuple[frozenset[str], str], set[tuple[int, int]]]:
    """Sequence ranges with payload by direction, as tshark sees them (innermost headers)."""
    fields = ["ip.src", "ipv6.src", "ip.dst", "ipv6.dst", "tcp.srcport", "tcp.dstport"]
    fields += ["tcp.seq_raw", "tcp.len"]
    command = ["tshark", "-r", str(path), "-Y", "tcp.len > 0", "-T", "fields"]
    command += ["-o", "tcp.desegment_tcp_streams:false", "-o", "ip.defragment:true"]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    ranges: dict[tuple[frozenset[str], str], set[tuple[int, int]]] = defaultdict(set)
    for line in done.stdout.splitlines():
        last = [value.split(",")[-1] for value in line.split("\t")]
        source, target = last[0] or last[1], last[2] or last[3]
        ends = [
            f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
            for address, port in ((source, last[4]), (target, last[5]))
        ]
        ranges[frozenset(ends), ends[0]].add((int(last[6]), int(last[7])))
    return ranges


def total(ranges: set[tuple[int, int]]) -> int:
    """Bytes in the union of ranges."""
    covered, position = 0, -1
    for start, length in sorted(ranges):
        end = start + length
        covered += max(end - max(start, position), 0)
        position = max(position, end)
    return covered


@pytest.mark.tshark
@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_as_many_bytes_as_tshark(path: Path) -> None:
    try:
        batches = outputs(path)
    except CaptureError as error:
        pytest.skip(str(error))
    sizes: dict[tuple[frozenset[str], str], int] = defaultdict(int)
    for output in batches:
        for row in range(output.count):
            talk = output.conversations[output.half[row] >> 1]
            assert talk is not None
            if output.kind[row] in (DATA, GAP):
                start = talk.b if output.half[row] & 1 else talk.a
                sizes[frozenset((talk.a, talk.b)), start] += output.length[row]
            if output.kind[row] == GAP:
                sizes[frozenset((talk.a, talk.b)), "gap"] += output.length[row]
    expected = {key: total(ranges) for key, ranges in tshark_payload(path).items()}
    holes = {key[0] for key in sizes if key[1] == "gap"}
    for key, octets in expected.items():
        if key[0] in holes:
            assert sizes[key] >= octets
        else:
            assert sizes[key] == octets
    assert {key for key in sizes if key[1] != "gap"} <= set(expected)
