"""However early Ctrl-C comes it ends the run, and what was there by then is taken."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from amqpsniff.capture.live_capture import InterfaceCapture
from amqpsniff.capture.tail import FileCapture, PipeCapture
from amqpsniff.live.event_loop import Steps
from amqpsniff.live.watch import PacketSource, Watch
from amqpsniff.options import Options
from tests.cli.running import SIGNALS, environment
from tests.conftest import SAMPLES
from tests.live.sniffing import Sniffer
from tests.waiting import PATIENCE, free_port, wait_for

SAMPLE = SAMPLES / "pika_mix.pcap"
WHOLE = 568
"""Its packets."""

MOMENT = """
import os, signal, sys
from amqpsniff.cli.entry import main

left = int(sys.argv.pop())

def passed(*_):
    global left
    left -= 1
    if not left:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)

sys.setprofile(passed)
sys.exit(main())
"""

DROPPED = """
import os, signal, sys
from amqpsniff.cli import live
from amqpsniff.cli.entry import main

class Callback:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

opened = live.Live._source

def interrupted(self):
    Callback()
    return opened(self)

live.Live._source = interrupted
sys.exit(main())
"""


def ended(script: str, *arguments: str) -> tuple[int, str, str]:
    """Exit code and output of a program that follows a file until Ctrl-C."""
    done = subprocess.run(
        (sys.executable, "-c", SIGNALS + script, "live", SAMPLE, *arguments), env=environment(),
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("calls", [10_000, 100_000, 200_000])
def test_while_it_starts(calls: int) -> None:
    """At any call, of some 500,000 before it captures."""
    code, out, _ = ended(MOMENT, str(calls))
    assert (code, out) == (130, "")


def test_where_python_drops_it() -> None:
    """In what is called back nothing can be raised: the signal comes again."""
    code, out, err = ended(DROPPED)
    assert (code, out, err) == (130, "", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_as_soon_as_it_says_how_to_end_it(number: int, tmp_path: Path) -> None:
    shutil.copy(SAMPLE, tmp_path / "growing.pcap")
    sniffer = Sniffer("growing.pcap", folder=tmp_path)
    assert sniffer.stop(number) == 0, sniffer.err
    assert f"{WHOLE} packets" in sniffer.err


def test_what_a_file_has_is_taken(tmp_path: Path) -> None:
    """Also what was written after the last look at it."""
    octets = SAMPLE.read_bytes()
    growing = tmp_path / "growing.pcap"
    growing.write_bytes(octets[:10_000])
    watch = Watch(FileCapture([str(growing)]), Options())
    steps = Steps(watch)
    for _ in steps:
        if watch.source.packets < WHOLE:
            growing.write_bytes(octets)
            steps.stop()
    assert watch.source.packets == WHOLE
    watch.close()


def test_an_interface_that_comes_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is gone again when it is to be captured on: others are not captured on instead."""
    source = InterfaceCapture(["lo"], f"udp port {free_port()}", look_seconds=0)
    for indices in ([0], [1 << 30, 0], [0]):
        found = iter([*indices, 0])
        monkeypatch.setattr(
            "amqpsniff.capture.live_capture.index_of", lambda _, found=found: next(found)
        )
        list(source.take(1))
        with socket.socket(fileno=os.dup(source.fileno())) as same:
            assert same.getsockname()[0] == "lo"
    monkeypatch.undo()
    list(source.take(1))
    assert not source.missing
    source.close()


def test_packets_that_the_kernel_keeps_back_are_known() -> None:
    port = free_port()
    source = InterfaceCapture(["lo"], f"udp port {port}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sent = 0

        def held() -> bool:
            nonlocal sent
            sender.sendto(b"something", ("127.0.0.1", port))
            sent += 1
            return source.held()

        wait_for(held)
        wait_for(lambda: list(source.take(1 << 40)) and source.packets == sent)
    assert not source.held()
    source.close()


@contextmanager
def repeated(send: Callable[[], object]) -> Iterator[None]:
    """Something that is sent again and again meanwhile, by another thread."""
    over = threading.Event()

    def sending() -> None:
        while not over.is_set():
            send()
            time.sleep(0.0001)

    thread = threading.Thread(target=sending)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def watched(source: PacketSource, seconds: float) -> tuple[Watch, int, int]:
    """A run of that duration, and the earliest and latest time at which it may end."""
    watch = Watch(source, Options())
    began, began_ns, duration_ns = time.monotonic(), time.time_ns(), int(seconds * 1e9)
    steps = Steps(watch, seconds)
    latest_ns = time.time_ns() + duration_ns
    for _ in steps:
        pass
    assert time.monotonic() - began >= seconds
    watch.close()
    return watch, began_ns + duration_ns, latest_ns


def test_an_interface_that_never_rests_is_captured_for_the_duration() -> None:
    """Neither what comes later has rows, nor does the run wait for a pause."""
    port = free_port()
    source = InterfaceCapture(["lo"], f"udp port {port}")
    sent: list[tuple[int, int]] = []

    def send() -> None:
        begin = time.time_ns()
        sender.sendto(b"something", ("127.0.0.1", port))
        sent.append((begin, time.time_ns()))

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender, repeated(send):
        watch, earliest_ns, latest_ns = watched(source, 0.4)
    totals = watch.pipeline.totals
    assert totals.packets
    assert totals.last_ns is not None
    last = max(begin for begin, end in sent if end <= earliest_ns)
    assert last <= totals.last_ns <= latest_ns


def test_an_interface_without_packets_is_captured_for_the_duration() -> None:
    watch, _, _ = watched(InterfaceCapture(["lo"], f"udp port {free_port()}"), 0.2)
    assert watch.pipeline.totals.packets == 0


def test_a_pipe_that_never_rests_is_followed_for_the_duration(tmp_path: Path) -> None:
    octets = SAMPLE.read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    here = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    os.write(here, octets[:24])

    def send() -> None:
        with suppress(BlockingIOError):
            os.write(here, octets[24 : 24 + 16 + int.from_bytes(octets[32:36], "little")])

    with repeated(send):
        watch, _, _ = watched(PipeCapture(str(pipe)), 0.3)
    os.close(here)
    assert watch.pipeline.totals.packets
