"""`amqpsniff sanitize` writes a capture that is safe, or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from tests.cli.running import on_terminal, process, run
from tests.conftest import REPO, SAMPLES


def test_a_capture(tmp_path: Path) -> None:
    safe = tmp_path / "safe.pcapng"
    code, out, err = run("sanitize", "pika_mix.pcap", "-o", safe)
    assert (code, out) == (0, "")
    assert err.startswith("amqpsniff: 568 packets with 563 AMQP frames, ")
    assert err.endswith(f", in {safe}\n")
    assert b"s3cret" not in safe.read_bytes()
    assert b"orders.eu" in safe.read_bytes()
    code, out, err = run("summary", safe, "-q")
    assert (code, err) == (0, "")


def test_what_tls_carried_is_said_to_be_gone(tmp_path: Path) -> None:
    said = run("sanitize", "tls13.pcap", "-o", tmp_path / "safe.pcapng").err
    assert said.startswith("amqpsniff: info: 2 TLS conversations not opened: what was said inside")
    said = run("sanitize", "tls12.pcapng", "-o", tmp_path / "safe.pcapng").err
    assert said.startswith("amqpsniff: info: 2 TLS conversations decrypted and written without TLS")
    assert "130 AMQP frames" in said
    keys = ("--tls-keylog", "tls13.keys", "-q")
    run("sanitize", "tls13.pcap", *keys, "-o", tmp_path / "safe.pcapng")
    assert amqpsniff.open(tmp_path / "safe.pcapng").table("frames").num_rows
    assert run("sanitize", "tls12.pcapng", "-o", tmp_path / "safe.pcapng", "-q").err == ""


def test_options(tmp_path: Path) -> None:
    safe = tmp_path / "safe.pcapng"
    options = ("--names", "--addresses", "--drop-foreign", "--keep-bodies", "-q")
    assert run("sanitize", "kombu.pcap.gz", "-o", safe, *options) == (0, "", "")
    before, after = (
        amqpsniff.open(path, bodies=True).table("messages", columns=("body", "routing_key"))
        for path in (SAMPLES / "kombu.pcap.gz", safe)
    )
    assert after.column("body") == before.column("body")
    assert after.column("routing_key") != before.column("routing_key")


def headers(path: Path) -> list[dict[str, Any]]:
    found = amqpsniff.open(path).table("messages", columns=("headers",)).column("headers")
    return [json.loads(text) for text in found.to_pylist() if text]


def test_headers_that_are_chosen(tmp_path: Path) -> None:
    """Also inside of others; a name that no message has is most likely a slip."""
    safe = tmp_path / "safe.pcapng"
    options = ("--headers", "f, F ,a", "--keep-headers", "f,langs")
    said = run("sanitize", "kombu.pcap.gz", "-o", safe, *options).err
    assert said.startswith("amqpsniff: warning: no message has a header F, langs\n")
    before, after = headers(SAMPLES / "kombu.pcap.gz"), headers(safe)
    assert before[0]["nested"]["a"] != after[0]["nested"]["a"]
    for one in (*before, *after):
        one.get("nested", {}).pop("a", None)
    assert before == after


def test_what_was_there_stays_when_it_fails(tmp_path: Path) -> None:
    safe = tmp_path / "safe.pcapng"
    safe.write_bytes(b"before")
    code, out, err = run("sanitize", "README.md", "-o", safe)
    assert (code, out) == (3, "")
    assert "not a capture" in err
    assert safe.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [safe]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("node.pcap",), "Missing option '--output'"),
        (("-", "-o", "safe.pcapng"), "sanitize: - would have to be read twice; save it to a file"),
        (("node.pcap", "-o", "node.pcap"), "node.pcap is the capture itself"),
        (("node.pcap", "-o", "."), "is a directory"),
        (("node.pcap", "kombu.pcap.gz", "-o", "safe.pcapng"), "unexpected extra argument"),
    ],
)
def test_usage(arguments: tuple[str, ...], words: str) -> None:
    code, out, err = run("sanitize", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    code, _, err = run("sanitize", "nothing.pcap", "-o", tmp_path / "safe.pcapng")
    assert code == 3
    assert "nothing.pcap" in err


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    done = process("sanitize", "/dev/stdin", "-o", tmp_path / "safe.pcapng", octets=b"")
    assert done.code in (2, 3)
    assert list(tmp_path.iterdir()) == []


def test_a_pipe(tmp_path: Path) -> None:
    shell = f"> {tmp_path}/safe.pcapng"
    done = process("sanitize", "node.pcap", "-o", "-", shell=shell)
    assert done.code == 0
    assert done.err.endswith(", in standard output\n")
    assert run("sanitize", "node.pcap", "-o", tmp_path / "same.pcapng").code == 0
    assert (tmp_path / "same.pcapng").read_bytes() == (tmp_path / "safe.pcapng").read_bytes()
    code, out, _ = on_terminal("sanitize", "node.pcap", "-o", "-", columns=80)
    assert code == 2
    assert "a capture is not text for a terminal" in out


def test_on_a_terminal(tmp_path: Path) -> None:
    safe = tmp_path / "safe.pcapng"
    code, out, _ = on_terminal("sanitize", "node.pcap", "-o", safe, columns=80)
    assert code == 0
    assert out.startswith("amqpsniff: 1,064 packets with 3,455 AMQP frames, ")


def test_a_link_type_that_does_not_exist(tmp_path: Path) -> None:
    """A pcap file has more bits for it than a pcapng file."""
    capture = REPO / "tests/captures/hostile/fuzz_sanitize_1_30.pcap"
    code, out, err = run("sanitize", capture, "-o", tmp_path / "safe.pcapng")
    assert (code, out) == (3, "")
    assert err == "amqpsniff: not a capture: its link type is 45356249, and the highest is 65535\n"
    assert not list(tmp_path.iterdir())
