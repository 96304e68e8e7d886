"""Completion in shells that are really run, and what is offered for each option."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import sysconfig
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from amqpsniff.cli import commands, completions, options, spec
from amqpsniff.findings import KINDS, SEVERITIES
from amqpsniff.spec import METHODS
from amqpsniff.tables.schema import EVERYTHING
from tests.cli.running import environment
from tests.waiting import PATIENCE

COMMANDS = typer.main.get_command(commands.application(*commands.COMMANDS)).commands  # type: ignore[attr-defined]

CHOSEN = {"F", "D", "R", "T", "W", "FORM", "SEVERITY", "CODES", "CODE", "IFACE"}
"""Names of values of which there is a list."""

needs = {
    shell: pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")
    for shell in ("bash", "zsh", "fish")
}


def _environment(home: Path, **more: str) -> dict[str, str]:
    path = f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
    return environment(PATH=path, HOME=str(home), **more)


@cache
def _text(shell: str) -> str:
    """The script that a shell reads to complete."""
    asked = _environment(Path("/"), _AMQPSNIFF_COMPLETE=f"source_{shell}")
    done = subprocess.run(
        ["amqpsniff"], env=asked, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    return done.stdout


def _script(shell: str, home: Path) -> Path:
    path = home / "script"
    path.write_text(f"{_text(shell)}\n")
    return path


def _in_bash(line: str, home: Path) -> list[str]:
    """What bash offers for the last word of a line."""
    words = line.split(" ")
    script = (
        f"source {_script('bash', home)}; COMP_WORDS=({' '.join(words[:-1])} '{words[-1]}'); "
        f"COMP_CWORD={len(words) - 1}; _amqpsniff_completion amqpsniff; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script], env=_environment(home), capture_output=True, text=True,
        check=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


@needs["bash"]
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("amqpsniff ", list(commands.COMMANDS)),
        ("amqpsniff dia", ["diagnose"]),
        ("amqpsniff inspect --fr", ["--from", "--frames"]),
        ("amqpsniff explain tcp-o", ["tcp-overlap-conflict"]),
        ("amqpsniff spec queue.p", ["queue.purge", "queue.purge-ok"]),
        ("amqpsniff spec 40", ["402", "403", "404", "405", "406"]),
        ("amqpsniff export x.pcap --table ", list(EVERYTHING)),
        ("amqpsniff export x.pcap -t findings --columns code,cou", ["code,count"]),
        ("amqpsniff diagnose --fail-on ", list(SEVERITIES)),
        ("amqpsniff diagnose --only tcp-gap,midst", ["tcp-gap,midstream"]),
        ("amqpsniff inspect x.pcap --reader t", ["tshark"]),
        ("amqpsniff inspect sam", []),
    ],
)
def test_bash(line: str, offered: list[str], tmp_path: Path) -> None:
    assert _in_bash(line, tmp_path) == offered


@needs["fish"]
def test_fish(tmp_path: Path) -> None:
    script = f"source {_script('fish', tmp_path)}; complete -C 'amqpsniff explain tcp-o'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], env=_environment(tmp_path), capture_output=True,
        text=True, check=True, timeout=PATIENCE,
    )  # fmt: skip
    title = KINDS["tcp-overlap-conflict"].title
    assert done.stdout == f"tcp-overlap-conflict\t{title}\n"


@needs["zsh"]
def test_zsh(tmp_path: Path) -> None:
    begin = f"autoload -U compinit; compinit -u; source {_script('zsh', tmp_path)}; PS1=rea''dy\\>"
    shown = _typed(["zsh", "-f", "-i"], begin, "amqpsniff explain tcp-o\t", "conflict", tmp_path)
    assert "tcp-overlap-conflict" in shown


@needs["bash"]
def test_typed_in_bash(tmp_path: Path) -> None:
    """The key itself, pressed on a terminal."""
    begin = f"source {_script('bash', tmp_path)}; PS1=rea''dy\\>"
    shell = ["bash", "--norc", "--noprofile", "-i"]
    shown = _typed(shell, begin, "amqpsniff explain tcp-o\t", "conflict", tmp_path)
    assert "tcp-overlap-conflict" in shown


def _typed(shell: list[str], begin: str, keys: str, awaited: str, home: Path) -> str:
    """What a terminal shows after some keys, as soon as it shows what is awaited."""
    pid, leader = pty.fork()
    if pid == 0:
        os.execvpe(shell[0], shell, _environment(home))
    try:
        os.write(leader, f"{begin}\n".encode())
        _shown(leader, "ready>")
        os.write(leader, keys.encode())
        return _shown(leader, awaited)
    finally:
        os.close(leader)
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def _shown(leader: int, awaited: str) -> str:
    shown = ""
    deadline = time.monotonic() + PATIENCE
    while awaited not in shown:
        assert time.monotonic() < deadline, shown
        if select.select([leader], [], [], 1)[0]:
            shown += os.read(leader, 65536).decode(errors="replace")
    return shown


def _parameters() -> list[Any]:
    return [
        pytest.param(parameter, id=f"{name} {parameter.opts[0]}")
        for name, command in COMMANDS.items()
        for parameter in command.params
        if (parameter.metavar or "") in CHOSEN
    ]


@pytest.mark.parametrize("parameter", _parameters())
def test_every_value_that_is_chosen_is_offered(parameter: Any) -> None:
    context = typer.Context(COMMANDS["inspect"])
    offered = [item.value for item in parameter.shell_complete(context, "")]
    assert offered
    if isinstance(parameter.default, str) and parameter.default:
        assert parameter.default in offered


def test_help_names_what_is_offered() -> None:
    for parameter in (one.values[0] for one in _parameters()):
        if parameter.metavar in {"F", "D", "T", "SEVERITY"}:
            context = typer.Context(COMMANDS["inspect"])
            for item in parameter.shell_complete(context, ""):
                assert item.value in parameter.help


def test_words_are_those_of_the_library() -> None:
    """Names that are written twice, so that help and completion need not import much."""
    assert set(options.TABLES) == set(EVERYTHING)


def test_offers() -> None:
    assert completions.words(("a", "ab", "b"))("a") == [("a", ""), ("ab", "")]
    assert completions.listed(completions.words(("a", "b")))("a,") == [("a,b", "")]
    assert {code for code, _ in completions.codes("")} == set(KINDS)
    assert {row.name for row in METHODS} < {name for name, _ in spec.names("")}


@pytest.mark.skipif(not Path("/sys/class/net").is_dir(), reason="no /sys/class/net")
def test_interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ("lo", "") in completions.interfaces("l")
    monkeypatch.setattr(completions, "INTERFACES", Path("/nowhere"))
    assert completions.interfaces("") == []


def test_only_the_command_that_is_typed_is_imported() -> None:
    """Why completing is quick: no Arrow, no DuckDB, no rich."""
    asked = environment(
        _AMQPSNIFF_COMPLETE="complete_bash", COMP_WORDS="amqpsniff explain tcp-", COMP_CWORD="2"
    )
    script = (
        "import sys, amqpsniff.cli.entry as entry\n"
        "try:\n    entry.main()\n"
        "except SystemExit:\n    pass\n"
        "print(*sorted({'pyarrow', 'duckdb', 'rich.console'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=asked, capture_output=True, text=True, check=True,
        timeout=PATIENCE,
    )  # fmt: skip
    assert "tcp-gap" in done.stdout
    assert done.stdout.splitlines()[-1] == ""
