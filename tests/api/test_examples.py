"""The examples in the API's docstrings give what they say."""

import doctest
import re
from pathlib import Path
from types import ModuleType

import pytest

from amqpsniff import engine, objects, reader
from amqpsniff.live import stream
from tests.conftest import REPO, SAMPLES


def test_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The blocks of docs/python.md run, one after the other."""
    monkeypatch.chdir(REPO)
    blocks = re.findall(
        r"^```python\n(.*?)^```$", (REPO / "docs/python.md").read_text(), re.M | re.S
    )
    assert len(blocks) == 6
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert "vhost-refused 555" in capsys.readouterr().out


@pytest.mark.parametrize("module", [engine, objects, reader], ids=lambda each: each.__name__)
def test_examples(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(SAMPLES).parent)
    failed, tried = doctest.testmod(module)
    assert tried >= 3
    assert failed == 0


def test_the_example_of_a_live_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(SAMPLES).parent)
    assert doctest.testmod(stream) == (0, 3)
