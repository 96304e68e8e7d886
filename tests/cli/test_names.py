"""Captures of any name, in every command: it is read, and steers neither terminals nor files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from amqpsniff.cli.commands import COMMANDS
from tests.cli.running import on_terminal, run
from tests.conftest import SAMPLES

NAME = (
    b"\xff\n\t\x1b[31mb\x1b]0;c\x07" + "\x9b31m\u202e".encode() + b" %s:%d'\"[bold][red][a]*?.pcap"
)
"""Not UTF-8, with what steers terminals, a shell, patterns and formats."""

WAYS = (
    "inspect @",
    "summary @",
    "summary @ --format json",
    "connections @",
    "channels @",
    "links @",
    "messages @",
    "trace @ --routing-key *",
    "follow @ --connection 028ce3bf",
    "topology @",
    "diagnose @",
    "diagnose @ --format sarif",
    "report @ -o out/report.html",
    "report-table traffic @",
    "diff @ @",
    "diff @ @ --format json",
    "diff @ @ --same-traffic",
    "diff @ @ --same-traffic --format json",
    "export @ -t frames -o out/frames.parquet",
    "export @ -t findings",
    'sql @ SELECT(capture)FROM"frames"',
    "bodies @ -o out/bodies",
    "cut @ -o out/part.pcapng",
    "annotate @ -o out/told.pcapng",
    "sanitize @ -o out/safe.pcapng",
    "verify @",
    "verify @ --format ndjson",
)
"""Commands with a capture in place of @."""

ELSEWHERE = {"live", "extcap", "batch", "explain", "spec"}
"""Commands that are given no capture, or hand it to Spark."""


def test_every_command_is_here() -> None:
    assert {way.split()[0] for way in WAYS} | ELSEWHERE == set(COMMANDS)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / os.fsdecode(NAME)
    shutil.copy(SAMPLES / "late_consumer.pcap", path)
    return path


def words_of(way: str, capture: Path) -> list[str | Path]:
    if way.startswith("verify") and shutil.which("tshark") is None:
        pytest.skip("no tshark")
    folder = capture.parent
    words = (word.replace("out/", f"{folder}/out/") for word in way.split())
    return [capture if word == "@" else word for word in words]


@pytest.mark.parametrize("way", WAYS)
def test_any_command(way: str, capture: Path) -> None:
    before = capture.read_bytes()
    (capture.parent / "out").mkdir()
    code, out, err = run(*words_of(way, capture))
    assert (code, "Traceback" in err) == (0, False), err
    for text in (err,) if "json" in way or "findings" in way else (out, err):
        assert all(one.isprintable() or one == "\n" for one in text)
    assert capture.read_bytes() == before
    assert {one.name for one in capture.parent.iterdir()} == {"out", capture.name}


@pytest.mark.parametrize("way", [way for way in WAYS if "json" in way or "findings" in way])
def test_json_on_a_terminal(way: str, capture: Path) -> None:
    code, out, _ = on_terminal(*words_of(way, capture), columns=200)
    assert code == 0
    assert all(one.isprintable() or one == "\n" for one in out)


def test_no_such_capture(capture: Path) -> None:
    capture.unlink()
    code, out, err = run("summary", capture)
    assert (code, out) == (3, "")
    assert all(one.isprintable() or one == "\n" for one in err)
