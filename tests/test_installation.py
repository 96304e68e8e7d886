"""How a package is added: by whatever made the environment, into that environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from amqpsniff import installation


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment in a folder whose name has a space, that is not activated."""
    made = tmp_path / "an environment"
    made.mkdir()
    monkeypatch.setattr(sys, "prefix", str(made))
    monkeypatch.setattr(sys, "executable", str(made / "bin/python"))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setattr(installation, "find_spec", lambda _: True)
    return made


def test_pipx(prefix: Path) -> None:
    (prefix / "pipx_metadata.json").touch()
    assert installation.how_to_add("tls") == (
        "pipx runpip 'an environment' install 'amqpsniff[tls]'"
    )


def test_uv_tool(prefix: Path) -> None:
    (prefix / "uv-receipt.toml").touch()
    assert installation.how_to_add("tls") == (
        f"uv pip install --python '{prefix}' 'amqpsniff[tls]'"
    )


def test_without_pip(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "find_spec", lambda _: None)
    assert installation.how_to_install("fsspec") == f"uv pip install --python '{prefix}' fsspec"


def test_pip(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installation.how_to_add("tls") == (
        f"'{prefix}/bin/python' -m pip install 'amqpsniff[tls]'"
    )
    monkeypatch.setenv("VIRTUAL_ENV", str(prefix))
    assert installation.how_to_add("tls") == "pip install 'amqpsniff[tls]'"
