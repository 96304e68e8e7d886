"""Credentials are in no row and no finding unless they are asked for."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from amqpsniff.spec import METHODS
from tests.decode.feeding import CLIENT, Decoded, decode, run_file
from tests.decode.script import frames, method, sent
from tests.decode.strategies import parsed
from tests.encoder import Field

SECRET = b"s3cret-Pw"
PLAIN = b"\0app\0" + SECRET
AMQPLAIN = b"\5LOGINS\0\0\0\3app" + b"\x08PASSWORDS\0\0\0\x09" + SECRET


def everything(done: Decoded) -> str:
    """All that anybody gets to see."""
    return repr(done.findings) + repr(done.frames()) + repr(done.messages())


def test_the_rows_say_what_is_secret() -> None:
    found = {(row.name, each.name) for row in METHODS for each in row.arguments if each.secret}
    assert found >= {
        ("connection.start-ok", "response"),
        ("connection.secure-ok", "response"),
        ("connection.update-secret", "new_secret"),
    }


@pytest.mark.parametrize("response", [PLAIN, AMQPLAIN, SECRET, b""])
@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("connection.start-ok", "response"),
        ("connection.secure-ok", "response"),
        ("connection.update-secret", "new_secret"),
    ],
)
def test_secret_arguments(name: str, argument: str, response: bytes) -> None:
    octets = method(name, 0, **{argument: response})
    (row,) = frames(sent(octets))
    assert parsed(row["arguments"])[argument] == "[redacted]"
    (row,) = frames(sent(octets, show_secrets=True))
    assert parsed(row["arguments"])[argument] == response.decode()


@pytest.mark.parametrize("cut", range(1, 60, 3))
def test_cut_and_broken_credentials(cut: int) -> None:
    """Neither a frame that ends too early nor one with the wrong end gives them away."""
    octets = method(
        "connection.start-ok", 0, mechanism=b"PLAIN", response=PLAIN, locale=b"en_US",
        client_properties=[(b"product", Field("S", b"x"))],
    )  # fmt: skip
    payload = octets[7:-1]
    kept = payload[:-cut] if cut < len(payload) - 4 else payload
    short = octets[:3] + len(kept).to_bytes(4, "big") + kept
    for broken in (short + b"\xce", short + b"\0", octets[:-cut]):
        text = everything(sent(broken + b"\x08\0\0\0\0\0\0\xce" * 4))
        for part in (SECRET, SECRET[:5]):
            assert part.decode() not in text
            assert base64.b64encode(part).decode()[:6] not in text


@pytest.mark.parametrize("name", ["pika_mix", "bunny", "kombu", "php_churn", "amqplib08", "node"])
def test_captures(own_captures: Path, name: str) -> None:
    """The users' passwords are known; they are in no row."""
    path = own_captures / f"{name}.pcap"
    assert SECRET.decode() not in everything(run_file(path))
    assert SECRET.decode() in everything(run_file(path, show_secrets=True))


def test_client_alone() -> None:
    """A login whose connection is not seen from its begin."""
    octets = method("connection.start-ok", 0, mechanism=b"PLAIN", response=PLAIN, locale=b"en_US")
    assert SECRET.decode() not in everything(decode(octets * 3, CLIENT, syn_seen=False))
