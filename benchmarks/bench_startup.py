"""Start-up: seconds to `--version`, and to the first line of `inspect` on a small capture.

    python benchmarks/bench_startup.py [--rounds 10]

Prints medians with the bars beside them; exits with 1 when one is missed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from captures import SAMPLES
from measure import ENVIRONMENT, median

BARS = {"--version": 0.15, "first line of inspect": 0.5}


def first_line(command: list[str]) -> float:
    """Seconds from the start of a command to its first line."""
    begin = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        seconds = time.perf_counter() - begin
        process.stdout.read()
    return seconds


def main() -> int:
    """Measure; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    program = shutil.which("amqpsniff", path=sysconfig.get_path("scripts")) or "amqpsniff"
    commands = {
        "--version": [program, "--version"],
        "first line of inspect": [program, "inspect", str(SAMPLES / "bunny.pcapng")],
    }
    missed = 0
    for name, command in commands.items():
        first_line(command)
        seconds = median([first_line(command) for _ in range(rounds)])
        missed += seconds >= BARS[name]
        print(f"{name:24} {seconds:.3f} s (bar {BARS[name]})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
