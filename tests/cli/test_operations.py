"""`--by operation`: a line for each operation, with the columns that there is room for."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import run
from tests.conftest import REPO

CELERY = REPO / "tests" / "captures" / "packs" / "celery.pcap.gz"


def test_a_line_for_each_operation() -> None:
    shown = run("summary", CELERY, "--by", "operation", "--width", "80")
    heading, *lines, note, _ = shown.out.splitlines()
    assert heading.split() == "operation published delivered refused failed at work p50".split()
    (charge,) = (line for line in lines if line.startswith("ctasks.charge"))
    assert charge.split() == ["ctasks.charge", "5", "5", "0", "0", "21.7", "ms"]
    assert note.startswith("left out for want of width: framework, per s, retried")


def test_what_fails_most_comes_first() -> None:
    wide = run("messages", CELERY, "--by", "operation", "--limit", "2", "--width", "160").out
    assert wide.splitlines()[1].split()[-1] == "KeyError"
    assert len(wide.splitlines()) == 3


def test_a_report_has_them(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert run("report", CELERY, "--by", "operation", "-o", page).code == 0
    assert "<h3>Operations</h3>" in page.read_text(encoding="utf-8")
    assert run("report", CELERY, "-o", page).code == 0
    assert "<h3>Operations</h3>" not in page.read_text(encoding="utf-8")


def test_no_message_matches() -> None:
    nothing = run("messages", CELERY, "--by", "operation", "--queue", "none")
    assert (nothing.code, nothing.out) == (0, "")


def test_bodies_under_the_lines_of_inspect() -> None:
    shown = run("inspect", CELERY, "-v", "--body-limit", "40", "--limit", "200")
    assert shown.code == 0
    plain = run("inspect", CELERY, "-v", "--limit", "200")
    assert "more bytes" in shown.out
    assert "more bytes" not in plain.out


def test_what_is_no_capture(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(b"no capture at all")
    for command in ("summary", "messages"):
        shown = run(command, path, "--by", "operation")
        assert shown.code == 3
        assert shown.err.startswith(f"amqpsniff: {path}: not a capture")
        assert shown.err.count("\n") == 1
