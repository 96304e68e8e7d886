"""Every fuzz harness holds its invariant for found bytes, mutated captures and random ones."""

from __future__ import annotations

import importlib
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPO, SAMPLES, SHARED
from tests.decode.feeding import streams_of
from tests.fuzz.seeds import SEEDS
from tests.thorough import only_thorough, rounds

HERE = Path(__file__).parent
HARNESSES = sorted(path.stem for path in HERE.glob("fuzz_*.py"))
RAW = SHARED / "captures" / "public" / "raw"
MAX_BYTES = 4000
EACH = rounds(60)


def found() -> Iterator[bytes]:
    """Bytes that others' fuzzers found, a sample of them."""
    paths = sorted(RAW.rglob("*.raw"))
    for path in random.Random(1).sample(paths, min(EACH, len(paths))):
        yield path.read_bytes()[:MAX_BYTES]


def mutated() -> Iterator[bytes]:
    """Pieces of captures and their half-streams, some bytes changed, some left out."""
    choose = random.Random(2)
    sources = [path.read_bytes() for path in sorted(SAMPLES.glob("*.pcap*"))]
    sources += [stream.octets for stream in streams_of(SAMPLES / "bunny.pcapng")]
    for _ in range(EACH):
        octets = choose.choice(sources)
        begin = choose.choice((0, choose.randrange(len(octets))))
        piece = bytearray(octets[begin : begin + choose.randrange(1, MAX_BYTES)])
        for _ in range(choose.randrange(4)):
            place = choose.randrange(len(piece))
            piece[place : place + choose.randrange(3)] = choose.randbytes(choose.randrange(3))
            piece = piece or bytearray(1)
        yield bytes(piece)


def made_up() -> Iterator[bytes]:
    """Random bytes, of few values and of all."""
    choose = random.Random(3)
    for _ in range(EACH):
        few = choose.randbytes(choose.randrange(1, 12))
        length = choose.randrange(400)
        yield bytes(choose.choice(few) for _ in range(length))
        yield choose.randbytes(length)


@pytest.mark.parametrize("inputs", [found, mutated, made_up], ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", HARNESSES)
def test_invariant(name: str, inputs: object) -> None:
    harness = importlib.import_module(f"tests.fuzz.{name}")
    assert callable(inputs)
    for data in (b"", *inputs()):
        harness.one_input(data)


@pytest.mark.parametrize("name", SEEDS)
def test_seeds_hold_the_invariant(name: str) -> None:
    harness = importlib.import_module(f"tests.fuzz.{name}")
    for data in SEEDS[name]():
        harness.one_input(data)


@only_thorough
def test_make_fuzz() -> None:
    """It runs a harness uncompiled, with coverage that guides it, and then compiled."""
    pytest.importorskip("atheris")
    made = ("-o", ".venv/.compiled", "-o", ".venv/.installed")
    command = ["make", *made, "fuzz", "HARNESSES=fuzz_tcp", "FUZZ_SECONDS=1"]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "== fuzz_tcp, what was found, compiled" in said
    covered = [int(one) for one in re.findall(r"DONE +cov: (\d+)", said)]
    assert covered[0] > 300  # 150 where reassembly is compiled


@pytest.mark.parametrize("name", HARNESSES)
def test_harnesses_open_with_their_invariant(name: str) -> None:
    assert (HERE / f"{name}.py").read_text(encoding="utf-8").startswith("# ")
