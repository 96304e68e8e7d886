"""Names and bodies from the wire cannot steer a terminal, name a file or fill the memory."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.analysis.client_names import ClientNames
from amqpsniff.analysis.frame_bytes import MAX_FRAME_BYTES, FrameBytes, length_of
from amqpsniff.analysis.selection import Selection
from amqpsniff.analysis.timeline import CONTENT_METHODS, Timeline
from amqpsniff.capture import read
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from amqpsniff.spec.describe import describe
from tests import encoder
from tests.cli.running import on_terminal, run, write_capture
from tests.conftest import SAMPLES
from tests.session.script import Script, written
from tests.tcp.wire import Talk

ESCAPES = "\x1b[2J\x1b]0;title\x07\r\n\t\x00\x7f\x9b31m\u202e\u2028[bold red]x[/]"
NAMES = f"q{ESCAPES}".encode()


def _method(name: str, **values: Any) -> bytes:
    row = next(row for row in describe(name) if "0-9-1" in row.dialects)
    given = {one.name: values.get(one.name, _empty(one.type)) for one in row.arguments}
    return encoder.method(row, given, channel=0 if name.startswith("connection.") else 1)


def _empty(kind: str) -> Any:
    return {"s": b"", "S": b"", "F": []}.get(kind, 0)


def _publish(body: bytes, **properties: Any) -> bytes:
    row = describe("basic.publish")[0]
    values = {"ticket": 0, "exchange": NAMES, "routing_key": NAMES, "mandatory": 0, "immediate": 0}
    return b"".join(encoder.content(row, values, body, properties=properties))


def _capture(path: Path, *frames: bytes) -> Path:
    talk = Talk().hands()
    talk.client(encoder.PROTOCOL_HEADERS["0-9-1"])
    for frame in frames:
        talk.client(frame)
    return write_capture(path, talk.goodbye().packets)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A capture whose every name tries to steer the terminal."""
    text = encoder.Field("S", NAMES)
    properties = {
        "content_type": b"../../x\x1b[2J/json",
        "message_id": NAMES,
        "headers": [(NAMES, text)],
    }
    close = {"reply_code": 541, "reply_text": NAMES, "class_id": 0, "method_id": 0}
    name = tmp_path / "a\x1b[2Jb.pcap"
    return _capture(
        name,
        _method("queue.declare", queue=NAMES, arguments=[(NAMES, text)]),
        _publish(b"\x1b[2J body\n\xff", **properties),
        _publish(ESCAPES.encode(), **properties),
        _method("connection.close", **close),
    )


TRACED = hashlib.sha256(ESCAPES.encode()).hexdigest()

EVERY_WAY = (
    "inspect -v",
    "inspect --frames",
    "inspect --hex",
    "messages -v --bodies",
    "summary",
    "connections",
    "connections -v",
    "follow --bodies",
    f"trace --body-sha256 {TRACED}",
    'sql SELECT(queue)FROM"frames"',
    'sql SELECT*FROM"messages" --bodies',
    "channels -v",
    "follow --format ndjson",
    f"trace --body-sha256 {TRACED} --format csv",
    'sql SELECT(queue)FROM"frames" --format csv',
    "messages --format csv --bodies",
    "messages --format ndjson --bodies",
    "export -t frames --format csv",
    "export -t frames",
    "export -t findings",
)


@pytest.mark.parametrize("words", EVERY_WAY)
def test_terminals_are_not_steered(words: str, hostile: Path) -> None:
    command, *more = words.split()
    result = on_terminal(command, hostile, *more, columns=400)
    assert result.code == 0
    unsafe = {one for one in result.out if not one.isprintable()} - {"\n"}
    assert not unsafe
    assert (
        "[bold red]x[/]" in result.out or command in ("summary", "channels") or "findings" in words
    )


@pytest.mark.parametrize("words", EVERY_WAY[:11])
def test_text_in_a_pipe_is_harmless_too(words: str, hostile: Path) -> None:
    command, *more = words.split()
    result = run(command, hostile, *more)
    assert all(one.isprintable() or one == "\n" for one in result.out + result.err)
    assert "\\x1b[2J" in result.out


@pytest.mark.parametrize("form", ["text", "ndjson", "sarif"])
def test_findings_do_not_steer_terminals(form: str, hostile: Path) -> None:
    hostile.write_bytes(hostile.read_bytes()[:-1])
    for columns in (80, 400):
        result = on_terminal("diagnose", hostile, "--format", form, columns=columns)
        assert result.code == 0
        assert all(one.isprintable() or one == "\n" for one in result.out)
        assert "capture-truncated" in result.out


def test_errors_are_harmless() -> None:
    assert "\x1b" not in run("inspect", "\x1b[2Jx.pcap").err
    assert "\x1b" not in run("inspect", "bunny.pcapng", "--where", "\x1b[2J").err


def test_rows_in_a_pipe_keep_every_character(hostile: Path) -> None:
    rows = [
        json.loads(row)
        for row in run("inspect", hostile, "--format", "ndjson").out.split("\n")[:-1]
    ]
    assert [row["queue"] for row in rows if row["method"] == "queue.declare"] == [NAMES.decode()]


def test_no_file_is_named_by_the_wire(hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("bodies", hostile, "-o", out).code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "00000001-packet6.bin", "00000002-packet7.bin", "manifest.ndjson",
    ]  # fmt: skip
    assert (out / "00000001-packet6.bin").read_bytes() == b"\x1b[2J body\n\xff"
    row = json.loads((out / "manifest.ndjson").read_text().split("\n")[0])
    assert row["routing_key"] == NAMES.decode()


def test_links_in_the_way_are_not_followed(hostile: Path, tmp_path: Path) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    out.mkdir()
    victim.write_text("kept")
    (out / "00000001-packet6.bin").symlink_to(victim)
    assert run("bodies", hostile, "-o", out).code == 2
    assert victim.read_text() == "kept"


def test_a_body_that_does_not_decode_stays_packed(tmp_path: Path) -> None:
    whole = gzip.compress(bytes(1 << 20))
    bomb = whole[:-20]
    capture = _capture(
        tmp_path / "bomb.pcap",
        _publish(whole, content_encoding=b"gzip"),
        _publish(bomb, content_encoding=b"gzip"),
    )
    out = tmp_path / "out"
    assert run("bodies", capture, "-o", out, "--decode").code == 0
    rows = [json.loads(row) for row in (out / "manifest.ndjson").read_text().split("\n")[:-1]]
    assert [row["decoded"] for row in rows] == [True, False]
    assert [row["file"][-7:] for row in rows] == [
        ".bin.gz"[-7:] if i else "et5.bin" for i in (0, 1)
    ]
    assert (out / rows[0]["file"]).read_bytes() == bytes(1 << 20)
    assert (out / rows[1]["file"]).read_bytes() == bomb
    assert len(list(out.iterdir())) == 3


def test_a_message_that_never_ends_does_not_hold_up_the_rest() -> None:
    capture = amqpsniff.open(SAMPLES / "lost.pcap")

    def entries(max_waiting: int) -> tuple[list[Any], list[int]]:
        joined = Timeline(CONTENT_METHODS, ("method",), max_waiting)
        found: list[Any] = []
        counts: list[int] = []
        for table, batch in capture.tables("frames", "messages", encoded=True):
            joined.frames(batch) if table == "frames" else found.extend(joined.messages(batch))
            found.extend(joined.ready())
            counts.append(len(found))
        return [*found, *joined.ready(last=True)], counts

    (held, late), (hasty, early) = entries(1_000_000), entries(3)
    assert early > late
    assert [one.packet_number for one in hasty] == [one.packet_number for one in held]


def test_bytes_are_kept_up_to_a_limit(tmp_path: Path) -> None:
    """Of a half-stream in very many pieces too."""
    text = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
    text += "C1: basic.publish exchange=e | body=5\n" * 1_200
    capture = amqpsniff.open(written(Script(text), tmp_path / "many.pcap"))
    entries = [entry for entry, _ in capture.passes.frames_with_bytes(Selection(), ClientNames())]
    kept = FrameBytes(max_bytes=2_000)
    pipeline = Pipeline(plan=Plan(("frames",), on_stream=kept.add))
    for batch in read([tmp_path / "many.pcap"]):
        pipeline.feed(batch)
    whole = [not kept.find(entry)[1] for entry in entries]
    assert whole == sorted(whole)
    bytes_kept = sum(length_of(one) for one, there in zip(entries, whole, strict=True) if there)
    assert 0 < bytes_kept <= 2_000


def test_a_long_frame_is_shown_in_part(tmp_path: Path) -> None:
    body = encoder.frame(3, 1, b"\xff" * (MAX_FRAME_BYTES + 10))
    pieces = [body[at : at + 60_000] for at in range(0, len(body), 60_000)]
    out = run("inspect", _capture(tmp_path / "long.pcap", *pieces), "--frames", "--hex").out
    assert f"{18} more bytes" in out
