"""Names and bodies from the wire cannot steer a terminal, name a file or fill the memory."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.analysis import content_encoding, frame_bytes, timeline
from amqpsniff.spec.describe import describe
from tests import encoder
from tests.cli.running import on_terminal, run, write_capture
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


def test_a_bomb_stays_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_encoding, "MAX_DECODED_BYTES", 1 << 20)
    whole, bomb = gzip.compress(bytes(1 << 20)), gzip.compress(bytes((1 << 20) + 1))
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


def test_a_message_that_never_ends_does_not_hold_up_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = run("inspect", "lost.pcap").out
    monkeypatch.setattr(timeline, "MAX_WAITING", 3)
    hasty = run("inspect", "lost.pcap").out
    assert len(hasty.splitlines()) == len(held.splitlines())


def test_bytes_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run("inspect", "lost.pcap", "--hex").out
    monkeypatch.setattr(frame_bytes, "MAX_KEPT_BYTES", 20_000)
    monkeypatch.setattr(frame_bytes, "PIECES_CLEANED", 2)
    some = run("inspect", "lost.pcap", "--hex").out
    assert some.count("--") > whole.count("--")
    assert [line for line in some.splitlines() if "→" in line] == [
        line for line in whole.splitlines() if "→" in line
    ]


def test_a_long_frame_is_shown_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_bytes, "MAX_FRAME_BYTES", 32)
    out = run("inspect", "bunny.pcapng", "--hex", "-n", "3").out
    assert "more bytes" in out
    assert "s3cret" not in out
