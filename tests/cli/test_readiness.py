"""`diagnose --for`: what a newer broker does otherwise."""

from __future__ import annotations

import json

from tests.cli.running import run
from tests.conftest import OWN, SAMPLES

CHANGES = OWN / "rabbitmq43_changes.pcap"


def test_the_sentence_comes_first_and_what_is_refused_before_the_rest() -> None:
    lines = run("diagnose", CHANGES, "--for", "rabbitmq-4.3").out.splitlines()
    assert lines[0] == (
        "RabbitMQ 4.3 refuses 1, ignores 2 and changes 1 of the things that 4 clients in this "
        "capture do."
    )
    heads = [line.split() for line in lines if "  since 4." in line]
    assert [head[0] for head in heads] == ["refused", "ignored", "ignored", "changed"]
    assert any("v1-app" in line and "queue v1.q" in line for line in lines)
    assert not any("transient-app" in line for line in lines)  # this broker is 4.3 and took it


def test_json_has_the_changes_as_the_library_gives_them() -> None:
    found = json.loads(run("diagnose", CHANGES, "--for", "4.2", "--format", "json").out)
    assert found["version"] == "4.2"
    assert [(one["code"], one["client"]) for one in found["affected"]] == [
        ("reply-to-mandatory", "rpc-server")
    ]


def test_a_part_of_the_traffic() -> None:
    found = run("diagnose", CHANGES, "--for", "4.3", "--client", "v1-app", "--format", "json")
    assert [one["code"] for one in json.loads(found.out)["affected"]] == ["queue-version"]


def test_nothing_that_changes() -> None:
    done = run("diagnose", SAMPLES / "node.pcap", "--for", "rabbitmq-4.3", "--fail-on", "info")
    assert done.code == 0
    assert "Nothing in this capture is known to change with RabbitMQ 4.3." in done.out


def test_what_is_refused_can_fail_a_check() -> None:
    assert run("diagnose", CHANGES, "--for", "4.3", "--fail-on", "error").code == 1
    assert run("diagnose", CHANGES, "--for", "4.2", "--fail-on", "error").code == 0


def test_mistakes_are_one_line() -> None:
    for arguments, said in (
        (["--for", "artemis"], "nothing is known of 'artemis'"),
        (["--for", "4.3", "--format", "sarif"], "--for has no format `sarif`"),
    ):
        done = run("diagnose", CHANGES, *arguments)
        assert done.code == 2
        assert said in done.err
        assert len(done.err.splitlines()) == 1


def test_connections_from_before_the_capture_are_told() -> None:
    text = run("diagnose", SAMPLES / "midstream.pcap", "--for", "4.0").out
    assert "2 of 2 connections began before the capture." in text
