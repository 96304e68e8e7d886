"""The types of the API, as mypy sees them from a program that imports it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import amqpsniff
from tests.api import consumer
from tests.conftest import REPO, SAMPLES
from tests.house import packaging
from tests.waiting import PATIENCE

CONSUMER = Path(__file__).parent / "consumer.py"

WRONG = """
import amqpsniff

amqpsniff.open(3)
amqpsniff.open("a.pcap", port=5672)
number: int = amqpsniff.open("a.pcap").messages()
for frame in amqpsniff.Engine().frames():
    frame.channel.upper()
    reveal_type(frame.arguments)
"""
"""What a type checker must find; the numbers of its lines are below."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as it is installed, made of links."""
    site = tmp_path_factory.mktemp("site")
    (site / "amqpsniff").mkdir()
    for folder, package in packaging.INSTALLED_AS.items():
        if "." in package:
            (site / package.replace(".", "/")).symlink_to(REPO / folder)
            continue
        for path in (REPO / folder).iterdir():
            (site / package / path.name).symlink_to(path)
    return site


def _mypy(site: Path, program: Path) -> str:
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-pretty"]
    done = subprocess.run(
        [*command, "--config-file=", "--cache-dir", str(site / ".cache"), str(program)],
        cwd=site, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_package_says_that_it_is_typed() -> None:
    assert Path(amqpsniff.__file__).with_name("py.typed").is_file()


def test_program_is_sound(site: Path) -> None:
    assert _mypy(site, CONSUMER) == "Success: no issues found in 1 source file\n"


def test_mistakes_are_found(site: Path, tmp_path: Path) -> None:
    program = tmp_path / "wrong.py"
    program.write_text(WRONG)
    said = _mypy(site, program)
    for line, what in ((4, "arg-type"), (5, "call-arg"), (6, "assignment"), (8, "attr-defined")):
        assert any(one.startswith(f"{program}:{line}:") and what in one for one in said.split("\n"))
    assert 'Revealed type is "dict[str, Any] | None"' in said


def test_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert consumer.main(SAMPLES / "pika_mix.pcap") == 1
    assert "vhost-refused" in capsys.readouterr().out
