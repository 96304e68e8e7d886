"""All captures of the repository in one: many protocols, versions and damages in each batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.every_way import WAYS, check, go
from tests.cli.running import run
from tests.conftest import REPO, SAMPLES
from tests.thorough import some

CAPTURE = SAMPLES / "pika_mix.pcap"
CONNECTION = "7f298e1b"


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packets of all captures in the order of time."""
    path = tmp_path_factory.mktemp("every") / "every.pcapng"
    folders = SAMPLES, REPO / "tests" / "captures"
    captures = [one for folder in folders for one in folder.rglob("*.pcap*") if one.is_file()]
    assert len(captures) > 150
    made = run("cut", *captures, "-o", path)
    assert path.exists(), made.err
    return path


@pytest.mark.parametrize("way", some(WAYS))
def test_every_capture_at_once(way: str, every: Path, tmp_path: Path) -> None:
    check(way, go(way, every, CAPTURE, CONNECTION, tmp_path / "out"))
