"""Options that take one of a list of words, of every command: any other word is refused.

Whatever else is asked for: also where the option would change nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from amqpsniff.cli.commands import COMMANDS, application
from tests.cli.running import run
from tests.thorough import RANDOM_SHARE

CAPTURE = "bunny.pcapng"

ARGUMENTS: dict[str, list[str]] = {
    "live": [CAPTURE, "--duration", "1s"],
    "trace": [CAPTURE, "--routing-key", "x"],
    "follow": [CAPTURE, "--connection", ":1"],
    "export": [CAPTURE, "--table", "frames"],
    "sql": [CAPTURE, "SELECT 1"],
    "bodies": [CAPTURE, "--output", "out"],
    "batch": [CAPTURE, "--output", "out"],
    "report": [CAPTURE, "--output", "out"],
    "report-table": ["traffic", CAPTURE],
    "diff": [CAPTURE, CAPTURE],
    "cut": [CAPTURE, "--output", "out"],
    "annotate": [CAPTURE, "--output", "out"],
    "sanitize": [CAPTURE, "--output", "out"],
    "explain": ["tcp-gap"],
    "spec": [],
}
"""What a command needs, where that is not a capture alone."""

CLOSED = {
    "--dialect", "--table-dialect", "--reader", "--time", "--format", "--table", "--tables",
    "--report", "--finding", "--fail-on", "--only", "--color", "--ignore",
    "--severity", "--for", "--by",
}  # fmt: skip
"""Options with a list of words."""

OPEN = {"--columns", "--interface", "--method", "--outcome"}
"""Those whose words depend on a table, or on the machine."""

SWITCHES = {"--bodies", "--frames", "--hex", "--html", "--links", "--methods", "--same-traffic"}
"""Options that have a command go another way."""


def commands() -> dict[str, Any]:
    """Every command, as typer sees it."""
    program: Any = typer.main.get_command(application(*COMMANDS))
    return {name: program.commands[name] for name in COMMANDS}


def choices() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Command, option, and what else is given."""
    for name, command in commands().items():
        options = {one.opts[0]: one for one in command.params if one.param_type_name == "option"}
        ways: list[tuple[str, ...]] = [(), *((one,) for one in SWITCHES & options.keys())]
        if "--format" in options:
            listed = re.search(r": ([a-z]+(?:, [a-z]+)+)", options["--format"].help or "")
            assert listed is not None
            forms = [one for one in listed[1].split(", ") if one != "dashboard"]
            ways += [("--format", form) for form in forms]
        for option in CLOSED & options.keys():
            yield from ((name, option, way) for way in ways if option not in way)


CHOICES = list(choices())


def test_every_list_of_words() -> None:
    """What a shell offers words for is known here."""
    offered = {
        option.opts[0]
        for command in commands().values()
        for option in command.params
        if option.param_type_name == "option" and option._custom_shell_complete is not None
    }
    assert offered == CLOSED | OPEN
    assert ("inspect", "--time", ("--format", "ndjson")) in CHOICES
    assert ("batch", "--report", ("--html",)) in CHOICES


OPTIONS = sorted({(name, option) for name, option, _ in CHOICES})


@pytest.mark.parametrize(("at", "name", "option"), [(at, *one) for at, one in enumerate(OPTIONS)])
def test_another_word(at: int, name: str, option: str, tmp_path: Path) -> None:
    """Each option alone, and with a tenth of what else may be given, another one for each."""
    alone, *ways = [way for one, other, way in CHOICES if (one, other) == (name, option)]
    for way in (alone, *ways[at % RANDOM_SHARE :: RANDOM_SHARE]):
        given = [str(tmp_path / one) if one == "out" else one for one in _arguments(name)]
        result = run(name, *given, *way, option, "nonsense")
        assert result.code == 2, (way, result)
        assert result.err.count("\n") == 1
        assert not result.out
    assert not list(tmp_path.iterdir())


def _arguments(name: str) -> list[str]:
    return ARGUMENTS.get(name, [CAPTURE])


def test_the_help_of_an_option_names_what_there_is() -> None:
    program: Any = typer.main.get_command(application(*COMMANDS))
    options = {
        name: {word for one in command.params for word in (*one.opts, *one.secondary_opts)}
        for name, command in program.commands.items()
    }
    tables = {"connections", "channels", "messages"}
    shared = Counter(
        (one.opts[0], one.help)
        for command in program.commands.values()
        for one in command.params
        if getattr(one, "help", None)
    )
    named = set()
    for name, command in program.commands.items():
        said = [(one.opts[0], getattr(one, "help", None) or "") for one in command.params]
        for _, text in [*said, ("", command.help)]:
            assert set(re.findall(r"--[a-z][\w-]+", text)) <= options[name] | {"--help"}, text
        for option, text in said:
            if shared[option, text] > 1:  # what only one command has may use these words otherwise
                found = (set(re.findall(r"[\w-]+", text)) & set(options)) - tables
                named |= found
                assert all(option in options[other] for other in found), text
    assert {"inspect", "follow", "bodies", "diagnose"} <= named
