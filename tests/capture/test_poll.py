"""Descriptors beyond those that `select` takes: a program may have thousands open."""

from __future__ import annotations

import os
import pty
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqpsniff.capture import open_capture
from amqpsniff.capture.poll import readable
from amqpsniff.capture.tail import PipeCapture
from amqpsniff.capture.tshark import Run, Tshark
from amqpsniff.cli.dashboard.dashboard import Keyboard
from tests.capture.build import pcap_header, pcap_record

MAX_OF_SELECT = 1024

CAPTURE = pcap_header() + pcap_record("<", 1, 0, b"abc")


@pytest.fixture(autouse=True)
def many() -> Iterator[None]:
    """What is opened from now on has a descriptor that `select` does not take."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 2 * MAX_OF_SELECT:
        pytest.skip("so many files may not be opened here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * MAX_OF_SELECT, before[1]))
    opened = [os.open(os.devnull, os.O_RDONLY)]
    while opened[-1] < MAX_OF_SELECT:
        opened.append(os.open(os.devnull, os.O_RDONLY))
    yield
    for descriptor in opened:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_readable() -> None:
    """What there is, nothing yet, and an end."""
    reading, writing = os.pipe()
    assert reading > MAX_OF_SELECT
    assert not readable(reading)
    assert not readable(reading, 0.01)
    os.write(writing, b"x")
    assert readable(reading)
    assert readable(reading, None)
    os.read(reading, 1)
    os.close(writing)
    assert readable(reading, None)
    os.close(reading)


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A pipe with a name, and what writes into it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writing = os.open(path, os.O_RDWR)
    yield path, writing
    os.close(writing)


def test_a_pipe_that_is_followed(pipe: tuple[Path, int]) -> None:
    path, writing = pipe
    source = PipeCapture(str(path))
    assert source.fileno() > MAX_OF_SELECT
    assert not list(source.take(1))
    os.write(writing, CAPTURE)
    assert [len(batch) for batch, _ in source.take(1 << 40)] == [1]
    source.close()


def test_a_stream_that_is_at_rest(pipe: tuple[Path, int]) -> None:
    path, writing = pipe
    os.write(writing, CAPTURE)
    with open_capture(path) as capture:
        assert len(next(capture)) == 1
        assert capture.at_rest()
        os.write(writing, CAPTURE[24:])
        assert not capture.at_rest()


def test_what_tshark_says(tmp_path: Path) -> None:
    script = tmp_path / "tshark"
    script.write_text("#!/bin/sh\necho all\n")
    script.chmod(0o755)
    with Run(Tshark(str(script), (4,), "4"), []) as run:
        assert run.read() == b"all\n"


def test_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = pty.openpty()
    with os.fdopen(follower) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        with Keyboard() as keyboard:
            assert keyboard.pressed() == []
            os.write(leader, b"q")
            assert readable(follower, None)
            assert keyboard.pressed() == ["q"]
    os.close(leader)
