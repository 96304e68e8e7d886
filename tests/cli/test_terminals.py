"""Terminals: those that cannot show what `live` draws, and those that only take messages."""

from __future__ import annotations

import fcntl
import inspect
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from amqpsniff.cli.commands import COMMANDS, function_of
from tests.cli.running import PROGRAM, environment, on_terminal, process, rest_of, run
from tests.conftest import SAMPLES
from tests.waiting import PATIENCE

CAPTURE = SAMPLES / "bunny.pcapng"


def test_a_terminal_whose_cursor_does_not_move() -> None:
    """Rows, as in a pipe; a dashboard that somebody asks for is refused."""
    given = ("live", CAPTURE, "-t", "connections", "--duration", "1s", "-q")
    shown = on_terminal(*given, columns=80, term="dumb")
    assert (shown.code, shown.out.count("\n")) == (0, 1)
    assert shown.out.startswith('{"capture":')
    refused = on_terminal(*given, "--format", "dashboard", columns=80, term="dumb")
    assert refused.code == 2
    assert "--format ndjson" in " ".join(refused.out.split())


@pytest.mark.parametrize("option", ["--limit 3", "--from +1s", "--to 12:00", "--table messages"])
def test_what_chooses_rows_is_not_for_the_dashboard(option: str) -> None:
    shown = on_terminal("live", CAPTURE, "--duration", "1s", *option.split(), columns=80)
    assert shown.code == 2
    assert f"{option.split(maxsplit=1)[0]} chooses rows; give --format ndjson" in shown.out


def test_how_long_rows_wait_is_not_for_the_dashboard_of_interfaces() -> None:
    """Of a pipe or a file it says how late packets may be."""
    refused = on_terminal("live", "-i", "lo", "--duration", "0.1s", "--settle", "1s", columns=80)
    assert refused.code == 2
    assert "--settle is for rows; give --format ndjson" in refused.out
    taken = on_terminal("live", CAPTURE, "--duration", "0.1s", "--settle", "1s", columns=80)
    assert taken.code == 0


def test_a_summary_fits_the_terminal_that_it_is_written_to() -> None:
    """Rows go elsewhere, and have no width."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 60, 0, 0))
    subprocess.run(
        (*PROGRAM, "live", CAPTURE, "-t", "connections", "--duration", "1s"), check=True,
        stdout=subprocess.DEVNULL, stderr=follower, env=environment(NO_COLOR="1"),
        timeout=PATIENCE,
    )  # fmt: skip
    os.close(follower)
    shown = rest_of(leader)
    os.close(leader)
    _, _, summary = shown.decode().partition("\r\npackets ")
    assert max(map(len, summary.splitlines())) <= 60


def test_a_long_warning_is_folded_on_a_terminal() -> None:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 60, 0, 0))
    command = (*PROGRAM, "connections", SAMPLES / "tls13.pcap")
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=follower, timeout=PATIENCE,
        env=environment(),
    )  # fmt: skip
    os.close(follower)
    first, *others = rest_of(leader).decode().splitlines()
    os.close(leader)
    assert first.startswith("amqpsniff: warning: no AMQP in")
    assert others
    assert all(line.startswith("  ") and len(line) <= 60 for line in others)
    piped = subprocess.run(command, check=True, capture_output=True, env=environment())
    assert piped.stderr.count(b"\n") == 1


IMPATIENT = (
    sys.executable,
    "-c",
    "from amqpsniff.cli import progress; progress.PATIENCE_SECONDS = 0.0; " + PROGRAM[2],
)


@pytest.mark.parametrize("command", ["diagnose", "connections", "summary", "export -t messages"])
def test_how_far_it_is_before_there_is_a_row(command: str) -> None:
    """Some of what is long in coming has rows at the end only."""
    leader, follower = pty.openpty()
    octets = (SAMPLES / "pika_mix.pcap").read_bytes()
    name, *more = command.split()
    shown = b""
    with subprocess.Popen(
        (*IMPATIENT, name, "-", *more), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=follower, env=environment(NO_COLOR="1"),
    ) as running:  # fmt: skip
        os.close(follower)
        assert running.stdin is not None
        running.stdin.write(octets[:60_000])
        running.stdin.flush()
        while not re.search(rb"[1-9][0-9]* packets", shown):
            assert select.select([leader], [], [], PATIENCE)[0]
            shown += os.read(leader, 65536)
        running.stdin.write(octets[60_000:])
        running.stdin.close()
        shown += rest_of(leader)
        assert running.wait(PATIENCE) == 0
    os.close(leader)
    assert shown.rfind(b"\x1b[?25h") > shown.rfind(b"\x1b[?25l")


def test_no_line_comes_between_rows() -> None:
    """How far it is, is not said any more when rows are shown, piece by piece."""
    leader, follower = pty.openpty()
    pieces = "from amqpsniff.cli import list_table; list_table.MAX_LAID_OUT = 1; " + IMPATIENT[2]
    with subprocess.Popen(
        (sys.executable, "-c", pieces, "connections", SAMPLES / "php_churn.pcap"),
        stdin=subprocess.DEVNULL, stdout=follower, stderr=follower,
        env=environment(NO_COLOR="1"),
    ) as running:  # fmt: skip
        os.close(follower)
        shown = rest_of(leader)
        assert running.wait(PATIENCE) == 0
    os.close(leader)
    rows = shown.partition(b"client")[2]
    assert rows.count(b"client") > 10
    assert b"\x1b" not in rows


@pytest.mark.parametrize("given", ["", "*.pcap*"])
def test_what_is_written_is_not_followed(given: str, tmp_path: Path) -> None:
    """It would be read and written again until the disk is full."""
    (tmp_path / "a.pcapng").write_bytes(CAPTURE.read_bytes())
    followed = str(tmp_path / given)
    result = run("live", followed, "-w", tmp_path / "out.pcapng", "--duration", "1s")
    assert result.code == 2
    assert "would be followed itself" in result.err
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    result = process("live", followed, "-w", elsewhere / "out.pcapng", "--duration", "1s", "-q")
    assert result.code == 0
    alone = process("live", tmp_path / "a.pcapng", "-w", tmp_path / "b", "--duration", "1s", "-q")
    assert alone.code == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_can_be_copied_from_the_help(command: str) -> None:
    """Each stands on a line of its own, where there are no more columns than usual."""
    text = inspect.cleandoc(function_of(command).__doc__)
    examples = text.partition("Examples:")[2].split("\n    ")[1:]
    shown = on_terminal(command, "--help-all", columns=80).out.replace("\r", "").splitlines()
    lines = [line.strip() for line in shown]
    assert examples
    assert [one.strip() for one in examples if one.strip() not in lines] == []


def test_usage_says_that_there_may_be_several_captures() -> None:
    assert "summary [OPTIONS] CAPTURE..." in on_terminal("summary", "--help", columns=80).out
    assert "explain [OPTIONS] [CODE]" in on_terminal("explain", "--help", columns=80).out
