"""Severities of findings: how bad one is, and from which on a command exits with 1."""

from __future__ import annotations

from typing import Annotated, Any

from amqpsniff.errors import UsageError
from amqpsniff.findings import SEVERITIES

from .completions import words
from .options import OUTPUT, option


def fail_on_option(text: str, panel: str = OUTPUT) -> Any:
    """The option `--fail-on`, and what the help says of it."""
    return option("--fail-on SEVERITY", text, panel, autocompletion=words(SEVERITIES))


FailOn = Annotated[
    str | None,
    fail_on_option(
        "Exit with 1 from this severity on: info, warning, error. That is when there is a finding "
        "as bad or worse."
    ),
]


def check(fail_on: str | None) -> None:
    """Raise UsageError for what is no severity."""
    if fail_on is not None and fail_on not in SEVERITIES:
        raise UsageError(f"no severity `{fail_on}`; there are {', '.join(SEVERITIES)}")
