"""A difference that nothing explains is found, whatever it is about; rubbish is told in words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.capture import tshark
from amqpsniff.errors import TsharkError, UsageError
from amqpsniff.opinion import Comparison
from tests.conftest import OWN, SAMPLES
from tests.opinion.doctored import REAL, doctored, speaking

pytest.importorskip("pyshark")
real = pytest.mark.skipif(REAL is None, reason="no tshark")
pytestmark = pytest.mark.tshark
PACKETS = 70


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first packets of a capture are enough, and quick."""
    octets = (SAMPLES / "pika_mix.pcap").read_bytes()
    end = 24
    for _ in range(PACKETS):
        end += 16 + int.from_bytes(octets[end + 8 : end + 12], "little")
    path = tmp_path_factory.mktemp("begin") / "begin.pcap"
    path.write_bytes(octets[:end])
    return path


def unknown(path: str, capture: Path, **options: Any) -> list[dict[str, Any]]:
    """What a comparison with the tshark at `path` cannot explain."""
    comparison = Comparison(amqpsniff.open(capture, **options).passes, tshark.find(path))
    found = [each.row() for each in comparison if each.known is None]
    assert len(found) == comparison.unknown
    return found


def short(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("packet_number", "channel", "method", "what", "name"))


CHANGED = {
    "channel": (
        's/"Channel: 1" size="2" pos="67" show="1"/"Channel: 2" size="2" pos="67" show="2"/',
        (14, 1, "channel.open", "channel", None),
    ),
    "argument": (
        "s/6f72646572732e6575/6f72646572732e7573/",
        (24, 1, "queue.declare", "argument", "queue"),
    ),
    "method": (
        's/showname="Method: Open (10)"/showname="Method: Close (10)"/',
        (14, 1, "channel.open", "method", None),
    ),
    "table": (
        "s/(string): order-service-1/(string): order-service-2/",
        (8, 0, "connection.start-ok", "argument", "client_properties.connection_name"),
    ),
    "property": (
        r's/\(Delivery-Mode: 2".*\) value="02"/\1 value="01"/',
        (43, 1, None, "property", "delivery_mode"),
    ),
}
"""What `sed` does to what tshark says, and a difference that must be found then."""


@real
@pytest.mark.parametrize("what", CHANGED)
def test_what_differs_is_found(tmp_path: Path, what: str, capture: Path) -> None:
    expression, found = CHANGED[what]
    rows = unknown(doctored(tmp_path, expression), capture)
    assert found in [short(row) for row in rows]


@real
def test_frames_that_one_does_not_see(tmp_path: Path, capture: Path) -> None:
    """One packet of tshark's is called another, which has no frames for us."""
    rows = unknown(
        doctored(tmp_path, 's/name="num" pos="0" show="14"/name="num" show="12"/'), capture
    )
    assert [(row["packet_number"], row["what"]) for row in rows] == [
        (12, "only-theirs"), (14, "only-ours"),
    ]  # fmt: skip


@real
def test_a_small_window(capture: Path) -> None:
    """Packets are compared as soon as both are past them, with the same result."""
    whole = Comparison(amqpsniff.open(capture).passes)
    first = list(whole)
    again = Comparison(amqpsniff.open(capture).passes, window_packets=10)
    assert [each.row() for each in again] == [each.row() for each in first]
    assert (again.compared, again.equal, again.known) == (whole.compared, whole.equal, whole.known)


@real
def test_one_port(capture: Path) -> None:
    comparison = Comparison(amqpsniff.open(capture, ports=[5671]).passes)
    assert list(comparison) == []
    assert comparison.theirs == 0


@real
def test_secrets_are_compared_and_not_shown() -> None:
    capture = OWN / "violations.pcap"
    for show in (False, True):
        comparison = Comparison(amqpsniff.open(capture, show_secrets=show).passes)
        text = " ".join(str(each.row()) for each in comparison)
        assert ("newsecret" in text) is show


@real
def test_secrets_that_differ_are_not_shown(tmp_path: Path, capture: Path) -> None:
    path = doctored(tmp_path, "s/7333637265742d5077/5333435245542d5057/g")
    rows = unknown(path, capture)
    assert {short(row)[2:] for row in rows} == {("connection.start-ok", "argument", "response")}
    assert all(row["ours"] == row["tshark"] == "[redacted]" for row in rows)
    assert "s3cret-Pw" in str(unknown(path, capture, show_secrets=True))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'this is no XML'", "what tshark writes cannot be read: syntax error in line 1"),
        ("printf '<pdml><packet>'; exit 0", "what tshark writes cannot be read: no element found"),
        ("printf '\\000\\377\\000'", "what tshark writes cannot be read: "),
        ('printf \'<pdml><packet><field name="num" show="many"/></packet></pdml>\'',
         "a packet's number is 'many'"),
        ("echo '<pdml>'; kill -SEGV $$", "tshark was ended by signal 11"),
        ("echo 'tshark: no.' >&2; exit 1", "tshark refused: no."),
        ("yes '<field>' | head -c 40000", "what tshark writes cannot be read: "),
        ("printf '<pdml><packet><proto name=\"amqp\">'; yes '<field>' | head -n 5000",
         "fields nested without end"),
    ],
)  # fmt: skip
def test_rubbish(tmp_path: Path, script: str, words: str, capture: Path) -> None:
    with pytest.raises(TsharkError, match=re.escape(words)):
        unknown(speaking(tmp_path, script), capture)


def test_one_that_hangs(tmp_path: Path, capture: Path) -> None:
    program = tshark.find(speaking(tmp_path, "echo '<pdml>'; exec sleep 60"))
    comparison = Comparison(amqpsniff.open(capture).passes, program, silence_s=0.3)
    with pytest.raises(TsharkError, match="said and did nothing"):
        list(comparison)


@pytest.mark.parametrize("names", [["-"], ["samples/pika_mix.pcap", "samples/node.pcap"]])
def test_one_capture(names: list[str]) -> None:
    with pytest.raises(UsageError, match="single capture file"):
        Comparison(amqpsniff.open(*names).passes)
