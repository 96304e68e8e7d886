"""Rows chosen by expressions and joined by SQL, and what is said of those that do not run."""

import io
import json
import tempfile
import weakref
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import amqpsniff
from amqpsniff.errors import CaptureError, FilterError, UsageError
from amqpsniff.tables import export, query
from amqpsniff.tables.batches import plain
from amqpsniff.tables.schema import FRAMES, TABLES, schema_of
from tests.processes import descriptors

CHOSEN = [
    ("method = 'basic.publish'", lambda row: row["method"] == "basic.publish"),
    ("METHOD in ('basic.ack', 'tx.select')", lambda r: r["method"] in ("basic.ack", "tx.select")),
    ("size > 100 and sender = 'client'", lambda r: r["size"] > 100 and r["sender"] == "client"),
    ("delivery_tag is not null", lambda row: row["delivery_tag"] is not None),
    ("(METHOD IS NULL)", lambda row: row["method"] is None),
    ('rows."reply_text" is not null', lambda row: row["reply_text"] is not None),
    ("not (method is null)", lambda row: row["method"] is not None),
    ("'a' is null", lambda row: False),
    ("(size > 100) is not null", lambda row: True),
    (
        "arguments->>'exchange' = 'orders'",
        lambda row: json.loads(row["arguments"] or "{}").get("exchange") == "orders",
    ),
    (
        "(arguments->>'$.client_properties.product') like 'Pika%'",
        lambda row: "client_properties" in (row["arguments"] or ""),
    ),
    ("timestamp < '2000-01-01'", lambda row: False),
    ("timestamp > TIMESTAMPTZ '2000-01-01 00:00:00+00'", lambda row: True),
    ("reply_text = 'NOT_FOUND; no queue' or false", lambda row: False),
    ("rows.channel = 1 -- of two", lambda row: row["channel"] == 1),
    ("true", lambda row: True),
    ("null::boolean", lambda row: False),
]

WRONG = {
    "metod = 'a'": "no column `metod`; did you mean `method`?",
    "exchange = orders": "no column `orders`; a text stands in single quotes: 'orders'",
    'exchange LIKE "ord"': "no column `ord`; a text stands in single quotes: 'ord'",
    "conn = 'a'": "no column `conn`; did you mean `connection_id`?",
    "zzz = 1": "no column `zzz`; `amqpsniff sql CAPTURE 'DESCRIBE TABLE'` lists",
    "nothing.method = 'a'": "there is no `nothing` to have columns",
    "size": "`size` is a number, not true or false; compare it with something",
    "routing_key": "`routing_key` is text, not true or false",
    "method =": "`method =`: syntax error at its end",
    "method = 'a": "`method = 'a`: unterminated",
    "size = 1; drop table rows": 'syntax error at or near ";"',
    "true) union select (true": "is not one expression",
    "true) order by (1": "is not one expression",
    "true) limit (1": "is not one expression",
    "exists (from rows)": "has a subquery; an expression looks at one row at a time",
    "size > (select avg(size) from rows)": "has a subquery",
    "sum(size) > 1": "aggregates",
    "row_number() over () = 1": "window",
    "columns(*) is null": "has a star; name the columns that it means",
    "nosuch(size)": "Scalar Function with name nosuch does not exist!",
    "size + interval '1' day > 1": "there is no +(BIGINT, INTERVAL)",
    "read_text('/etc/passwd') is null": "table function",
    "?": "parameter",
    " ": "the expression is empty",
    "not " * 3000 + "true": "depth",
}


@pytest.fixture(scope="module")
def capture(samples: Path) -> amqpsniff.Capture:
    return amqpsniff.open(samples / "pika_mix.pcap")


@pytest.mark.parametrize("encoded", [True, False])
@pytest.mark.parametrize(("where", "wanted"), CHOSEN)
def test_rows_are_chosen_in_their_order(
    capture: amqpsniff.Capture, where: str, wanted: Any, encoded: bool
) -> None:
    (whole,) = capture.batches("frames", encoded=encoded)
    pieces = [whole.slice(at, 100) for at in range(0, whole.num_rows, 100)]
    kept = list(query.filtered(pieces, FRAMES, where))
    assert all(batch.num_rows and batch.schema == whole.schema for batch in kept)
    rows = [row for batch in kept for row in plain(batch).to_pylist()]
    assert rows == list(filter(wanted, plain(whole).to_pylist()))


@pytest.mark.parametrize(("where", "said"), WRONG.items(), ids=lambda text: str(text)[:30])
def test_what_is_wrong_with_an_expression_is_said_in_one_line(where: str, said: str) -> None:
    with pytest.raises(FilterError) as error:
        query.filtered([], FRAMES, where)
    text = str(error.value)
    assert said in text
    assert "\n" not in text
    assert len(text) < 420


def test_columns_are_listed_where_they_are_few() -> None:
    with pytest.raises(FilterError, match="no column `zzz`; there are size, method"):
        query.Filter(pa.schema([("size", pa.int64()), ("method", pa.string())]), "zzz = 1")


def test_an_expression_that_fails_on_a_row_says_so(capture: amqpsniff.Capture) -> None:
    rows = query.filtered(capture.batches("frames"), FRAMES, "cast(method as integer) = 1")
    with pytest.raises(FilterError, match="Could not convert string"):
        list(rows)


def test_a_filter_names_the_columns_it_needs() -> None:
    needed = query.Filter(FRAMES, "Size > 1 and (queue is null or exchange = 'x')").columns
    assert needed == {"size", "queue", "exchange"}
    assert query.Filter(FRAMES, "true").columns == frozenset()


def test_a_filter_needs_no_other_columns(capture: amqpsniff.Capture) -> None:
    chosen = query.Filter(FRAMES, "method = 'basic.ack'")
    (batch,) = capture.batches("frames", columns=["method", "channel"])
    assert chosen.of(batch).num_rows == 89
    assert chosen.of(batch.slice(0, 0)).num_rows == 0
    chosen.close()


def test_a_filter_takes_one_batch_at_a_time(capture: amqpsniff.Capture) -> None:
    (batch,) = capture.batches("frames")
    given = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal given
        for _ in range(3):
            given += 1
            yield batch

    rows = query.filtered(batches(), FRAMES, "method = 'basic.ack'")
    assert given == 0
    next(rows)
    assert given == 1


# SQL


def rows(capture: amqpsniff.Capture, statement: str) -> list[dict[str, Any]]:
    return [row for batch in capture.sql(statement) for row in batch.to_pylist()]


def test_sql_over_each_table(capture: amqpsniff.Capture) -> None:
    for table in TABLES:
        (row,) = rows(capture, f"select count(*) as n from {table}")
        assert row["n"] == capture.table(table).num_rows
        whole = capture.sql(f"from {table}")
        every = schema_of(table, everything=True).names
        assert whole.schema.names == every
        batches = list(whole)
        table_of = capture.table(table, columns=every)
        assert [r for b in batches for r in b.to_pylist()] == table_of.to_pylist()


def test_sql_joins_tables_and_a_table_with_itself(capture: amqpsniff.Capture) -> None:
    (joined,) = rows(
        capture,
        "select count(*) as n from messages m join frames f using (connection_id, packet_number) "
        "where f.method = m.method and f.channel = m.channel",
    )
    assert joined["n"] >= capture.table("messages").num_rows
    (twice,) = rows(
        capture,
        "with x as (select * from frames where sender = 'client') "
        "select count(*) as n from x a join x b using (client, stream_offset)",
    )
    clients = capture.table("frames", columns=["sender"]).column(0).to_pylist().count("client")
    assert twice["n"] == clients


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("select method from frames", {"method"}),
        ("select count(*) from frames", {"capture"}),
        ("select f.size from frames f where f.channel > 0 order by ts_ns", "size channel ts_ns"),
        ("select * from frames", None),
        ("select * exclude (method) from frames", None),
        ("select columns('m.*') from frames", None),
        ("select frames from frames", None),
        ("select f from frames f", None),
        ("from frames", None),
        ("select #3 from frames", None),
        ("select a from frames as f(a, b, c)", None),
        ("select count(*) from frames natural join messages", None),
        ("summarize frames", None),
        ("select f.size from messages join frames f using (channel)", {"size", "channel"}),
        ("with c as (select size s from frames) select max(s) from c", {"size"}),
    ],
)
def test_only_columns_that_a_statement_needs_are_read(
    statement: str, columns: str | set[str] | None
) -> None:
    asked: list[set[str]] = []

    def opened(names: Collection[str]) -> list[pa.RecordBatch]:
        asked.append(set(names))
        return [FRAMES.empty_table().select(list(names)).combine_chunks().to_batches()[0:1]][0]

    tables = {
        "frames": (FRAMES, opened),
        "messages": (schema_of("messages"), lambda names: []),
    }
    list(query.sql(statement, tables))
    wanted = set(columns.split()) if isinstance(columns, str) else columns
    assert asked
    assert asked[0] == (wanted or set(FRAMES.names))


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("selec 1", 'syntax error at or near "selec"'),
        ("", "no statement; give one SELECT"),
        ("select 1; select 2", "several statements; give one SELECT"),
        ("select metod from frames", "no column `metod`; did you mean `method`?"),
        ("select zzz from frames", "no column `zzz`; `amqpsniff sql CAPTURE "),
        (
            "select size from (select method from frames)",
            "no column `size` at this place; a query inside the statement has to select it",
        ),
        ("select 1 from connection", "no table `connection`; there are frames, messages, "),
        ("drop table frames", "only SELECT statements can be run"),
        ("copy frames to 'x.csv'", "only SELECT statements can be run"),
        ("attach 'x.db'", "only SELECT statements can be run"),
        ("set threads = 9", "only SELECT statements can be run"),
        ("from read_csv('/etc/passwd')", "disabled"),
        ("from '/etc/passwd'", "no table"),
        ("select cast(method as integer) from frames", "Could not convert string"),
    ],
)
def test_what_is_wrong_with_a_statement_is_said_in_one_line(
    capture: amqpsniff.Capture, statement: str, said: str
) -> None:
    with pytest.raises(FilterError) as error:
        list(capture.sql(statement))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_json_of_results_is_nested_in_ndjson(capture: amqpsniff.Capture) -> None:
    result = capture.sql(
        "select arguments, arguments->'exchange' as exchange, upper(arguments) as shouted, "
        "'no' as headers from frames where method = 'exchange.declare' limit 1"
    )
    sink = io.BytesIO()
    export.write(result, result.schema, "ndjson", sink)
    row = json.loads(sink.getvalue())
    assert row["arguments"]["exchange"] == row["exchange"] == "orders"
    assert isinstance(row["shouted"], str)
    assert row["headers"] == "no"


@pytest.mark.parametrize("format", export.FORMATS)
def test_results_of_many_types_are_written_in_every_format(
    capture: amqpsniff.Capture, format: str
) -> None:
    result = capture.sql(
        "select sum(size) as total, avg(size) as mean, 1.50::decimal(9, 2) as price, "
        "[1, 2] as many, {'a': 1} as both, date '2026-01-02' as day, max(timestamp) as last, "
        "true as truth, null as nothing, 'x'::blob as bytes, 1::utinyint as small from frames"
    )
    sink = io.BytesIO()
    assert export.write(result, result.schema, format, sink) == 1
    if format == "ndjson":
        row = json.loads(sink.getvalue())
        assert row["price"] == 1.5
        assert row["many"] == [1, 2]
        assert row["both"] == {"a": 1}
        assert row["day"] == "2026-01-02"
        assert row["last"].endswith("Z")


def test_results_may_be_left_early(capture: amqpsniff.Capture) -> None:
    result = capture.sql("select * from frames")
    next(result)
    result.close()
    assert sum(batch.num_rows for batch in result) == 563
    assert rows(capture, "select 1 as one") == [{"one": 1}]


def test_what_reading_raises_comes_out_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "gone.pcap"
    path.write_bytes(b"this is no capture at all")
    with pytest.raises(CaptureError, match="not a capture"):
        list(amqpsniff.open(path).sql("select count(*) from frames"))


def test_reading_twice_what_can_be_read_once_says_so(
    capture: amqpsniff.Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = amqpsniff.open(capture.names[0])
    monkeypatch.setattr(once.passes, "once", ["-"])
    assert rows(once, "select count(*) as n from frames") == [{"n": 563}]
    with pytest.raises(UsageError, match="- can be read only once; save it to a file first"):
        list(once.sql("select count(*) from frames"))


@pytest.mark.parametrize("depth", [2_000, 100_000])
def test_depth_of_an_expression(capture: amqpsniff.Capture, depth: int) -> None:
    """What is too deep for DuckDB, which differs by version, is an error like any other."""
    where = "(" * depth + "size < 0" + ")" * depth
    found = None
    try:
        found = list(query.filtered(capture.batches("frames"), FRAMES, where))
    except FilterError as error:
        said = str(error)
    assert "\n" not in said if found is None else found == []


def test_a_statement_gives_rows_in_small_batches() -> None:
    """Whole rows may be large; a result is not made of many of them at once."""
    (batch, *more) = query.sql("SELECT unnest(range(10000)) AS n", {})
    assert batch.num_rows <= query.BATCH_ROWS < 10_000
    assert sum(one.num_rows for one in (batch, *more)) == 10_000


def test_a_statement_is_given_tables_in_small_batches() -> None:
    """Encoded strings take little memory; as DuckDB takes them they are decoded a few at a time."""
    texts = pa.array(["x" * 1000] * 20_000).dictionary_encode()
    batch = pa.record_batch({"method": texts})
    schema = pa.schema([("method", pa.string())])
    source = query.StreamedTable(schema, lambda columns: [batch], None)
    given = list(pa.RecordBatchReader.from_stream(source))
    assert max(one.num_rows for one in given) == query.BATCH_ROWS
    assert pa.Table.from_batches(given).equals(pa.table({"method": texts.cast(pa.string())}))


def test_a_statement_that_needs_too_much_memory_says_what_to_do() -> None:
    statement = "SELECT list(repeat(n::VARCHAR, 300) ORDER BY n % 1000) FROM range(200_000) t(n)"
    wanted = "needs more than the 128MB of memory that it may take; name only the columns"
    with pytest.raises(FilterError, match=wanted):
        list(query.sql(statement, {}))


FILE, FACTS, PASS = "rows wait in a file", "facts are kept of rows", "rows pass"
KEPT = {
    "SELECT * FROM t ORDER BY n DESC": FILE,
    "SELECT a.n FROM t a JOIN t b ON a.n = b.n + 1": FILE,
    "SELECT n, sum(n) OVER (ORDER BY n) FROM t": FILE,
    "SELECT n % 7, count(*) FROM (FROM t ORDER BY n LIMIT 90000) GROUP BY 1": FILE,
    "SELECT b.n FROM (SELECT max(n) AS n FROM t) a JOIN t b ON a.n = b.n": FILE,
    "SELECT n % 7, count(*) FROM t GROUP BY 1 ORDER BY 2": FACTS,
    "SELECT DISTINCT n % 7 FROM t": FACTS,
    "SELECT n % 7, count(*) FROM t GROUP BY 1": FACTS,
    "SELECT * FROM t ORDER BY n DESC LIMIT 5": FACTS,
    "SELECT max(n) FROM t": FACTS,
    "SELECT * FROM t": PASS,
    "SELECT n + 1 AS more FROM t WHERE n % 2 = 0 LIMIT 900000": PASS,
    "WITH u AS (FROM t) SELECT * FROM u UNION ALL SELECT * FROM t": PASS,
}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are found in /proc")
@pytest.mark.parametrize(("statement", "kept"), KEPT.items(), ids=KEPT)
def test_rows_wait_only_for_a_statement_that_holds_them(
    statement: str, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table is read to its end before DuckDB gets rows to hold; other rows go on at once."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    read, in_file = 0, False
    many = 100  # more than DuckDB reads ahead, which differs between its versions
    batch = pa.record_batch({"n": pa.array(range(20_000))})

    def opened(columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        nonlocal read, in_file
        for _ in range(many):
            read += 1
            yield batch
        in_file = descriptors(tmp_path) != []

    result = query.sql(statement, {"t": (pa.schema([("n", pa.int64())]), opened)})
    first = next(result)
    assert first.num_rows
    assert (read < many) is (kept == PASS)
    assert in_file is (kept == FILE)
    result.close()
    assert list(tmp_path.iterdir()) == []


def test_a_batch_is_let_go_before_the_next_is_made() -> None:
    """What is large is in memory once, not twice."""
    before: list[weakref.ref[pa.RecordBatch]] = []

    def opened(columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        for number in range(4):
            assert [one for one in before if one() is not None] == []
            batch = pa.record_batch({"n": pa.array([number] * 10)})
            before.append(weakref.ref(batch))
            yield batch
            del batch

    source = query.StreamedTable(pa.schema([("n", pa.int64())]), opened, None)
    assert sum(one.num_rows for one in pa.RecordBatchReader.from_stream(source)) == 40
