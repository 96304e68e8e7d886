"""Frames of AMQP 1.0: rows of real captures are those that independent decoders read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amqpsniff import open as open_capture
from amqpsniff.analysis.frame_bytes import hidden_positions
from tests.archive.splits import packets_of, write_pcap
from tests.decode.amqp10.truth import CAPTURES, capture, expected, plain
from tests.decode.feeding import Feeder

NAMES = sorted(path.name.partition(".")[0] for path in CAPTURES.glob("*.expected.json.gz"))


def rows_of(name: str) -> list[dict[str, Any]]:
    """The frames of a capture as rows."""
    keys = CAPTURES / f"{name}.keys"
    keylog = str(keys) if keys.exists() else None
    ports = [5675] if name == "midstream" else []  # which tells the server's side
    found = open_capture(str(capture(name)), tls_keylog=keylog, ports=ports)
    return [row.as_dict() for row in found.frames()]


def place(row: dict[str, Any]) -> tuple[Any, ...]:
    """The values by which a frame is known."""
    return row["packet_number"], row["client"], row["sender"], row["stream_offset"]


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_of_other_decoders(name: str) -> None:
    found = {place(row): row for row in rows_of(name)}
    wanted = {(one["n"], one["c"], one["d"], one["o"]): one for one in expected(name)["frames"]}
    assert found.keys() == wanted.keys()
    for at, one in wanted.items():
        row = found[at]
        assert row["channel"] == one["ch"], at
        if one["m"] == "protocol-header":
            assert row["frame_type"] == "protocol-header"
            continue
        if one["m"] == "empty":
            assert (row["frame_type"], row["size"]) == ("heartbeat", 0)
            continue
        assert row["size"] == one["l"] - 8, at
        if one["m"] in ("undecodable", "unknown-performative", "undescribed"):
            assert row["method"] in (None, "begin"), at
            continue
        assert row["method"] == one["m"], at
        arguments = row["arguments"]
        assert arguments.get("payload_bytes") == one.get("payload"), at
        sent = {name: one["a"][name] for name in one["a"] if name not in ("user", "_extra")}
        assert plain(arguments) == sent, at


def test_a_frame_too_short_to_be_one_is_passed_over() -> None:
    """Bytes that only look like a frame do not hold up the search behind broken framing."""
    wrong, opening = b"\0\0\0\5\2\0\0\0\0\x53\x10\x45", b"\0\0\0\x0c\2\0\0\0\0\x53\x10\x45"
    done = Feeder().data(0, b"AMQP\0\1\0\0" + wrong + opening).finish()
    assert [row["method"] for row in done.frames()] == [None, "open"]


@pytest.mark.parametrize(
    ("method", "arguments", "hidden"),
    [
        ("sasl-response", '{"response":"[redacted]"}', range(11, 40)),
        ("sasl-mechanisms", "{}", ()),
        ("transfer", '{"payload_bytes":12,"payload":"[redacted]"}', range(28, 40)),
        ("transfer", '{"payload_bytes":12}', ()),
        ("transfer", '{"more":true,"payload_bytes":12}', range(28, 40)),
        ("transfer", '{"payload_bytes":15}', range(25, 40)),
        ("open", "{}", ()),
        (None, None, range(11, 40)),
    ],
)
def test_hex_dumps_hide_what_may_be_secret(
    method: str | None, arguments: str | None, hidden: Any
) -> None:
    """Up to the last byte: no end octet follows."""

    class Entry:
        frame_type, size, channel, sender = "sasl", 32, 0, None

    entry = Entry()
    entry.method, entry.arguments_json = method, arguments  # type: ignore[attr-defined]
    octets = bytes(25) + b"abc" + b"\0Sp" + bytes(9)
    found = hidden_positions(entry, octets, frozenset())  # type: ignore[arg-type]
    assert found == frozenset(hidden)


@pytest.mark.parametrize("without", [0, 25])
def test_no_body_is_a_token(without: int, tmp_path: Path) -> None:
    """Also where the attach that names the node for tokens was not captured."""
    part = write_pcap(tmp_path / "part.pcap", packets_of([capture("azure_python")])[without:])
    found = list(open_capture(str(part), bodies=True).messages())
    tokens = [one for one in found if "put-token" in json.dumps(one.headers)]
    assert tokens
    assert all(one.body is None for one in tokens)
    assert any(one.body == b"order 0" for one in found)


@pytest.mark.parametrize("without", [0, 200])
def test_no_body_is_a_token_of_rabbitmq(without: int, tmp_path: Path) -> None:
    """Requests to set a token say so by their path, on a link that carries others too."""
    packets = packets_of([capture("rabbitmq43_management")])
    part = write_pcap(tmp_path / "part.pcap", packets[without:])
    found = list(open_capture(str(part), bodies=True).messages())
    assert not any(b"eyJ" in (one.body or b"") for one in found)
    assert any(one.body for one in found)
    assert without or any(b"x-queue-type" in (one.body or b"") for one in found)


def test_hex_dumps_hide_tokens_only() -> None:
    """A transfer on a link to `$cbs` says so in its row; those of other links are shown."""
    rows = [row for row in rows_of("azure_python") if row["method"] == "transfer"]
    hidden = [row for row in rows if row["arguments"].get("payload") == "[redacted]"]
    assert 0 < len(hidden) < len(rows)
