"""Reassembly gives the same events compiled and as plain Python."""

import pickle
import random
from pathlib import Path
from typing import Any

from tests.conftest import REPO, SHARED, own_captures
from tests.fuzz import fuzz_tcp
from tests.plain import copied, lines_of
from tests.tcp.test_headers import CASES
from tests.tcp.wire import START_NS, Packet

SCRIPT = """
import hashlib, pickle, sys
from amqpsniff.capture import open_capture
from amqpsniff.tcp import Limits, Reassembler, reassembly
from tests.tcp import wire

print(reassembly.__file__.endswith(".py"))
for name in sys.argv[2:]:
    machine = Reassembler()
    found = hashlib.sha256()
    for output in [*map(machine.feed, open_capture(name)), machine.finish()]:
        rows = zip(output.kind, output.half, output.stream_offset, output.number, output.ts_ns)
        found.update(repr(list(rows)).encode())
        for kind, talk, _, _, _, payload in output.events():
            found.update(repr((kind, talk.connection_id, payload)).encode())
            if kind == "close":
                found.update(repr(wire.facts(talk)).encode())
        found.update(repr([(f.code, f.packet_number, f.detail) for f in output.findings]).encode())
    print(found.hexdigest(), machine.counters)
with open(sys.argv[1], "rb") as file:
    for packets, limits in pickle.load(file):
        print(wire.run([wire.Packet(*packet) for packet in packets], None, Limits(*limits)))
"""


def cases() -> list[tuple[list[tuple[Any, ...]], tuple[int, ...]]]:
    """Lists of packets to follow, with the limits for each."""
    choose = random.Random(1)
    ordinary = [Packet(bytes(layers), START_NS, None, link) for link, layers in CASES.values()]
    found = [([tuple(packet) for packet in ordinary], tuple(fuzz_tcp.LIMITS))]
    for _ in range(150):
        packets = fuzz_tcp.packets(choose.randbytes(900))
        found.append(([tuple(packet) for packet in packets], tuple(fuzz_tcp.LIMITS)))
    return found


def test_compiled_and_uncompiled_agree(tmp_path: Path) -> None:
    copied(tmp_path, "tests")
    made = tmp_path / "cases"
    made.write_bytes(pickle.dumps(cases()))
    names = [str(path) for name, path in own_captures().items() if name[0] in "ptvz"]
    names += [
        str(path)
        for path in sorted((SHARED / "captures" / "public" / "formats").glob("*"))
        if path.suffix != ".snoop"
    ]
    plain = lines_of(tmp_path, SCRIPT, str(made), *names)
    assert plain[0] == "True"
    assert lines_of(REPO, SCRIPT, str(made), *names)[1:] == plain[1:]
