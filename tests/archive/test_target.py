"""The folder of a batch: what it takes for its own, what it leaves alone, what it makes again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.archive import Batch
from amqpsniff.archive.listing import MANIFEST
from amqpsniff.errors import CaptureError, OutputError, UsageError

from .tables import everything, files_there, manifest, written_rows


class Killed(Exception):
    """What stops a run here."""


def kill_at_the_end(
    function: Callable[[Any], Any], items: Sequence[Any], watch: Callable[[], None]
) -> list[Any]:
    """A runner that dies when all tasks are done, before the manifest is written."""
    for item in items:
        function(item)
    raise Killed


@pytest.mark.parametrize("links", [False, True])
def test_tables_that_are_gone_are_made_again(captures: Path, tmp_path: Path, links: bool) -> None:
    output = tmp_path / "tables"
    Batch([str(captures)], str(output), links=links).run()
    before = everything(output)
    shutil.rmtree(output / "messages")
    Batch([str(captures)], str(output), links=links).run()
    assert everything(output) == before
    for waiting in output.glob("_work/unlinked/*/*"):
        waiting.unlink()
    for linked in output.glob("_work/links/*.parquet"):
        linked.unlink()
    shutil.rmtree(output / "messages")
    Batch([str(captures)], str(output), links=links).run()
    assert everything(output) == before


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("pattern", ["", "/*", "/**"])
def test_tables_below_the_captures_are_not_read(captures: Path, remote: bool, pattern: str) -> None:
    output = captures / "out" / "tables"
    prefix = "file://" if remote else ""
    given = [f"{prefix}{captures}{pattern}"], f"{prefix}{output}"
    with pytest.raises(Killed):
        Batch(*given).run(kill_at_the_end)
    assert list(output.glob("_work/*/*"))
    for _ in range(2):
        Batch(*given).run()
        names = [Path(one["path"]).name for one in manifest(output)["captures"]]
        assert names == ["blocked.pcap", "pika_mix.pcap"]
        assert not written_rows(output, "errors")


def test_tables_beside_captures_that_a_pattern_names(captures: Path) -> None:
    for _ in range(2):
        Batch([f"{captures}/*"], str(captures)).run()
        assert len(manifest(captures)["captures"]) == 2


def test_names_that_are_hidden(captures: Path, tmp_path: Path) -> None:
    hidden = captures / "_new.pcap"
    shutil.copy2(captures / "blocked.pcap", hidden)
    for prefix in ("", "file://"):
        left_out = [f"{prefix}{captures}", f"{prefix}{captures}/*", f"{prefix}{captures}/**"]
        for number, name in enumerate(left_out):
            assert Batch([name], str(tmp_path / f"{prefix[:4]}{number}")).run().files == 2
        for name in (str(hidden), f"{captures}/_*.pcap"):
            assert Batch([f"{prefix}{name}"], str(tmp_path / "one")).run().files == 1


@pytest.mark.parametrize("table", ["messages", "errors"])
def test_files_of_others_are_not_deleted(captures: Path, tmp_path: Path, table: str) -> None:
    output = tmp_path / "home"
    (output / table).mkdir(parents=True)
    (output / table / "letter.txt").write_text("dear")
    (output / ".half.part").write_text("a download")
    with pytest.raises(UsageError, match=f"home/{table} has files that no batch has written"):
        Batch([str(captures)], str(output)).run()
    (output / table / "letter.txt").rename(output / "letter.txt")
    Batch([str(captures)], str(output)).run()
    assert sorted(one.name for one in output.iterdir() if one.is_file()) == [
        ".half.part",
        MANIFEST,
        "letter.txt",
    ]


def test_what_a_killed_run_has_begun_is_deleted(captures: Path, tmp_path: Path) -> None:
    output = tmp_path / "tables"
    Batch([str(captures)], str(output)).run()
    begun = [output / f".{MANIFEST}.0a1b2c3d.part", output / "messages/.x.parquet.0a1b2c3d.part"]
    for one in begun:
        one.write_bytes(b"")
    Batch([str(captures)], str(output)).run()
    assert not any(one.exists() for one in begun)
    assert files_there(output)


def test_folders_that_cannot_hold_tables(captures: Path, tmp_path: Path) -> None:
    for one in (str(captures), captures.as_uri()):
        with pytest.raises(UsageError, match="is to be read: give tables a folder of their own"):
            Batch([one], one).run()
    file = tmp_path / "file"
    file.touch()
    for output in (file, file / "tables"):
        with pytest.raises(OutputError, match="tables cannot be written there"):
            Batch([str(captures)], str(output)).run()
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(CaptureError, match="no file found"):
        Batch([str(empty)], str(empty)).run()
    assert sorted(one.name for one in captures.iterdir()) == ["blocked.pcap", "pika_mix.pcap"]


def test_links_of_a_file_that_was_lost_on_the_way(captures: Path, tmp_path: Path) -> None:
    output, other = tmp_path / "tables", tmp_path / "other"
    lost, elsewhere = captures / "pika_mix.pcap", tmp_path / "pika_mix.pcap"
    for _ in range(2):
        batch = Batch([str(captures)], str(output), links=True)
        batch.look(100)
        lost.rename(elsewhere)
        summary = batch.run()
        assert summary.unreadable_files == 1
        assert len(written_rows(output, "messages")) == summary.rows["messages"]
        elsewhere.rename(lost)
    Batch([str(captures)], str(output), links=True).run()
    Batch([str(captures)], str(other), links=True).run()
    assert everything(output) == everything(other)
    assert files_there(output) == files_there(other)


def test_a_folder_in_which_nothing_may_be_made(captures: Path) -> None:
    """There root makes no folder either."""
    with pytest.raises(OutputError, match="tables cannot be written there"):
        Batch([str(captures)], "/proc/tables").run()
