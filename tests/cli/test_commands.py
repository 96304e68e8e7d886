"""What the options of the commands choose, and the files that `export` and `bodies` write."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amqpsniff.cli.list_table import MAX_LAID_OUT
from tests.cli.running import process, run, write_capture
from tests.conftest import CAPTURES, SAMPLES
from tests.tcp.wire import START_NS, Talk

CAPTURE = "pika_mix.pcap"


def rows(*words: str | Path) -> list[dict[str, Any]]:
    """The rows that `export` writes."""
    result = run("export", *words)
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def test_all_of_a_message_of_amqp10() -> None:
    """`messages -v` also shows annotations, and properties that have no column."""
    ids = CAPTURES / "amqp10" / "rabbitmq43_ids.pcap.gz"
    sent, came = (run("messages", ids, "-v", "--packet", str(n)).out for n in (122, 137))
    assert re.search(r"properties\n(  +\w+ .*\n)+ +group_id +\"g\"", sent)
    assert re.search(r"annotations\n +message\n +x-routing-key \"x.a\"", came)


def test_where() -> None:
    chosen = rows(CAPTURE, "-t", "messages", "--where", "body_size > 800 AND exchange = 'orders'")
    every = rows(CAPTURE, "-t", "messages")
    assert chosen == [r for r in every if r["body_size"] > 800 and r["exchange"] == "orders"]
    assert chosen


def test_connection_by_id_and_by_client() -> None:
    every = rows(CAPTURE, "-t", "frames")
    one = next(row for row in every if row["client"].endswith(":43716"))
    wanted = [row for row in every if row["connection_id"] == one["connection_id"]]
    for name in (one["connection_id"], one["connection_id"][:5].upper(), one["client"], ":43716"):
        assert rows(CAPTURE, "-t", "frames", "--connection", name) == wanted


def test_channel_and_limit() -> None:
    every = rows(CAPTURE, "-t", "frames")
    on_two = [row for row in every if row["channel"] == 2]
    assert rows(CAPTURE, "-t", "frames", "--channel", "2") == on_two
    assert rows(CAPTURE, "-t", "frames", "--channel", "2", "--limit", "3") == on_two[:3]
    assert rows(CAPTURE, "-t", "frames", "--limit", "0") == []


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("+1.2s", "+1.22"),
        ("1795224678.881619", "1795224678.901619"),
        ("2026-11-21T01:31:18.881619Z", "2026-11-21 02:31:18.901619+01:00"),
        ("01:31:18.881619", "01:31:18.901619"),
        ("+1200ms", "+1220ms"),
    ],
)
def test_times(begin: str, end: str) -> None:
    first_ns = 1795224677681619000
    wanted = [
        row["packet_number"]
        for row in rows(CAPTURE, "-t", "frames")
        if first_ns + 1_200_000_000 <= row["ts_ns"] < first_ns + 1_220_000_000
    ]
    chosen = rows(CAPTURE, "-t", "frames", "--from", begin, "--to", end)
    assert [row["packet_number"] for row in chosen] == wanted
    assert wanted


@pytest.mark.parametrize(("table", "moment_ms"), [("connections", 1218), ("channels", 1171)])
def test_what_lasts_is_chosen_by_the_time_it_lasted(table: str, moment_ms: int) -> None:
    every = rows(CAPTURE, "-t", table)
    first_ns = 1795224677681619000
    wanted = [row for row in every if row["end_ns"] >= first_ns + moment_ms * 1_000_000]
    assert rows(CAPTURE, "-t", table, "--from", f"+{moment_ms}ms") == wanted
    early = [row for row in every if row["start_ns"] < first_ns + moment_ms * 1_000_000]
    assert rows(CAPTURE, "-t", table, "--to", f"+{moment_ms}ms") == early
    assert 0 < len(early) < len(every) > len(wanted) > 0
    old = rows("midstream.pcap", "-t", "channels", "--to", "+1ms")
    assert [row["start_ns"] for row in old] == [None, None]


def test_connections_and_channels_as_rows_are_their_tables() -> None:
    for table in ("connections", "channels"):
        for form in ("ndjson", "csv"):
            shown = run(table, CAPTURE, "--format", form, "--connection", ":43706").out
            words = ("-t", table, "--format", form, "--connection", ":43706")
            assert shown == run("export", CAPTURE, *words).out
    (row,) = rows(CAPTURE, "-t", "channels", "--channel", "2")
    assert (row["mode"], row["published"]) == ("tx", 2)


@pytest.mark.parametrize("table", ["connections", "channels", "findings"])
@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_every_table_in_every_format(table: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{form}"
    assert run("export", "midstream.pcap", "-t", table, "-o", path).code == 0
    wanted = rows("midstream.pcap", "-t", table)
    if form == "csv":
        with path.open(newline="") as file:
            found: list[dict[str, Any]] = list(csv.DictReader(file))
        wanted = [{key: str(value) for key, value in row.items()} for row in wanted]
        same = ("connection_id", "client", "capture")
    else:
        read = pq.read_table if form == "parquet" else lambda p: pa.ipc.open_stream(p).read_all()
        found = read(path).to_pylist()
        same = tuple(name for name in wanted[0] if name not in ("start", "end", "timestamp"))
    assert wanted
    for one, other in zip(found, wanted, strict=True):
        assert {name: one[name] for name in same} == {name: other[name] for name in same}


def test_columns_of_connections() -> None:
    words = ("-t", "connections", "--columns", "vhost,client", "--connection", ":43716")
    assert rows(CAPTURE, *words) == [{"vhost": "nope", "client": "10.77.0.2:43716"}]


def greeted(path: Path, count: int) -> Path:
    """A capture of so many connections that say no more than what they speak."""
    packets = []
    for number in range(count):
        talk = Talk(ports=(1_024 + number, 5672), start_ns=START_NS + number).hands()
        talk.client(b"AMQP\0\0\x09\x01")
        packets += talk.packets
    return write_capture(path, packets)


def test_text_of_many_connections_is_laid_out_in_pieces(tmp_path: Path) -> None:
    """The last of them is found nevertheless."""
    path = greeted(tmp_path / "many.pcap", MAX_LAID_OUT + 5)
    lines = run("connections", path).out.splitlines()
    headings = [at for at, line in enumerate(lines) if line.startswith("id ")]
    assert headings == [0, MAX_LAID_OUT + 1]
    last = lines[-1].split()[0]
    assert run("follow", path, "--connection", last).out.startswith(last)
    assert f"{MAX_LAID_OUT + 5} connections; give --connection" in run("follow", path).err
    lines = run("sql", path, f"SELECT unnest(range({MAX_LAID_OUT + 5})) AS n").out.splitlines()
    assert [at for at, line in enumerate(lines) if line.strip() == "n"] == [0, MAX_LAID_OUT + 1]


STATEMENT = """
    SELECT c.connection_name, m.outcome, count(*) AS messages, sum(m.outcome_ns) AS ns
    FROM messages m JOIN connections c USING (connection_id)
    WHERE m.method = 'basic.publish' GROUP BY ALL ORDER BY ALL
"""


def test_sql_joins_tables(tmp_path: Path) -> None:
    result = run("sql", CAPTURE, STATEMENT, "--format", "ndjson")
    assert (result.code, result.err) == (0, "")
    found = [json.loads(line) for line in result.out.splitlines()]
    assert [(one["outcome"], one["messages"]) for one in found] == [("confirmed", 51), (None, 2)]
    for ending in ("csv", "parquet", "arrow", "ndjson"):
        assert run("sql", CAPTURE, STATEMENT, "-o", tmp_path / f"x.{ending}") == (0, "", "")
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == found
    assert run("sql", CAPTURE, STATEMENT, "--format", "csv").out.startswith('"connection_name"')


def test_sql_of_links_between_messages() -> None:
    column = '"link_confidence"'
    asked = f"SELECT {column}, published_ns FROM messages WHERE {column} IS NOT NULL LIMIT 1"
    assert run("sql", "aiopika_rpc.pcap", asked).out.splitlines()[1].split()[0] == "exact"
    assert "request_ns" in run("sql", CAPTURE, "DESCRIBE messages").out


@pytest.mark.parametrize("words", [("export", "-t", "channels"), ("sql", "SELECT 1")])
def test_a_dash_is_standard_output(words: tuple[str, ...]) -> None:
    command = (words[0], CAPTURE, *words[1:], "--format", "csv")
    assert run(*command).out
    assert run(*command, "-o", "-") == run(*command)


def test_sql_of_bodies_and_hashes() -> None:
    words = ("SELECT body_sha256, octet_length(body) AS n FROM messages LIMIT 1", "--format", "csv")
    assert run("sql", "kombu.pcap.gz", *words).out.splitlines()[1] == ","
    filled = run("sql", "kombu.pcap.gz", *words, "--bodies", "--body-sha256").out.splitlines()[1]
    assert len(filled.split(",")[0].strip('"')) == 64


def test_sql_without_rows_and_without_amqp(tmp_path: Path) -> None:
    assert run("sql", CAPTURE, "SELECT 1 AS one") == (0, "one\n  1\n", "")
    assert run("sql", CAPTURE, "SELECT method FROM frames WHERE false").out == "method\n"
    assert "no AMQP" in run("sql", CAPTURE, "SELECT * FROM frames", "--port", "1").err
    assert run("sql", CAPTURE, "SELECT 1 FROM frames LIMIT 1").err == ""


def test_sql_refuses_what_is_in_the_way(samples: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.csv"
    copy.write_bytes((samples / CAPTURE).read_bytes())
    assert run("sql", copy, "SELECT 1 FROM frames", "-o", copy).code == 2
    assert run("sql", CAPTURE, "SELECT * FROM read_csv('/etc/passwd')").code == 2


def test_summary_of_a_part() -> None:
    words = ("summary", CAPTURE, "--format", "json")
    part = json.loads(run(*words, "--connection", ":43706").out)
    assert [one["client"] for one in part["connections"]] == ["10.77.0.2:43706"]
    assert part["methods"]["basic.deliver"] == 58
    assert "basic.deliver" not in json.loads(run(*words, "--to", "+10ms").out)["methods"]


def test_ports_and_dialects() -> None:
    assert rows(CAPTURE, "-t", "frames", "--port", "5672", "--port", "1") == rows(
        CAPTURE, "-t", "frames"
    )
    row = rows(CAPTURE, "-t", "frames", "--dialect", "0-8", "--limit", "1")
    assert row[0]["frame_type"] == "protocol-header"


def test_columns_in_the_order_wanted() -> None:
    (row, *_) = rows(CAPTURE, "-t", "messages", "--columns", "body_size,exchange, channel")
    assert list(row) == ["body_size", "exchange", "channel"]
    words = ("--columns", "body_size", "--where", "exchange = 'orders'", "--connection", ":43700")
    assert {tuple(row) for row in rows(CAPTURE, "-t", "messages", *words)} == {("body_size",)}


@pytest.mark.parametrize("ending", ["ndjson", "jsonl", "csv", "parquet", "arrow"])
def test_files_by_their_endings(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"messages.{ending}"
    path.write_text("what was there before")
    assert run("export", CAPTURE, "-t", "messages", "-o", path) == (0, "", "")
    keys = [row["routing_key"] for row in rows(CAPTURE, "-t", "messages")]
    if ending == "parquet":
        found = pq.read_table(path).column("routing_key").to_pylist()
    elif ending == "arrow":
        found = pa.ipc.open_stream(path).read_all().column("routing_key").to_pylist()
    elif ending == "csv":
        with path.open(newline="") as file:
            found = [row["routing_key"] for row in csv.DictReader(file)]
    else:
        found = [json.loads(line)["routing_key"] for line in path.read_text().splitlines()]
    assert found == keys
    assert list(tmp_path.iterdir()) == [path]


def test_parquet_in_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "x"
    shell = f"> '{path}'"
    assert process("export", CAPTURE, "-t", "frames", "--format", "parquet", shell=shell).code == 0
    assert pq.read_table(path).num_rows == 563


def test_a_failed_export_leaves_what_was_there(samples: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("before")
    assert run("export", "README.md", "-t", "frames", "-o", path).code == 3
    words = ("--where", "CAST(method AS INT) = 1")
    assert run("export", CAPTURE, "-t", "frames", "-o", path, *words).code == 2
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    copy = tmp_path / "copy.csv"
    copy.write_bytes((samples / CAPTURE).read_bytes())
    assert run("export", copy, "-t", "frames", "-o", copy).code == 2


def test_what_takes_the_place_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be read by whom that one could be; what a killed run has left is not in its way."""
    monkeypatch.setattr(os, "getpid", lambda: 1)  # as in a container, each time
    left = tmp_path / ".out.csv.1.part"
    left.write_text("half of it")
    path = tmp_path / "out.csv"
    path.touch(0o600)
    assert run("export", CAPTURE, "-t", "frames", "-o", path).code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    assert left.read_text() == "half of it"


def test_bodies_and_hashes_in_exports() -> None:
    (row,) = rows("kombu.pcap.gz", "-t", "messages", "--bodies", "--body-sha256", "-n", "1")
    assert hashlib.sha256(row["body"].encode()).hexdigest() == row["body_sha256"]
    (row,) = rows("kombu.pcap.gz", "-t", "messages", "-n", "1")
    assert row["body"] is row["body_sha256"] is None


def test_bodies_with_a_manifest(tmp_path: Path) -> None:
    out = tmp_path / "new" / "bodies"
    result = run("bodies", "kombu.pcap.gz", "-o", out)
    assert (result.code, result.out) == (0, "")
    assert "63 bodies" in result.err
    manifest = [json.loads(line) for line in (out / "manifest.ndjson").read_text().splitlines()]
    wanted = rows("kombu.pcap.gz", "-t", "messages", "--body-sha256")
    assert [row["sha256"] for row in manifest] == [row["body_sha256"] for row in wanted]
    for row in manifest:
        octets = (out / row["file"]).read_bytes()
        assert hashlib.sha256(octets).hexdigest() == row["sha256"]
        assert len(octets) == row["size"] == row["body_size"]
        assert row["file"].endswith((".json", ".json.zz"))


def test_bodies_decoded(tmp_path: Path) -> None:
    assert (
        run("bodies", "kombu.pcap.gz", "-o", tmp_path, "--decode", "-q", "--format", "csv").err
        == ""
    )
    text = (tmp_path / "manifest.csv").read_text()
    manifest = list(csv.DictReader(io.StringIO(text)))
    assert {row["decoded"] for row in manifest} == {"True", "False"}
    for row in manifest:
        assert json.loads((tmp_path / row["file"]).read_bytes())["name"][0] == "f"


def test_bodies_that_are_not_whole(tmp_path: Path) -> None:
    assert run("bodies", "lost.pcap", "-o", tmp_path).code == 0
    manifest = [
        json.loads(line) for line in (tmp_path / "manifest.ndjson").read_text().splitlines()
    ]
    cut = [row for row in manifest if row["status"] == "truncated"]
    assert cut
    for row in cut:
        assert row["file"] is None or row["size"] < row["body_size"]


def test_a_conversation_with_some_methods_only() -> None:
    words = ("follow", CAPTURE, "--connection", ":43706", "--channel", "3")
    every = run(*words).out.splitlines()
    some = run(*words, "--where", "method = 'basic.ack'").out.splitlines()
    methods = [line for line in every if " → 3 " in line or " ← 3 " in line]
    assert [line for line in some if line in methods] == [
        line for line in methods if " basic.ack " in line
    ]
    assert [line for line in some if " ! " in line] == [line for line in every if " ! " in line]
    rows = run(*words, "--where", "method = 'basic.ack'", "--format", "ndjson").out.splitlines()
    assert {json.loads(row)["method"] for row in rows} == {"basic.ack"}
    refused = run(*words, "--where", "methd = 'x'")
    assert (refused.code, refused.out) == (2, "")


def test_nothing_is_chosen_by_a_time_that_is_over() -> None:
    result = run("messages", CAPTURE, "--from", "+1h")
    assert (result.code, result.out) == (0, "")
    assert result.err == (
        "amqpsniff: warning: no packet lies in the time from +1h; the capture is from "
        "2026-11-21T01:31:17.681619Z to 2026-11-21T01:31:18.910688Z (1.229069 s)\n"
    )


def test_a_summary_of_a_capture_without_packets(tmp_path: Path) -> None:
    header = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    (tmp_path / "empty.pcap").write_bytes(header)
    said = run("summary", str(tmp_path / "empty.pcap"))
    assert "quality  no packet in it" in said.out
    assert "time " not in said.out
    assert said.err.endswith("empty.pcap: 0 packets\n")
    assert "capture: no packet in it" in run("diagnose", str(tmp_path / "empty.pcap")).out
    (tmp_path / "one.pcap").write_bytes(header + struct.pack("<IIII", 1, 0, 14, 14) + bytes(14))
    said = run("summary", str(tmp_path / "one.pcap"))
    assert "packets  1 packet\n" in said.out  # one moment is no span
    assert "1 packet without TCP" in said.out
    assert "1 packet, none of them TCP" in said.err


@pytest.mark.parametrize(("name", "flaws"), [
    (CAPTURES / "cases" / "consumer_hangs_midstream.pcap.gz", "2 connections began before it"),
    (CAPTURES / "hostile" / "loss_k.pcap", "one direction of 1 connection is missing"),
])  # fmt: skip
def test_what_a_capture_lacks_is_no_capture_without_flaws(name: Path, flaws: str) -> None:
    assert f"; capture: {flaws}" in run("diagnose", name, "--brief").out
    assert f"quality  {flaws}" in run("summary", name).out


def test_a_summary_says_of_what_its_findings_are() -> None:
    told = run("summary", "v08_v09.pcap", "--limit", "1").out
    assert "found while decoding (1 of " in told
    assert "amqpsniff diagnose looks for more" in told.splitlines()[0]
    sizes = json.loads(run("summary", "snapped.pcap", "--format", "json").out)["messages"]
    deliveries = next(one for one in sizes if one["method"] == "basic.deliver")
    assert deliveries["bytes"] is deliveries["size_max"] is None  # no content header was captured


VERDICTS = {
    "pika_mix.pcap": "6 errors such as 406 PRECONDITION_FAILED - inequivalent arg 'durable' for",
    "php_churn.pcap": "Nothing wrong was found while decoding 30 AMQP connections. amqpsniff diag",
    "tls13.pcap": "No AMQP was found in the capture; 2 TLS connections may be AMQP and could not",
    "v08_v09.pcap": "2 errors such as 501 FRAME_ERROR",
    "node.pcap": "1 failed look-up: 404 NOT_FOUND - no queue 'nothere' in vhost 'shop' (",
}


@pytest.mark.parametrize("name", VERDICTS)
def test_a_summary_begins_with_its_verdict(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSLKEYLOGFILE", raising=False)
    said = run("summary", name).out
    first = said.splitlines()[0]
    assert first.startswith(VERDICTS[name])
    assert ("\nerrors\n" in said) is ("error" in first or "failed look-up" in first)
    assert ("ended without a close" in first) is (name == "v08_v09.pcap")
    octets = (SAMPLES / name).read_bytes()
    assert f"\n{first}\n" in "\n" + process("live", "-", "--table", "frames", octets=octets).err


def test_a_summary_counts_messages_without_an_outcome_and_knows_depths() -> None:
    result = json.loads(run("summary", "pika_mix.pcap", "--format", "json").out)
    assert result["outcomes"][-1]["outcome"] is None
    messages = sum(one["count"] for one in result["messages"])
    assert sum(one["count"] for one in result["outcomes"]) == messages
    (queue,) = result["queues"]["rows"]
    assert (queue["queue"], queue["message_count"], queue["consumer_count"]) == ("orders.eu", 0, 0)
    result = json.loads(
        run("summary", CAPTURES / "incidents" / "m_rpc.pcap", "--format", "json").out
    )
    assert {one["queue"]: one["message_count"] for one in result["queues"]["rows"]} == {
        "price.rpc": 2, "amq.rabbitmq.reply-to": None,
    }  # fmt: skip


def test_a_summary_says_that_one_direction_was_captured() -> None:
    said = run("summary", CAPTURES / "hostile" / "loss_k.pcap").out
    assert "Of 1 connection only one direction was captured." in said.splitlines()[0]
    assert "hole" not in said
    assert "gap" not in said  # all that the broker sent is missing, and no more


def test_methods_are_last_and_without_answers_to_all_requests() -> None:
    said = run("summary", "pika_mix.pcap").out
    headings = [line for line in said.splitlines() if line in ("errors", "outcomes", "methods")]
    assert headings == ["errors", "outcomes", "methods"]
    methods = said[said.index("\nmethods\n") :]
    assert "channel.open-ok" not in methods
    assert "queue.declare-ok" in methods  # not every declare was answered


def test_findings_are_counted_by_their_lines() -> None:
    said = run("diagnose", "v08_v09.pcap", "--brief", "--no-notes").out
    lines = Counter(re.findall(r"^(error|warning|info) ", said, re.M))
    (line,) = (line for line in said.splitlines() if " in 304 packets" in line)
    numbers = {
        word: int(number) for number, word in re.findall(r"(\d+) (error|warning|info)", line)
    }
    assert numbers == lines


def test_a_report_counts_findings_as_diagnose_does(tmp_path: Path) -> None:
    said = run("diagnose", "v08_v09.pcap").out
    numbers = next(line for line in said.splitlines() if " packets, " in line)
    counted = {word: int(n) for n, word in re.findall(r"(\d+) (error|warning|info)s?\b", numbers)}
    page = tmp_path / "page.html"
    assert run("report", "v08_v09.pcap", "-o", page).code == 0
    tiles = re.findall(
        r'<div class="tile \w+"><b>(\d+)</b><span>(error|warning|info)', page.read_text()
    )
    assert {word: int(number) for number, word in tiles} == counted == {"error": 9, "warning": 5}


def test_a_comment_ends_where_its_text_ends(tmp_path: Path) -> None:
    """Some programs end it with a line feed: no empty line comes of that."""
    block = struct.pack("<IHHqHH", 0x1A2B3C4D, 1, 0, -1, 1, 6) + b"made\n\n" + bytes(6)
    length = struct.pack("<I", len(block) + 12)
    capture = tmp_path / "a.pcapng"
    capture.write_bytes(bytes.fromhex("0a0d0d0a") + length + block + length)
    assert "\ncomment  made\npackets " in run("summary", str(capture)).out
