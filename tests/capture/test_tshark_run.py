"""tshark is found, told apart from what is none, read from, and never left running."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from amqpsniff.capture import tshark
from amqpsniff.errors import TsharkError
from tests import processes
from tests.conftest import SAMPLES
from tests.waiting import PATIENCE, wait_for

pytest.importorskip("pyshark")
real = pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark")

VERSION = 'case "$1" in --version) echo "TShark (Wireshark) 4.2.1 (Git)."; exit;; esac'


def fake(folder: Path, script: str) -> str:
    """A program that says it is tshark and then does something else."""
    path = folder / "tshark"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def run(path: str, silence_s: float = 0.5) -> bytes:
    """All that a tshark writes."""
    with tshark.Run(tshark.find(path), [], silence_s=silence_s) as one:
        said = b""
        while octets := one.read():
            said += octets
    return said


def children() -> set[int]:
    """The processes that this one started, also those that ended and were not waited for."""
    return set(processes.children(os.getpid()))


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """No process is there after a test that was not before: a broker of other tests may be."""
    before = children()
    yield
    assert children() <= before


@real
@pytest.mark.tshark
def test_the_real_one() -> None:
    found = tshark.find()
    assert found.version >= tshark.MIN_VERSION
    options = tshark.arguments(
        SAMPLES / "pika_mix.pcap",
        display_filter="amqp",
        preferences={"tcp.reassemble_out_of_order": "TRUE"},
        decode_as={"tcp.port==5672": "amqp"},
        more=["-c", "7", "-T", "fields", "-e", "frame.number"],
    )
    with tshark.Run(found, options) as one:
        assert one.read().split()
        while one.read():
            pass


@real
@pytest.mark.tshark
def test_what_it_refuses(tmp_path: Path) -> None:
    path = tmp_path / "not-a-capture"
    path.write_bytes(b"not a capture" * 10)
    refused = pytest.raises(TsharkError, match=r"tshark refused: .*not-a-capture")
    with tshark.Run(tshark.find(), tshark.arguments(path)) as one, refused:
        one.read()


@real
@pytest.mark.tshark
def test_a_reader_that_leaves_early() -> None:
    with tshark.Run(tshark.find(), tshark.arguments(SAMPLES / "node.pcap", more=["-V"])) as one:
        one.read(10)


def test_no_tshark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TsharkError, match="tshark is not installed; install it"):
        tshark.find()


def test_the_one_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = fake(tmp_path, VERSION)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert tshark.find() == tshark.Tshark(path, (4, 2, 1), "4.2.1")


def test_too_old(tmp_path: Path) -> None:
    path = fake(tmp_path, 'echo "TShark 1.12.1 (Git Rev Unknown from unknown)"')
    with pytest.raises(TsharkError, match=r"tshark 1\.12\.1 at .* is too old; 3\.0 or newer"):
        tshark.find(path)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo hello", "is not tshark: asked for its version it says 'hello'"),
        ("true", "is not tshark: asked for its version it says 'nothing'"),
        ("printf '\\377\\0\\033[2J'", "is not tshark"),
        ("echo 'no library' >&2; exit 127", "tshark refused: no library"),
        ("kill -SEGV $$", "tshark was ended by signal 11"),
    ],
)
def test_what_is_no_tshark(tmp_path: Path, script: str, words: str) -> None:
    with pytest.raises(TsharkError, match=re.escape(words)):
        tshark.find(fake(tmp_path, script), answer_s=PATIENCE)


def test_one_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(TsharkError, match=r"did not tell its version in 0\.3 s"):
        tshark.find(fake(tmp_path, "exec sleep 1000"), answer_s=0.3)


def test_what_cannot_be_run(tmp_path: Path) -> None:
    path = tmp_path / "tshark"
    path.write_text("no program")
    with pytest.raises(TsharkError, match="cannot be run: Permission denied"):
        tshark.find(str(path))


def test_one_that_hangs(tmp_path: Path) -> None:
    path = fake(tmp_path, f"{VERSION}\necho begin; exec sleep 1000")
    with pytest.raises(TsharkError, match=r"said and did nothing for 0\.5 s and was stopped"):
        run(path)


def test_one_that_hangs_and_does_not_want_to_end(tmp_path: Path) -> None:
    path = fake(tmp_path, f"{VERSION}\ntrap '' TERM; echo begin; while true; do sleep 0.1; done")
    with tshark.Run(tshark.find(path), []) as one:
        assert one.read() == b"begin\n"


def test_one_that_hangs_after_its_output(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    path = fake(tmp_path, f"{VERSION}\necho all; exec >&-; touch {closed}; exec sleep 1000")
    with tshark.Run(tshark.find(path), [], silence_s=PATIENCE) as one:
        assert one.read() == b"all\n"
        wait_for(closed.exists)
        one.silence_s = 0.2
        with pytest.raises(TsharkError, match="closed its output, did not end and was stopped"):
            one.read()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_one_that_works_in_silence_is_not_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is that of its processor: while it has none on a busy machine no time passes."""
    work = "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done"
    path = fake(tmp_path, f"{VERSION}\n{work}; echo done")
    before = children()
    with tshark.Run(tshark.find(path), [], silence_s=0.1) as one:
        (process,) = children() - before
        stat = Path(f"/proc/{process}/stat")

        def worked() -> float:
            fields = stat.read_text().rpartition(")")[2].split()
            return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

        monkeypatch.setattr(tshark, "time", SimpleNamespace(monotonic=worked))
        assert one.read() == b"done\n"
        assert worked() > one.silence_s


def test_one_that_crashes(tmp_path: Path) -> None:
    path = fake(tmp_path, f"{VERSION}\necho begin; kill -SEGV $$")
    with pytest.raises(TsharkError, match="tshark was ended by signal 11: it does not say why"):
        run(path)


def test_one_that_refuses(tmp_path: Path) -> None:
    said = 'Running as user "root" and group "root". This could be dangerous.'
    path = fake(tmp_path, f"{VERSION}\necho '{said}' >&2; echo 'tshark: No such file.' >&2; exit 2")
    with pytest.raises(TsharkError, match=r"^tshark refused: No such file\.$"):
        run(path)


def test_one_that_complains_without_end(tmp_path: Path) -> None:
    flood = "i=0; while [ $i -lt 20000 ]; do echo 'a long line of complaint' >&2; i=$((i+1)); done"
    path = fake(tmp_path, f"{VERSION}\n{flood}; echo done")
    assert run(path, silence_s=PATIENCE) == b"done\n"


def test_no_pyshark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyshark", None)
    with pytest.raises(TsharkError, match=r"needs the Python package pyshark \(.*pip install"):
        tshark.find()
