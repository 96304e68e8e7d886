"""Times and spans as options take them: what they mean, and when none of a capture lies there."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpsniff.analysis import times
from amqpsniff.cli import live
from amqpsniff.errors import UsageError
from tests.cli.running import run

CAPTURE = "pika_mix.pcap"
START_NS = 1_795_224_677_681_619_000
S, MS = 1_000_000_000, 1_000_000

OFFSETS = {
    "3.5": 3_500 * MS,
    "0": 0,
    "3.546605": 3_546_605_000,
    "3.5s": 3_500 * MS,
    "+3.5s": 3_500 * MS,
    "+3.5": 3_500 * MS,
    "500ms": 500 * MS,
    "1m30s": 90 * S,
    "+1m30s": 90 * S,
    "1m 30s": 90 * S,
    "2min": 120 * S,
    "1h30m": 5_400 * S,
    "1d1ms": 86_400 * S + MS,
    "315359999": 315_359_999 * S,
    "+1700000000": 1_700_000_000 * S,
}
INSTANTS = {
    "315360000": 315_360_000 * S,
    "1700000000": 1_700_000_000 * S,
    "1700000000.25": 1_700_000_000 * S + 250 * MS,
    "2026-11-21T01:31:18Z": 1_795_224_678 * S,
    "01:31:18": 1_795_224_678 * S,
}
NO_TIMES = ("", "s", "-1", "1.5.2", "30s1m", "1s1s", "1e3", "1m30", "٣", "3,5", "+", "++1", "1 2")

COMMANDS = (
    "inspect", "messages", "bodies", "summary", "topology", "diagnose", "report", "connections",
    "channels", "trace", "follow", "export",
)  # fmt: skip
"""The commands that take --from and --to."""


@pytest.mark.parametrize("text", OFFSETS)
def test_offsets_from_the_capture_s_start(text: str) -> None:
    assert times.parse(text, "from")(START_NS) == START_NS + OFFSETS[text]


@pytest.mark.parametrize("text", INSTANTS)
def test_instants(text: str) -> None:
    assert times.parse(text, "from")(START_NS) == INSTANTS[text]


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        times.parse(text, "from")
    with pytest.raises(UsageError, match="is not a span of time"):
        live.span(text, "duration")


def test_no_time_is_beyond_what_a_table_holds() -> None:
    for text in ("999999999999d", "999999999999"):
        assert times.parse(text, "from")(START_NS) == times.MAX_TIME_NS
        assert run("inspect", CAPTURE, "--from", text).out == ""


def test_the_first_column_of_a_line_is_a_time() -> None:
    lines = run("inspect", CAPTURE).out.splitlines()
    for line in lines[:: len(lines) // 5]:
        shown = line.split()[0]
        found = run("inspect", CAPTURE, "--from", shown).out.splitlines()
        assert found == [one for one in lines if float(one.split()[0]) >= float(shown)]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_time_without_a_packet_is_told(command: str, tmp_path: Path) -> None:
    more = {
        "bodies": ["-o", str(tmp_path / "bodies")],
        "report": ["-o", str(tmp_path / "page.html")],
        "trace": ["--message-id", "m6"],
        "follow": ["--connection", "7f29"],
        "export": ["--table", "frames"],
    }.get(command, [])
    result = run(command, CAPTURE, *more, "--from", "1m", "--to", "2m")
    warnings = [line for line in result.err.splitlines() if "warning: " in line]
    told = (
        "amqpsniff: warning: no packet lies in the time from 1m to 2m; the capture is from "
        "2026-11-21T01:31:17.681619Z to 2026-11-21T01:31:18.910688Z (1.229069 s)"
    )
    assert warnings == [told]


@pytest.mark.parametrize("option", ["--from 1.2", "--to 0.000001", "--from 0 --to 1.229069"])
def test_nothing_is_told_of_a_time_with_packets(option: str) -> None:
    assert "no packet lies" not in run("summary", CAPTURE, *option.split()).err
