"""Colour, width, time zone and pager: as the options, the environment and the terminal say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.running import SAMPLES, on_terminal, process, run

MIX = "pika_mix.pcap"
PROGRAM = (sys.executable, "-m", "amqpsniff")


def piped(*arguments: str, **changes: str) -> str:
    """What is written into a pipe under this environment."""
    return process(*arguments, changes=changes).out


@pytest.mark.parametrize(
    ("option", "changes", "coloured"),
    [
        ((), {}, False),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"CLICOLOR_FORCE": "1"}, True),
        ((), {"FORCE_COLOR": "0"}, False),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colours(option: tuple[str, ...], changes: dict[str, str], coloured: bool) -> None:
    assert ("\x1b[" in piped("inspect", MIX, "-n", "2", *option, **changes)) is coloured


def test_colours_on_a_terminal() -> None:
    assert "\x1b[" in on_terminal("inspect", MIX, "-n", "2", columns=80, no_color=None).out
    shown = on_terminal("inspect", MIX, "-n", "2", "--color", "never", columns=80, no_color=None)
    assert "\x1b[" not in shown.out


@pytest.mark.parametrize("command", ["inspect", "messages", "connections", "summary"])
def test_a_width_holds_in_a_pipe(command: str) -> None:
    lines = run(command, MIX, "--width", "80").out.splitlines()
    assert max(map(len, lines)) <= 80


def test_columns_without_room_are_named_last() -> None:
    narrow, wide = (run("connections", MIX, "--width", n).out for n in ("80", "400"))
    *_, last = narrow.partition("left out for want of width: ")
    names = last.split(" (")[0].replace("\n", " ").split(", ")
    assert "server" in names
    heading = narrow.splitlines()[0].split()
    assert not set(names) & set(heading)
    assert set(names) < set(wide.splitlines()[0].split())
    assert "left out" not in wide


def test_times_in_a_zone() -> None:
    words = ("messages", MIX, "-n", "1", "--time", "absolute")
    assert run(*words).out.startswith("2026-11-21T01:31:17.696515Z")
    shown = run(*words, "--tz", "Europe/Berlin").out
    assert shown.startswith("2026-11-21T02:31:17.696515+01:00")
    assert "02:31:17.681619+01:00" in run("summary", MIX, "--tz", "+01:00").out
    assert "2026-11-21T02:31:17" in run("connections", MIX, "-v", "--tz", "+01:00").out
    assert "is not a time zone" in run(*words, "--tz", "Mars").err
    assert "(02:31:18 Europe/Berlin, packet" in run("diagnose", MIX, "--tz", "Europe/Berlin").out
    text = run("report-table", "latency", MIX, "--tz", "Asia/Tokyo").out
    assert "2026-11-21T10:31:17+09:00" in text
    page = run("report", MIX, "--tz", "Asia/Tokyo", "-o", "-").out
    assert "2026-11-21 10:31:17 to 10:31:18 Asia/Tokyo" in page
    assert "UTC" not in page.partition("<script")[0]


def test_outcomes_have_a_column() -> None:
    lines = run("messages", MIX, "--method", "basic.*").out.splitlines()
    assert len({line.index("basic.") for line in lines}) == 1
    narrow = run("messages", MIX, "--outcome", "acked", "--width", "100").out.splitlines()
    assert len({len(line) for line in narrow}) == 1


def test_clients_have_names() -> None:
    assert "order-service-1:43700" in run("messages", MIX, "-n", "1").out
    assert ":43700 " in run("messages", MIX, "-n", "1", "--width", "80").out
    assert " 10.77.0.2:43720 " in run("inspect", MIX, "--client", ":43720").out


def test_a_port_alone_names_no_client_among_several_hosts() -> None:
    lines = run("connections", MIX, "zerowindow.pcap", "--width", "80").out.splitlines()
    hosts = {line.split()[2].rpartition(":")[0] for line in lines if ".pcap" in line}
    assert "" not in hosts


PAGER = "sed 's/^/paged: /'"


@pytest.mark.parametrize(
    ("arguments", "changes", "paged"),
    [
        (("inspect", MIX), {"AMQPSNIFF_PAGER": PAGER}, True),
        (("inspect", MIX), {"PAGER": PAGER}, True),
        (("inspect", MIX, "--no-pager"), {"AMQPSNIFF_PAGER": PAGER}, False),
        (("inspect", MIX), {"AMQPSNIFF_PAGER": "", "PAGER": PAGER}, False),
        (("inspect", MIX), {"AMQPSNIFF_PAGER": "cat"}, False),
        (("inspect", MIX, "-n", "5"), {"AMQPSNIFF_PAGER": PAGER}, False),
        (("messages", "--help-all"), {"AMQPSNIFF_PAGER": PAGER}, True),
    ],
)
def test_what_is_longer_than_the_screen_is_paged(
    arguments: tuple[str, ...], changes: dict[str, str], paged: bool
) -> None:
    lines = on_terminal(*arguments, columns=80, changes=changes).out.splitlines()
    assert len(lines) >= 5
    assert all(line.startswith("paged: ") is paged for line in lines)


def test_a_pipe_has_no_pager() -> None:
    assert not piped("inspect", MIX, AMQPSNIFF_PAGER=PAGER).startswith("paged")


def test_a_pager_that_is_left_ends_the_command() -> None:
    done = on_terminal("inspect", MIX, columns=80, changes={"AMQPSNIFF_PAGER": "head -2"})
    assert done.code == 0
    assert len(done.out.splitlines()) == 2


def test_warnings_follow_what_was_paged(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes((SAMPLES / MIX).read_bytes()[:-3])
    changes = {"AMQPSNIFF_PAGER": PAGER}
    lines = on_terminal("inspect", cut, columns=200, changes=changes).out.splitlines()
    said = [line.startswith("paged: ") for line in lines]
    assert said == sorted(said, reverse=True)
    assert lines[said.index(False)].startswith("amqpsniff: warning:")
