"""Values of options and arguments that a shell offers: typer's `autocompletion`.

A shell asks by starting the program with an environment variable, so nothing here reads a capture,
and what has to be imported is imported when it is asked for. Where nothing is offered the shell
offers files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

import typer

Offer: TypeAlias = Callable[[str], list[tuple[str, str]]]
"""Values for the beginning of a word, each with a line about it, which may be empty."""

INTERFACES = Path("/sys/class/net")


def words(choices: Iterable[str]) -> Offer:
    """One of these words."""
    offered = tuple(choices)

    def offer(incomplete: str) -> list[tuple[str, str]]:
        return [(word, "") for word in offered if word.startswith(incomplete)]

    return offer


def words_of(module: str, name: str) -> Offer:
    """The words of a tuple of a module, which is imported when they are asked for."""

    def offer(incomplete: str) -> list[tuple[str, str]]:
        return words(getattr(import_module(module), name))(incomplete)

    return offer


def listed(single: Offer) -> Offer:
    """Several words with commas between: what is offered for one is offered after each comma."""

    def offer(incomplete: str) -> list[tuple[str, str]]:
        before, comma, last = incomplete.rpartition(",")
        chosen = before.split(",")
        return [
            (f"{before}{comma}{word}", about) for word, about in single(last) if word not in chosen
        ]

    return offer


def codes(incomplete: str) -> list[tuple[str, str]]:
    """Codes of findings, with their titles."""
    from amqpsniff.findings import KINDS

    return [(code, kind.title) for code, kind in KINDS.items() if code.startswith(incomplete)]


def codes_and_subjects(incomplete: str) -> list[tuple[str, str]]:
    """Arguments of `explain`: codes of findings, and subjects of the catalogue."""
    from amqpsniff.findings import SUBJECTS

    return [*words(SUBJECTS)(incomplete), *codes(incomplete)]


def columns(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Columns of the table that `--table` names, with commas between; none before it is given."""
    from amqpsniff.tables.schema import EVERYTHING

    schema = EVERYTHING.get(context.params.get("table") or "")
    return [] if schema is None else listed(words(schema.names))(incomplete)


def interfaces(incomplete: str) -> list[tuple[str, str]]:
    """Network interfaces of this machine; none where the system does not list them."""
    try:
        names = sorted(path.name for path in INTERFACES.iterdir())
    except OSError:
        return []
    return words(("any", *names))(incomplete)
