"""No Python that is started imports a module from the folder where somebody happens to be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = "from amqpsniff.report.page import bundle; bundle()"


@pytest.mark.parametrize("how", ["batch", "page"])
def test_no_stranger_is_imported(how: str, tmp_path: Path) -> None:
    pytest.importorskip("pyspark" if how == "batch" else "vl_convert")
    for name in ("argparse", "vl_convert"):  # one that each of them needs
        (tmp_path / f"{name}.py").write_text("open('stranger', 'w')\n")
    program = Path(sys.executable).with_name("amqpsniff")
    command = {
        "batch": [str(program), "batch", "nothere.pcap", "-o", "out"],
        "page": [sys.executable, "-P", "-c", PAGE],
    }[how]
    environment = {name: one for name, one in os.environ.items() if name != "PYTHONSAFEPATH"}
    environment["XDG_CACHE_HOME"] = str(tmp_path)  # or the page needs no process
    subprocess.run(command, check=False, capture_output=True, cwd=tmp_path, env=environment)
    assert not (tmp_path / "stranger").exists()
