"""`--by operation`: a line for each operation, with the columns that there is room for."""

from __future__ import annotations

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


def test_no_message_matches() -> None:
    nothing = run("messages", CELERY, "--by", "operation", "--queue", "none")
    assert (nothing.code, nothing.out) == (0, "")
