"""A capture on standard input: delivered as it arrives, in memory that does not grow with it."""

import gzip
import select
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.capture import build
from tests.conftest import REPO
from tests.waiting import PATIENCE

READ = """
import sys
from amqpsniff.capture import open_capture
captures = open_capture("-")
for batch in captures:
    print(*batch.number[batch.begin : batch.end], flush=True)
print(*[finding.code for finding in captures.findings], "end", flush=True)
"""

COUNT = """
from amqpsniff.capture import read
packets = sum(len(batch) for batch in read(["-"]))
with open("/proc/self/status") as status:  # getrusage would count the parent's memory
    print(packets, *[line.split()[1] for line in status if line.startswith("VmHWM")])
"""

# The interpreter, the standard library and the decompressors take some 25 MB of it.
MAX_KIBIBYTES = 64 * 1024

Process = subprocess.Popen[bytes]


def start(script: str) -> Process:
    return subprocess.Popen(
        [sys.executable, "-c", script], cwd=REPO, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def line(process: Process) -> str:
    """The next line of output, which must come while the input is still open."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
    assert ready, "nothing was delivered"
    return process.stdout.readline().decode().strip()


def stream(pieces: list[bytes]) -> Iterator[str]:
    """Feed pieces one at a time, and read a line after each."""
    process = start(READ)
    assert process.stdin is not None
    with process:
        for piece in pieces:
            process.stdin.write(piece)
            process.stdin.flush()
            yield line(process)
        process.stdin.close()
        yield line(process)


def test_pcap_packet_by_packet() -> None:
    packets = [build.pcap_record("<", n, n, b"abc") for n in range(3)]
    pieces = [build.pcap_header() + packets[0], packets[1], packets[2]]
    assert list(stream(pieces)) == ["1", "2", "3", "end"]


def test_pcapng_packet_by_packet() -> None:
    packet = build.enhanced("<", 1, b"abc")
    pieces = [build.section() + build.interface() + packet, packet + packet, packet + packet[:9]]
    assert list(stream(pieces)) == ["1", "2 3", "4", "capture-truncated end"]


def test_compressed_packet_by_packet() -> None:
    machine = zlib.compressobj(wbits=31)
    pieces = [
        machine.compress(octets) + machine.flush(zlib.Z_SYNC_FLUSH)
        for octets in (build.pcap(packets=2), build.pcap_record("<", 200, 1, b"abc"))
    ]
    assert list(stream(pieces)) == ["1 2", "3", "capture-truncated end"]


def test_standard_input_that_is_no_capture() -> None:
    process = start(READ)
    _, _ = process.communicate(b"hello")
    assert process.returncode != 0


def _pcap() -> tuple[bytes, bytes]:
    return build.pcap_header(), build.pcap_record("<", 1, 1, bytes(1008)) * 1024


def _pcapng() -> tuple[bytes, bytes]:
    return build.section() + build.interface(), build.enhanced("<", 1, bytes(992)) * 1024


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="reads /proc/self/status")
@pytest.mark.parametrize("make", [_pcap, _pcapng])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_memory_does_not_grow_with_the_file(
    make: Callable[[], tuple[bytes, bytes]], compress: Callable[[bytes], bytes]
) -> None:
    header, mebibyte = make()
    assert len(mebibyte) == 1 << 20
    process = start(COUNT)
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write(compress(header))
        piece = compress(mebibyte)
        for _ in range(120):
            process.stdin.write(piece)
        process.stdin.close()
        packets, kibibytes = map(int, process.stdout.read().split())
    assert packets == 120 * 1024
    assert kibibytes < MAX_KIBIBYTES
