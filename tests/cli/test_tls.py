"""Encrypted captures on the command line: with keys, without, and with the wrong ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import amqpsniff
from tests.cli.running import on_terminal, process, run, write_capture
from tests.conftest import SAMPLES
from tests.tcp import wire
from tests.tls import talk as tls

pytest.importorskip("cryptography")

KEYED = ("tls13.pcap", "--tls-keylog", "tls13.keys")


def test_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSLKEYLOGFILE", raising=False)
    result = run("inspect", *KEYED)
    assert (result.code, result.err) == (0, "")
    assert len(result.out.splitlines()) == 90
    assert run("inspect", "tls12_rsa.pcap", "--tls-key", "tls12_rsa.key").out.count("publish") == 10
    monkeypatch.setenv("SSLKEYLOGFILE", "tls13.keys")
    assert run("inspect", "tls13.pcap").out == result.out
    monkeypatch.setenv("SSLKEYLOGFILE", "nowhere")
    assert run("inspect", "tls13.pcap").out == ""
    assert run("connections", "tls13.pcap").out.startswith("2 TLS conversations could not be read")
    assert run("inspect", "tls12.pcapng").out.count("basic.publish") == 10


@pytest.mark.parametrize("command", ["messages", "follow", "trace", "topology", "channels"])
def test_every_command_takes_keys(command: str) -> None:
    more = {"follow": ("--connection", ":50182"), "trace": ("--message-id", "m1")}
    result = run(command, *KEYED, *more.get(command, ()))
    assert (result.code, result.err) == (0, "")
    assert result.out


def test_bytes() -> None:
    """The bytes shown are those inside TLS."""
    result = run("inspect", *KEYED, "--hex", "--limit", "1")
    assert "41 4d 51 50 00 00 09 01" in result.out


def test_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSLKEYLOGFILE", raising=False)
    result = run("summary", "tls13.pcap", "-q")
    assert "quality  2 TLS conversations could not be read\n" in result.out
    assert "no keys were given" in result.out
    result = run("connections", "tls12_rsa.pcap")
    assert "2 TLS conversations could not be read; keys come from --tls-keylog" in result.out
    assert "broker.example" in result.out
    assert "no AMQP in tls12_rsa.pcap" in result.err
    assert "--tls-key FILE" in result.err
    result = run("diagnose", "tls13.pcap", "--port", "5701")
    assert "perhaps AMQP: port 5701" in result.out


def test_all_that_is_known_without_keys() -> None:
    result = run("connections", "tls12_rsa.pcap", "-q", "-v", "--limit", "1")
    fields = dict((*line.split(maxsplit=1), "")[:2] for line in result.out.splitlines()[2:])
    assert fields["read"] == "no keys were given"
    assert fields["server_name"] == '"broker.example"'
    assert fields["cipher"] == '"TLS_RSA_WITH_AES_256_GCM_SHA384"'
    assert fields["names"].startswith("broker.example, localhost")
    assert fields["packets"] == "1 to 72"
    assert "ciphers_offered" not in fields
    assert result.out.count(" → ") == 1


@pytest.mark.parametrize("columns", [80, 160])
def test_on_a_terminal(columns: int) -> None:
    for arguments in (("connections", "tls12_rsa.pcap", "-q"), ("summary", "tls12_rsa.pcap", "-q")):
        lines = on_terminal(*arguments, columns=columns).out.splitlines()
        assert lines
        assert all(len(line) <= columns for line in lines if "keys come from" not in line)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--tls-keylog", "none"), "none: key log cannot be read: No such file or directory"),
        (("--tls-key", "none"), "none: private key cannot be read: No such file or directory"),
        (("--tls-key", "README.md"), "README.md: not a private key (PEM or DER)"),
        (("--tls-key", ""), "the name of the private key is empty; name its file, or leave it out"),
        (("--tls-keylog", ""), "the name of the key log is empty; name its file, or leave it out"),
        (("--reader", "none"), "no reader `none`; there are auto, own, tshark"),
    ],
)
def test_wrong_options(options: tuple[str, str], said: str) -> None:
    result = run("inspect", "tls13.pcap", *options)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"amqpsniff: {said}\n"


def test_a_server_of_tls_that_answers_plain_amqp(tmp_path: Path) -> None:
    """An alert is all that is encrypted: nothing says why it could not be read."""
    talk = wire.Talk(ports=(40000, 5671)).hands()
    talk.client(b"AMQP\0\0\x09\x01")
    talk.server(b"\x15\x03\x03\0\x02\x02\x0a")
    found = run("connections", str(write_capture(tmp_path / "plain.pcap", talk.packets)))
    assert "1 TLS conversation could not be read; keys come from --tls-keylog" in found.out


def test_standard_input(tmp_path: Path) -> None:
    octets = (Path(__file__).parents[2] / "samples" / "tls12.pcapng").read_bytes()
    assert process("inspect", "-", octets=octets).out.count("basic.publish") == 10


def test_who_is_the_client_without_a_beginning(tmp_path: Path) -> None:
    """Neither SYN nor handshake, and the server's packet comes first: ports tell."""
    talk = wire.Talk(ports=(5671, 40000))
    record = b"\x17\x03\x03\x01\x00" + bytes(256)
    for _ in range(3):
        talk.put(0, record)
        talk.put(1, record)
    path = write_capture(tmp_path / "midway.pcap", talk.packets)
    (row,) = json.loads(run("summary", path, "--format", "json").out)["tls"]["rows"]
    assert (row["client"], row["server"]) == ("10.0.0.2:40000", "10.0.0.1:5671")
    found = json.loads(run("diagnose", path, "--format", "ndjson", "--only", "tls-unreadable").out)
    assert found["client"] == "10.0.0.2:40000"
    assert "perhaps AMQP: port 5671" in found["detail"]


@pytest.mark.parametrize("name", ["tls13.pcap", "tls12_rsa.pcap"])
def test_what_cannot_be_read_fails_a_check(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSLKEYLOGFILE", raising=False)
    for severity in ("info", "warning"):
        result = run("diagnose", name, "--fail-on", severity, "-q")
        assert result.code == 1
        assert "; capture: 2 TLS conversations could not be read\n" in result.out
        page = run("report", name, "--fail-on", severity, "-o", tmp_path / "page.html")
        assert page.code == 1
        assert "nothing missing" not in (tmp_path / "page.html").read_text()
    assert run("diagnose", name, "--fail-on", "error", "-q").code == 1
    (row,) = run("diagnose", name, "--format", "ndjson").out.splitlines()
    assert json.loads(row)["code"] == "tls-unreadable"
    (ran,) = json.loads(run("diagnose", name, "--format", "sarif").out)["runs"]
    assert [one["ruleId"] for one in ran["results"]] == ["tls-unreadable"]
    (found,) = amqpsniff.open(SAMPLES / name).findings()
    assert found.code == "tls-unreadable"
    readable = "tls12.pcapng"
    assert run("diff", readable, name, "--fail-on", "warning").code == 1
    assert run("diff", name, name, "--fail-on", "warning").code == 0
    assert "nothing missing" not in run("summary", name).out


def test_what_can_be_read_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSLKEYLOGFILE", raising=False)
    result = run("diagnose", *KEYED, "--only", "tls-unreadable", "--fail-on", "info")
    assert (result.code, "could not be read" in result.out) == (0, False)


def test_other_tls_beside_amqp_passes(tmp_path: Path) -> None:
    """HTTPS in the same capture is counted, and is no finding."""
    secure = tls.write(tmp_path / "https.pcap", tls.sealed("1.3", 443, ["h2", "http/1.1"]))
    clear = SAMPLES / "bunny.pcapng"
    result = run("diagnose", secure, clear, "--only", "tls-unreadable", "--fail-on", "info")
    assert result.code == 0
    assert "1 TLS conversation could not be read" in result.out
