"""What tshark sees is what we see, frame by frame; where the two differ it is known why.

How often each known disagreement is met in each capture is written down here: one that is gone
fails too, so that the rows of `amqpsniff.opinion.known` stay true.
"""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.capture import tshark
from amqpsniff.opinion import KNOWN, Comparison
from tests.cli.running import write_capture
from tests.conftest import CAPTURES, SHARED, own_captures
from tests.tcp.wire import Talk
from tests.thorough import some

pytest.importorskip("pyshark")
pytestmark = [
    pytest.mark.tshark,
    pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark"),
]

COUNTED_WITH = (4, 0)
"""Another tshark may have other disagreements, but none that is unknown."""

KNOWN_IN: dict[str, dict[str, int]] = {
    "amqplib08.pcap": {
        "protocol-header": 1, "open-ok-of-0-8": 1, "consume-of-0-8": 1, "close-of-0-8": 7,
    },
    "pika_mix.pcap": {"protocol-header": 4, "unbind-ok-51": 1},
    "v08_v09.pcap": {
        "protocol-header": 18, "open-ok-of-0-8": 5, "consume-of-0-8": 1, "confirm-in-0-8": 3,
        "close-of-0-8": 19,
    },
    "violations.pcap": {
        "protocol-header": 178, "bit-past-the-end": 1, "class-unknown": 1, "update-secret": 4,
        "credit": 4, "table-tags": 10, "tags-of-nobody": 28, "negative-decimal": 3,
    },
    "zerowindow.pcap": {"protocol-header": 2, "snap-length": 601},
    "lost.pcap": {"protocol-header": 1, "lost-packets": 20},
    "snapped.pcap": {"protocol-header": 4, "snap-length": 487},
    "midstream.pcap": {},
    "reuse_-5000_1.pcap": {"protocol-header": 2, "other-numbers": 13},
    "reuse_-100000_1.pcap": {"protocol-header": 2, "other-numbers": 13},
    "tcp_syn_challenge.pcap": {"protocol-header": 1, "other-numbers": 61},
    "mid_deliver.pcap": {"joined-in-a-frame": 27},
    "mid_startok.pcap": {"protocol-header": 1, "joined-in-a-frame": 20},
    "p_tls.pcap": {"protocol-header": 1, "not-amqp": 1},
    "tables.pcap": {
        "protocol-header": 1, "table-tags": 21, "tags-of-nobody": 2, "timestamp": 2,
        "cut-header": 4,
    },
    "amqp10.pcap": {},
    "websocket.pcap.gz": {"websocket": 72},
    "rabbit_outcomes.pcap": {"message-sections": 74},
    "qpid_router.pcap.gz": {"message-sections": 2},
    "violations_proton.pcap": {
        "protocol-header": 2, "message-sections": 1, "long-descriptor": 2, "data-offset": 1,
        "type-of-1-0": 1,
    },
    "violations_rhea.pcap": {
        "protocol-header": 2, "message-sections": 1, "long-descriptor": 2, "data-offset": 1,
        "type-of-1-0": 1,
    },
    "adverb-01-drain-creates-queue-in-qpidd.pcapng": {},
    "adverb-02-hello-world-to-qpidd.pcapng": {},
    "helloworld.pcapng": {},
    "amqp_type_test.boolean.pcapng": {"lost-packets": 4},
    "AMQP.pcap": {},
}  # fmt: skip
"""Captures with more than the disagreement about each connection's protocol header; tshark shows
those of AMQP 1.0."""


OPENED = {
    "TLSv1_3.pcap": {"tls_keylog": "TLSv1_3.keys"},
    "tls.pcap": {"tls_keylog": "tls.keys"},
    "tls13.pcap": {"tls_keylog": "tls13.keys"},
    "tls12_rsa.pcap": {"tls_key": "tls12_rsa.key"},
}
"""What opens captures of TLS: files beside them."""


OF_1_0 = [
    *sorted((CAPTURES / "amqp10").glob("*.pcap")),
    *(CAPTURES / "amqp10" / f"{name}.pcap.gz" for name in ("websocket", "azure_js", "qpid_router")),
]
"""Captures of AMQP 1.0."""


def opened(path: Path) -> amqpsniff.Capture:
    """A capture with its keys."""
    keys = {option: path.parent / name for option, name in OPENED.get(path.name, {}).items()}
    return amqpsniff.open(path, **keys)  # type: ignore[arg-type]


def paths() -> list[Path]:
    """Captures of ours and of others: those that first show a known difference, and some others."""
    others = [
        path
        for path in sorted((SHARED / "captures" / "public").glob("*/*"))
        if path.suffix in (".pcap", ".pcapng") and path.parent.name != "formats"
    ]
    hostile = [
        path
        for name in (
            "tcp_*.pcap",
            "sem2_spoofed_rst.pcap",
            "reuse_*.pcap",
            "mid_*.pcap",
            "tables.pcap",
            "../incidents/p_tls.pcap",
        )
        for path in sorted((CAPTURES / "hostile").glob(name))
    ]
    every = [*own_captures().values(), *OF_1_0, *others, *hostile]
    showing: list[Path] = []
    met: set[str] = set()
    for path in every:
        differences = KNOWN_IN.get(path.name, {}).keys()
        if differences - met:
            showing.append(path)
            met |= differences
    return [*showing, *some([path for path in every if path not in showing])]


@cache
def program() -> tshark.Tshark:
    """The one that is installed."""
    return tshark.find()


@cache
def compared(path: Path) -> Comparison:
    """A comparison that is over; the differences that nothing explains are shown by the assert."""
    comparison = Comparison(opened(path).passes, program())
    unknown = [each.row() for each in comparison if each.known is None]
    assert unknown[:5] == []
    return comparison


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.name)
def test_capture(path: Path) -> None:
    comparison = compared(path)
    assert comparison.unknown == 0
    if program().version[:2] != COUNTED_WITH:
        return
    if path.name in KNOWN_IN:
        assert dict(comparison.known) == KNOWN_IN[path.name]
    else:
        rows = opened(path).table("frames", columns=("frame_type",)).to_pylist()
        headers = sum(row["frame_type"] == "protocol-header" for row in rows)
        if path.parent.name == "amqp10":
            headers = 0
        assert dict(comparison.known) == ({"protocol-header": headers} if headers else {})
        assert comparison.compared == comparison.equal == comparison.theirs
        assert comparison.compared or path.name not in OPENED


NEWER_ROOTS = os.environ.get("AMQPSNIFF_BROKER_ROOTS", "").split(os.pathsep)
NEWER = next((root for root in NEWER_ROOTS if root and Path(root, "usr/bin/tshark").exists()), None)
NEWER_WITH = (4, 6)

KNOWN_NEWER: dict[str, dict[str, int]] = {
    "rabbit_outcomes.pcap": {},
    "pika_mix.pcap": {"protocol-header": 4, "array-values": 432, "unbind-ok-51": 1},
    "tables.pcap": {
        "protocol-header": 1,
        "table-tags": 21,
        "tags-of-nobody": 2,
        "timestamp": 2,
        "cut-header": 6,
    },
}
"""Captures in which tshark 4.6 has other disagreements."""

WITH_TABLES = [own_captures()["pika_mix"], CAPTURES / "hostile" / "tables.pcap"]


@pytest.fixture(scope="session")
def newer(tmp_path_factory: pytest.TempPathFactory) -> tshark.Tshark:
    """A tshark of another system, on the libraries of that one."""
    if NEWER is None:
        pytest.skip("no tshark 4.6 (a folder with one in AMQPSNIFF_BROKER_ROOTS)")
    root = Path(NEWER)
    script = tmp_path_factory.mktemp("newer") / "tshark"
    libraries = ":".join(map(str, (root / "usr/lib").glob("*-linux-*")))
    loader = next((root / "usr").glob("lib*/*/ld-linux*.so*"))
    run = f"{loader} --library-path {libraries} {root}/usr/bin/tshark"
    script.write_text(f'#!/bin/sh\nexec {run} "$@"\n')
    script.chmod(0o755)
    return tshark.find(str(script))


@pytest.mark.parametrize("path", [*OF_1_0, *WITH_TABLES], ids=lambda path: path.name)
def test_newer(path: Path, newer: tshark.Tshark) -> None:
    """Captures of AMQP 1.0, and such with field tables, beside tshark 4.6."""
    comparison = Comparison(opened(path).passes, newer)
    assert [each.row() for each in comparison if each.known is None] == []
    if newer.version[:2] == NEWER_WITH:
        assert dict(comparison.known) == KNOWN_NEWER.get(path.name, KNOWN_IN.get(path.name, {}))
    assert comparison.compared or comparison.known


def test_0_10(tmp_path: Path) -> None:
    """A heartbeat, control 1/10, follows the protocol headers."""
    header = b"AMQP\1\1\0\x0a"
    talk = Talk().hands()
    talk.client(header)
    talk.server(header)
    talk.client(b"\x0f\0\0\x0e" + bytes(8) + b"\1\x0a")
    path = tmp_path / "heartbeat.pcap"
    write_capture(path, talk.packets)
    comparison = compared(path)
    assert set(comparison.known) == {"other-protocol"}
    assert comparison.unknown == 0


def test_every_known_disagreement_is_met() -> None:
    met = {name for counts in KNOWN_IN.values() for name in counts}
    met |= {name for counts in KNOWN_NEWER.values() for name in counts}
    assert met | {"other-protocol"} == {row.name for row in KNOWN}
