"""What is refused, with what is said of it, and before anything is touched."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.errors import UsageError
from tests.cli.running import run
from tests.conftest import SAMPLES

CAPTURE = SAMPLES / "bunny.pcapng"

LIVE = {
    "--settle=": "--settle '' is not a span of time; write 30s, 5m or 1h",
    "--format=": "no format `` here; there are dashboard, ndjson, csv, arrow",
    "--table=": "no table ``; there are frames, messages, connections, channels, links, findings",
    "--connection=": "--connection is empty; `amqpsniff connections` lists their ids",
    "-w new --rotate-size=100": "--rotate-size 100: from 10kB; a number without a unit is bytes",
    "-w new --rotate-time=0s": "--rotate-time 0s is too short; write 30s, 5m or 1h",
}
"""Options of a run that follows a capture, and what is said of them."""

BATCH = {
    "--output=": "--output is empty; name a folder for the tables",
    "--output= ": "--output is empty; name a folder for the tables",
}


@pytest.mark.parametrize(("options", "said"), LIVE.items())
def test_options_of_live(options: str, said: str, tmp_path: Path) -> None:
    """An empty value is none, though options have defaults; nothing was begun."""
    given = [one if one != "new" else tmp_path / one for one in options.split(" ")]
    result = run("live", CAPTURE, "--duration", "1s", *given)
    assert result == (2, "", f"amqpsniff: {said}\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("options", "said"), BATCH.items())
def test_options_of_batch(options: str, said: str) -> None:
    words = options.replace(" --", "\t--").split("\t")
    assert run("batch", CAPTURE, *words) == (2, "", f"amqpsniff: {said}\n")


def test_a_file_is_written_over_only_by_a_run_that_begins(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    kept = tmp_path / "kept.pcapng"
    kept.write_text("before")
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f":{other.getsockname()[1]}"
        result = run("live", CAPTURE, "-w", kept, "--metrics", address, "--duration", "1s")
    assert result.code == 2
    assert result.err.endswith("cannot listen there: Address already in use\n")
    assert kept.read_text() == "before"


@pytest.mark.parametrize("command", ["connections", "topology", "report -o -"])
def test_a_connection_without_a_name(command: str) -> None:
    """Every name begins with it: all that there is would be shown."""
    name, *more = command.split()
    code, out, err = run(name, CAPTURE, "--connection", "", *more)
    assert (code, out) == (2, "")
    assert err == "amqpsniff: --connection is empty; `amqpsniff connections` lists their ids\n"


def test_a_parameter_is_an_option_on_the_command_line() -> None:
    """The library names its own parameters."""
    with pytest.raises(UsageError) as refused:
        amqpsniff.open(CAPTURE).timeline(from_="+2s", to="+1s")
    assert str(refused.value) == "`to` +1s is not after `from_` +2s; nothing lies between them"
    err = run("inspect", CAPTURE, "--from", "+2s", "--to", "+1s").err
    assert err == "amqpsniff: --to +1s is not after --from +2s; nothing lies between them\n"
    assert run("trace", CAPTURE).err.startswith(
        "amqpsniff: which message? give --message-id, --correlation-id, "
    )
    (said,) = run("messages", CAPTURE, "--where", "x = 1").err.splitlines()
    assert said.startswith("amqpsniff: --where: no column `x`")


def test_why_a_run_failed_is_said_quietly_too() -> None:
    code, _, err = run("summary", "-q", CAPTURE, "README.md")
    assert code == 3
    assert err.startswith("amqpsniff: error: README.md: not a capture: ")
    assert err.count("\n") == 1
    assert run("diagnose", "-q", CAPTURE, "README.md").err == ""  # it is among the findings
    for form in ("text", "ndjson"):  # reads twice, says it once
        again = run("follow", CAPTURE, "README.md", "--format", form)
        assert (again.code, again.err) == (3, err)
