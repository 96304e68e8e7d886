"""Numbers of random cases: `make test` tries a fifth of those that `make test-all` does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

THOROUGH = bool(os.environ.get("AMQPSNIFF_THOROUGH"))
SHARE = 1 if THOROUGH else 5

T = TypeVar("T")


def rounds(number: int) -> int:
    """So many of that number of random cases."""
    return -(-number // SHARE)


def some(cases: Sequence[T]) -> Sequence[T]:
    """Cases from the whole length of a sequence, its first one always."""
    return cases[::SHARE]
