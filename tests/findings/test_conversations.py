"""Real conversations with a broker: one shows a code, one that is nearly the same does not."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.findings import KINDS
from tests.findings.edits import EDITS
from tests.findings.scripts import CONVERSATIONS

FOLDER = Path(__file__).parent / "captures"


@cache
def _codes(kind: str, code: str) -> set[str]:
    path = FOLDER / kind / f"{code}.pcap.gz"
    return {finding.code for finding in amqpsniff.open(str(path)).findings()}


@pytest.mark.parametrize("code", CONVERSATIONS)
def test_what_shows_a_code(code: str) -> None:
    assert code in _codes("shown", code)


@pytest.mark.parametrize("code", CONVERSATIONS)
def test_what_nearly_does(code: str) -> None:
    assert code not in _codes("nearly", code)


@pytest.mark.parametrize("kind", ["shown", "nearly"])
def test_every_capture_has_its_script(kind: str) -> None:
    names = {path.name.removesuffix(".pcap.gz") for path in (FOLDER / kind).iterdir()}
    assert names == set(CONVERSATIONS) <= set(KINDS)
    assert {code for code, _ in EDITS} <= names
