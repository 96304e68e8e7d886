"""The tshark program: finds it, checks its version, starts it, reads its output, always reaps it.

pyshark finds the program and knows how options are written (`arguments`); its packet objects are
not used, for it makes some 270 of them a second. A `Run` is one tshark whose standard output is
read as it comes. It has no settings but those it is given: a person's own preferences must not
change its output. However reading it ends, `close` leaves no process behind.

tshark may be silent for long in a large capture without being stuck, so a run is given up only when
it says nothing and, where that can be seen, does no work either.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from amqpsniff.capture.formats import shown
from amqpsniff.capture.poll import readable
from amqpsniff.errors import TsharkError
from amqpsniff.installation import how_to_add

MIN_VERSION = (3, 0)
"""The first one with `tcp.reassemble_out_of_order` and `tls.keylog_file` (2019)."""

ANSWER_S = 60.0
"""Seconds for `tshark --version`: it takes 0.1, from the cold disk of a busy machine many more."""

SILENCE_S = 60.0
"""Seconds without a word and without work after which a run is given up."""

GOODBYE_S = 2.0
"""Seconds between asking a process to end and ending it."""

KEPT_BYTES = 8192
"""Bytes kept of the end of standard error, for the reason of a failure."""

READ_BYTES = 1 << 16

CUT_SHORT = b"cut short in the middle of a packet"
"""tshark's message for a capture that ends inside a packet, after the last whole one."""

INSTALL = 'install it ("apt install tshark", "brew install wireshark", or from wireshark.org)'

_NO_SETTINGS = str(Path(__file__).with_name("no-tshark-settings"))
"""A folder that does not exist: from there tshark reads no settings and does not complain."""

_NOISE = re.compile(r"^\s*$|^Running as user |^tshark: Lua: |^\*\* ")
_TICKS = re.compile(rb"\) \w (?:-?\d+ ){10}(\d+) (\d+)")


class Tshark(NamedTuple):
    """A tshark that runs: where it is, and its version as numbers and as text."""

    path: str
    version: tuple[int, ...]
    version_text: str


def find(path: str | None = None, *, answer_s: float = ANSWER_S) -> Tshark:
    """The tshark that pyshark finds (or the one at `path`), once it has answered its version.

    Raises TsharkError without a tshark, if it is older than `MIN_VERSION`, or if the program does
    not answer like tshark.
    """
    path = path or _found()
    answer = _answer([path, "--version"], answer_s)
    match = re.search(r"^TShark\D*?(\d+(?:\.\d+)+)", answer, re.MULTILINE)
    if match is None:
        first = shown(answer.strip().split("\n", 1)[0][:80] or "nothing")
        raise TsharkError(f"{path} is not tshark: asked for its version it says {first!r}")
    version = tuple(map(int, match[1].split(".")))
    if version < MIN_VERSION:
        least = ".".join(map(str, MIN_VERSION))
        raise TsharkError(f"tshark {match[1]} at {path} is too old; {least} or newer is needed")
    return Tshark(path, version, match[1])


def arguments(
    path: str | os.PathLike[str],
    *,
    display_filter: str | None = None,
    preferences: dict[str, str] | None = None,
    decode_as: dict[str, str] | None = None,
    more: Sequence[str] = (),
) -> list[str]:
    """The options with which tshark reads a capture file.

    `preferences` are by name, `decode_as` are protocols by condition (`tcp.port==5672`), `more`
    stands as it is. Raises TsharkError if pyshark is missing, or the file does not exist.
    """
    pyshark = _pyshark()
    try:
        # any event loop but None keeps pyshark from setting one up; nothing is ever run in it
        capture = pyshark.FileCapture(
            os.fspath(path),
            override_prefs=preferences,
            decode_as=decode_as,
            custom_parameters=["-n", *more],
            eventloop=False,
        )
    except OSError as error:
        raise TsharkError(f"{shown(os.fspath(path))}: {error.strerror or 'not a file'}") from None
    filtering = ["-Y", display_filter] if display_filter else []
    return [*filtering, *capture.get_parameters()]


class Run:
    """One tshark at work: `read` its standard output, then `close`; a context manager.

    Args:
        tshark: The program.
        options: Its options, from `arguments`.
        silence_s: Seconds without a word and without work after which it is given up.
        stdin: A file that it reads as standard input.

    `cut_short`: the capture ends inside a packet; all before it was read, so that is no failure.
    """

    def __init__(
        self,
        tshark: Tshark,
        options: Sequence[str],
        *,
        silence_s: float = SILENCE_S,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self.tshark = tshark
        self.silence_s = silence_s
        self.ended = False
        self.cut_short = False
        self._error_output = b""
        self._process = _start([tshark.path, *options], stdin)
        assert self._process.stdout is not None
        self._output = self._process.stdout
        self._listener = threading.Thread(target=self._read_errors, daemon=True)
        self._listener.start()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, octets: int = READ_BYTES) -> bytes:
        """The next bytes of standard output, as they come; empty once tshark has ended well.

        Raises TsharkError when it ended badly or is given up.
        """
        if self.ended:
            return b""
        self._wait_for_output()
        data = os.read(self._output.fileno(), octets)
        if not data:
            self._finish()
        return data

    def close(self) -> None:
        """End the process if it still runs, and reap it."""
        process = self._process
        self.ended = True
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(GOODBYE_S)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        self._listener.join(GOODBYE_S)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    def _wait_for_output(self) -> None:
        worked, since = _work(self._process.pid), time.monotonic()
        while not readable(self._output, min(self.silence_s, 1.0)):
            now = _work(self._process.pid)
            if now != worked:
                worked, since = now, time.monotonic()
            elif time.monotonic() - since >= self.silence_s:
                self.close()
                raise TsharkError(
                    f"tshark {self.tshark.version_text} at {self.tshark.path} said and did nothing "
                    f"for {self.silence_s:g} s and was stopped"
                )

    def _finish(self) -> None:
        """Standard output is over: reap tshark, and report its error, if any."""
        try:
            code = self._process.wait(self.silence_s)
        except subprocess.TimeoutExpired:
            self.close()
            raise TsharkError("tshark closed its output, did not end and was stopped") from None
        self.close()
        self.cut_short = CUT_SHORT in self._error_output
        if code and not self.cut_short:
            raise TsharkError(f"{_outcome(code)}: {self._reason()}")

    def _reason(self) -> str:
        lines = self._error_output.decode(errors="replace").split("\n")
        messages = [
            line.removeprefix("tshark: ").strip() for line in lines if not _NOISE.match(line)
        ]
        return shown(" ".join(messages)[:400] or "it does not say why")

    def _read_errors(self) -> None:
        """Keep the end of standard error: a full pipe would stop tshark."""
        source = self._process.stderr
        while source is not None and not source.closed:
            try:
                octets = os.read(source.fileno(), READ_BYTES)
            except (OSError, ValueError):
                return
            if not octets:
                return
            self._error_output = (self._error_output + octets)[-KEPT_BYTES:]


def _pyshark() -> Any:
    try:
        import pyshark
    except ImportError:
        raise TsharkError(
            f"working with tshark needs the Python package pyshark ({how_to_add('tshark')})"
        ) from None
    return pyshark


def _found() -> str:
    _pyshark()
    from pyshark.tshark.tshark import TSharkNotFoundException, get_process_path

    try:
        return str(get_process_path())
    except TSharkNotFoundException:
        raise TsharkError(f"tshark is not installed; {INSTALL}") from None


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C", "TZ": "UTC", "WIRESHARK_CONFIG_DIR": _NO_SETTINGS}


def _start(command: list[str], stdin: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
        )
    except OSError as error:
        raise TsharkError(f"tshark at {command[0]} cannot be run: {error.strerror}") from None


def _answer(command: list[str], answer_s: float) -> str:
    """The output of a short-lived process, within a time limit."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=answer_s,
            env=_environment(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TsharkError(
            f"tshark at {command[0]} did not tell its version in {answer_s:g} s"
        ) from None
    except OSError as error:
        raise TsharkError(f"tshark at {command[0]} cannot be run: {error.strerror}") from None
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().split("\n")[-1]
        raise TsharkError(
            f"{_outcome(done.returncode)}: {shown(reason[:400] or 'no reason given')}"
        )
    return done.stdout.decode(errors="replace")


def _outcome(code: int) -> str:
    """The exit status of a failed process, as text."""
    if code < 0:
        return f"tshark was ended by signal {-code}"
    return "tshark refused"


def _work(pid: int) -> object:
    """Something that changes while a process works; where nothing shows it, always the same."""
    if sys.platform != "linux":
        return None
    try:
        match = _TICKS.search(Path(f"/proc/{pid}/stat").read_bytes())
    except OSError:
        return None
    return match.groups() if match else None
