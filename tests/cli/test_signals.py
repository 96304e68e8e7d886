"""How a run ends before it is over: by signals, and where nobody takes what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import PROGRAM, environment, process, run
from tests.conftest import SAMPLES
from tests.waiting import PATIENCE, wait_for

CAPTURE = SAMPLES / "pika_mix.pcap"
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]

JOB = """
import os, signal
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
with open({pid!r} + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename({pid!r} + ".new", {pid!r})
signal.pause()
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_no_half_file_is_left(number: int, tmp_path: Path) -> None:
    """Ctrl-C has an exit code, as ever; of the others a parent sees which one it was."""
    with subprocess.Popen(
        (*PROGRAM, "export", "-", "-t", "frames", "-o", tmp_path / "frames.ndjson"),
        stdin=subprocess.PIPE, env=environment(),
    ) as running:  # fmt: skip
        assert running.stdin is not None
        running.stdin.write(CAPTURE.read_bytes())
        running.stdin.flush()
        wait_for(lambda: list(tmp_path.iterdir()))
        running.send_signal(number)
        code = running.wait(PATIENCE)
    assert code == (130 if number == signal.SIGINT else -number)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", SIGNALS)
def test_a_job_ends_with_its_command(number: int, tmp_path: Path) -> None:
    """It is no child of the terminal, so nobody else would end it."""
    pid = tmp_path / "pid"
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text(JOB.format(pid=str(pid)))
    with subprocess.Popen(
        (*PROGRAM, "batch", CAPTURE, "-o", tmp_path / "out"),
        env=environment(PYTHONPATH=str(tmp_path)),
    ) as running:  # fmt: skip
        wait_for(pid.exists)
        running.send_signal(number)
        code = running.wait(PATIENCE)
    assert code == (130 if number == signal.SIGINT else -number)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_what_the_system_ignores_stays_ignored(tmp_path: Path) -> None:
    """As `nohup` has it."""
    nohup = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
    program = (sys.executable, "-c", nohup + "import sys; from amqpsniff.cli.entry import main; "
               "sys.exit(main())")  # fmt: skip
    with subprocess.Popen(
        (*program, "export", "-", "-t", "frames", "-o", tmp_path / "frames.ndjson"),
        stdin=subprocess.PIPE, env=environment(),
    ) as running:  # fmt: skip
        assert running.stdin is not None
        running.stdin.write(CAPTURE.read_bytes())
        wait_for(lambda: list(tmp_path.iterdir()))
        running.send_signal(signal.SIGHUP)
        running.stdin.close()
        assert running.wait(PATIENCE) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["frames.ndjson"]


INTERRUPTED = """
import signal, sys
import amqpsniff.tables.query as query
from amqpsniff.cli.entry import main

def interrupted(*_):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise RuntimeError("Query interrupted") from None  # as DuckDB has it

query.sql = interrupted
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())
"""


def test_what_a_library_makes_of_it_is_no_internal_error() -> None:
    done = subprocess.run(
        (sys.executable, "-c", INTERRUPTED, "sql", CAPTURE, "SELECT 1"),
        env=environment(), capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


DROPPED = """
import signal, sys, time
import amqpsniff.tables.query as query
from amqpsniff.cli.entry import main

class Gone:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def dropped(*_):
    Gone()
    while True:
        time.sleep(0.01)

query.sql = dropped
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())
"""


def test_a_signal_in_a_destructor_is_not_lost() -> None:
    """Python can raise nothing there, and would print what it dropped."""
    done = subprocess.run(
        (sys.executable, "-c", DROPPED, "sql", CAPTURE, "SELECT 1"),
        env=environment(), capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def cut_capture(folder: Path) -> Path:
    """A capture of which there is something to say on standard error."""
    path = folder / "cut.pcap"
    path.write_bytes(CAPTURE.read_bytes()[:-10])
    return path


@pytest.mark.parametrize("shell", ["2> /dev/full", "2> >(exec true)"])
def test_standard_error_that_nobody_takes(shell: str, tmp_path: Path) -> None:
    """A full disk behind a log is no reason to give less, and does not change the exit code."""
    capture, rows = cut_capture(tmp_path), tmp_path / "frames.ndjson"
    whole = run("export", capture, "-t", "frames")
    assert "ends inside a record" in whole.err
    assert process("export", capture, "-o", rows, "-t", "frames", shell=shell) == (0, "", "")
    assert rows.read_text() == whole.out
    assert process("summary", capture, shell=shell) == (0, run("summary", capture).out, "")
    assert process("inspect", tmp_path / "none", shell=shell).code == 3


def test_a_version_that_nobody_takes() -> None:
    done = process("--version", shell="> /dev/full")
    assert done.code == 3
    assert done.err == "amqpsniff: cannot write the output: No space left on device\n"
