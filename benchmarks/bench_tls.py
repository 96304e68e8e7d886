"""Encrypted captures against tshark with the same keys, on one core.

The capture repeats connections of `samples` over TLS 1.2 and 1.3 with other addresses. Both read
the same key log; tshark prints the fields of AMQP that `export` writes. The bar is that we are at
least as quick, in less than 300 MB. What tshark needs to print only the decrypted bytes, with its
AMQP dissector switched off, is measured for comparison: another program would have to decode them.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from bench_tshark import ARGUMENTS, FIELDS, tshark_fields
from captures import SAMPLES, make
from measure import contest

BAR = 1.0
MEGABYTES_BAR = 300
PORT = 5701


def keyed(command: list[str], keys: Path) -> list[str]:
    """A tshark command that knows the keys and the port."""
    options = ["-o", f"tls.keylog_file:{keys}", "-o", f"amqp.tls.port:{PORT}"]
    return [command[0], *options, *command[1:]]


def main() -> int:
    """Measure everything; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if shutil.which("tshark") is None:
        print("skipped: tshark is not installed")
        return 0
    program = shutil.which("amqpsniff", path=sysconfig.get_path("scripts")) or "amqpsniff"
    keys = SAMPLES / "tls13.keys"
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        capture = make("tls", options.megabytes * 1_000_000, Path(folder) / "tls.pcap")
        size = capture.stat().st_size
        print(f"tls: {size / 1e6:.0f} MB, one core, medians")
        export = [program, "export", str(capture), "-q", "--tls-keylog", str(keys), "--table"]
        octets = ["tshark", "-r", str(capture), "--disable-protocol", "amqp"]
        octets += ["-T", "fields", "-e", "frame.number", "-e", "tcp.stream", "-e", "data.data"]
        contests = {
            "frames to Parquet": (
                [*export, "frames", "-o", str(Path(folder) / "f.parquet")],
                keyed(tshark_fields(capture, FIELDS + ARGUMENTS), keys),
            ),
            "summary": (
                [program, "summary", str(capture), "-q", "--tls-keylog", str(keys)],
                keyed(tshark_fields(capture, FIELDS), keys),
            ),
            "bytes by tshark": (
                [program, "summary", str(capture), "-q", "--tls-keylog", str(keys)],
                keyed(octets, keys),
            ),
        }
        for name, (ours, theirs) in contests.items():
            missed += not contest(name, BAR, ours, theirs, options.rounds, MEGABYTES_BAR, size)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
