"""`amqpsniff verify` says where tshark differs, and what is wrong where it cannot be asked."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.cli.running import on_terminal, run, write_capture
from tests.conversations import NOT_UTF8, full, packets, texts, with_texts
from tests.opinion.doctored import doctored, speaking
from tests.thorough import some

pytest.importorskip("pyshark")
pytestmark = pytest.mark.tshark
real = pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark")


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose tshark is found first."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


@real
def test_known_differences() -> None:
    code, out, err = run("verify", "amqplib08.pcap", "v08_v09.pcap", "-q")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert (
        "amqplib08.pcap:    15   1 channel.open-ok is malformed to tshark (open-ok-of-0-8)" in lines
    )
    (summary,) = (line for line in lines if "compared" in line)
    assert summary.startswith("332 frames here, 313 with tshark 4.")
    known = lines[lines.index(summary) + 1]
    assert known.startswith("known differences: close-of-0-8 26, protocol-header 19, ")
    assert known.endswith("unknown: 0")
    assert lines[-1].startswith("confirm-in-0-8: class 85 in a connection of 0-8; tshark: shown as")


@real
def test_an_unknown_difference(other: Path) -> None:
    doctored(other, "s/3.10.8/3.10.9/")
    code, out, _ = run("verify", "bunny.pcapng", "--unknown", "--format", "ndjson")
    assert code == 1
    (row,) = map(json.loads, out.splitlines())
    assert row == {
        "capture": "bunny.pcapng", "packet_number": 6, "connection_id": row["connection_id"],
        "channel": 0, "method": "connection.start", "tshark_class_id": 10, "tshark_method_id": 10,
        "what": "argument", "name": "server_properties.version", "ours": "3.10.8",
        "tshark": "(string) 3.10.9", "known": None,
    }  # fmt: skip
    code, out, err = run("verify", "bunny.pcapng", "--limit", "1")
    assert code == 1
    assert "     4   0 protocol-header is not shown by tshark (protocol-header)\n" in out
    assert "; unknown: 1\n" in out
    code, out, err = run("verify", "bunny.pcapng", "--limit", "0", "--format", "ndjson")
    assert (code, out) == (1, "")
    assert err.endswith("unknown: 1\n")


@real
@pytest.mark.parametrize("columns", some([80, 160]))
def test_lines_fit_a_terminal(columns: int) -> None:
    code, out, _ = on_terminal("verify", "amqplib08.pcap", "-q", columns=columns)
    assert code == 0
    for line in out.splitlines():
        assert len(line) <= columns or "known differences" in line, line


def test_no_tshark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, err = run("verify", "bunny.pcapng")
    assert (code, out) == (3, "")
    assert err.startswith("amqpsniff: tshark is not installed; install it (")
    assert err.count("\n") == 1


def test_rubbish(other: Path) -> None:
    speaking(other, "echo rubbish")
    code, _, err = run("verify", "bunny.pcapng")
    assert code == 3
    assert err == (
        "amqpsniff: what tshark writes cannot be read: syntax error in line 1 of its output\n"
    )


@real
def test_a_file_that_is_no_capture() -> None:
    assert run("verify", "README.md").code == 3
    code, out, err = run("verify", "README.md", "bunny.pcapng")
    assert code == 3
    assert "README.md: not a capture" in err
    assert "unknown: 0" in out


@real
def test_what_cannot_be_opened(tmp_path: Path) -> None:
    """It is no pipe, of which tshark could not be given the capture."""
    (tmp_path / "link").symlink_to("nowhere")
    code, _, err = run("verify", tmp_path / "link")
    assert (code, err) == (
        3,
        f"amqpsniff: {tmp_path / 'link'}: cannot be opened: No such file or directory\n",
    )
    code, _, err = run("verify", "/dev/null")
    assert code == 3
    assert err.startswith("amqpsniff: /dev/null: not a capture: it is empty")
    os.mkfifo(tmp_path / "pipe")
    code, _, err = run("verify", tmp_path / "pipe")
    assert code == 2
    assert "needs a single capture file, not several or a pipe" in err


def test_usage() -> None:
    assert run("verify", "-").code == 2
    code, _, err = run("verify", "bunny.pcapng", "--format", "sarif")
    assert (code, err) == (2, "amqpsniff: no format `sarif` here; there are text, ndjson\n")


@real
def test_texts_that_are_not_utf8(tmp_path: Path) -> None:
    """Columns have U+FFFD for bytes that tshark gives as they are."""
    frames = [one for one in full() if one.row.source in ("spec", "rabbitmq")]
    said = with_texts(frames, list(texts(frames)), NOT_UTF8)
    capture = write_capture(tmp_path / "texts.pcap", packets(said, 40_000))
    code, out, err = run("verify", capture, "-q")
    assert (code, err) == (0, "")
    assert "unknown: 0" in out
