"""Severities of findings: how bad one is, and from which on a command exits with 1."""

from __future__ import annotations

from typing import Annotated, Any

from amqpsniff.findings import SEVERITIES

from .options import OUTPUT, choice


def fail_on_option(text: str, panel: str = OUTPUT) -> Any:
    """The option `--fail-on`, and what the help says of it."""
    return choice("--fail-on SEVERITY", SEVERITIES, "no severity {}", text, panel)


FailOn = Annotated[
    str | None,
    fail_on_option(
        "Exit with 1 if there is a finding of this severity (info, warning, error) or a worse one."
    ),
]
