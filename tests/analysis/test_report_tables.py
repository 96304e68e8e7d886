"""A report gives the same rows by DuckDB on captures, and by either on an archive of them."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.analysis.report_tables import MAX_GIVEN_BUCKETS, REPORTS, bucket_for, schema
from amqpsniff.analysis.topology import FRAME_COLUMNS, MESSAGE_COLUMNS, Topology
from amqpsniff.archive import Batch
from amqpsniff.archive.batch_reports import make_here
from amqpsniff.archive.filesystem import Folder
from amqpsniff.errors import UsageError
from tests.conftest import REPO
from tests.session.script import Script, written
from tests.thorough import some

FOLDERS = {"samples": REPO / "samples", "incidents": REPO / "tests" / "captures" / "incidents"}

MAX_ROWS = 1_000_000


def captures_of(folder: str) -> list[str]:
    """The captures of a folder, without those of its folders."""
    return sorted(str(one) for one in FOLDERS[folder].iterdir() if ".pcap" in one.name)


OTHERS = REPO / "tests" / "captures"
LOSSES = [str(OTHERS / "hostile" / f"loss_{one}.pcap") for one in "abk"]
AMQP10 = str(OTHERS / "amqp10" / "rabbitmq43_cross.pcap.gz")
CAPTURES = [*captures_of("samples"), *some(captures_of("incidents")), *LOSSES, AMQP10]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables that a batch has written of the captures."""
    output = tmp_path_factory.mktemp("tables")
    Batch(CAPTURES, str(output), links=True, frameworks=True).run()
    return output


@pytest.mark.spark
@pytest.mark.parametrize("name", REPORTS)
def test_duckdb_and_spark_give_equal_rows(spark: Any, archive: Path, name: str) -> None:
    from amqpsniff.spark_jobs.reports import dataframe

    there = dataframe(spark, name, str(archive)).toArrow()
    by_duckdb = make_here(Folder(str(archive)), name, 20).table
    for here in (amqpsniff.open(*CAPTURES).report_table(name), by_duckdb):
        assert here.num_rows or name == "quality"
        assert [(one.name, one.type) for one in here.schema] == [
            (one.name, one.type) for one in there.schema
        ]
        assert here.to_pylist() == there.to_pylist()


@pytest.mark.parametrize("name", REPORTS)
def test_columns_are_those_of_the_catalogue(samples: Path, name: str) -> None:
    report = REPORTS[name]
    table = amqpsniff.open(samples / "pika_mix.pcap").report_table(name)
    assert table.schema.names == list(report.columns)
    for read, columns in report.reads().items():
        assert columns
        assert set(columns) <= set(schema(read).names)


def test_publishes_of_transactions_are_protected() -> None:
    shown = REPO / "tests" / "findings" / "captures" / "shown" / "transaction-per-message.pcap.gz"
    rows = amqpsniff.open(shown).report_table("losses").to_pylist()
    assert sum(row["published"] for row in rows)
    assert not any(row["unprotected"] for row in rows)


def test_a_transaction_protects_its_own_opening_of_a_channel(tmp_path: Path) -> None:
    path = written(Script(REOPENED), tmp_path / "reopened.pcap")
    (row,) = amqpsniff.open(path).report_table("losses").to_pylist()
    assert (row["published"], row["unprotected"]) == (4, 2)


REOPENED = """
    handshake
    C1: channel.open
    S1: channel.open-ok
    C1: basic.publish exchange=e | body=1
    C1: channel.close reply_code=200
    S1: channel.close-ok
    C1: channel.open
    S1: channel.open-ok
    C1: tx.select
    S1: tx.select-ok
    C1: basic.publish exchange=e | body=1
    C1: basic.publish exchange=e | body=1
    C1: channel.close reply_code=200
    S1: channel.close-ok
    C1: channel.open
    S1: channel.open-ok
    C1: basic.publish exchange=e | body=1
"""


@pytest.mark.parametrize("name", ["traffic", "latency", "losses", "redelivery"])
def test_names_of_two_virtual_hosts_are_two_rows(name: str, tmp_path: Path) -> None:
    lines = """
        handshake vhost=%s
        C1: channel.open
        S1: channel.open-ok
        C1: basic.publish exchange=e routing_key=k | body=5
        C1: basic.consume queue=q consumer_tag=t
        S1: basic.consume-ok consumer_tag=t
        S1: basic.deliver consumer_tag=t delivery_tag=1 exchange=e routing_key=k redelivered=1
        C1: basic.ack delivery_tag=1
    """
    texts = [f"{at}.{line.strip()}" for at in "ab" for line in (lines % at).strip().split("\n")]
    path = written(Script("\n".join(texts)), tmp_path / "two.pcap")
    rows = amqpsniff.open(path).report_table(name).to_pylist()
    assert {row["vhost"] for row in rows} == {"a", "b"}
    a, b = ([row | {"vhost": None} for row in rows if row["vhost"] == at] for at in "ab")
    assert a == b


def test_a_report_without_rows_has_its_columns(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes((REPO / "samples" / "pika_mix.pcap").read_bytes()[:24])  # the header alone
    for name, report in REPORTS.items():
        table = amqpsniff.open(empty).report_table(name)
        assert table.schema.names == list(report.columns)
        assert table.num_rows == 0 or name == "findings"


def test_no_pace_is_told_of_two_connections(samples: Path) -> None:
    rows = amqpsniff.open(samples / "pika_mix.pcap").report_table("churn").to_pylist()
    assert [(row["connections"], row["per_minute"]) for row in rows] == [(2, None), (2, None)]


def test_there_is_no_such_report(samples: Path) -> None:
    with pytest.raises(UsageError, match=r"^no report `latence`; there are traffic, latency, "):
        amqpsniff.open(samples / "pika_mix.pcap").report_table("latence")


def test_steps_are_few_and_can_be_chosen() -> None:
    assert [bucket_for(0, seconds * 10**9) for seconds in (0, 120, 121, 7_200, 10**9)] == [
        1, 1, 10, 60, 86_400
    ]  # fmt: skip
    capture = amqpsniff.open(FOLDERS["incidents"] / "n_slow_confirms.pcap")
    every = capture.report_table("saturation", bucket_seconds=1).num_rows
    assert every > capture.report_table("saturation", bucket_seconds=3_600).num_rows == 1


HELD = """
    handshake
    C1: channel.open
    S1: channel.open-ok
    C1: basic.qos prefetch_count=2
    S1: basic.qos-ok
    C1: basic.consume queue=q consumer_tag=t
    S1: basic.consume-ok consumer_tag=t
    S1: basic.deliver consumer_tag=t delivery_tag=1 | body=1
    S1: basic.deliver consumer_tag=t delivery_tag=2 | body=1
    @+3500ms C1: basic.ack delivery_tag=1
    @+2000ms C1: basic.ack delivery_tag=2
    @+3000ms S1: basic.deliver consumer_tag=t delivery_tag=3 | body=1
    C1: basic.ack delivery_tag=3
    C: connection.close reply_code=200
    S: connection.close-ok
"""


def held(path: Path, text: str) -> list[tuple[int, int]]:
    """Seconds since the first bucket of each bucket, and what was unsettled in it."""
    capture = amqpsniff.open(written(Script(text), path))
    rows = capture.report_table("saturation", bucket_seconds=1).to_pylist()
    begin = rows[0]["time"]
    return [((row["time"] - begin) // timedelta(seconds=1), row["unsettled"]) for row in rows]


def test_what_is_held_counts_in_every_bucket(tmp_path: Path) -> None:
    """A consumer that stands still changes nothing, and is full all the same."""
    found = held(tmp_path / "held.pcap", HELD)
    assert found == [(0, 2), (1, 2), (2, 2), (3, 2), (4, 1), (5, 1), (8, 1)]


def test_what_is_held_is_carried_on_for_so_long(tmp_path: Path) -> None:
    most = MAX_GIVEN_BUCKETS
    found = held(tmp_path / "held.pcap", HELD.replace("3500ms", f"{most + 5}500ms"))
    assert found[: most + 1] == [(at, 2) for at in range(most + 1)]
    assert found[most + 1 :] == [(most + 5, 1), (most + 6, 1), (most + 7, 1), (most + 10, 1)]


def test_files_that_cannot_be_read_are_in_quality(samples: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes((samples / "pika_mix.pcap").read_bytes()[:-7])
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"")
    rows = amqpsniff.open(cut, bad).report_table("quality").to_pylist()
    assert {row["capture"]: row["error"] for row in rows} == {
        str(bad): "capture-unreadable",
        str(cut): "capture-truncated",
    }
    assert all(row["skipped_bytes"] is not None for row in rows)


def gathered(names: list[str]) -> Topology:
    """What routes messages, as the command `topology` gathers it."""
    topology = Topology()
    columns = {"frames": FRAME_COLUMNS, "messages": MESSAGE_COLUMNS}
    for table, batch in amqpsniff.open(*names).tables("frames", "messages", columns=columns):
        (topology.add_frames if table == "frames" else topology.add_messages)(batch)
    return topology


@pytest.mark.parametrize("capture", CAPTURES)
def test_edges_are_those_of_the_command_topology(capture: str) -> None:
    edges = amqpsniff.open(capture).report_table("topology").to_pylist()
    wanted = gathered([capture]).result(MAX_ROWS)
    found: dict[tuple[str, str], Counter[Any]] = {}
    for row in edges:
        kinds = found.setdefault((row["source_kind"], row["target_kind"]), Counter())
        kinds[row["vhost"], row["source"], row["target"], row["label"], row["removed"]] += (
            1 if row["messages"] is None else row["messages"]
        )
    published: Counter[Any] = Counter()
    for row in wanted["publishers"]:
        published[row["vhost"], row["host"], row["exchange"], None, None] += row["published"]
    assert found.pop(("client", "exchange"), Counter()) == published
    delivered: Counter[Any] = Counter()
    for row in wanted["consumers"]:
        if row["delivered"] and row["queue"] is not None:
            delivered[row["vhost"], row["queue"], row["host"], None, None] += row["delivered"]
    assert found.pop(("queue", "client"), Counter()) == delivered
    bound = {
        (
            row["destination_type"], row["vhost"], row["exchange"], row["destination"],
            row["routing_key"], row["removed"],
        )
        for row in wanted["bindings"]
    }  # fmt: skip
    assert bound == {
        (kinds[1], *edge) for kinds, many in found.items() for edge in many if edge[-1] is not None
    }
