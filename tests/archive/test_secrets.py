"""What opens TLS reaches every task, wherever it stands, and changes what it must."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.archive import Batch, Summary
from amqpsniff.errors import UsageError
from amqpsniff.options import Options

from .splits import deal, packets_of, rows_of, write_pcap
from .tables import everything, written_rows

pytest.importorskip("cryptography")

TABLES = ("frames", "messages", "connections", "channels", "links", "findings")


def batch(
    folder: Path, output: Path, options: Options | None = None, *, replace: bool = False
) -> Summary:
    return Batch([str(folder)], str(output), options, replace=replace, task_bytes=2_000).run()


def check(folder: Path, output: Path, **keys: Any) -> None:
    """Compare a batch's tables with those of one reader."""
    capture = amqpsniff.open(*sorted(map(str, folder.iterdir())), **keys)
    for table in TABLES:
        assert written_rows(output, table) == rows_of(capture.table(table)), table
    assert written_rows(output, "messages")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "captures"
    made.mkdir()
    return made


def test_a_key_log_opens_what_it_can(samples: Path, folder: Path, tmp_path: Path) -> None:
    deal(packets_of([samples / "tls13.pcap"]), folder, random.Random(1), 5)
    shutil.copy(samples / "pika_mix.pcap", folder / "plain.pcap")
    keylog = tmp_path / "keys"
    shutil.copy(samples / "tls13.keys", keylog)
    output = tmp_path / "tables"
    sealed = batch(folder, output)
    check(folder, output)
    opened = batch(folder, output, Options(tls_keylog=keylog))
    check(folder, output, tls_keylog=keylog)
    assert 0 < opened.done_before < opened.tasks == sealed.tasks
    again = batch(folder, output, Options(tls_keylog=keylog))
    assert again.done_before == again.tasks
    with pytest.raises(UsageError, match="leave: --tls-keylog"):
        batch(folder, output)
    batch(folder, output, replace=True)
    batch(folder, tmp_path / "other")
    assert everything(output) == everything(tmp_path / "other")
    secret = keylog.read_bytes().split()[-1]
    assert not [one for one in output.rglob("*") if one.is_file() and secret in one.read_bytes()]


def test_a_private_key(samples: Path, folder: Path, tmp_path: Path) -> None:
    deal(packets_of([samples / "tls12_rsa.pcap"]), folder, random.Random(2), 5)
    key = samples / "tls12_rsa.key"
    assert batch(folder, tmp_path / "tables", Options(tls_keys=(key,))).tasks == 1
    check(folder, tmp_path / "tables", tls_key=key)


def test_secrets_in_another_capture(samples: Path, folder: Path, tmp_path: Path) -> None:
    packets = packets_of([samples / "tls12.pcapng"])
    write_pcap(folder / "b.pcap", packets[: len(packets) // 2])
    write_pcap(folder / "c.pcap", packets[len(packets) // 2 :])
    head = _until_packets((samples / "tls12.pcapng").read_bytes())
    (folder / "a.pcapng").write_bytes(head)
    batch(folder, tmp_path / "tables")
    check(folder, tmp_path / "tables")


def _until_packets(octets: bytes) -> bytes:
    """The blocks of a pcapng file before its first packet."""
    at = 0
    while octets[at] != 6:
        at += int.from_bytes(octets[at + 4 : at + 8], "little")
    return octets[:at]


def test_files_that_are_no_keys(samples: Path, tmp_path: Path) -> None:
    for options, words in (
        (Options(tls_keylog=tmp_path / "none"), "key log cannot be read"),
        (Options(tls_keys=(samples / "tls13.pcap",)), "not a private key"),
    ):
        with pytest.raises(UsageError, match=words):
            Batch([str(samples)], str(tmp_path / "out"), options)
