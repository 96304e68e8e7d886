"""The command line as it is run: in this process, in one of its own, on a terminal."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

import pyarrow  # noqa: F401 (a process of the program alone leaves out what Arrow may import)
import pytest

from amqpsniff.cli.entry import main
from tests.capture.build import NANOSECONDS, pcap_header, pcap_record
from tests.cli.forked import start
from tests.conftest import SAMPLES
from tests.tcp.wire import Packet
from tests.waiting import PATIENCE

EXPECTED = Path(__file__).parent / "expected"
UNSET = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "AMQPSNIFF_PAGER")
"""Variables that change what is written."""

UPDATE = "AMQPSNIFF_UPDATE_EXPECTED"
"""Environment variable that writes what comes out into `expected`, to be read before it is kept."""

# who runs the tests in the background, or under nohup, has signals ignored, by children too
SIGNALS = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "ends = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT); "
    "[signal.signal(one, signal.SIG_DFL) for one in ends]; "
)
PROGRAM = (
    sys.executable,
    "-c",
    SIGNALS + "import sys; from amqpsniff.cli.entry import main; sys.exit(main())",
)
PATIENT = (
    sys.executable,
    "-c",
    "from amqpsniff.cli import progress; progress.PATIENCE_SECONDS = 1e9; " + PROGRAM[2],
)
"""The program with no line that says how far it is, however slow the machine."""

SECOND_NS = 1_000_000_000


class Result(NamedTuple):
    """What one run gave."""

    code: int
    out: str
    err: str


def run(*arguments: str | Path, folder: Path = SAMPLES) -> Result:
    """Run in this process, with standard output a pipe, in the folder of the samples."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["amqpsniff", *map(str, arguments)])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        code = main()
        for stream in (out, err):
            stream.flush()
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return Result(code, *texts)


def environment(**changes: str | None) -> dict[str, str]:
    """The environment of a run: a plain terminal, without what this one has set."""
    environment = {k: v for k, v in os.environ.items() if k not in UNSET}
    environment["TERM"] = "xterm"
    environment["PAGER"] = ""
    for name, value in changes.items():
        if value is not None:
            environment[name] = value
    return environment


def process(
    *arguments: str | Path,
    octets: bytes | None = None,
    shell: str = "",
    changes: dict[str, str] | None = None,
    stdout_file: str | None = None,
) -> Result:
    """Run in a process of its own; `shell` goes on after the command, as in `| head -1`.

    With `shell` it is the whole program that runs, its imports included. `changes` are those of
    the environment; `stdout_file` is written to instead of a pipe.
    """
    if shell:
        command = ("bash", "-c", f'"$@" {shell}', "bash", *PROGRAM, *map(str, arguments))
        done = subprocess.run(
            command, capture_output=True, cwd=SAMPLES, timeout=PATIENCE, env=environment(),
            check=False,
        )  # fmt: skip
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())
    pipes = [os.pipe() for _ in range(3)]
    (stdin, fed), (out, stdout), (err, stderr) = pipes
    if stdout_file is not None:
        os.close(stdout)
        stdout = os.open(stdout_file, os.O_WRONLY)
    given = environment() | (changes or {})
    running = start([*map(str, arguments)], (stdin, stdout, stderr), given, SAMPLES)
    for one in (stdin, stdout, stderr):
        os.close(one)
    with ThreadPoolExecutor(2) as readers:
        written = [readers.submit(rest_of, one) for one in (out, err)]
        with contextlib.suppress(BrokenPipeError), open(fed, "wb") as feeding:  # noqa: PTH123
            feeding.write(octets or b"")
        texts = [one.result().decode() for one in written]
    code = ended(running)
    for one in (out, err):
        os.close(one)
    return Result(code, *texts)


def ended(running: BaseProcess) -> int:
    """The exit code of a process, which is waited for."""
    running.join(PATIENCE)
    assert running.exitcode is not None, "it does not end"
    return running.exitcode


def rest_of(leader: int) -> bytes:
    """What is still written to a pseudo-terminal, until nobody has it open any more."""
    written = b""
    try:
        while piece := os.read(leader, 65536):
            written += piece
    except OSError:  # Linux says EIO where others say end of file
        pass
    return written


def on_terminal(
    *arguments: str | Path,
    columns: int,
    no_color: str | None = "1",
    term: str = "xterm",
    changes: dict[str, str] | None = None,
) -> Result:
    """Run on a pseudo-terminal of this width; what both streams write is in `out`."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    given = environment(NO_COLOR=no_color, TERM=term) | (changes or {})
    with open(os.devnull) as nothing:  # noqa: PTH123
        streams = (nothing.fileno(), follower, follower)
        running = start([*map(str, arguments)], streams, given, SAMPLES, patient=True)
    os.close(follower)
    written = rest_of(leader)
    code = ended(running)
    os.close(leader)
    return Result(code, written.decode().replace("\r\n", "\n"), "")


def check(name: str, text: str) -> None:
    """Compare with the text that is kept under this name."""
    path = EXPECTED / f"{name}.txt"
    if os.environ.get(UPDATE):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def write_capture(path: Path, packets: Sequence[Packet]) -> Path:
    """Packets as a capture file."""
    octets = pcap_header("<", NANOSECONDS, packets[0].link_type)
    for packet in packets:
        seconds, fraction = divmod(packet.ts_ns, SECOND_NS)
        octets += pcap_record("<", seconds, fraction, packet.octets, packet.original)
    path.write_bytes(octets)
    return path
