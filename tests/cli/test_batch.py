"""What `amqpsniff batch` gives its job, and shows of what the job says; Spark is not started."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from amqpsniff.archive import Batch
from amqpsniff.archive.batch_reports import FirstRows
from amqpsniff.cli import output
from amqpsniff.cli.batch import Shown
from amqpsniff.cli.output import Settings
from amqpsniff.spark_jobs.batch import parser
from tests.cli.running import PROGRAM, environment, run
from tests.conftest import SAMPLES
from tests.waiting import PATIENCE

CAPTURE = SAMPLES / "bunny.pcapng"

TOLD = """
import json, sys
with open({path!r}, "w") as file:
    json.dump({{"arguments": sys.argv[1:], "path": sys.path}}, file)
raise ModuleNotFoundError("No module named 'pyspark'")
"""


@pytest.fixture
def told(tmp_path: Path) -> Any:
    """What a job is told that is started in a folder, by these arguments."""
    path = tmp_path / "told"
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text(TOLD.format(path=str(path)))
    folder = tmp_path / "here"
    folder.mkdir()

    def start(*arguments: str) -> Any:
        done = subprocess.run(
            (*PROGRAM, "batch", *arguments), cwd=folder, capture_output=True, check=False,
            env=environment(PYTHONPATH=str(tmp_path)), timeout=PATIENCE, text=True,
        )  # fmt: skip
        assert "pip install" in done.stderr
        return json.loads(path.read_text())

    return start


def test_names_that_begin_with_a_dash(told: Any) -> None:
    given = told("-o", "-tables", "--tls-keylog=-keys", "--report", "churn", "--", "-a.pcap", "b")
    parsed = parser().parse_args(given["arguments"])
    assert parsed.inputs == ["-a.pcap", "b"]
    assert (parsed.output, parsed.tls_keylog) == ("-tables", "-keys")
    assert (parsed.report, parsed.dialect, parsed.rows) == (["churn"], None, 20)


def test_a_line_of_sparks_that_says_enough(tmp_path: Path) -> None:
    line = "26/11/23 09:05:02 ERROR StandaloneSchedulerBackend: All masters are unresponsive!"
    (tmp_path / "pyspark").mkdir()
    fails = f"raise SystemExit({'Traceback, at length' + chr(10) + line!r})"
    (tmp_path / "pyspark" / "__init__.py").write_text(fails)
    done = subprocess.run(
        (*PROGRAM, "batch", CAPTURE, "-o", tmp_path / "tables"), capture_output=True, check=False,
        env=environment(PYTHONPATH=str(tmp_path)), timeout=PATIENCE, text=True,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr == "amqpsniff: the Spark job failed: All masters are unresponsive!\n"


def test_no_module_comes_from_the_folder_one_is_in(told: Any, tmp_path: Path) -> None:
    assert str(tmp_path / "here") not in told(str(CAPTURE), "-o", "tables")["path"]


SHOWN = """
import sys
from amqpsniff.cli import batch
from amqpsniff.cli.entry import main

def run(*_):
    with batch.Shown(False) as shown:
        shown.take({"report": "churn", "title": "Churn", "columns": ["a"], "rows": [["x"]],
                    "total": "1", "times": []})
        shown.finish()
    return 0

batch._run = run
sys.argv = ["amqpsniff", "batch", "x", "-o", "y"]
sys.exit(main())
"""


@pytest.mark.parametrize(("shell", "code"), [("> >(exec true)", 0), ("> /dev/full", 3)])
def test_reports_that_nobody_takes(shell: str, code: int) -> None:
    done = subprocess.run(
        ("bash", "-c", f'"$@" {shell}', "bash", sys.executable, "-c", SHOWN),
        env=environment(), capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_report_in_a_pipe_is_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a width it has the columns that fit."""
    columns = [f"column_{number}" for number in range(20)]
    report = {
        "report": "churn", "title": "Churn", "columns": columns, "total": "1", "times": [],
        "rows": [[f"{'v' * 30}{number}" for number in range(20)]],
    }  # fmt: skip

    def shown() -> list[str]:
        lines = Shown(quiet=True)
        lines.take(report)
        lines.finish()
        return capsys.readouterr().out.splitlines()

    whole = shown()
    assert f"{'v' * 30}19" in whole[2]
    assert all(line == line.rstrip() for line in whole)
    monkeypatch.setattr(output, "settings", Settings(width=80))
    narrow = shown()
    assert max(map(len, narrow)) <= 80
    assert "column 19" in narrow[-2]
    assert "(left out for want of width: " in "".join(narrow)


def test_times_of_a_report_are_of_the_wanted_zone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"bucket": [datetime(2026, 11, 29, 20, 15, 24, tzinfo=UTC), None]})
    report = FirstRows.of("latency", table, 2).as_json()
    for zone, text in ((None, "20:15:24"), ("Europe/Berlin", "21:15:24+01:00")):
        monkeypatch.setattr(output.settings, "zone", zone)
        lines = Shown(quiet=True)
        lines.take(report)
        lines.finish()
        assert f"2026-11-29 {text}\n" in capsys.readouterr().out


def test_by_operation_of_rows_is_refused() -> None:
    done = run("live", "--by", "operation", "--format", "ndjson", CAPTURE)
    assert done.code == 2
    assert "--by is for the dashboard" in done.err


def test_tables_are_no_capture(tmp_path: Path) -> None:
    Batch([str(CAPTURE)], str(tmp_path), tables=["messages"]).run()
    done = run("report-table", "churn", tmp_path)
    assert done.code == 3
    assert f"amqpsniff batch CAPTURES -o {tmp_path} --report NAME" in done.err


def test_packs_that_are_wrong(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    (tmp_path / "shop.toml").write_text('[shop]\nopration = "type"\n')
    done = run("batch", CAPTURE, "-o", tmp_path / "tables", "--packs", tmp_path / "shop.toml")
    assert done.code == 2
    assert "shop.toml, line 2, [shop]: no key `opration`" in done.err
    assert not (tmp_path / "tables").exists()
