"""Passwords that are in captures do not come out, in no command and no form, unless asked for."""

from __future__ import annotations

import base64
import os
import random
import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from pyarrow import ipc, parquet

from tests.cli import every_way
from tests.cli.running import on_terminal, process, run, write_capture
from tests.conftest import REPO
from tests.decode.logins import Case, cases, shown
from tests.encoder import PROTOCOL_HEADERS, frame
from tests.tcp.wire import START_NS, Packet, Talk
from tests.thorough import THOROUGH

HOSTILE = REPO / "tests" / "captures" / "hostile"
# PLAIN and AMQPLAIN of pika_mix, kombu, v08_v09; among them a login that fails
CAPTURES = ("pika_mix.pcap", "kombu.pcap.gz", "v08_v09.pcap", "amqplib08.pcap", "snapped.pcap")
SECRETS = ("s3cret-Pw", "wrong-Pw", "guest\\0guest")

EVERY_WAY = (
    "inspect",
    "inspect --verbose",
    "inspect --hex",
    "inspect --hex --verbose",
    "inspect --frames",
    "inspect --format ndjson",
    "messages --verbose --bodies",
    "summary",
    "summary --format json",
    "diagnose",
    "diagnose --format ndjson",
    "diagnose --format sarif",
    "export --table frames",
    "export --table frames --format csv",
    "export --table messages --bodies",
    "export --table findings",
    "export --table connections",
    "export --table channels",
    "connections --verbose",
    "channels --verbose",
    'sql SELECT*FROM"frames"',
    'sql SELECT*FROM"connections" --format csv',
    "trace --routing-key order.new.eu",
)


def pairs(ways: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Each way with one of the captures, so that each capture has its share of the ways."""
    few = len(names) if THOROUGH else 1
    return [
        (way, name)
        for at, way in enumerate(ways)
        for place, name in enumerate(names)
        if (place - at) % len(names) < few
    ]


def _forms(secret: str) -> list[str]:
    """A secret as it is, and as dumps of bytes show it."""
    octets = secret.encode()
    hexes = octets.hex(" ")
    return [secret, hexes, octets.hex(), base64.b64encode(octets).decode()[:8]]


def _spoken(text: str) -> str:
    """A dump of bytes without what stands between them."""
    lines = [line.split("  ") for line in text.splitlines()]
    octets = " ".join(part for line in lines for part in line if _is_hex(part.split()))
    characters = "".join(line[-1] for line in lines)
    return f"{text}\n{octets}\n{characters}"


def _is_hex(words: list[str]) -> bool:
    return bool(words) and all(len(word) == 2 for word in words)


@pytest.mark.parametrize(("words", "name"), pairs(EVERY_WAY, CAPTURES))
def test_nothing_shows_them(words: str, name: str) -> None:
    command, *more = words.split()
    result = run(command, name, *more)
    assert result.code == 0
    text = _spoken(result.out + result.err)
    for secret in SECRETS:
        for form in _forms(secret):
            assert form not in text


def test_nor_do_terminals(samples: Path) -> None:
    text = on_terminal("inspect", "pika_mix.pcap", "-v", columns=300).out
    assert "[redacted]" in text
    assert "s3cret" not in text


def test_the_bytes_of_a_secret_are_masked_and_no_others() -> None:
    words = ("inspect", "pika_mix.pcap", "--hex", "--limit", "3")
    hidden, shown = run(*words).out, run(*words, "--show-secrets").out
    assert "**" in hidden
    assert "s3cret-Pw" in _spoken(shown)
    assert "order-service-1" in _spoken(hidden)
    different = [
        (one, other)
        for one, other in zip(hidden.splitlines(), shown.splitlines(), strict=True)
        if one != other
    ]
    assert len(different) == 2


def test_they_are_shown_when_asked_for() -> None:
    words = ("inspect", "pika_mix.pcap", "-v", "-n", "3", "--show-secrets")
    assert "s3cret-Pw" in run(*words).out


def test_a_login_that_was_cut_shows_no_byte_of_its_arguments() -> None:
    lines = run("inspect", "snapped.pcap", "--hex", "--limit", "3").out.splitlines()
    start = next(at for at, line in enumerate(lines) if "start-ok" in line)
    octets = lines[start + 1 : start + 3]
    assert "0a 00 0b **" in octets[0]
    assert set(octets[1][14:62].split()) == {"**", "--"}


@pytest.mark.parametrize("words", [way for way in EVERY_WAY if "export" in way or "inspect" in way])
def test_nor_of_a_method_that_its_dialect_lacks(tmp_path: Path, words: str) -> None:
    """A client of 0-8 sends connection.update-secret, of which only later dialects know."""
    talk = Talk().hands()
    payload = struct.pack(">HHI", 10, 70, 9) + b"s3cret-Pw" + b"\0"
    talk.client(PROTOCOL_HEADERS["0-8"] + frame(1, 0, payload))
    capture = write_capture(tmp_path / "lacks.pcap", talk.packets)
    command, *more = words.split()
    result = run(command, capture, *more)
    assert result.code == 0
    text = _spoken(result.out + result.err)
    assert not any(form in text for form in _forms("s3cret-Pw"))


RAW = ("cut", "annotate")
"""Commands that write packets as they are: `sanitize` is for what leaves the house."""

DAMAGED = ("leak_plain_hole7_1", "leak_update_hole9_1", "q2", "type0", "type8")
WAYS = (
    *EVERY_WAY,
    "inspect --frames --hex",
    "follow",
    "report -o -",
    "verify --unknown",
    "verify --format ndjson",
)


@pytest.mark.parametrize(("words", "name"), pairs(WAYS, DAMAGED))
def test_nor_of_a_damaged_login(words: str, name: str) -> None:
    """The method's numbers, its type or what a broker says of it."""
    command, *more = words.split()
    result = run(command, HOSTILE / f"sec_{name}.pcap", *more)
    assert result.code in (0, 1), result.err
    assert shown(result.out + result.err + _spoken(result.out)) is None


HOW_MANY = int(os.environ.get("AMQPSNIFF_LOGINS", "12"))
"""Damaged logins that every command reads; they are chosen anew for each command."""

FIRST_PORT = 20_000
FEWER = 20
"""Of so many of them one is followed by itself."""


@cache
def _cases() -> list[Case]:
    return list(cases((1, 5)))


def _logins(words: str, path: Path) -> Path:
    """Some of the damaged logins in one capture, a connection each, chosen by the command."""
    choose = random.Random(words)
    whole = _cases()
    packets: list[Packet] = []
    for number, case in enumerate(choose.sample(whole, min(HOW_MANY, len(whole)))):
        talk = Talk(ports=(FIRST_PORT + number, 5672), start_ns=START_NS + number * 10**9)
        if case.begun:
            talk.hands()
        for direction, piece in case.pieces:
            if isinstance(piece, int):
                talk.sent[direction] += piece
            elif piece:
                talk.put(direction, piece)
                talk.put(1 - direction)  # so that what is missing before it is not waited for
        packets += talk.goodbye().packets
    return write_capture(path / "logins.pcap", packets)


@pytest.mark.parametrize("words", [way for way in WAYS if way != "follow"])
def test_nor_of_any_damaged_login(words: str, tmp_path: Path) -> None:
    """All of them in one capture, for each command another few."""
    command, *more = words.split()
    result = run(command, _logins(words, tmp_path), *more)
    assert result.code in (0, 1), result.err
    assert shown(result.out + result.err + _spoken(result.out)) is None


@pytest.mark.parametrize(
    "way", [way for way in every_way.WAYS if not way.startswith(RAW)], ids=lambda way: way
)
def test_nor_of_any_damaged_login_in_any_form(way: str, tmp_path: Path) -> None:
    """Every command in every form."""
    capture, out = _logins(way, tmp_path), tmp_path / "out"
    result = every_way.go(way, capture, capture, f":{FIRST_PORT}", out)
    assert result.code in (0, 1), result.err
    files = [path for path in out.rglob("*") if path.is_file()]
    texts = [_read(path) for path in files]
    assert shown("\n".join([result.out, result.err, _spoken(result.out), *texts])) is None


def _read(path: Path) -> str:
    """What a file holds, unpacked."""
    if path.suffix == ".parquet":
        return str(parquet.read_table(path).to_pylist())
    if path.suffix == ".arrow":
        return str(ipc.open_stream(path).read_all().to_pylist())
    return path.read_bytes().decode("latin-1")


def test_nor_of_any_damaged_login_that_is_followed(tmp_path: Path) -> None:
    """Conversations by themselves, with bodies."""
    capture = _logins("follow", tmp_path)
    for number in range(0, HOW_MANY, max(1, HOW_MANY // FEWER)):
        name = f":{FIRST_PORT + number}"
        result = run("follow", capture, "--connection", name, "--bodies")
        assert result.code in (0, 1), result.err
        assert shown(result.out + result.err) is None


@pytest.mark.parametrize("words", ["bodies -o", "sanitize -o", "batch -o"])
def test_nor_of_any_damaged_login_in_files(words: str, tmp_path: Path) -> None:
    """Bodies with their manifest, and a capture that was made safe."""
    command, *more = words.split()
    result = run(command, _logins(words, tmp_path), *more, tmp_path / "written")
    assert result.code in (0, 1), result.err
    files = [path for path in (tmp_path / "written").rglob("*") if path.is_file()]
    files += [tmp_path / "written"] if (tmp_path / "written").is_file() else []
    assert files
    texts = [_read(path) for path in files]
    assert shown("\n".join([result.out, result.err, *texts])) is None


@pytest.mark.parametrize("table", ["frames", "messages", "connections", "channels", "findings"])
def test_nor_of_any_damaged_login_live(table: str, tmp_path: Path) -> None:
    """A live run that is fed from a pipe."""
    octets = _logins(table, tmp_path).read_bytes()
    result = process("live", "-", "-t", table, "--format", "ndjson", octets=octets)
    assert result.code in (0, 1), result.err
    assert result.out
    assert shown(result.out + result.err) is None
