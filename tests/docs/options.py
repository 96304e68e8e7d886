"""docs/options.md, made from what the commands say: `python -m tests.docs.options` writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import typer

from amqpsniff.cli import commands, manual
from tests.docs.blocks import REPO

PAGE = REPO / "docs" / "options.md"

BEGIN = """# Every command and option

This page has the help of every command. [Commands](commands.md) shows what they print.
"""


def page() -> str:
    """The whole page."""
    program: Any = typer.main.get_command(commands.application(*commands.COMMANDS))
    common = manual.common_options(program)
    own = [*manual.named(program.params), manual.HELP, manual.HELP_ALL]
    parts = [BEGIN, *_table("option", own)]
    for name, command in program.commands.items():
        parts += _command(name, command, common)
    parts += ["\n## Common options\n", *_table("option", common)]
    parts += ["\n## Exit codes\n", *_table("code", manual.EXIT_CODES)]
    parts += ["\n## Environment\n", *_table("variable", manual.ENVIRONMENT)]
    return "\n".join(parts) + "\n"


def _command(name: str, command: Any, common: list[tuple[str, str]]) -> Iterator[str]:
    yield f"\n## {name}\n"
    for paragraph in command.help.split("\n\n"):
        yield f"{paragraph}\n"
    named = list(manual.named(command.params))
    own = [one for one in named if one not in common]
    if own:
        yield from _table("argument or option", own)
    shared = [re.findall(r"--[\w-]+", one[0])[0] for one in named if one in common]
    if shared:
        links = ", ".join(f"`{one}`" for one in shared)
        yield f"\n[Common options](#common-options): {links}."


def _table(heading: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield f"| {heading} | meaning |"
    yield "|---|---|"
    for name, about in rows:
        text = " ".join(about.split()).replace("|", "\\|").replace("*", "\\*")
        yield f"| `{name}` | {text} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
