"""Captures that come through pipes: standard input, named pipes, what a shell substitutes."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import PROGRAM, process, run
from tests.conftest import SAMPLES

CAPTURE = SAMPLES / "pika_mix.pcap"
SOME = 60_000
"""Bytes of the capture that come before a pause."""

Fill = Callable[[bytes], Path]


@pytest.fixture
def filled(tmp_path: Path) -> Fill:
    """Makes a named pipe into which somebody writes bytes, once."""

    def fill(octets: bytes) -> Path:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        threading.Thread(target=path.write_bytes, args=(octets,), daemon=True).start()
        return path

    return fill


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "pipe"])
def test_rows_come_while_it_is_written(name: str, tmp_path: Path) -> None:
    octets = CAPTURE.read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    given = str(pipe) if name == "pipe" else name
    with subprocess.Popen(
        [*PROGRAM, "inspect", given], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        sink = process.stdin if name != "pipe" else pipe.open("wb")
        sink.write(octets[:SOME])
        sink.flush()
        before = [process.stdout.readline() for _ in range(100)]
        sink.write(octets[SOME:])
        sink.close()
        lines = before + process.stdout.readlines()
    assert b"protocol-header" in lines[0]
    assert len(lines) == len(run("inspect", str(CAPTURE)).out.splitlines())


def test_what_is_no_capture(filled: Fill) -> None:
    result = run("inspect", str(filled(b"a text\n")))
    assert result.code == 3
    assert "not a capture: it is ASCII text" in result.err


@pytest.mark.tshark
def test_through_tshark(filled: Fill) -> None:
    pipe = filled(CAPTURE.read_bytes())
    rows = run("inspect", str(pipe), "--reader", "tshark").out
    assert rows == run("inspect", str(CAPTURE), "--reader", "tshark").out


def test_a_report_of_one_reading(filled: Fill, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run("report", str(filled(CAPTURE.read_bytes())), "-o", str(page)).code == 0
    assert page.stat().st_size > 100_000


def test_what_is_read_twice_says_so(filled: Fill) -> None:
    pipe = str(filled(b""))
    result = run("follow", pipe, "--connection", ":43706")
    assert (result.code, result.out) == (2, "")
    assert f"follow: {pipe} would have to be read twice; save it to a file first" in result.err
    assert run("verify", pipe).code == 2


def test_a_pattern_means_no_pipes(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(CAPTURE.read_bytes())
    os.mkfifo(tmp_path / "b.pcap")
    assert run("inspect", str(tmp_path / "*.pcap"), "--limit", "1").code == 0
    (tmp_path / "a.pcap").unlink()
    assert "no capture found" in run("inspect", str(tmp_path / "*.pcap")).err


def test_closed_standard_input() -> None:
    result = process("inspect", "-", shell="<&-")
    assert result.code == 3
    assert "standard input is closed" in result.err


def test_nothing_is_drawn_among_the_rows_of_a_slow_query() -> None:
    """DuckDB draws how far it is on standard output where the program is no file of its own."""
    statement = "SELECT current_setting('enable_progress_bar') AS drawn FROM connections"
    told = process("sql", SAMPLES / "bunny.pcapng", statement, "--format", "csv")
    assert told.out == '"drawn"\nfalse\n'


@pytest.mark.parametrize("words", [
    "annotate -o told.pcapng", "batch -o tables", "diagnose --format json --evidence", "follow",
    "sanitize -o safe.pcapng", "summary --queue orders.eu", "verify",
])  # fmt: skip
def test_standard_input_that_would_be_read_twice(words: str) -> None:
    name, *rest = words.split()
    done = process(name, "-", *rest, octets=CAPTURE.read_bytes())
    assert done.code == 2
    assert done.err.endswith(": - would have to be read twice; save it to a file first\n")
