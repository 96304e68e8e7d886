"""What a caller names: files, directories, patterns; what is said of those that are no captures."""

import bz2
import errno
import gzip
import io
import lzma
import os
import re
import tempfile
from collections import deque
from pathlib import Path

import pytest

from amqpsniff.capture import expand, open_capture, read
from amqpsniff.capture.file import CaptureFile
from amqpsniff.capture.listing import Listing
from amqpsniff.errors import CaptureError, NotACapture
from tests.capture import build

FOREIGN = [
    (b"", "it is empty"),
    (b"hello\n", "ASCII text"),
    ("grüß dich\n".encode() * 100, "UTF-8 text"),
    (b"snoop\0\0\0" + bytes(40), "snoop.*editcap"),
    (b"GMBU" + bytes(40), "Network Monitor.*editcap"),
    (b"XCP\0" + bytes(40), "NetXRay"),
    (b"btsnoop\0" + bytes(40), "btsnoop"),
    (b"\x7fELF" + bytes(40), "ELF"),
    (b"PK\x03\x04" + bytes(40), "zip archive; unpack"),
    (b"\xfd7zXZ\0", "xz archive; unpack"),
    (b"%PDF-1.7", "PDF"),
    (bytes(100), "begins with zeros"),
    (b"\x01\x02", "only 2 bytes"),
    (b"\xc0\xff\xee\x00" * 9, "begins with c0 ff ee 00.*tshark"),
]


@pytest.mark.parametrize(("octets", "said"), FOREIGN)
def test_a_file_that_is_no_capture_gets_one_line(octets: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "file.pcap"
    path.write_bytes(octets)
    with pytest.raises(NotACapture) as raised:
        open_capture(path)
    text = str(raised.value)
    assert re.search(said, text)
    assert text.startswith(f"{path}: not a capture: ")
    assert "\n" not in text


def test_text_that_is_cut_in_a_character_is_text(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" + "ü".encode() * 400)
    with pytest.raises(NotACapture, match="UTF-8 text"):
        open_capture(path)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="No such file"):
        open_capture(tmp_path / "none")
    with pytest.raises(CaptureError, match="directory"):
        open_capture(tmp_path)


def test_a_name_cannot_break_the_line(tmp_path: Path) -> None:
    with pytest.raises(CaptureError) as raised:
        open_capture(tmp_path / "a\nb")
    assert "\n" not in str(raised.value)


def test_what_an_open_capture_says_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(build.pcapng())
    with open_capture(str(path)) as file:
        assert file.capture == str(path)
        assert build.rows(file) == build.PCAPNG_ROWS
        assert (file.format, file.compression) == ("pcapng", None)
        assert file.secrets == [(0x544C534B, b"CLIENT_RANDOM 1 2\n")]
        assert file.comments == ["first", "second"]
        assert file.link_types == [1, 113, 101]
        assert file.packets == 9
        assert {finding.capture for finding in file.findings} == {str(path)}
        assert list(file) == []


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 4096])
def test_any_block_size(block_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(build.pcapng())
    assert build.rows(open_capture(path, block_bytes=block_bytes)) == build.PCAPNG_ROWS


def test_blocks_of_a_file_begin_with_a_record(tmp_path: Path) -> None:
    """What is left of a record is read again, which costs less than to join blocks."""
    path = tmp_path / "capture"
    path.write_bytes(build.pcap(packets=100))
    batches = list(open_capture(path, block_bytes=1000))
    assert [batch.start[0] for batch in batches] == [40] + [16] * (len(batches) - 1)
    assert {len(batch.octets) for batch in batches[:-1]} == {1000}
    assert sum(map(len, batches)) == 100


def test_a_record_larger_than_a_block(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    records = [build.pcap_record("<", 1, n, bytes(size)) for n, size in enumerate((10, 5000, 20))]
    path.write_bytes(build.pcap_header() + b"".join(records))
    batches = list(open_capture(path, block_bytes=100))
    assert [size for batch in batches for size in batch.captured] == [10, 5000, 20]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "day" / "night").mkdir(parents=True)
    (tmp_path / "day" / "b.pcap").write_bytes(build.pcap())
    (tmp_path / "day" / "a").write_bytes(gzip.compress(build.pcapng()))
    (tmp_path / "day" / "notes.txt").write_text("notes")
    (tmp_path / "day" / "notes.gz").write_bytes(gzip.compress(b"notes"))
    (tmp_path / "day" / "night" / "c.pcapng").write_bytes(build.pcapng())
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "day" / "pipe")
    return tmp_path


def test_expand(tree: Path) -> None:
    assert expand(["day/b.pcap"]) == ["day/b.pcap"]
    assert expand([Path("day/notes.txt")]) == ["day/notes.txt"]
    assert expand(["day"]) == ["day/a", "day/b.pcap", "day/night/c.pcapng"]
    assert expand([tree / "empty", "day"]) == ["day/a", "day/b.pcap", "day/night/c.pcapng"]
    assert expand(["day/*.pcap"]) == ["day/b.pcap"]
    assert expand(["day/**/*.pcap*"]) == ["day/b.pcap", "day/night/c.pcapng"]
    assert expand(["da[xy]"]) == ["day/a", "day/b.pcap", "day/night/c.pcapng"]
    assert expand(["-"]) == ["-"]


def test_a_file_reached_twice_is_listed_once(tree: Path) -> None:
    (tree / "link").symlink_to(tree / "day" / "b.pcap")
    assert expand(["link", "-", "day/b.pcap", "./day/../link", "-"]) == ["link", "-"]


def test_a_file_whose_name_looks_like_a_pattern(tree: Path) -> None:
    (tree / "a[1]*.pcap").write_bytes(build.pcap())
    assert expand(["a[1]*.pcap"]) == ["a[1]*.pcap"]


@pytest.mark.parametrize("inputs", [[], ["none"], ["day", "none*"], ["empty"], ["day", "none"]])
def test_expand_says_what_is_not_there(tree: Path, inputs: list[str]) -> None:
    with pytest.raises(CaptureError) as raised:
        expand(inputs)
    assert "\n" not in str(raised.value)
    assert not inputs or inputs[-1] in str(raised.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "'': no such file or directory"),
        ("s3://bucket/a?.pcap", "s3://bucket/a?.pcap: only `amqpsniff batch` reads URIs; "),
        ("HDFS://a/b", "HDFS://a/b: only `amqpsniff batch` reads URIs"),
    ],
)
def test_names_that_are_of_no_file(tree: Path, name: str, said: str) -> None:
    for look in (expand, lambda names: Listing(names).newest()):
        with pytest.raises(CaptureError) as raised:
            look([name])
        assert str(raised.value).startswith(said)


def test_read_a_directory(tree: Path) -> None:
    found = build.rows(read(["day"]))
    assert len(found) == 3 + 2 * len(build.PCAPNG_ROWS)


def test_a_link_to_nothing_in_a_directory(tree: Path) -> None:
    before = expand(["day"])
    (tree / "day" / "gone.pcap").symlink_to("nothing")
    assert expand(["day"]) == before


def test_captures_in_a_directory_whose_compression_is_not_read(tmp_path: Path) -> None:
    """They are told, as files that cannot be read are; what is no capture by its name is not."""
    (tmp_path / "a.pcap").write_bytes(build.pcap())
    packed = [tmp_path / "b.pcap.xz", tmp_path / "c.pcap2.bz2"]
    packed[0].write_bytes(lzma.compress(build.pcap()))
    packed[1].write_bytes(bz2.compress(build.pcap()))
    (tmp_path / "messages.1.xz").write_bytes(lzma.compress(b"a line"))
    assert expand([tmp_path]) == [str(tmp_path / "a.pcap"), *map(str, packed)]
    opened = read([tmp_path])
    deque(opened, 0)
    assert [one.code for one in opened.findings] == ["capture-unreadable"] * 2


def test_one_file_that_is_no_capture_is_an_error(tree: Path) -> None:
    with pytest.raises(NotACapture):
        read(["day/notes.txt"])


def test_a_file_that_opens_and_cannot_be_read(tmp_path: Path) -> None:
    """The system's reason is told; it is neither empty nor passed over as no capture."""
    with pytest.raises(CaptureError, match="Input/output error at offset 0 of the file") as raised:
        open_capture("/proc/self/mem")
    assert not isinstance(raised.value, NotACapture)
    (tmp_path / "mem").symlink_to("/proc/self/mem")
    assert expand([tmp_path]) == [str(tmp_path / "mem")]


def test_a_compressed_file_that_cannot_be_read_to_its_end() -> None:
    """The reading ends, not the file: one finding says so."""

    class Failing(io.BytesIO):
        """A disk that gives the first bytes alone."""

        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > 200:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().read(size)

    octets = gzip.compress(build.pcap() + build.pcap_record("<", 104, 0, os.urandom(4000)))
    file = CaptureFile("one.pcap.gz", block_bytes=200, opener=lambda _: Failing(octets))
    assert sum(map(len, file)) == 3
    assert [one.code for one in file.findings] == ["capture-unreadable"]


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_folder_that_cannot_be_looked_into() -> None:
    """What is in it is not there, and that is said."""
    with tempfile.TemporaryDirectory() as name:  # where other users get to
        outside, inside = Path(name), Path(name) / "inside"
        inside.mkdir()
        for folder in (outside, inside):
            (folder / "one.pcap").write_bytes(build.pcap())
        outside.chmod(0o755)
        inside.chmod(0)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.setresuid(65534, 65534, 65534)
                captures = read([outside])
                said = [*(one.detail for one in captures.findings), str(sum(map(len, captures)))]
                os.write(writing, "\n".join(said).encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as told:
            lines = told.read().split("\n")
        os.waitpid(child, 0)
    assert lines == [f"{inside}: cannot be opened: Permission denied", "3"]
