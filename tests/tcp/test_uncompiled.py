"""Reassembly gives the same events compiled and as plain Python."""

import os
import pickle
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conftest import REPO, SHARED
from tests.fuzz import fuzz_tcp
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


def run(folder: Path, arguments: list[str]) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


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
    without = shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__")
    shutil.copytree(REPO / "amqpsniff", tmp_path / "amqpsniff", ignore=without)
    shutil.copytree(REPO / "tests", tmp_path / "tests", ignore=without)
    made = tmp_path / "cases"
    made.write_bytes(pickle.dumps(cases()))
    captures = SHARED / "captures"
    names = [str(path) for path in sorted((captures / "own").glob("[ptvz]*.pcap"))]
    names += [
        str(path)
        for path in sorted((captures / "public" / "formats").glob("*"))
        if path.suffix != ".snoop"
    ]
    plain = run(tmp_path, [str(made), *names])
    assert plain[0] == "True"
    assert run(REPO, [str(made), *names])[1:] == plain[1:]
