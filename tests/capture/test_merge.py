"""Several captures as one input, in the order of time."""

import os
import random
import threading
from pathlib import Path

import pytest

from amqpsniff.capture import merge, read
from amqpsniff.capture.merge import CaptureSet
from amqpsniff.capture.packets import NO_TIME
from amqpsniff.errors import CaptureError
from tests.capture import build

Times = list[int | None]


def write(path: Path, times: Times, packet_bytes: int = 0) -> str:
    """A capture with a packet at each time in milliseconds; None has no time."""
    octets = build.section() + build.interface()
    for time in times:
        packet = path.name.encode().ljust(packet_bytes)
        octets += (
            build.simple("<", packet) if time is None else build.enhanced("<", time * 1000, packet)
        )
    path.write_bytes(octets)
    return str(path)


def times(captures: CaptureSet) -> list[tuple[str, int | None]]:
    """Name of the file and milliseconds of every packet."""
    return [
        (
            Path(batch.capture).name,
            None if batch.ts_ns[row] == NO_TIME else batch.ts_ns[row] // 10**6,
        )
        for batch in captures
        for row in range(batch.begin, batch.end)
    ]


def merged(folder: Path, *files: Times) -> list[tuple[str, int | None]]:
    names = [write(folder / chr(97 + n), one) for n, one in enumerate(files)]
    captures = read(names)
    found = times(captures)
    assert captures.findings == []
    return found


def test_files_that_follow_each_other(tmp_path: Path) -> None:
    found = merged(tmp_path, [30, 31], [10, 11], [20, 29])
    assert found == [("b", 10), ("b", 11), ("c", 20), ("c", 29), ("a", 30), ("a", 31)]


def test_files_that_overlap(tmp_path: Path) -> None:
    found = merged(tmp_path, [10, 20, 30], [15, 25, 26, 40])
    assert found == [
        ("a", 10), ("b", 15), ("a", 20), ("b", 25), ("b", 26), ("a", 30), ("b", 40),
    ]  # fmt: skip


def test_at_the_same_time_the_file_named_first_comes_first(tmp_path: Path) -> None:
    found = merged(tmp_path, [10, 10, 20], [10, 20, 20], [10, 20])
    assert "".join(name for name, _ in found) == "aabcabbc"


def test_the_order_within_a_file_stays(tmp_path: Path) -> None:
    found = merged(tmp_path, [10, 30, 5, 31], [20, 40])
    assert found == [("a", 10), ("b", 20), ("a", 30), ("a", 5), ("a", 31), ("b", 40)]


def test_packets_without_time_stay_where_they_are(tmp_path: Path) -> None:
    found = merged(tmp_path, [None, 10, None, 30, None], [20, None, None, 40])
    assert found == [
        ("a", None), ("a", 10), ("a", None), ("b", 20), ("b", None), ("b", None), ("a", 30),
        ("a", None), ("b", 40),
    ]  # fmt: skip


def test_a_file_without_any_time_stays_between_its_neighbours(tmp_path: Path) -> None:
    found = merged(tmp_path, [10, 12], [None, None], [20])
    assert sorted(found, key=lambda one: one[0] == "c") == found
    assert [one for one in found if one[0] == "b"] == [("b", None)] * 2


def test_files_without_packets(tmp_path: Path) -> None:
    assert merged(tmp_path, [], [10], []) == [("b", 10)]


def test_any_files_give_a_sorted_merge(tmp_path: Path) -> None:
    choose = random.Random(3)
    files = [sorted(choose.choices(range(1000), k=300)) for _ in range(5)]
    found = merged(tmp_path, *(list[int | None](one) for one in files))
    everything = [(time, chr(97 + n)) for n, one in enumerate(files) for time in one]
    assert [(time, name) for name, time in found] == sorted(everything)


def test_slices_cost_nothing_where_files_do_not_overlap(tmp_path: Path) -> None:
    names = [write(tmp_path / str(n), list(range(n * 100, n * 100 + 100))) for n in range(9)]
    assert [len(batch) for batch in read(names)] == [100] * 9


def test_findings_name_the_file(tmp_path: Path) -> None:
    good = write(tmp_path / "good", [10])
    cut = write(tmp_path / "cut", [10, 20])
    Path(cut).write_bytes(Path(cut).read_bytes()[:-1])
    foreign = tmp_path / "foreign"
    foreign.write_text("notes")
    captures = read([good, str(foreign), cut])
    assert times(captures) == [("good", 10), ("cut", 10)]
    assert [(one.capture, one.code) for one in captures.findings] == [
        (str(foreign), "capture-unreadable"),
        (cut, "capture-truncated"),
    ]
    assert "ASCII text" in captures.findings[0].detail


def test_what_captures_say_together(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(build.pcapng())
    captures = read([tmp_path])
    assert len(times(captures)) == 2 * len(build.PCAPNG_ROWS)
    assert captures.link_types == [1, 113, 101]
    assert len(captures.secrets) == 2
    assert captures.comments == ["first", "second"] * 2


def test_no_file_can_be_read(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("notes")
    with pytest.raises(CaptureError, match=r"none of 2 files.*ASCII text"):
        read([str(tmp_path / "a"), str(tmp_path / "b")])


def test_a_file_that_goes_away(tmp_path: Path) -> None:
    names = [write(tmp_path / name, [time]) for name, time in (("a", 10), ("b", 20))]
    captures = read(names)
    Path(names[1]).unlink()
    assert times(captures) == [("a", 10)]
    assert [one.code for one in captures.findings] == ["capture-unreadable"]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts /proc/self/fd")
def test_a_rotation_has_one_file_open(tmp_path: Path) -> None:
    for n in range(300):
        write(tmp_path / f"{n:03}", [n * 10, n * 10 + 9])
    before = open_files()
    seen = set()
    count = 0
    for batch in read([tmp_path]):
        count += len(batch)
        seen.add(open_files() - before)
    assert count == 600
    assert seen <= {0, 1, 2}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts /proc/self/fd")
def test_more_files_overlap_than_may_be_open(tmp_path: Path) -> None:
    """Each is longer than what is read of it at once."""
    count = merge.MAX_OPEN_FILES + 30
    files: list[Times] = [list(range(n, 1000 + n, 10)) for n in range(count)]
    names = [write(tmp_path / f"{n:03}", one, 500) for n, one in enumerate(files)]
    before = open_files()
    captures = CaptureSet(names, block_bytes=2_000)
    found, opened = [], set()
    for batch in captures:
        opened.add(open_files() - before)
        found += [batch.ts_ns[row] for row in range(batch.begin, batch.end)]
    assert max(opened) <= merge.MAX_OPEN_FILES + 1
    assert len(found) == sum(map(len, files))
    assert found == sorted(found)


def test_leaving_early_closes_everything(tmp_path: Path) -> None:
    for n in range(3):
        write(tmp_path / str(n), [1, 2, 3])
    before = open_files()
    with read([tmp_path]) as captures:
        next(captures)
    assert open_files() == before
    assert list(captures) == []


def test_a_named_pipe_among_files(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = Path(write(tmp_path / "content", [15, 25])).read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    found = times(read([write(tmp_path / "a", [10, 20, 30]), str(pipe)]))
    writer.join()
    assert found == [("a", 10), ("pipe", 15), ("a", 20), ("pipe", 25), ("a", 30)]
