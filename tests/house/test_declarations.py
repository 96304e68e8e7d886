"""Declarations for C say what Python's modules say: types, and the values of numbers."""

import pytest

from tests.house.declarations import declarations, modules, path_of


@pytest.mark.parametrize("module", modules())
def test_declarations_are_of_today(module: str) -> None:
    """Otherwise: `python -m tests.house.declarations`."""
    assert path_of(module).read_text(encoding="utf-8") == declarations(module)
