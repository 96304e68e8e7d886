"""Severities of findings: how bad one is, and from which on a command exits with 1."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from amqpsniff.errors import UsageError
from amqpsniff.findings import SEVERITIES

from .completions import words
from .options import OUTPUT


def fail_on_option(text: str, panel: str = OUTPUT) -> Any:
    """The option `--fail-on`, and what the help says of it."""
    return typer.Option(
        metavar="SEVERITY",
        autocompletion=words(SEVERITIES),
        help=text,
        rich_help_panel=panel,
        show_default=False,
    )


FailOn = Annotated[
    str | None,
    fail_on_option(
        "Exit with 1 when there is a finding of this severity (info, warning, error) or a worse "
        "one."
    ),
]


def check(fail_on: str | None) -> None:
    """Raise UsageError for what is no severity."""
    if fail_on is not None and fail_on not in SEVERITIES:
        raise UsageError(f"no severity `{fail_on}`; there are {', '.join(SEVERITIES)}")
