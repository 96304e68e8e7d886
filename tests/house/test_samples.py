"""The sample captures are few, described, and made as their README says."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

MAX_BYTES = 2_000_000


def _captures(samples: Path) -> set[str]:
    return {
        path.name
        for path in samples.iterdir()
        if ".pcap" in path.suffixes or path.suffix == ".pcapng"
    }


def test_every_sample_is_described(samples: Path) -> None:
    text = (samples / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)) == _captures(samples)


def test_samples_are_small(samples: Path) -> None:
    assert sum((samples / name).stat().st_size for name in _captures(samples)) < MAX_BYTES


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("editcap") is None, reason="editcap is not installed")
def test_derived_samples_are_made_as_described(samples: Path, tmp_path: Path) -> None:
    text = (samples / "README.md").read_text(encoding="utf-8")
    made = 0
    for line in re.findall(r"^    (editcap .*)$", text, re.MULTILINE):
        words = shlex.split(line)
        source, target = (word for word in words if ".pcap" in word)
        if not (samples / source).exists():
            continue
        words[words.index(source)] = str(samples / source)
        words[words.index(target)] = str(tmp_path / target)
        subprocess.run(words, check=True, timeout=PATIENCE, capture_output=True)
        assert (tmp_path / target).read_bytes() == (samples / target).read_bytes()
        made += 1
    assert made == 2
