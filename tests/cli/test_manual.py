"""The manual page: every command and option is there, and troff has nothing to complain about."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
import typer

from amqpsniff.cli import commands, manual
from tests.cli.running import run
from tests.waiting import PATIENCE

PROGRAM = typer.main.get_command(commands.application(*commands.COMMANDS))


def test_page_has_every_command_and_option() -> None:
    page = run("--show-man").out.replace("\\-", "-")
    sections = dict(re.findall(r"^\.SS amqpsniff (\S+)(.*?)(?=^\.S[SH])", page, re.M | re.S))
    assert set(sections) == set(commands.COMMANDS)
    described = set(re.findall(r"--[\w-]+", page.split(".SH COMMON OPTIONS")[1]))
    assert {"--port", "--where"} <= described
    for section in sections.values():
        common = section.partition("Common options:")[2]
        assert set(re.findall(r"--[\w-]+", common)) <= described
    for name, command in PROGRAM.commands.items():  # type: ignore[attr-defined]
        for parameter in command.params:
            is_option = parameter.param_type_name == "option"
            for option in [*parameter.opts, *parameter.secondary_opts] if is_option else ():
                if option.startswith("--"):
                    assert re.search(rf"{option}\b", sections[name]), (name, option)


@pytest.mark.parametrize(
    "checker",
    [
        ("groff", "-man", "-Tutf8", "-ww", "-z"),
        ("mandoc", "-Tlint", "-Wwarning"),
    ],
    ids=lambda words: words[0],
)
def test_page_is_sound(checker: tuple[str, ...]) -> None:
    if shutil.which(checker[0]) is None:
        pytest.skip(f"{checker[0]} is not installed")
    done = subprocess.run(
        checker,
        input=manual.page(PROGRAM),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    complaints = (done.stdout + done.stderr).splitlines()
    assert [one for one in complaints if "missing date" not in one] == []  # a version has none


def test_page_as_it_is_read() -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        ["groff", "-man", "-Tascii", "-P-c", "-rLL=100n"], input=manual.page(PROGRAM),
        capture_output=True, text=True, check=True, timeout=PATIENCE,
    )  # fmt: skip
    text = re.sub(r".\x08", "", done.stdout)
    assert "amqpsniff - show what happened between RabbitMQ and its clients" in text
    assert "jq '.[].code'" in text
    assert "    -n, --limit N\n" in text
    assert "|  tshark" not in text
