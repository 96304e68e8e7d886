"""Files that vanish, change and come again while a folder of them is followed."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.capture import listing
from amqpsniff.capture.tail import FileCapture
from amqpsniff.errors import CaptureError
from tests.capture.build import pcap_header, pcap_record
from tests.live.sniffing import Sniffer, taken

PACKETS = 40


def capture(number: int, packets: int = PACKETS) -> bytes:
    """A capture whose packets tell its number."""
    records = (pcap_record("<", 1000 + number, at, bytes([number]) * 60) for at in range(packets))
    return pcap_header("<") + b"".join(records)


SIZE = len(capture(0))


class Ring:
    """A folder with files in it, and what follows it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder / "ring"
        self.folder.mkdir()
        self.notes: list[str] = []
        self.put("0.pcap", 0)
        self.source = FileCapture([str(self.folder)], **options)

    def put(self, name: str, number: int, octets: bytes | None = None) -> Path:
        """Write a file as if it were written at that second."""
        path = self.folder / name
        path.write_bytes(capture(number) if octets is None else octets)
        os.utime(path, (number, number))
        return path

    def numbers(self) -> list[int]:
        """The numbers of the captures whose packets came now, each once per packet file."""
        packets = [
            batch.packet(row)[0]
            for batch in taken(self.source)
            for row in range(batch.begin, batch.end)
        ]
        self.notes += self.source.notes
        self.source.notes.clear()
        assert all(packets.count(one) == PACKETS for one in packets), packets
        return list(dict.fromkeys(packets))

    @property
    def lost(self) -> list[str]:
        """What was lost, without the folder's name."""
        found = [one.detail or "" for one in self.source.findings]
        return [one.replace(f"{self.folder}/", "") for one in found]


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[Ring]:
    """A ring whose first file was read."""
    made = Ring(tmp_path)
    assert made.numbers() == [0]
    yield made
    made.source.close()


watched: list[Callable[[Path], object]] = []
"""Called with each file that this process is about to open."""


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and watched and isinstance(arguments[0], str):
        for one in watched:
            one(Path(arguments[0]))


sys.addaudithook(_audit)


@pytest.fixture
def opens() -> Iterator[Counter[str]]:
    """How often each file was opened, by name."""
    found: Counter[str] = Counter()
    watched.append(lambda path: found.update((path.name,)))
    yield found
    watched.clear()


def remove_when_opened(ring: Ring, name: str, opens: Counter[str]) -> None:
    """Remove a file between the look that saw it, and its first bytes, and its turn."""
    watched.append(lambda path: path.name == name and opens[name] == 2 and path.unlink())


def test_a_file_that_goes_before_it_is_opened(ring: Ring, opens: Counter[str]) -> None:
    """The next one is read, and it is said at once and at the end what was lost."""
    ring.put("1.pcap", 1)
    ring.put("2.pcap", 2)
    opens.clear()
    remove_when_opened(ring, "1.pcap", opens)
    assert ring.numbers() == [2]
    assert ring.numbers() == []
    assert ring.lost == [f"1.pcap was removed before it was read: {SIZE} bytes are lost"]
    assert [one.code for one in ring.source.findings] == ["capture-unreadable"]
    assert len(ring.notes) == 1


def test_the_only_next_file_goes(ring: Ring, opens: Counter[str]) -> None:
    """It waits for another one."""
    ring.put("1.pcap", 1)
    opens.clear()
    remove_when_opened(ring, "1.pcap", opens)
    assert ring.numbers() == []
    ring.put("2.pcap", 2)
    assert ring.numbers() == [2]
    assert len(ring.lost) == 1


IN_PIECES: dict[str, Any] = {"block_bytes": 250, "look_seconds": 0}


def test_what_waits_behind_a_long_file(tmp_path: Path) -> None:
    """Files that come and go while another one is read are missed."""
    ring = Ring(tmp_path, **IN_PIECES)
    assert ring.numbers() == [0]
    ring.put("1.pcap", 1, capture(1, 1000))
    waiting = ring.put("2.pcap", 2)
    for _ in range(1000):
        list(ring.source.take(1 << 40))
        if ring.source.packets > PACKETS:
            break
    assert PACKETS < ring.source.packets < 1000
    waiting.unlink()
    taken(ring.source)
    assert ring.lost == [f"2.pcap was removed before it was read: {SIZE} bytes are lost"]


def test_a_ring_that_turns_faster_than_it_is_read(tmp_path: Path) -> None:
    """A file that waited and is begun anew is lost, though it is there and has the same size."""
    ring = Ring(tmp_path, **IN_PIECES)
    ring.put("1.pcap", 1)
    ring.put("2.pcap", 2)
    assert sum(len(batch) for batch, _ in ring.source.take(1 << 40)) < PACKETS
    ring.put("1.pcap", 3)
    taken(ring.source)
    assert ring.source.packets == 3 * PACKETS
    assert ring.lost == [f"1.pcap was begun anew before it was read: {SIZE} bytes are lost"]


def test_the_file_that_is_read_is_begun_anew(tmp_path: Path) -> None:
    """Under our hands, and is as long again by then: what is left of it is no capture's middle."""
    ring = Ring(tmp_path, block_bytes=250)
    list(ring.source.take(1 << 40))
    ring.source.block_bytes = SIZE
    ring.put("0.pcap", 9)
    assert ring.numbers() == [9]
    assert ring.lost == [f"0.pcap was begun anew while it was read: {SIZE - 1000} bytes are lost"]
    ring.source.close()


def test_a_header_that_is_followed_by_packets_later(tmp_path: Path) -> None:
    """A file that had none yet when another was turned to is read when it has some."""
    ring = Ring(tmp_path)
    (ring.folder / "0.pcap").write_bytes(pcap_header("<"))
    assert ring.numbers() == []
    ring.put("1.pcap", 1)
    assert ring.numbers() == [1]
    ring.put("0.pcap", 2)
    assert ring.numbers() == [2]
    assert not ring.lost
    ring.source.close()


def test_two_that_write_at_a_time(ring: Ring) -> None:
    """A file that goes on is not read twice: it is said that it is not read any more."""
    ring.put("1.pcap", 1)
    assert ring.numbers() == [1]
    for more in (PACKETS + 1, PACKETS + 2):
        ring.put("0.pcap", 2, capture(0, more))
        assert ring.numbers() == []
    (note,) = ring.notes
    assert "0.pcap goes on after another file was begun" in note


def test_files_that_are_compressed_afterwards(ring: Ring) -> None:
    """As by `tcpdump -z gzip`: what was read is not read again, what waits still is, once."""
    ring.put("1.pcap", 1)
    assert ring.numbers() == [1]
    ring.put("0.pcap.gz", 2, gzip.compress(capture(0)))
    (ring.folder / "0.pcap").unlink()
    assert ring.numbers() == []
    ring.put("2.pcap", 2)
    ring.put("2.pcap.gz", 3, gzip.compress(capture(2)))
    assert ring.numbers() == [2]
    ring.put("3.pcap.gz", 3, gzip.compress(capture(3)))
    assert ring.numbers() == [3]
    for path in ring.folder.iterdir():
        path.unlink()
    assert ring.numbers() == []
    assert not ring.lost


def test_other_files_of_the_folder(ring: Ring) -> None:
    """What is compressed and no capture, is empty, a link to nothing, a folder: passed over."""
    ring.put("log.gz", 5, gzip.compress(b"only words\n" * 99))
    ring.put("empty", 5, b"")
    (ring.folder / "gone").symlink_to("nowhere")
    (ring.folder / "folder").mkdir()
    os.mkfifo(ring.folder / "pipe")
    assert ring.numbers() == []
    ring.put("empty", 6)
    (ring.folder / "latest").symlink_to("empty")
    assert ring.numbers() == [6]
    assert not ring.lost
    assert not ring.notes


def test_only_what_changed_is_opened(ring: Ring, opens: Counter[str]) -> None:
    """A look at a folder of many files asks for their state alone."""
    for number in range(1, 40):
        ring.put(f"{number:02}.pcap", number)
        ring.put(f"{number:02}.txt", number, b"nothing")
    opens.clear()
    assert ring.numbers() == list(range(1, 40))
    assert opens == {f"{n:02}.{e}": t for n in range(1, 40) for e, t in (("pcap", 2), ("txt", 1))}
    opens.clear()
    assert ring.numbers() == []
    assert not opens
    ring.put("40.pcap", 40)
    opens.clear()
    assert ring.numbers() == [40]
    assert opens == {"40.pcap": 2}
    opens.clear()
    FileCapture([str(ring.folder)]).close()
    assert opens == {"40.pcap": 2}


def test_looks_take_a_part_of_the_time(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large a folder is; here a look takes 0.1 s, for its clock goes on when it is read."""
    now, step = time.monotonic() + 1000, 0.1

    def clock() -> float:
        nonlocal now
        now += step
        return now

    monkeypatch.setattr(time, "monotonic", clock)
    assert not list(ring.source.take(1 << 40))
    assert not ring.source.held()
    step = 0
    ring.put("1.pcap", 1)
    assert not list(ring.source.take(1 << 40))
    assert ring.source.held()
    now += 0.1 * listing.SPARE - 0.01
    assert not list(ring.source.take(1 << 40))
    now += 0.1
    assert ring.numbers() == [1]


def test_a_folder_that_goes_and_comes_back(tmp_path: Path) -> None:
    """With another file in it; meanwhile it is said that there is none."""
    ring = Ring(tmp_path, gone_seconds=0)
    assert ring.numbers() == [0]
    shutil.rmtree(ring.folder)
    assert ring.numbers() == []
    assert ring.numbers() == []
    ring.folder.mkdir()
    ring.put("1.pcap", 1)
    assert ring.numbers() == [1]
    assert not ring.lost
    (note,) = ring.notes
    assert note.endswith("0.pcap is gone; what comes in its place is followed")


UNPRIVILEGED = """
import os, sys
from pathlib import Path
from amqpsniff.capture.tail import FileCapture
from amqpsniff.errors import CaptureError
from tests.live.sniffing import taken
os.setresuid(65534, 65534, 65534)
folder = Path(sys.argv[1])
try:
    source = FileCapture([str(folder)])
    print(len(taken(source)), *source.notes)
except CaptureError as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="root makes files that another user may not read")
@pytest.mark.parametrize("what", ["files", "folder"])
def test_what_may_not_be_read(what: str) -> None:
    """It is said, not passed over as if it were no capture."""
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    try:
        (folder / "0.pcap").write_bytes(capture(0))
        (folder / "0.pcap").chmod(0o600)
        folder.chmod(0o755 if what == "files" else 0o700)
        done = subprocess.run(
            (sys.executable, "-c", UNPRIVILEGED, folder), capture_output=True, text=True, check=True
        )
    finally:
        shutil.rmtree(folder)
    assert "Permission denied" in done.stdout


def test_nothing_of_this_ends_a_run(tmp_path: Path) -> None:
    """The program goes on, says what was lost, and its exit code does."""
    ring = tmp_path / "ring"
    ring.mkdir()
    (ring / "0.pcap").write_bytes(capture(0))
    sniffer = Sniffer("ring", "-t", "connections", folder=tmp_path)
    assert sniffer.running.stderr is not None
    for number in range(1, 100_000):
        (ring / f"{number}.pcap").write_bytes(capture(number % 256, 2_000))
        (ring / f"{number - 1}.pcap").unlink()
        os.set_blocking(sniffer.running.stderr.fileno(), False)
        if b"are lost" in (sniffer.running.stderr.read() or b""):
            break
    os.set_blocking(sniffer.running.stderr.fileno(), True)
    assert sniffer.stop() == 3
    assert "Traceback" not in sniffer.err
    assert "A capture could not be read" in sniffer.err


def test_nothing_there_that_can_be_read(tmp_path: Path) -> None:
    """A folder without a capture has none to follow."""
    (tmp_path / "notes.txt").write_text("words")
    with pytest.raises(CaptureError, match="no capture there to follow"):
        FileCapture([str(tmp_path)])
