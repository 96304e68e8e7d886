"""Rows of real captures are those of an independent decoder, kept beside the captures."""

import base64
import datetime
import gzip
import json
import socket
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from tests.conftest import OWN, SAMPLES, own_capture

Row = dict[str, Any]
NAMES = [
    "aiopika_multi", "aiopika_rpc", "blocked", "bunny", "kombu", "node", "php_churn", "pika_mix",
]  # fmt: skip

# What the independent decoder calls otherwise.
RENAMED = {"nowait": "no_wait", "exchange_type": "type", "global_": "global"}
RENAMED_PROPERTIES = {"message_type": "type", "timestamp": "message_timestamp"}
SECRETS = {("connection.start-ok", "response")}
PROPERTIES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id",
    "reply_to", "expiration", "message_id", "message_timestamp", "type", "user_id", "app_id",
    "cluster_id",
)  # fmt: skip


def paths() -> list[Any]:
    """Captures with rows beside them, and the copy of one among the samples."""
    found = [*map(own_capture, NAMES), SAMPLES / "bunny.pcapng"]
    return [pytest.param(path, id=path.name) for path in found]


def expected(path: Path) -> dict[str, list[Row]]:
    """The independent decoder's rows."""
    beside = OWN / f"{path.name.partition('.')[0]}.expected.json.gz"
    rows: dict[str, list[Row]] = json.loads(gzip.decompress(beside.read_bytes()))
    return rows


def client_of(row: Row) -> str:
    """The client as the tables write it."""
    octets, port = row["c"]
    return f"{socket.inet_ntoa(bytes.fromhex(octets))}:{port}"


def renamed(name: str) -> str:
    """An argument's name as the tables spell it."""
    name = name.replace("-", "_")
    return RENAMED.get(name, name)


def same(want: Any, got: Any) -> bool:
    """Whether a value is the expected one, as each side writes it."""
    if isinstance(want, dict):
        return (
            isinstance(got, dict)
            and want.keys() == got.keys()
            and all(same(value, got[name]) for name, value in want.items())
        )
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(map(same, want, got))
    if isinstance(want, bool) or want is None:
        return want is got
    if isinstance(want, str) and want.startswith("base64:"):
        octets = want.removeprefix("base64:")
        if isinstance(got, dict):
            return got == {"base64": octets}
        return isinstance(got, str) and base64.b64decode(octets) == got.encode()
    if isinstance(want, int) and isinstance(got, str):
        return datetime.datetime.fromisoformat(got.replace("Z", "+00:00")).timestamp() == want
    if isinstance(want, str) and isinstance(got, (int, Decimal)) and not isinstance(got, bool):
        return Decimal(want) == got
    if isinstance(got, Decimal):
        return float(got) == float(want)
    return bool(want == got)


def arguments(row: Row) -> Row:
    """Arguments of a frame, numbers with their digits."""
    parsed: Row = json.loads(row["arguments"], parse_float=Decimal)
    return parsed


@pytest.mark.parametrize("path", paths())
def test_frames(path: Path) -> None:
    rows = amqpsniff.open(path).table("frames").to_pylist()
    wanted = expected(path)["frames"]
    ours = {(row["client"], row["sender"], row["stream_offset"]): row for row in rows}
    assert len(ours) == len(rows) == len(wanted)
    for want in wanted:
        got = ours[client_of(want), want["d"], want["o"]]
        kind = got["frame_type"]
        length = got["size"] + (0 if kind == "protocol-header" else 8)
        name = got["method"] or kind
        assert (name, got["packet_number"], got["channel"], length) == (
            want["m"],
            want["n"],
            want["ch"],
            want["l"],
        )
        if "a" not in want:
            assert kind != "method"
            continue
        shown = arguments(got)
        for given, value in want["a"].items():
            argument = renamed(given)
            if (name, argument) in SECRETS:
                assert shown[argument] == "[redacted]"
            else:
                assert same(value, shown[argument]), (want, shown)


def columns_of(row: Row) -> Row:
    """What a message's row says of its arguments and properties, nulls left out."""
    shown = {name: row[name] for name in PROPERTIES if row[name] is not None}
    if "headers" in shown:
        shown["headers"] = json.loads(shown["headers"], parse_float=Decimal)
    if "message_timestamp" in shown:
        shown["message_timestamp"] = int(shown["message_timestamp"].timestamp())
    return shown


@pytest.mark.parametrize("path", paths())
def test_messages(path: Path) -> None:
    rows = amqpsniff.open(path, body_sha256=True).table("messages").to_pylist()
    wanted = expected(path)["messages"]
    assert len(rows) == len(wanted)

    # Messages of one sender and channel end in the order in which they are listed.
    def place(client: str, sender: str, channel: int) -> tuple[str, str, int]:
        return (client, sender, channel)

    ours: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        ours.setdefault(place(row["client"], row["sender"], row["channel"]), []).append(row)
    seen: Counter[tuple[str, str, int]] = Counter()
    for want in wanted:
        where = place(client_of(want), want["d"], want["ch"])
        got = ours[where][seen[where]]
        seen[where] += 1
        assert got["status"] == "complete"
        assert got["body_captured"] == got["body_size"] == want["size"]
        assert (got["method"], got["last_packet_number"], got["body_sha256"]) == (
            want["m"],
            want["n"],
            want["sha256"],
        )
        for argument, value in want["a"].items():
            if renamed(argument) in got:
                assert same(value, got[renamed(argument)]), (want, got)
        names = {name: name.replace("-", "_") for name in want["props"]}
        properties = {
            RENAMED_PROPERTIES.get(name, name): want["props"][key] for key, name in names.items()
        }
        assert same(properties, columns_of(got)), (properties, columns_of(got))


TRUE_ERRORS = {
    "bunny": {"message-unroutable"},
    "blocked": {"connection-blocked"},
    "node": {"channel-closed-by-broker"},
    "pika_mix": {
        "acknowledgement-invalid",
        "authentication-failed",
        "channel-closed-by-broker",
        "declaration-mismatch",
        "vhost-refused",
    },
}
"""What these conversations do wrong on purpose."""


@pytest.mark.parametrize("path", paths())
def test_nothing_is_wrong_with_healthy_traffic(path: Path) -> None:
    found = amqpsniff.open(path).table("findings").to_pylist()
    errors = {row["code"] for row in found if row["severity"] == "error"}
    assert errors <= TRUE_ERRORS.get(path.name.partition(".")[0], set())
