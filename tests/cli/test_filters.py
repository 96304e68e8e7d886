"""Filters by name are options of every command that shows rows; names of options mean one thing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from amqpsniff.cli import commands
from amqpsniff.cli.options import FILTERS
from tests.cli.running import process, run
from tests.conftest import REPO

MIX = "pika_mix.pcap"

DRAMATIQ = REPO / "tests/captures/packs/dramatiq.pcap.gz"

SHOWING_ROWS = (
    "inspect", "messages", "connections", "channels", "trace", "follow", "diagnose", "export",
    "bodies", "live",
)  # fmt: skip

PROGRAM: Any = typer.main.get_command(commands.application(*commands.COMMANDS))


def options(command: str) -> dict[str, Any]:
    """The options of a command by their long names."""
    found = PROGRAM.commands[command].params
    return {name: one for one in found for name in one.opts if name.startswith("--")}


@pytest.mark.parametrize("command", SHOWING_ROWS)
def test_commands_that_show_rows_have_every_filter(command: str) -> None:
    assert options(command).keys() >= FILTERS


@pytest.mark.parametrize("command", ["summary", "topology"])
def test_commands_that_count_have_all_but_sql(command: str) -> None:
    assert FILTERS - {"--where"} <= options(command).keys()


def test_an_option_means_the_same_everywhere() -> None:
    """One name for how many, and one for bodies: where they are they have one short name."""
    for command in PROGRAM.commands:
        given = options(command)
        assert not {"--top", "--rows", "--body"} & given.keys()
        if "--limit" in given:
            assert "-n" in given["--limit"].opts


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        ("inspect --queue orders.* --outcome requeued", 8),
        ("inspect --message-id m13", 3),
        ("inspect --packet 46", 2),
        ("messages --queue orders.eu --errors", 18),
        ("messages --client order-service-1 --method publish --limit 5", 5),
        ("messages --from 0.1555 --to +0.1556", 6),
        ("messages --from 01:31:17.8 --to 2026-11-21T02:31:17.9+01:00 --method deliver", 58),
        ("messages --from 02:31:17.8 --tz Europe/Berlin --method deliver", 58),
        ("export -t channels --errors", 5),
        ("export -t connections --vhost shop --user a*", 2),
        ("export -t findings --errors", 7),
        ("export -t frames --exchange audit --columns packet_number", 3),
    ],
)
def test_rows_are_chosen_by_name(arguments: str, rows: int) -> None:
    command, *rest = arguments.split(" ")
    done = run(command, MIX, *rest)
    assert done.code == 0
    assert len(done.out.splitlines()) == rows


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        ("messages", 12),
        ("messages --format ndjson", 12),
        ("export -t messages --columns packet_number,retry_count", 12),
        ("trace --format ndjson", 12),
        ("messages --by operation --format ndjson", 1),
    ],
)
def test_a_condition_names_columns_that_are_made_only_where_they_are_named(
    arguments: str, rows: int
) -> None:
    command, *rest = arguments.split(" ")
    done = run(command, str(DRAMATIQ), *rest, "--where", "operation = 'resize'")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) == rows
    if lines[0].startswith("{") and "--by" not in rest:
        assert "operation" not in json.loads(lines[0]), "it chooses rows, and is not shown"


def test_a_summary_counts_what_is_chosen() -> None:
    whole, part = (
        json.loads(run("summary", MIX, "--format", "json", *more).out)
        for more in ((), ("--queue", "dlq"))
    )
    assert 0 < sum(part["frames"].values()) < sum(whole["frames"].values())


def test_a_trace_is_found_by_any_filter() -> None:
    by_id = run("trace", MIX, "--message-id", "m6").out
    assert by_id
    assert run("trace", MIX, "--packet", "72", "--method", "publish").out == by_id
    assert "which message?" in run("trace", MIX).err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("verify", MIX, "--queue", "x"),
            "--queue chooses rows of a capture, which verify does not",
        ),
        (("summary", MIX, "--where", "true"), "--where chooses rows of a capture"),
        (("summary", MIX, "--top", "3"), "--top is now --limit"),
        (("batch", MIX, "-o", "x", "--rows", "3"), "--rows is now --limit"),
        (("messages", MIX, "--body"), "--body is now --bodies"),
        (("messages", MIX, "--outcome", "ackd"), "did you mean `acked`?"),
        (("messages", MIX, "--method", "basic.pubish"), "did you mean `basic.publish`?"),
        (("live", MIX, "--format", "ndjson", "-t", "channels", "--queue", "q"), "read twice"),
        (("nosuch.pcap",), "no such file"),
        (("summary", MIX, "--by", "size"), "nothing by `size`; there is operation"),
    ],
)
def test_what_cannot_apply_is_refused_in_a_line(arguments: tuple[str, ...], says: str) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert says in done.err
    assert len(done.err.splitlines()) == 1


def test_connections_are_chosen_by_the_number_of_a_channel() -> None:
    ids = {
        json.loads(line)["connection_id"]
        for line in run("channels", MIX, "--channel", "3", "--format", "ndjson").out.splitlines()
    }
    found = run("connections", MIX, "--channel", "3", "--format", "ndjson").out.splitlines()
    assert {json.loads(line)["connection_id"] for line in found} == ids
    assert (
        0 < len(ids) < json.loads(run("summary", MIX, "--format", "json").out)["connection_count"]
    )


def test_standard_input_is_chosen_by_what_its_rows_show() -> None:
    octets = (Path("samples") / MIX).read_bytes()
    done = process("messages", "-", "--queue", "orders.eu", "--limit", "3", octets=octets)
    assert len(done.out.splitlines()) == 3
    done = process("messages", "-", "--user", "app", octets=octets)
    assert done.code == 2
    assert "--user: - would have to be read twice" in done.err


def test_a_capture_alone_is_summed_up() -> None:
    assert run(MIX).out == run("summary", MIX).out
    assert run(MIX, "--format", "json").out == run("summary", MIX, "--format", "json").out


@pytest.mark.parametrize("command", commands.COMMANDS)
def test_the_help_of_a_command_fits_a_screen(command: str) -> None:
    lines = run(command, "--help").out.splitlines()
    assert len(lines) <= 42
    assert max(map(len, lines)) <= 80
    if "Filters" in lines:
        assert lines.index("Filters") < lines.index("Output")
    shown = "\n".join(lines)
    for name in options(command):
        assert name in shown or name.replace("--", "--no-", 1) in shown


@pytest.mark.parametrize("command", ["messages", "live", "spec"])
def test_the_whole_help_has_every_word(command: str) -> None:
    whole = " ".join(run(command, "--help-all").out.split())
    for one in PROGRAM.commands[command].params:
        assert " ".join(one.help.split()) in whole


def test_commands_are_grouped() -> None:
    lines = run("--help").out.splitlines()
    assert len(lines) <= 42
    for group, names in commands.GROUPS.items():
        at = lines.index(group)
        assert [re.split(r"\s+", line)[1] for line in lines[at + 1 :][: len(names)]] == [*names]
        for name, about in names.items():
            assert PROGRAM.commands[name].help.startswith(about)
