"""What is a capture of an archive: files, and what cannot be looked into; no pipes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from amqpsniff.archive import Batch
from amqpsniff.archive.listing import list_captures
from amqpsniff.capture.sources import expand
from amqpsniff.errors import CaptureError, UsageError

LISTS = """
import json, sys
from amqpsniff.archive.listing import list_captures

print(json.dumps([one.path for one in list_captures(sys.argv[1:])]))
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders")
def test_pipes_are_not_waited_for(samples: Path, tmp_path: Path) -> None:
    shutil.copy(samples / "kombu.pcap.gz", tmp_path)
    pipe = tmp_path / "live.pcap"
    os.mkfifo(pipe)
    for name in (tmp_path, f"{tmp_path}/*"):
        (found,) = list_captures([name])
        assert found.path == str(tmp_path / "kombu.pcap.gz")
    with pytest.raises(CaptureError, match="is not a file"):
        list_captures([pipe])


def test_a_file_of_several_names_is_read_once(samples: Path, tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("b.pcap", "a.pcap", "latest.pcap")]
    shutil.copy(samples / "pika_mix.pcap", names[0])
    os.link(names[0], names[1])
    Path(names[2]).symlink_to(names[0])
    (found,) = list_captures([names[0], tmp_path, os.path.relpath(tmp_path), f"{tmp_path}/l*"])
    assert found.path == names[0]
    (found,) = list_captures([tmp_path])
    assert found.path == names[1]


def test_equal_captures_of_a_folder_come_in_the_order_of_export(
    samples: Path, tmp_path: Path
) -> None:
    """Rows are of the first of them."""
    (tmp_path / "sub").mkdir()
    for name in ("z.pcap", "sub/b.pcap"):
        shutil.copy(samples / "pika_mix.pcap", tmp_path / name)
    assert expand([tmp_path]) == [one.path for one in list_captures([tmp_path])]


def test_folders_that_may_not_be_listed_are_told(samples: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", LISTS, str(tmp_path)]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may read everything")
        rights = "-dac_override,-dac_read_search"
        command[:0] = ["setpriv", f"--inh-caps={rights}", f"--bounding-set={rights}"]
    names = [str(tmp_path / name) for name in ("a.pcap", "half", "half/b.pcap", "shut")]
    for folder in (names[1], names[3]):
        Path(folder).mkdir()
    for file in (names[0], names[2]):
        shutil.copy(samples / "kombu.pcap.gz", file)
    Path(names[1]).chmod(0o400)
    Path(names[3]).chmod(0)
    try:
        made = subprocess.run(command, check=True, capture_output=True, text=True)
    finally:
        for folder in (names[1], names[3]):
            Path(folder).chmod(0o700)
    assert json.loads(made.stdout) == [names[0], names[2], names[3]]


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_the_folder_of_a_batch_is_not_left_out_in_silence(
    samples: Path, tmp_path: Path, prefix: str
) -> None:
    kombu = str(samples / "kombu.pcap.gz")
    output = f"{prefix}{tmp_path}/tables"
    Batch([kombu], output).run()
    with pytest.raises(UsageError, match=r"tables is the folder of a batch, not of captures"):
        list_captures([kombu, output])
    assert Batch([kombu, output], output).find()  # `*` names it too


def test_an_empty_name_is_of_no_file() -> None:
    """It is not the folder one is in."""
    with pytest.raises(CaptureError, match=r"^'': no such file or directory"):
        list_captures([""])


def test_a_file_system_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")

    def fail(*_: object, **__: object) -> None:
        raise OSError("fs is not installed\nso it is")

    monkeypatch.setattr("fsspec.core.url_to_fs", fail)
    with pytest.raises(UsageError) as raised:
        list_captures(["fs://nowhere/x"])
    assert str(raised.value) == "fs://nowhere/x: cannot be opened here: fs is not installed"
    with pytest.raises(UsageError) as raised:
        list_captures(["hdfs://nowhere/x"])
    assert "fs is not installed" not in str(raised.value)  # Arrow knows it, and says why not


def test_the_name_that_hadoop_has_for_s3() -> None:
    from amqpsniff.archive.filesystem import file_system

    more = "?region=eu-central-1&scheme=http&endpoint_override=127.0.0.1:1"
    for scheme in ("s3", "s3a", "s3n"):
        system, path = file_system(f"{scheme}://cap/day{more}")
        assert (system.type_name, path) == ("s3", "cap/day")
