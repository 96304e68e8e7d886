"""The examples in the API's docstrings give what they say."""

import doctest
from pathlib import Path
from types import ModuleType

import pytest

from amqpsniff import engine, objects, reader
from tests.conftest import SAMPLES


@pytest.mark.parametrize("module", [engine, objects, reader], ids=lambda each: each.__name__)
def test_examples(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(SAMPLES).parent)
    failed, tried = doctest.testmod(module)
    assert tried >= 3
    assert failed == 0
