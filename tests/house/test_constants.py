"""Numbers have the same value in C as in Python."""

import pytest

from tests.house.constants import MODULES, declarations, path_of


@pytest.mark.parametrize("module", MODULES)
def test_declarations_are_of_today(module: str) -> None:
    """Otherwise: `python -m tests.house.constants`."""
    assert path_of(module).read_text() == declarations(module)
