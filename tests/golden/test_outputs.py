"""What the commands write for programs is what they wrote when it was reviewed."""

import shlex

import pytest

from amqpsniff.cli.commands import COMMANDS
from tests.golden import outputs
from tests.thorough import THOROUGH

ELSEWHERE = {
    "extcap": "reads no capture",
    "live": "tests/live",
    "batch": "tests/archive, tests/spark",
    "verify": "tests/differential",
    "sanitize": "tests/sanitize",
    "cut": "tests/wireshark",
    "annotate": "tests/wireshark",
}
"""Commands that write no rows, or rows that another program has a part in, with their tests."""


@pytest.mark.parametrize(("at", "kind"), list(enumerate(outputs.KINDS)), ids=str)
def test_outputs(at: int, kind: str) -> None:
    """Of every fourth run, unless all are tried: each capture with others of the commands."""
    lines = outputs.KINDS[kind]()
    kept = outputs.kept(kind)
    assert list(kept) == [shlex.join(line) for line in lines]
    found = outputs.outputs(lines if THOROUGH else lines[at % 4 :: 4])
    differences = "\n".join(outputs.differences({line: kept[line] for line in found}, found))
    if differences:
        pytest.fail(differences, pytrace=False)


def test_every_command_is_kept() -> None:
    lines = [line for kind in outputs.KINDS for line in outputs.kept(kind)]
    assert {line.split()[0] for line in lines} == set(COMMANDS) - ELSEWHERE.keys()


def test_kept_outputs_are_few() -> None:
    """They are small enough to keep."""
    paths = list(outputs.OUTPUTS.iterdir())
    assert {path.name for path in paths} == {f"{kind}.txt.xz" for kind in outputs.KINDS}
    assert sum(path.stat().st_size for path in paths) < 2_000_000
