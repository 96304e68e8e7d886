"""What the C library is told is what the system sees."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

WITH_LARGE_PAGES = """
from pathlib import Path
from amqpsniff.process_tuning import take_large_pages

def mappings():
    lines = Path("/proc/self/smaps").read_text().split("\\n")
    return sum("VmFlags:" in line and "hg" in line.split() for line in lines)

before = mappings()
take_large_pages()
print(mappings() - before)
take_large_pages()
print(mappings() - before)
"""


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").is_dir()
    or not hasattr(ctypes.CDLL(None), "mallopt"),
    reason="no large pages, or not GNU's C library",
)
def test_large_pages_are_asked_for_once() -> None:
    command = [sys.executable, "-c", WITH_LARGE_PAGES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1"]
