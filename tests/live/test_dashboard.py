"""The dashboard, looked at through a pseudo-terminal."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.running import PROGRAM
from tests.live.broker import Broker
from tests.live.clients import keep_busy
from tests.live.terminal import BEGIN, Terminal
from tests.waiting import PATIENCE

pytestmark = pytest.mark.broker


@contextmanager
def shown(*arguments: str, columns: int = 80, lines: int = 24) -> Iterator[Terminal]:
    """The dashboard of loopback."""
    terminal = Terminal("-i", "lo", *arguments, columns=columns, lines=lines)
    try:
        yield terminal
    finally:
        terminal.close()


@contextmanager
def busy(broker: Broker) -> Iterator[None]:
    """Clients that publish and consume, and go on."""
    going, over = threading.Event(), threading.Event()
    running = threading.Thread(target=keep_busy, args=("127.0.0.1", broker.port, going, over))
    running.start()
    try:
        assert going.wait(PATIENCE)
        yield
    finally:
        over.set()
        running.join()


def test_views_of_a_broker(broker: Broker) -> None:
    """Every view, sorting, filtering, a pause, help, another size, and the way out."""
    with shown("--port", str(broker.port)) as terminal:
        terminal.shows("no AMQP yet")
        with busy(broker):
            for words in (
                "busy-publisher",
                "2 connections",
                "0 dropped",
                "basic.publish",
                "exchanges",
                "routing keys",
                "queues",
                "amq.topic",
                "load.",
                "busy",
            ):
                terminal.shows(words)
            terminal.until(lambda: re.search(r"cnf +[0-9.]+ [µm]s  p99 +[0-9.]+ ", terminal.text))
            terminal.until(lambda: re.search(r"ack +[0-9.]+ [µm]s  p99 +[0-9.]+ ", terminal.text))
            assert all(len(line) <= 80 for line in terminal.text.split("\n"))
            assert terminal.text.split("\n")[-1].startswith("q quit")
            terminal.press("2")
            terminal.shows("routing key")
            terminal.press("3")
            terminal.shows("dlv/s")
            terminal.press("1")
            terminal.press("ss")
            terminal.shows("by unack")
            terminal.press("r")
            terminal.shows("by unack (turned)")
            terminal.press("/consumer\r")
            terminal.until(lambda: "busy-publisher" not in terminal.text.split("exchanges  ")[0])
            terminal.press("/\x15delivered_per_s > 0\r")
            terminal.shows("/delivered_per_s > 0")
            terminal.press("\x1b")
            terminal.shows("busy-publisher")
            terminal.press("/\x15nonsense = 1\r")
            terminal.shows("no column `nonsense`")
            terminal.press("\x1b")
            terminal.press("\r")
            terminal.shows("heartbeat")
            terminal.press("?")
            terminal.shows("another view")
            terminal.press("?1p")
            terminal.shows("held")
            terminal.drawn(1)  # all of what shows the word
            held = terminal.text
            terminal.drawn(3)
            assert terminal.text == held
            terminal.press("p")
            terminal.resize(132, 50)
            os.kill(terminal.running.pid, signal.SIGWINCH)
            terminal.shows("vhost")
            terminal.until(lambda: "q quit" in terminal.text.split("\n")[-1])
            assert max(map(len, terminal.text.split("\n"))) > 80
        terminal.press("4")
        terminal.shows("declaration-mismatch")
        terminal.press("ss")
        terminal.shows("by times")
        terminal.press("sss")
        terminal.until(lambda: "› " in terminal.text and " E  declaration" in terminal.text)
        terminal.shows("amqpsniff explain declaration-mismatch")
        terminal.press("\r")
        terminal.shows("ended by client")
        terminal.press("q")
        assert terminal.end() == 0
        assert terminal.restored()
        assert "RabbitMQ" in terminal.written.decode()


def test_connections_that_were_open_before(broker: Broker) -> None:
    """They are joined: rates at once, confirms at least, and what nobody said as unknown."""
    with (
        busy(broker),
        shown("--port", str(broker.port), "--where", "published_per_s > 0") as terminal,
    ):
        terminal.shows("2 connections")
        terminal.shows("where published_per_s > 0")
        terminal.until(lambda: re.search(r"cnf +≥[0-9.]+ [µm]s  p99 +≥[0-9.]+ ", terminal.text))
        terminal.until(lambda: re.search(r"publish +[1-9][0-9,.]*/s", terminal.text))
        terminal.shows("? (consumers from before)")
        terminal.press("\r")
        terminal.shows("user ?")
        terminal.press("q")
        assert terminal.end() == 0


@pytest.mark.parametrize("way", ["SIGTERM", "SIGINT", "SIGHUP", "duration", "tiny"])
def test_terminal_is_restored(way: str) -> None:
    """However it ends, modes, cursor and screen are as they were."""
    arguments = ("--duration", "1s") if way == "duration" else ()
    with shown(*arguments) as terminal:
        if way != "duration":
            terminal.shows("q quit")
        if way.startswith("SIG"):
            os.kill(terminal.running.pid, getattr(signal, way))
        elif way == "tiny":
            terminal.resize(3, 1)
            terminal.press("pq")
        assert terminal.end() == 0
        assert terminal.restored()
        assert BEGIN in terminal.written


def test_terminal_is_restored_by_what_ends_it_at_once() -> None:
    """Ctrl-\\ does, and what it says to others is what it always says."""
    with shown() as terminal:
        terminal.shows("q quit")
        terminal.press("\x1c")
        assert terminal.end() == -signal.SIGQUIT
        assert terminal.restored()


BREAKING = """
import sys
from amqpsniff.cli.entry import main
import {module} as module

whole, calls = module.{place}, []

def broken(*arguments, **options):
    calls.append(1)
    if len(calls) > 3:
        raise ValueError("nobody expected this")
    return whole(*arguments, **options)

module.{place} = broken
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("module", "place"),
    [
        ("amqpsniff.cli.dashboard.dashboard", "Screen"),  # while drawing
        ("amqpsniff.cli.dashboard.dashboard", "Keyboard.pressed"),  # while reading keys
        ("amqpsniff.pipeline", "Pipeline.feed"),  # while decoding
    ],
)
def test_terminal_is_restored_after_an_error(module: str, place: str) -> None:
    """Of our own making, while the dashboard is up: one line on the terminal that was before."""
    program = (sys.executable, "-c", BREAKING.format(module=module, place=place))
    terminal = Terminal("-i", "lo", program=program)
    try:
        talk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        end = time.monotonic() + PATIENCE
        while terminal.running.poll() is None and time.monotonic() < end:
            talk.sendto(b"something to decode", ("127.0.0.1", 9))
            terminal.read()
        talk.close()
        assert terminal.end() != 0
        assert terminal.restored()
        said = terminal.written.rpartition(b"\x1b[?1049l")[2].decode()
        assert "internal error, ValueError: nobody expected this" in said
        assert "Traceback" not in said
    finally:
        terminal.close()


SHELL = ("bash", "-c", 'set -m; "$@"; echo stopped; read; fg; exit $?', "bash", *PROGRAM)


def test_stopped_and_woken() -> None:
    """Ctrl-Z gives the terminal back; after fg it is drawn again."""
    terminal = Terminal("-i", "lo", program=SHELL)
    try:
        terminal.shows("q quit")
        terminal.press("\x1a")
        terminal.until(lambda: b"stopped\r\n" in terminal.written)
        assert terminal.restored()
        written = len(terminal.written)
        terminal.press("\n")
        terminal.until(lambda: b"\x1b[?1049h" in terminal.written[written:])
        terminal.shows("q quit")
        terminal.press("q")
        assert terminal.end() == 0
        assert terminal.restored()
    finally:
        terminal.close()


def test_nothing_stops_what_nobody_could_wake() -> None:
    """Ctrl-Z does nothing where there is no shell: a container, a window of its own."""
    with shown() as terminal:
        terminal.shows("q quit")
        terminal.press("\x1a")
        terminal.until(lambda: terminal.written.count(b"\x1b[?1049h") == 2)
        terminal.press("q")
        assert terminal.end() == 0
        assert terminal.restored()
