"""What `live` makes of terminals: those that cannot show it, and one that only takes messages."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from tests.cli.running import PROGRAM, environment, on_terminal, process, run
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
    assert "--format ndjson" in refused.out


@pytest.mark.parametrize("option", ["--limit 3", "--from +1s", "--to 12:00"])
def test_what_chooses_rows_is_not_for_the_dashboard(option: str) -> None:
    shown = on_terminal("live", CAPTURE, "--duration", "1s", *option.split(), columns=80)
    assert shown.code == 2
    assert f"{option.split(maxsplit=1)[0]} chooses rows; give --format ndjson" in shown.out


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
    shown = b""
    try:
        while piece := os.read(leader, 65536):
            shown += piece
    except OSError:  # Linux says EIO where others say end of file
        pass
    os.close(leader)
    _, _, summary = shown.decode().partition("\r\npackets ")
    assert max(map(len, summary.splitlines())) <= 60


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
