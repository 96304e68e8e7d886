"""What the commands print, on captures in the repository: in a pipe and on terminals."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import pytest

from amqpsniff.analysis.trace import MAX_ROWS
from tests.cli.running import EXPECTED, check, on_terminal, process, run
from tests.session.script import repeated
from tests.thorough import some

PIPED = {
    "inspect": "inspect pika_mix.pcap --limit 60",
    "inspect-errors": "inspect pika_mix.pcap --where reply_code>=300 --time absolute",
    "inspect-frames": "inspect bunny.pcapng --frames --limit 60 --time delta",
    "inspect-verbose": "inspect pika_mix.pcap --verbose --from +0.0145s --to +0.0188",
    "inspect-hex": "inspect v08_v09.pcap --hex --limit 12",
    "inspect-several": "inspect bunny.pcapng blocked.pcap --limit 4",
    "inspect-cut": "inspect snapped.pcap --limit 40",
    "inspect-lost": "inspect lost.pcap",
    "inspect-cut-hex": "inspect snapped.pcap --hex --limit 6",
    "inspect-dialects": "inspect v08_v09.pcap",
    "messages": "messages aiopika_rpc.pcap --limit 30",
    "messages-body": "messages kombu.pcap.gz --limit 3 --body-limit 256 --verbose",
    "messages-returned": "messages aiopika_rpc.pcap --where method='basic.return' --limit 2",
    "connections": "connections pika_mix.pcap",
    "connections-several": "connections midstream.pcap zerowindow.pcap blocked.pcap",
    "connections-verbose": "connections blocked.pcap --verbose",
    "channels": "channels pika_mix.pcap",
    "channels-verbose": "channels pika_mix.pcap --verbose --where close_code=404",
    "follow": "follow pika_mix.pcap --connection :43706 --channel 3",
    "follow-lost": "follow lost.pcap --body-limit 16",
    "follow-midstream": "follow midstream.pcap --connection 1c39 --to +3ms --time delta",
    "follow-reset": "follow v08_v09.pcap --connection :34230",
    "trace": "trace pika_mix.pcap --message-id m6",
    "trace-request": "trace aiopika_rpc.pcap --correlation-id f92f3cd7-eedf-4714-8fe5-40053cfc6cfd",
    "trace-alike": "trace kombu.pcap.gz --routing-key video --to +0.02 --time absolute",
    "trace-header": "trace pika_mix.pcap amqplib08.pcap --header int=4",
    "sql": "sql pika_mix.pcap SELECT\tmethod,headers\tFROM\tmessages\tLIMIT\t3",
    "summary": "summary pika_mix.pcap",
    "summary-lost": "summary lost.pcap",
    "summary-several": "summary node.pcap kombu.pcap.gz --limit 3",
    "topology": "topology pika_mix.pcap",
    "topology-dot": "topology aiopika_rpc.pcap --format dot",
    "topology-mermaid": "topology pika_mix.pcap --format mermaid --limit 3",
    "diagnose": "diagnose lost.pcap midstream.pcap",
    "diagnose-nothing": "diagnose bunny.pcapng --only tcp-gap",
    "diagnose-consequences": "diagnose snapped.pcap --places 5",
    "explain": "explain",
    "explain-code": "explain connection-closed-by-broker",
    "explain-subject": "explain handshake",
    "spec-method": "spec basic.publish",
    "spec-class": "spec queue --dialect 0-9-1",
    "spec-id": "spec 10/60",
    "spec-code": "spec 404",
    "spec-codes": "spec codes",
    "spec-tags": "spec tags",
}

ON_TERMINALS = {
    "inspect": "inspect pika_mix.pcap --limit 45",
    "inspect-cut": "inspect snapped.pcap --limit 40",
    "inspect-absolute": "inspect blocked.pcap --limit 20 --time absolute",
    "messages": "messages pika_mix.pcap --limit 5 --body-limit 256",
    "connections": "connections pika_mix.pcap",
    "channels": "channels pika_mix.pcap",
    "channels-midstream": "channels midstream.pcap",
    "follow": "follow -q snapped.pcap --connection :43706 --to +0.156s",
    "follow-text": "follow pika_mix.pcap --connection 7f29 --to +0.03 --bodies",
    "trace": "trace pika_mix.pcap --message-id m6",
    "trace-request": "trace aiopika_rpc.pcap --correlation-id eef8d969-fd36-42e8-b94f-8c51934e5273",
    "sql": "sql pika_mix.pcap SELECT\tclient,method,headers\tFROM\tmessages\tLIMIT\t4",
    "sql-wide": "sql bunny.pcapng SELECT\t*\tFROM\tchannels",
    "summary": "summary pika_mix.pcap",
    "summary-midstream": "summary midstream.pcap",
    "topology": "topology pika_mix.pcap",
    "diagnose": "diagnose snapped.pcap lost.pcap midstream.pcap",
    "explain": "explain delivery",
    "explain-code": "explain disconnect-unclean",
    "spec-class": "spec basic",
}


def words(text: str) -> list[str]:
    """The words of a command; tabs are blanks inside a word."""
    return [word.replace("\t", " ") for word in text.split(" ")]


@pytest.mark.parametrize("name", PIPED)
def test_in_a_pipe(name: str) -> None:
    result = run(*words(PIPED[name]))
    assert result.code == 0
    check(name, result.out)
    assert "\x1b" not in result.out


@pytest.mark.parametrize(
    ("name", "columns"),
    [*product(ON_TERMINALS, [80]), *product(some([*ON_TERMINALS], 2), [160])],
)
def test_on_a_terminal(name: str, columns: int) -> None:
    result = on_terminal(*words(ON_TERMINALS[name]), columns=columns)
    assert result.code == 0
    check(f"{name}-{columns}", result.out)
    assert max(map(len, result.out.splitlines())) <= columns


def test_every_expected_output_is_compared() -> None:
    names = {*PIPED, *(f"{name}-{columns}" for name in ON_TERMINALS for columns in (80, 160))}
    stems = {path.stem for path in EXPECTED.iterdir()}
    assert {stem for stem in stems if stem.split("-")[0] != "diff"} == names  # see test_diff


def test_colours_are_for_terminals_that_want_them() -> None:
    words = ("inspect", "bunny.pcapng", "--limit", "3")
    assert "\x1b[" in on_terminal(*words, columns=80, no_color=None).out
    assert "\x1b[" not in on_terminal(*words, columns=80).out
    assert "\x1b[" not in process(*words).out


def test_colours_change_nothing_else() -> None:
    for words in (
        ("inspect", "pika_mix.pcap", "-n", "30", "-v"),
        ("summary", "pika_mix.pcap"),
        ("connections", "pika_mix.pcap"),
        ("follow", "lost.pcap"),
        ("trace", "pika_mix.pcap", "--message-id", "m6"),
        ("sql", "pika_mix.pcap", "SELECT client, outcome FROM messages LIMIT 3"),
    ):
        coloured = on_terminal(*words, columns=80, no_color=None).out
        plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
        lines = [line.rstrip() for line in plain.splitlines()]
        assert lines == on_terminal(*words, columns=80).out.splitlines()


def test_lines_in_a_pipe_are_whole() -> None:
    assert "…" not in run("inspect", "aiopika_rpc.pcap").out
    assert "…" not in run("summary", "aiopika_rpc.pcap", "--limit", "1000").out
    assert "…" in on_terminal("inspect", "aiopika_rpc.pcap", columns=80).out


def test_inspect_as_rows_is_the_frames_table() -> None:
    rows = run("inspect", "bunny.pcapng", "--format", "ndjson").out
    assert rows == run("export", "bunny.pcapng", "--table", "frames").out
    assert json.loads(rows.splitlines()[1])["method"] == "connection.start"


def test_messages_as_rows_is_the_messages_table() -> None:
    for form in ("ndjson", "csv"):
        rows = run("messages", "bunny.pcapng", "--format", form).out
        assert rows == run("export", "bunny.pcapng", "-t", "messages", "--format", form).out
    assert json.loads(run("messages", "bunny.pcapng", "--format", "ndjson", "-n", "1").out)[
        "method"
    ]


def test_a_conversation_is_all_of_its_connection() -> None:
    words = ("pika_mix.pcap", "--connection", "fed1")
    rows = run("follow", *words, "--format", "ndjson").out
    assert rows == run("export", *words, "--table", "frames").out
    lines = run("inspect", *words).out.splitlines()
    told = run("follow", *words, "--body-limit", "0").out.splitlines()[2:]
    places = [tuple(line.split(maxsplit=2)[:2]) for line in told]
    assert {tuple(line.split(maxsplit=2)[:2]) for line in lines} <= set(places)
    assert len(lines) <= len(places)  # findings stand between the lines of frames


def test_a_conversation_of_which_the_beginning_is_enough() -> None:
    words = ("follow", "pika_mix.pcap", "--connection", "fed1", "--body-limit", "0")
    whole, begun = run(*words).out.splitlines(), run(*words, "--limit", "5").out.splitlines()
    lines = [line for line in begun[2:] if " ! " not in line]
    assert len(lines) == 5
    assert begun == whole[: len(begun)]
    assert run(*words, "--limit", "1000000").out.splitlines() == whole


def test_a_conversation_that_need_not_be_named() -> None:
    named = run("follow", "bunny.pcapng", "--connection", "ba7d677f029cdf8a")
    assert run("follow", "bunny.pcapng") == named
    assert run("follow", "bunny.pcapng", "--bodies").code == 0


def test_a_conversation_without_amqp_and_in_files_that_are_damaged(tmp_path: Path) -> None:
    result = run("follow", "bunny.pcapng", "--port", "1")
    assert (result.code, result.out) == (0, "")
    assert "no AMQP" in result.err
    result = run("follow", "bunny.pcapng", "README.md")
    assert (result.code, result.err.count("\n")) == (3, 1)
    assert result.out.startswith("ba7d677f029cdf8a ")


def test_holes_of_a_conversation_stand_where_they_are() -> None:
    lines = run("follow", "lost.pcap").out.splitlines()
    (at,) = [at for at, line in enumerate(lines) if "missing or not decoded" in line]
    assert lines[at].split()[1] == lines[at + 1].split()[1] == "273"
    assert "not decoded" not in run("follow", "lost.pcap", "--to", "+0.02").out


def test_a_trace_as_rows_is_of_the_messages_table() -> None:
    every = [json.loads(r) for r in run("export", "pika_mix.pcap", "-t", "messages",
                                        "--body-sha256").out.splitlines()]  # fmt: skip
    wanted = [row for row in every if row["message_id"] == "m6"]
    for words in (("--message-id", "m6"), ("--header", "int=6"), ("--correlation-id", "c6"),
                  ("--body-sha256", wanted[0]["body_sha256"].upper())):  # fmt: skip
        out = run("trace", "pika_mix.pcap", *words, "--format", "ndjson").out
        assert [json.loads(row) for row in out.splitlines()] == wanted
    assert run("trace", "pika_mix.pcap", "--message-id", "m6", "--header", "int=5").out == ""


def test_a_trace_of_some_messages() -> None:
    words = ("trace", "aiopika_rpc.pcap", "--routing-key", "mul", "--limit", "2")
    lines = run(*words).out.splitlines()
    assert [sum(line.startswith(word) for line in lines) for word in ("message ", "reply ")] == [
        2,
        2,
    ]
    assert len(run(*words, "--format", "csv").out.splitlines()) == 3


def test_a_trace_that_finds_nothing_says_so() -> None:
    result = run("trace", "pika_mix.pcap", "--message-id", "nowhere")
    assert (result.code, result.out) == (0, "")
    assert "no row matches" in result.err


def test_a_trace_is_bounded(tmp_path: Path) -> None:
    path = repeated(tmp_path / "many.pcap", MAX_ROWS + 5)
    part = run("trace", path, "--routing-key", "a")
    assert part.out.count("→ 1 published") == MAX_ROWS
    assert "only the first 20,000 rows" in part.err


def test_every_frame_is_shown_with_frames() -> None:
    lines = run("inspect", "aiopika_rpc.pcap", "--frames").out.splitlines()
    rows = run("export", "aiopika_rpc.pcap", "-t", "frames").out.splitlines()
    assert len(lines) == len(rows)


def test_every_method_and_protocol_header_is_a_line() -> None:
    lines = run("inspect", "lost.pcap").out.splitlines()
    rows = run("export", "lost.pcap", "-t", "frames").out.splitlines()
    kinds = [json.loads(row)["frame_type"] for row in rows]
    assert len(lines) == len([kind for kind in kinds if kind in ("method", "protocol-header")])


def test_messages_with_bodies_in_rows() -> None:
    row = json.loads(run("messages", "kombu.pcap.gz", "--bodies", "--format", "ndjson", "-n1").out)
    assert json.loads(row["body"]) == {"name": "f0", "data": []}
    row = json.loads(run("messages", "kombu.pcap.gz", "--format", "ndjson", "-n1").out)
    assert row["body"] is None


def test_summary_as_json_has_what_the_text_has(samples: Path) -> None:
    result = json.loads(run("summary", "pika_mix.pcap", "--format", "json").out)
    rows = [json.loads(r) for r in run("export", "pika_mix.pcap", "-t", "frames").out.splitlines()]
    assert sum(result["frames"].values()) == len(rows)
    assert result["methods"]["basic.publish"] == sum(r["method"] == "basic.publish" for r in rows)
    first = result["connections"][0]
    of_client = [
        r["size"] + (8 if r["frame_type"] != "protocol-header" else 0)
        for r in rows
        if r["connection_id"] == first["connection_id"] and r["sender"] == "client"
    ]
    assert first["client_bytes"] == sum(of_client)
    assert first["connection_name"] == "order-service-1"
    assert first["vhost"] == "shop"
    published = result["routing_keys"]["rows"][0]
    assert (published["exchange"], published["routing_key"]) == ("orders", "order.new.eu")
    assert result["errors"][0]["reply_code"] == 404


def test_spec_as_json() -> None:
    (row,) = json.loads(run("spec", "basic.publish", "--format", "json").out)
    assert row["arguments"][1] == {"name": "exchange", "type": "s", "secret": False}
    assert row["properties"][0]["name"] == "content_type"
    assert len(json.loads(run("spec", "headers", "--format", "json").out)) > 3


def test_spec_of_amqp10() -> None:
    attach = run("spec", "attach").out
    assert attach.startswith("attach\n  0x12 in 1.0")
    assert "rcv_settle_mode         receiver-settle-mode  first without it" in attach
    for name in ("amqp:not-found", "not_found"):
        assert "There is no such node" in run("spec", name).out
    assert run("spec", "close").out.startswith("connection.close\n")
    assert run("spec", "close", "--dialect", "1.0").out.startswith("close\n  0x18 in 1.0")
    assert run("spec", "attach", "--dialect", "0-9-1").code == 2
