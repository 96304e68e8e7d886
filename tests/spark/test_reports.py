"""Reports say what the tables hold."""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import amqpsniff
from amqpsniff.analysis.report_tables import REPORTS
from amqpsniff.archive import Batch
from amqpsniff.archive.batch_reports import FirstRows, make_here, write_page
from amqpsniff.archive.filesystem import Folder
from amqpsniff.errors import UsageError
from amqpsniff.options import Options
from amqpsniff.report.batch_page import page
from amqpsniff.report.report_charts import charts as charts_of
from amqpsniff.spark_jobs import reports
from amqpsniff.spark_jobs.reports import make
from amqpsniff.spark_jobs.runner import SparkRunner
from amqpsniff.spark_jobs.tables import java_knows
from tests.conftest import REPO
from tests.report.drawn import wrong
from tests.thorough import some

pytestmark = pytest.mark.spark

Rows = Callable[[str], list[dict[str, Any]]]

HOSTILE = REPO / "tests" / "captures" / "hostile"

NAMES = ("pika_mix.pcap", "php_churn.pcap", "node.pcap", "aiopika_rpc.pcap", "blocked.pcap")


@pytest.fixture(scope="module")
def captures(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of captures with a bad one among them."""
    folder = tmp_path_factory.mktemp("captures")
    for name in NAMES:
        (folder / name).write_bytes((samples / name).read_bytes())
    (folder / "bad.pcap").write_bytes(b"")
    return folder


@pytest.fixture(scope="module")
def tables(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a batch has written of them."""
    output = tmp_path_factory.mktemp("tables")
    Batch([str(captures)], str(output), links=True, frameworks=True).run()
    return output


@pytest.fixture(scope="module")
def alone(captures: Path) -> dict[str, list[dict[str, Any]]]:
    """The same tables by one reader."""
    capture = amqpsniff.open(*sorted(captures.glob("*.pcap")))
    names = ("messages", "connections", "channels", "findings")
    return {name: capture.table(name).to_pylist() for name in names}


@pytest.fixture(scope="module")
def of_tables(tables: Path) -> Callable[[str], FirstRows]:
    """A report of the tables by its name, made once by DuckDB."""
    return functools.cache(lambda name: make_here(Folder(str(tables)), name, 20))


@pytest.fixture(scope="module")
def rows(of_tables: Callable[[str], FirstRows]) -> Rows:
    """The rows of a report of the tables."""
    return lambda name: of_tables(name).table.to_pylist()


def address(row: dict[str, Any]) -> str | None:
    client = row["client"]
    return None if client is None else str(client).rpartition(":")[0]


@pytest.mark.parametrize("name", REPORTS)
def test_charts_have_sane_numbers(of_tables: Callable[[str], FirstRows], name: str) -> None:
    """Of the report, and of its rows with little or nothing in them."""
    pytest.importorskip("vl_convert")
    table = of_tables(name).table
    charts, whole = partial(charts_of, name), table.to_pylist()
    assert wrong(charts(whole)) == []
    numeric = {
        field.name
        for field in table.schema
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    }
    for rows in ([], whole[:1], whole[-1:]):
        assert wrong(charts(rows)) == []
        for value in (0, None, math.nan, math.inf):
            poor = [{**row, **dict.fromkeys(numeric, value)} for row in rows]
            assert wrong(charts(poor)) == []


def test_latency(rows: Rows, alone: dict[str, Any]) -> None:
    found = rows("latency")
    waits: dict[tuple[Any, ...], list[float]] = {}
    for row in alone["messages"]:
        kind = {"confirmed": "confirm", "rejected": "confirm"}.get(row["outcome"] or "")
        if row["outcome"] in ("acked", "requeued", "discarded"):
            kind = "settle"
        if kind and row["outcome_ns"] is not None:
            key = kind, address(row), row["exchange"]
            waits.setdefault(key, []).append(row["outcome_ns"] / 1e6)
    longest = {key: max(values) for key, values in waits.items()}
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in found:
        key = row["kind"], row["client"], row["exchange"]
        counts[key] += row["messages"]
        assert row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"] <= row["max_ms"] <= longest[key]
    assert counts == {key: len(values) for key, values in waits.items()}


def test_losses(rows: Rows, alone: dict[str, Any]) -> None:
    publishes = [row for row in alone["messages"] if row["method"] == "basic.publish"]
    found = rows("losses")
    outcomes = Counter(row["outcome"] for row in publishes)
    assert sum(row["published"] for row in found) == len(publishes)
    for name in ("confirmed", "rejected", "returned", "unconfirmed"):
        assert sum(row[name] for row in found) == outcomes[name], name
    protected = {
        (row["connection_id"], row["channel"]) for row in alone["channels"] if row["mode"] == "tx"
    }
    bare = [
        row
        for row in publishes
        if row["publish_number"] is None
        and row["outcome"] is None
        and (row["connection_id"], row["channel"]) not in protected
    ]
    assert sum(row["unprotected"] for row in found) == len(bare)


def test_closes(rows: Rows, alone: dict[str, Any]) -> None:
    wanted: Counter[tuple[Any, ...]] = Counter()
    for kind in ("connection", "channel"):
        for row in alone[f"{kind}s"]:
            if row["closed_by"] is not None:
                place = row["close_code"], row["close_method"], address(row)
                wanted[(kind, row["closed_by"], *place)] += 1
    names = ("kind", "closed_by", "code", "method", "client")
    found = {tuple(row[name] for name in names): row["closes"] for row in rows("closes")}
    assert found == wanted


def test_churn(rows: Rows, alone: dict[str, Any]) -> None:
    found = rows("churn")
    wanted = Counter(address(row) for row in alone["connections"])
    counts: Counter[Any] = Counter()
    for row in found:
        counts[row["client"]] += row["connections"]
    assert counts == wanted
    assert sum(row["channels"] for row in found) == sum(
        row["channels"] for row in alone["connections"]
    )


def test_findings(rows: Rows, alone: dict[str, Any]) -> None:
    found = rows("findings")
    wanted: Counter[tuple[Any, ...]] = Counter()
    for row in alone["findings"]:
        wanted[address(row), row["code"]] += row["count"]
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in found:
        counts[row["client"], row["code"]] += row["occurrences"]
    assert counts == wanted
    ranks = [{"error": 0, "warning": 1, "info": 2}[row["severity"]] for row in found]
    assert ranks == sorted(ranks)


def test_redelivery_and_saturation(rows: Rows, tables: Path, alone: dict[str, Any]) -> None:
    found = rows("redelivery")
    again = [
        row for row in alone["messages"] if row["redelivered"] and row["method"] != "basic.return"
    ]
    assert sum(row["redelivered"] for row in found) == len(again)
    saturation = make_here(Folder(str(tables)), "saturation", 20, 1).table.to_pylist()
    assert max(row["unsettled"] for row in saturation) > 0
    assert all(row["unsettled"] >= 0 and row["unconfirmed"] >= 0 for row in saturation)
    assert not any(row["unknown_channels"] for row in saturation)


def test_saturation_where_frames_are_missing() -> None:
    """What is not known is null, not 0, and never what only may wait."""
    wanted = {
        "loss_a": {"unsettled": 0, "unconfirmed": None, "saturation": None, "full_channels": 0},
        "loss_b": {"unsettled": 1, "unconfirmed": 0, "saturation": None, "full_channels": 1},
        "loss_k": {"unsettled": 0, "unconfirmed": None, "saturation": None, "full_channels": 0},
    }
    for name, columns in wanted.items():
        capture = amqpsniff.open(HOSTILE / f"{name}.pcap")
        (row,) = capture.report_table("saturation", bucket_seconds=3600).to_pylist()
        assert (row["channels"], row["unknown_channels"]) == (1, 1)
        assert {column: row[column] for column in columns} == columns, name


def test_quality_names_the_bad_file(rows: Rows, captures: Path) -> None:
    first = rows("quality")[0]
    assert first["capture"] == str(captures / "bad.pcap")
    assert first["error"] == "capture-unreadable"


def test_topology_has_every_way(rows: Rows, alone: dict[str, Any]) -> None:
    edges = rows("topology")
    kinds = {(row["source_kind"], row["target_kind"]) for row in edges}
    assert kinds >= {("client", "exchange"), ("exchange", "queue"), ("queue", "client")}
    published = sum(row["messages"] for row in edges if row["source_kind"] == "client")
    assert published == sum(row["method"] == "basic.publish" for row in alone["messages"])


@pytest.mark.parametrize("name", some(list(REPORTS)))
def test_tables_where_only_workers_can_read_them(
    spark: Any, of_tables: Callable[[str], FirstRows], tables: Path, name: str
) -> None:
    """Java knows nothing of this file system; that it is another one is all that differs."""
    pytest.importorskip("fsspec")
    elsewhere = f"local://{tables}"
    assert not java_knows(spark, elsewhere)
    assert java_knows(spark, f"file://{tables}")
    found = make(spark, name, elsewhere, 20).table
    known = of_tables(name).table
    assert found.schema.types == known.schema.types
    assert sorted(found.to_pylist(), key=repr) == sorted(known.to_pylist(), key=repr)


@pytest.mark.parametrize("name", ["12:30", "[1] {a,b}:*"])
def test_tables_in_a_folder_whose_name_means_more_to_spark(
    spark: Any,
    of_tables: Callable[[str], FirstRows],
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).symlink_to(tables)
    here = make(spark, "losses", name, 20)
    assert of_tables("losses").table.to_pylist() == here.table.to_pylist()


def test_operations_of_an_archive(spark: Any, tmp_path: Path) -> None:
    """By packs of the user's own, which workers are sent with the job; DuckDB gives the same."""
    packs = tmp_path / "shop.toml"
    packs.write_text('[shop]\nframework = "shop"\nwhen = "header:traceparent"\n'
                     'operation = "routing_key"\n')  # fmt: skip
    capture = REPO / "tests" / "captures" / "packs" / "order.pcap.gz"
    output = tmp_path / "tables"
    options = Options(packs=(packs,))
    batch = Batch([str(capture)], str(output), options, links=True, frameworks=True)
    packs.unlink()
    batch.run(SparkRunner(spark.sparkContext))
    whole = make(spark, "operations", str(output), 20).table
    shown = [(row["framework"], row["operation"], row["delivered"]) for row in whole.to_pylist()]
    assert shown[1] == ("shop", "order.accepted", 6)
    here = make_here(Folder(str(output)), "operations", 20).table
    assert whole.to_pylist() == here.to_pylist()


def test_operations_of_tables_that_lack_them(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.pcap").write_bytes(b"")
    Batch([str(tmp_path)], str(tmp_path / "tables")).run()
    with pytest.raises(UsageError, match=r"no column .*framework.*; run `batch` with --links --f"):
        make_here(Folder(str(tmp_path / "tables")), "operations", 20)


def test_captures_are_no_tables(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (samples / "pika_mix.pcap", samples, tmp_path / "nothing"):
        assert reports.main(["losses", str(name)]) == 2
        assert "no batch has written there; run `amqpsniff batch` first" in capsys.readouterr().err


def test_the_page_holds_everything(of_tables: Callable[[str], FirstRows], tables: Path) -> None:
    pytest.importorskip("vl_convert")
    reports = [of_tables(name) for name in ("closes", "traffic")]
    for report in reports:
        report.write(Folder(str(tables)))
        assert (tables / "reports" / f"{report.report.name}.csv").read_text().count("\n") > 1
        json.dumps(report.as_json())
        assert report.report.title in report.as_text()
    write_page(Folder(str(tables)), reports)
    text = (tables / "report.html").read_text()
    assert "<script src" not in text
    assert 'href="http' not in text
    assert "Traffic by exchange" in text
    for report in reports:
        assert f'id="{report.report.name}"' in text


def test_hostile_names_stay_text_on_the_page() -> None:
    name = "</script><img src=x onerror=alert(1)>"
    columns: dict[str, list[Any]] = {one: [3] for one in REPORTS["losses"].columns}
    made = page({}, {"losses": pa.table(columns | {"exchange": [name], "client": [name]})})
    assert "<img src=x" not in made[: made.index("<script")]
    assert made.count("</script>") == 2


def test_an_empty_batch_has_empty_reports(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.pcap").write_bytes(b"")
    Batch([str(tmp_path)], str(tmp_path / "tables"), links=True, frameworks=True).run()
    for name in some(list(REPORTS)):
        report = make(spark, name, str(tmp_path / "tables"), 20)
        assert (name == "quality") == bool(report.table.num_rows) or name == "findings"
        assert report.as_text()
