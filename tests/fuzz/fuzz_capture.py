# Any bytes, read as a file or fed in any pieces, give packets or a CaptureError: nothing else is
# raised, whole and in pieces they give the same packets and findings, and every packet lies within
# its block.
"""Fuzz the readers of capture files: `python -m tests.fuzz.fuzz_capture [CORPUS…]` (atheris).

Coverage guides it only through uncompiled modules: run it on a tree without the compiled ones.
"""

from amqpsniff.capture.compressed import Damaged, GzipBytes, ZstdBytes
from amqpsniff.capture.formats import GZIP, PCAP, PCAPNG, ZSTD, describe, recognise
from amqpsniff.capture.packets import PacketBatch
from amqpsniff.capture.pcap import PcapReader
from amqpsniff.capture.pcapng import PcapngReader
from amqpsniff.capture.reader import Reader
from amqpsniff.errors import CaptureError
from tests.fuzz.guided import fuzz

READERS: dict[str, type[Reader]] = {PCAP: PcapReader, PCAPNG: PcapngReader}

# More than this is not asked of one input: a compressed one may stand for gigabytes.
MAX_UNPACKED_BYTES = 1 << 22

Packets = list[tuple[int, int, bytes, int, int]]


def one_input(data: bytes) -> None:
    """Read one file's bytes; raises AssertionError where the invariant does not hold."""
    what, advice = describe(data[:512])
    assert what
    assert advice
    kind = recognise(data)
    if kind in (GZIP, ZSTD):
        data = _unpacked(GzipBytes() if kind == GZIP else ZstdBytes("capture"), data)
        kind = recognise(data)
    for name, make in READERS.items():
        whole = _read(make, [data])
        assert whole is not None or kind != name
        step = 1 if len(data) < 512 else 1 + len(data) // 97
        assert _read(make, [data[at : at + step] for at in range(0, len(data), step)]) == whole


def _unpacked(machine: GzipBytes | ZstdBytes, data: bytes) -> bytes:
    pieces = []
    size = 0
    try:
        for piece in machine.feed(data):
            pieces.append(piece)
            size += len(piece)
            if size > MAX_UNPACKED_BYTES:
                break
    except Damaged:
        pass
    return b"".join(pieces)[:MAX_UNPACKED_BYTES]


def _read(make: type[Reader], pieces: list[bytes]) -> tuple[Packets, list[str]] | None:
    """Every packet and what is said; None when the bytes are not of the reader's format."""
    reader = make("capture")
    packets: Packets = []
    try:
        for piece in pieces:
            batch = reader.feed(piece)
            if batch is not None:
                _gather(batch, packets)
        batch = reader.finish()
        if batch is not None:
            _gather(batch, packets)
    except CaptureError:
        return None
    numbers = [packet[0] for packet in packets]
    assert numbers == sorted(set(numbers))
    assert not numbers or numbers[-1] <= reader.packets
    for finding in reader.findings:
        assert finding.kind
        assert "\n" not in finding.detail
    return packets, [finding.detail for finding in reader.findings]


def _gather(batch: PacketBatch, packets: Packets) -> None:
    for row in range(batch.begin, batch.end):
        start, captured = batch.start[row], batch.captured[row]
        assert 0 <= start <= start + captured <= len(batch.octets)
        assert batch.original[row] >= 0
        packets.append(
            (
                batch.number[row],
                batch.ts_ns[row],
                batch.packet(row),
                batch.original[row],
                batch.link_type[row],
            )
        )


if __name__ == "__main__":
    fuzz(one_input)
