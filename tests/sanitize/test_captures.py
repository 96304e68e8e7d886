"""Captures made safe: nothing secret is left in them, and all else is as it was."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.capture import open_capture
from amqpsniff.errors import CaptureError
from amqpsniff.sanitize import SanitizeOptions
from tests.cli.running import write_capture
from tests.conftest import SHARED, own_captures
from tests.decode.amqp10.truth import CAPTURES as AMQP10
from tests.encoder import PROTOCOL_HEADERS
from tests.sanitize.safe import bytes_of, made, packets, rows, rows_of_tables, secrets
from tests.tcp.wire import Talk
from tests.thorough import some

GONE = {
    "account-default",  # guest is no guest any more
    "tcp-overlap-conflict",  # what is sent again is what was sent before
    "capture-truncated",
    "publishes-unprotected",  # clients whose names differ in nothing but their letters are one
    "frame-type-unknown",  # what is no frame header of AMQP 1.0 is filler, which has another size
    "frame-too-large",
}
"""Findings that the safe capture cannot have, or not all of them."""

DERIVED = {"bunny.pcap": {"outcome", "outcome_packet_number", "outcome_ns"}}
"""Columns that follow from headers which are replaced: a headers exchange routes by them, so which
of several publishes was returned can only be told with them."""
DERIVED["bunny.pcapng"] = DERIVED["bunny.pcap"]


def paths() -> list[Path]:
    """Every capture of ours, and captures of others."""
    public = [
        path
        for path in sorted((SHARED / "captures" / "public").glob("*/*"))
        if path.is_file() and path.parent.name != "raw"
    ]
    amqp10 = [
        path for path in sorted(AMQP10.glob("*.pcap*")) if path.name[:4] not in ("tls.", "wss.")
    ]
    amqp10.sort(key=lambda path: not path.name.startswith("websocket"))
    return [*own_captures().values(), *some(amqp10, 2), *some(public)]


def opened(path: Path, ports: list[int]) -> Any:
    """A capture that was read."""
    capture = amqpsniff.open(path, ports=ports)
    capture.table("connections")
    return capture


def encrypted(path: Path) -> list[dict[str, Any]]:
    """What handshakes of TLS tell but names, of what is not opened."""
    found = [dict(row) for row in opened(path, [5701]).passes.encrypted if not row["opened"]]
    for row in found:
        for side in ("certificate", "client_certificate"):
            if row[side] is not None:
                row[side] = (len(row[side]["names"]), row[side]["expires"])
        for name in ("capture", "server_name", "opened", "why"):
            del row[name]
    return found


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.name)
def test_capture(path: Path, tmp_path: Path) -> None:
    try:
        open_capture(path).close()
        amqpsniff.open(path).table("connections")
    except CaptureError:
        pytest.skip("nothing that is read without tshark, or by this version of it")
    safe = made(path, tmp_path)
    octets = safe.read_bytes()
    for secret in secrets(path):
        assert secret not in octets, secret
    wrapped = path.name.startswith("websocket")  # is written without it, as TLS is
    decrypted = wrapped or any(row["opened"] for row in opened(path, []).passes.encrypted)
    kept = slice(2) if decrypted else slice(None)  # then packets keep their numbers and times
    assert [one[kept] for one in packets(safe)] == [one[kept] for one in packets(path)]
    assert made(safe, tmp_path).read_bytes() == octets
    assert encrypted(safe) == encrypted(path)
    originals, safe_ones = rows_of_tables(path), rows_of_tables(safe)
    for table in originals:
        before, after = originals[table], safe_ones[table]
        derived = DERIVED.get(path.name, set()) if table == "messages" else set()
        if any(row.get("protocol") == "1.0" for row in before):
            derived = derived | {"vhost"}  # a host
        if wrapped:
            derived = derived | {"client_bytes", "server_bytes", "retransmissions"}
        for row in (*before, *after):
            for name in (*derived, *(("tls_version", "tls_cipher") if decrypted else ())):
                row.pop(name, None)
        if table == "findings":
            before, after = (
                [row for row in found if row["code"] not in GONE] for found in (before, after)
            )
            for row in (*before, *after):
                row["cause_code"] = None if row["cause_code"] in GONE else row["cause_code"]
        assert after == before, table


@pytest.mark.parametrize("name", ["pika_mix.pcap", "bunny.pcapng", "kombu.pcap.gz", "lost.pcap"])
def test_names_and_addresses(name: str, samples: Path, tmp_path: Path) -> None:
    path = samples / name
    options = SanitizeOptions(names=True, addresses=True)
    safe = made(path, tmp_path, options)
    octets = safe.read_bytes()
    assert made(safe, tmp_path, options).read_bytes() == octets
    for table in ("frames", "messages", "connections", "channels"):
        before, after = rows(path, table, options), rows(safe, table, options)
        for row in (*before, *after):
            for column in DERIVED["bunny.pcap"]:
                row.pop(column, None)
        assert after == before
    for row in amqpsniff.open(path).table("frames").to_pylist():
        for column in ("exchange", "routing_key", "queue", "consumer_tag"):
            for word in (row[column] or "").replace("/", ".").split("."):
                if len(word) > 4 and not (row[column] or "").startswith("amq."):
                    assert word.encode() not in octets, word
    assert b"\x0a\x4d\x00" not in octets  # 10.77.0.x, where these captures were made


def test_the_same_name_is_the_same_everywhere(samples: Path, tmp_path: Path) -> None:
    path = samples / "pika_mix.pcap"
    safe = made(path, tmp_path, SanitizeOptions(names=True))
    columns = ("exchange", "routing_key", "queue", "consumer_tag")
    before, after = (
        [
            row[column]
            for row in amqpsniff.open(each).table("frames").to_pylist()
            for column in columns
        ]
        for each in (path, safe)
    )
    pairs = set(zip(before, after, strict=True))
    assert len(pairs) == len(set(before)) == len(set(after))
    assert all(len(one or "") == len(other or "") for one, other in pairs)
    users = {row["user"] for row in amqpsniff.open(safe).table("connections").to_pylist()}
    user_ids = {row["user_id"] for row in amqpsniff.open(safe).table("messages").to_pylist()}
    assert user_ids - {None} <= users


def test_headers(samples: Path, tmp_path: Path) -> None:
    path = samples / "pika_mix.pcap"

    def headers(**options: object) -> dict[str, object]:
        safe = made(path, tmp_path, SanitizeOptions(**options))  # type: ignore[arg-type]
        messages = amqpsniff.open(safe).table("messages").to_pylist()
        found: dict[str, object] = json.loads(messages[0]["headers"])
        return found

    every = headers()
    assert every == {
        "t": False, "n": None, "s": "xxxxxx", "big": 0, "arr": [0, "xxx", False, [0, 0], {"k": 0}],
        "tab": {"deep": "x"}, "b": {"base64": "eHg="}, "dec": 0, "ts": "1970-01-01T00:00:00Z",
    } or "s" in every  # fmt: skip
    assert every["s"] == "xxxxxx"
    assert every["big"] == 0
    assert headers(keep_headers=frozenset({"s"}))["s"] == "héllo"
    chosen = headers(headers=frozenset({"s"}))
    assert chosen["s"] == "xxxxxx"
    assert chosen["big"] == 1099511627776


def test_bodies_are_kept_where_they_are_wanted(samples: Path, tmp_path: Path) -> None:
    for name in ("pika_mix.pcap", "lost.pcap", "zerowindow.pcap"):
        path = samples / name
        safe = made(path, tmp_path, SanitizeOptions(keep_bodies=True))
        before, after = (
            amqpsniff.open(each, bodies=True).table("messages", columns=("body",)).to_pylist()
            for each in (path, safe)
        )
        assert after == before


def mixed(folder: Path) -> Path:
    """A capture of an AMQP connection and one of something else, packets taking turns."""
    amqp, other = Talk().hands(), Talk(ports=(40001, 80), isn=(5, 6)).hands()
    amqp.client(PROTOCOL_HEADERS["0-9-1"])
    other.client(b"GET /secret-path HTTP/1.1\r\n\r\n")
    amqp.client(b"\x08\0\0\0\0\0\0\xce")
    other.server(b"HTTP/1.1 200 OK\r\n\r\nthe secret")
    other.goodbye()
    amqp.goodbye()
    both = sorted((*amqp.packets, *other.packets), key=lambda packet: packet.ts_ns)
    return write_capture(folder / "mixed.pcap", both)


def test_foreign_packets_have_no_contents(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    octets, done = bytes_of(path)
    assert (done.packets, done.dropped) == (len(packets(path)), 0)
    assert b"secret" not in octets
    assert b"HTTP" not in octets
    assert PROTOCOL_HEADERS["0-9-1"] in octets


def test_foreign_packets_are_left_out(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    octets, done = bytes_of(path, SanitizeOptions(drop_foreign=True))
    assert (done.packets, done.dropped) == (8, 8)
    safe = tmp_path / "safe.pcapng"
    safe.write_bytes(octets)
    assert len(packets(safe)) == 8
    assert len(amqpsniff.open(safe).table("connections")) == 1
    assert amqpsniff.open(safe).table("connections").to_pylist()[0]["closed_by"] == "fin"


def test_only_the_ports_that_are_named(samples: Path, tmp_path: Path) -> None:
    import io

    from amqpsniff.options import Options
    from amqpsniff.sanitize import sanitize

    sink = io.BytesIO()
    for done in sanitize(samples / "pika_mix.pcap", sink, None, Options(ports=frozenset({5671}))):
        assert done.frames == 0
    assert b"AMQP" not in sink.getvalue()


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark")
@pytest.mark.parametrize("addresses", [False, True])
def test_tshark_finds_every_checksum_right(tmp_path: Path, addresses: bool, samples: Path) -> None:
    bad = " || ".join(f"{each}.checksum.status == 0" for each in ("ip", "tcp", "udp", "icmp"))
    others = sorted(SHARED.glob("captures/public/formats/*ip*"))
    for path in [*some(sorted(samples.glob("*.pcap*"))), *(others if addresses else some(others))]:
        safe = made(path, tmp_path, SanitizeOptions(addresses=addresses))
        command = ["tshark", "-n", "-r", str(safe), "-Y", bad]
        for each in ("ip", "tcp", "udp"):
            command += ["-o", f"{each}.check_checksum:TRUE"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == ""
