"""What several tests of archives begin with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def captures(samples: Path, tmp_path: Path) -> Path:
    """A folder with two captures."""
    folder = tmp_path / "captures"
    folder.mkdir()
    for name in ("pika_mix.pcap", "blocked.pcap"):
        shutil.copy2(samples / name, folder)
    return folder
