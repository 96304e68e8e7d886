"""The notebook shows what its cells give."""

from __future__ import annotations

import copy

from tests.docs.notebook import executed, read


def test_outputs_are_those_of_today() -> None:
    page = read()
    assert executed(copy.deepcopy(page)) == page
