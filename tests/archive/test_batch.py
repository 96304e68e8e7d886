"""A batch is a build: it does what is new, survives being killed, and says what it cannot read."""

from __future__ import annotations

import gzip
import os
import pickle
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.archive import Batch, Summary
from amqpsniff.archive.batch import run_in_process
from amqpsniff.archive.listing import MANIFEST
from amqpsniff.archive.output_folder import form_of_rows
from amqpsniff.errors import CaptureError, UsageError
from amqpsniff.options import Options
from amqpsniff.spark_jobs.batch import no_file_read
from tests.thorough import THOROUGH, only_thorough

from .splits import by_one_engine, deal, packets_of, write_pcap
from .tables import everything, files_there, manifest, written_rows

TABLES = ("frames", "messages", "connections", "channels", "links", "findings")


class Killed(Exception):
    """What stops a run here."""


def kill_after(tasks: int) -> Callable[..., list[Any]]:
    """A runner that dies when it has done so many things."""
    left = [tasks]

    def run(function: Callable[[Any], Any], items: Sequence[Any], watch: Any) -> list[Any]:
        results = []
        for item in items:
            if not left[0]:
                raise Killed
            left[0] -= 1
            results.append(function(item))
        return results

    return run


TASK_BYTES = 50_000


def batch(folder: Path, output: Path, **more: Any) -> Summary:
    return Batch([str(folder)], str(output), task_bytes=TASK_BYTES, **more).run()


@pytest.fixture(scope="module")
def kept(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some captures, cut into files that cut their connections; no test changes them."""
    folder = tmp_path_factory.mktemp("captures")
    packets = []
    for name in ("pika_mix", "php_churn", "aiopika_rpc"):
        packets += packets_of([samples / f"{name}.pcap"])
    packets.sort(key=lambda one: one.ts_ns)
    deal(packets, folder, random.Random(7), 8)
    return folder


@pytest.fixture
def archive(kept: Path, tmp_path: Path) -> Path:
    """The same captures, for a test that changes them."""
    return shutil.copytree(kept, tmp_path / "captures")


@pytest.fixture(scope="module")
def whole(kept: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    """The tables of one run; no test changes them."""
    output = tmp_path_factory.mktemp("tables") / "whole"
    return output, batch(kept, output)


def same_tables(output: Path, other: Path) -> None:
    assert everything(output) == everything(other)
    assert files_there(output) == files_there(other)


def test_tables_are_those_of_one_engine(kept: Path, whole: tuple[Path, Summary]) -> None:
    output, summary = whole
    alone = by_one_engine(sorted(kept.iterdir()))
    for table in TABLES:
        assert written_rows(output, table) == alone[table]
        assert summary.rows[table] == len(alone[table])
    assert summary.tasks > 4
    assert not summary.bad_files
    assert files_there(output) == {
        name for names in manifest(output)["tables"].values() for name in names
    }
    assert all("capture_date=2026-" in name for name in manifest(output)["tables"]["frames"])


def test_a_second_run_has_nothing_to_do(
    kept: Path, whole: tuple[Path, Summary], tmp_path: Path
) -> None:
    output = shutil.copytree(whole[0], tmp_path / "tables")
    first = whole[1]
    before = {path: path.stat().st_mtime_ns for path in output.rglob("frames/**/*.parquet")}
    second = batch(kept, output)
    assert second.done_before == second.tasks == first.tasks
    assert second.rows == first.rows
    assert before == {path: path.stat().st_mtime_ns for path in output.rglob("frames/**/*.parquet")}


def test_workers_that_run_in_other_folders(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are given where the batch is, and so is the output."""
    away = tmp_path / "away"
    away.mkdir()

    def run(function: Callable[[Any], Any], items: Sequence[Any], watch: Any) -> list[Any]:
        sent = [pickle.dumps(item) for item in items]
        monkeypatch.chdir(away)
        results = [function(pickle.loads(item)) for item in sent]
        monkeypatch.chdir(tmp_path)
        return results

    monkeypatch.chdir(tmp_path)
    batch = Batch([archive.name], "tables", task_bytes=TASK_BYTES)
    batch.look(seconds=0)
    summary = batch.run(run)
    assert not summary.unreadable_files
    assert not list(away.iterdir())
    alone = by_one_engine(f"{archive.name}/{one.name}" for one in archive.iterdir())
    for table in TABLES:
        assert written_rows(tmp_path / "tables", table) == alone[table]


def test_captures_that_workers_do_not_see(archive: Path, tmp_path: Path) -> None:
    def run(function: Callable[[Any], Any], items: Sequence[Any], watch: Any) -> list[Any]:
        archive.rename(tmp_path / "elsewhere")
        return run_in_process(function, items, watch)

    batch = Batch([str(archive)], str(tmp_path / "tables"))
    summary = batch.run(run)
    assert summary.unreadable_files == summary.files == summary.bad_files
    assert no_file_read(batch).startswith(f"none of {summary.files} files could be read; the first")
    assert no_file_read(batch).endswith("; can the workers see the captures?")


def test_what_is_lost_of_the_work_is_done_again(
    kept: Path, whole: tuple[Path, Summary], tmp_path: Path
) -> None:
    output = shutil.copytree(whole[0], tmp_path / "tables")
    before = everything(output)
    sighted = sorted(output.glob("_work/sightings/*"))
    assert sighted
    sighted[0].unlink()
    summary = batch(kept, output)
    assert summary.done_before == summary.tasks - 1
    assert everything(output) == before
    (output / "_work/seed").unlink()  # what was seen cannot be compared any more
    summary = batch(kept, output)
    assert summary.done_before == summary.tasks - len(sighted)
    assert everything(output) == before


@pytest.mark.parametrize("links", [False, True])
def test_a_damaged_part_is_made_anew(archive: Path, tmp_path: Path, links: bool) -> None:
    output = tmp_path / "tables"
    made = batch(archive, output, links=links)
    folders = ["messages", "_work/sightings"]
    folders += ["_work/unlinked", "_work/linkables", "_work/links"] if links else []
    for folder in folders:
        part = min((output / folder).rglob("*.parquet"))
        whole = part.read_bytes()
        for octets in (b"", whole[:-9], whole + b"x"):
            part.write_bytes(octets)
            assert batch(archive, output, links=links).rows == made.rows
            assert part.read_bytes() == whole


def test_files_that_come_later_change_what_they_touch(archive: Path, tmp_path: Path) -> None:
    output, other = tmp_path / "tables", tmp_path / "other"
    files = sorted(archive.iterdir())
    held_back = tmp_path / files[-1].name
    shutil.move(files[-1], held_back)
    batch(archive, output)
    shutil.move(held_back, files[-1])
    summary = batch(archive, output)
    assert 0 < summary.done_before < summary.tasks
    batch(archive, other)
    same_tables(output, other)


def test_a_file_that_goes_away_takes_its_rows_along(archive: Path, tmp_path: Path) -> None:
    output, other = tmp_path / "tables", tmp_path / "other"
    batch(archive, output)
    sorted(archive.iterdir())[0].unlink()
    batch(archive, output)
    batch(archive, other)
    same_tables(output, other)


@pytest.mark.parametrize("tasks", [0, 3])
def test_a_run_that_was_killed_goes_on(
    kept: Path, whole: tuple[Path, Summary], tmp_path: Path, tasks: int
) -> None:
    output = tmp_path / "tables"
    with pytest.raises(Killed):
        Batch([str(kept)], str(output), task_bytes=TASK_BYTES).run(kill_after(tasks))
    summary = batch(kept, output)
    assert summary.rows == whole[1].rows
    same_tables(output, whole[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes to kill")
@pytest.mark.parametrize("more", [("links",), pytest.param((), marks=only_thorough)])
def test_a_run_that_is_killed_at_any_moment_goes_on(
    samples: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    captures, output = tmp_path / "captures", tmp_path / "tables"
    captures.mkdir()
    packets = packets_of([samples / "pika_mix.pcap"])[:60]
    for at in range(3):
        write_pcap(captures / f"{at}.pcap", packets[at * 20 : at * 20 + 20])
    command = [sys.executable, "-m", "tests.archive.killed", str(captures), str(output)]
    subprocess.run([*command, *more], check=True)
    made = [_content(there) for there in output.iterdir()]
    assert len(made) > (30 if THOROUGH else 4)
    assert all(one == made[0] for one in made)


def _content(output: Path) -> dict[str, bytes]:
    """The files that a manifest names, and itself; there are no others."""
    names = {name for names in manifest(output)["tables"].values() for name in names}
    assert files_there(output) == names
    assert not list(output.rglob("*.part"))
    return {name: (output / name).read_bytes() for name in [*names, MANIFEST]}


def test_a_worker_that_dies_in_a_write_leaves_nothing_that_counts(
    kept: Path, whole: tuple[Path, Summary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "tables"
    from amqpsniff.archive.task import TaskRun

    batches = TaskRun.batches
    count = [0]

    def dying(self: TaskRun) -> Any:
        for one in batches(self):
            count[0] += 1
            if count[0] == 12:
                raise Killed
            yield one

    with monkeypatch.context() as patch:
        patch.setattr(TaskRun, "batches", dying)
        with pytest.raises(Killed):
            batch(kept, output)
    batch(kept, output)
    same_tables(output, whole[0])


def test_other_options_are_other_tables(
    kept: Path, whole: tuple[Path, Summary], tmp_path: Path
) -> None:
    output = shutil.copytree(whole[0], tmp_path / "tables")
    hashed = {"options": Options(body_sha256=True), "tables": ["messages"]}
    with pytest.raises(UsageError, match=r"would leave: table frames, .* findings; give"):
        batch(kept, output, **hashed)
    same_tables(output, whole[0])
    summary = batch(kept, output, **hashed, replace=True)
    assert summary.done_before == 0
    assert set(manifest(output)["tables"]) == {"messages", "errors"}
    assert not list(output.glob("frames/**/*.parquet"))
    with pytest.raises(UsageError, match="would leave: --body-sha256, all ports; give"):
        batch(kept, output, options=Options(ports=frozenset([5672])))
    assert batch(kept, output, options=Options(body_sha256=True)).done_before == 0


def test_results_of_other_rules_are_made_anew(
    kept: Path, whole: tuple[Path, Summary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = shutil.copytree(whole[0], tmp_path / "tables")
    code = tmp_path / "amqpsniff"
    for room in ("findings", "session"):
        shutil.copytree(Path(amqpsniff.__file__).parent / room, code / room)
    with (code / "session/rules/churn.py").open("a") as file:
        file.write("# says something else\n")
    form_of_rows.cache_clear()
    monkeypatch.setattr("importlib.resources.files", lambda _: code)
    told: list[Any] = []
    summary = Batch([str(kept)], str(output), task_bytes=TASK_BYTES).run(notice=told.append)
    form_of_rows.cache_clear()
    assert summary.done_before == 0
    assert [step.why for step in told if "are made anew" in step.why]


def _ways() -> dict[str, Callable[[bytes], bytes]]:
    return {
        "empty": lambda octets: b"",
        "text": lambda octets: b"not a capture\n" * 20,
        "zeros": lambda octets: bytes(4096),
        "header-only": lambda octets: octets[:24],
        "half-a-header": lambda octets: octets[:11],
        "cut": lambda octets: octets[: len(octets) * 2 // 3 + 1],
        "damaged": lambda octets: octets[:5000] + b"\xff" * 400 + octets[5400:],
        "cut-gzip": lambda octets: gzip.compress(octets)[:-2000],
        "damaged-gzip": lambda octets: _flipped(gzip.compress(octets)),
        "zip": lambda octets: b"PK\x03\x04" + octets,
        "parquet": lambda octets: b"PAR1" + octets[:300],
        "noise": lambda octets: random.Random(1).randbytes(20_000),
        "fddi": lambda octets: octets[:20] + (10).to_bytes(4, "little") + octets[24:],
    }


def _flipped(octets: bytes) -> bytes:
    middle = len(octets) // 2
    return (
        octets[:middle]
        + bytes(255 - one for one in octets[middle : middle + 9])
        + octets[middle + 9 :]
    )


def test_bad_files_are_rows_and_nothing_else(archive: Path, samples: Path, tmp_path: Path) -> None:
    output = tmp_path / "tables"
    good = by_one_engine(sorted(archive.iterdir()), TABLES[:4])
    octets = (samples / "node.pcap").read_bytes()
    bad = {way: archive / f"zz-{way}.pcap" for way in _ways()}
    for way, spoil in _ways().items():
        bad[way].write_bytes(spoil(octets))
    summary = batch(archive, output)
    wrong = {row[0] for row in written_rows(output, "errors")}
    assert wrong == {str(path) for way, path in bad.items() if way != "header-only"}
    assert summary.bad_files == len(wrong)
    of_bad = set(map(str, bad.values()))
    for table in TABLES[:4]:
        rows = [row for row in written_rows(output, table) if row[0] not in of_bad]
        assert rows == good[table], table


def test_a_name_that_is_no_text(archive: Path, tmp_path: Path) -> None:
    name = os.fsencode(archive) + b"/zz\xff.pcap"
    try:
        with open(name, "wb") as file:  # noqa: PTH123 (a Path is a text)
            file.write(b"no capture")
    except OSError:
        pytest.skip("this file system wants names that are UTF-8")
    summary = batch(archive, tmp_path / "tables")
    (row,) = written_rows(tmp_path / "tables", "errors")
    assert row[0] == f"{archive}/zz\\xff.pcap"
    assert summary.bad_files == 1


def test_a_file_that_may_not_be_read(archive: Path, tmp_path: Path) -> None:
    bad = archive / "zz.pcap"
    bad.write_bytes(b"")
    bad.chmod(0)
    job = "import sys; from amqpsniff.archive import Batch; Batch(sys.argv[1:2], sys.argv[2]).run()"
    command = [sys.executable, "-c", job, str(archive), str(tmp_path / "tables")]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may read everything")
        rights = "-dac_override,-dac_read_search"
        command[:0] = ["setpriv", f"--inh-caps={rights}", f"--bounding-set={rights}"]
    subprocess.run(command, check=True)
    (row,) = written_rows(tmp_path / "tables", "errors")
    assert row[0] == str(bad)
    assert "Permission denied" in row[3]


def test_a_file_that_vanishes_on_the_way(archive: Path, tmp_path: Path) -> None:
    output, other = tmp_path / "tables", tmp_path / "other"
    lost = sorted(archive.iterdir())[3]
    kept = lost.read_bytes()

    def vanishing(function: Callable[[Any], Any], items: Sequence[Any], watch: Any) -> list[Any]:
        if items and hasattr(items[0], "task"):
            lost.unlink(missing_ok=True)
        return run_in_process(function, items, watch)

    Batch([str(archive)], str(output), task_bytes=TASK_BYTES).run(vanishing)
    errors = written_rows(output, "errors")
    assert {row[0] for row in errors} == {str(lost)}
    rest = by_one_engine(sorted(archive.iterdir()), ("frames", "messages"))
    for table in ("frames", "messages"):
        assert written_rows(output, table) == rest[table]
    lost.write_bytes(kept)
    batch(archive, output)
    batch(archive, other)
    assert everything(output) == everything(other)


def test_names_that_mean_nothing(tmp_path: Path) -> None:
    for name in ("nothere.pcap", "nothere/*.pcap", str(tmp_path)):
        with pytest.raises(CaptureError):
            Batch([name], str(tmp_path / "out")).run()
    with pytest.raises(UsageError, match="no table"):
        Batch([str(tmp_path)], str(tmp_path / "out"), tables=["letters"])


def test_a_folder_of_tables_is_no_capture(samples: Path, tmp_path: Path) -> None:
    shutil.copy(samples / "pika_mix.pcap", tmp_path)
    batch(tmp_path, tmp_path / "tables")
    batch(tmp_path, tmp_path / "tables")
    assert manifest(tmp_path / "tables")["captures"][0]["path"].endswith("pika_mix.pcap")
    assert not written_rows(tmp_path / "tables", "errors")


def test_other_file_systems(samples: Path, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    names = ("pika_mix.pcap", "kombu.pcap.gz", "bunny.pcapng")
    for name in names:
        memory.pipe(f"/archive/{name}", (samples / name).read_bytes())
        shutil.copy(samples / name, tmp_path)
    summary = Batch(["memory://archive"], "memory://tables").run()
    alone = by_one_engine([tmp_path / name for name in names], ("frames",))
    assert summary.rows["frames"] == len(alone["frames"])
    again = Batch(["memory://archive/*.pcap*"], "memory://tables").run()
    assert again.done_before == again.tasks == summary.tasks
    uri = Batch([f"file://{tmp_path}"], (tmp_path / "out").as_uri()).run()
    assert uri.rows == summary.rows


def test_rows_of_two_days_are_in_two_folders(samples: Path, tmp_path: Path) -> None:
    packets = packets_of([samples / "pika_mix.pcap"])
    day = 86_400_000_000_000
    midnight = (packets[0].ts_ns // day + 1) * day
    middle = packets[len(packets) // 2].ts_ns
    moved = [one._replace(ts_ns=one.ts_ns + midnight - middle) for one in packets]
    write_pcap(tmp_path / "night.pcap", moved)
    summary = batch(tmp_path, tmp_path / "tables")
    folders = {path.parent.name for path in (tmp_path / "tables").glob("frames/*/*.parquet")}
    assert len(folders) == 2
    assert len(written_rows(tmp_path / "tables", "frames")) == summary.rows["frames"]
