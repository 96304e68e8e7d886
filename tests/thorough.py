"""What only `make test-all` tries: most of the random cases, every other one of long lists, and
a few tests that take long.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

THOROUGH = bool(os.environ.get("AMQPSNIFF_THOROUGH"))
SHARE = 1 if THOROUGH else 12
"""One of so many cases that are listed is tried."""

MANY = 8_000
"""Tests of a whole suite; a run of so many tries one of `EACH` cases of every longer list of
parameters. A run of a folder or a file tries all."""

EACH, FEW = (1, 0) if THOROUGH else (2, 4)
"""The share, and how many cases of a list are tried always."""

RANDOM_SHARE = 1 if THOROUGH else 20
"""One of so many random cases is tried."""

only_thorough = pytest.mark.skipif(not THOROUGH, reason="takes long: only in `make test-all`")
"""For a test of what another test shows too, by a longer way."""

T = TypeVar("T")


def rounds(number: int) -> int:
    """So many of that number of random cases."""
    return -(-number // RANDOM_SHARE)


def some(cases: Sequence[T], share: int = SHARE) -> Sequence[T]:
    """Cases from the whole length of a sequence, one of so many, its first one always."""
    return cases if THOROUGH else cases[::share]
