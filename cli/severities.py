"""Severities of findings: from which on a command exits with 1."""

from __future__ import annotations

from typing import Annotated

from amqpsniff.findings import SEVERITIES

from .options import one_of

FailOn = Annotated[str | None, one_of(SEVERITIES, "no severity {}")]
