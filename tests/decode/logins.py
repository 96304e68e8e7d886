"""Logins with every kind of damage, and where in a text their secret shows.

`cases` are conversations in which one frame that carries a secret is damaged: a hole at any byte,
a beginning that is missing, wrong bytes. `shown` looks for pieces of the secret in what came out.
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.decode.feeding import CLIENT, SERVER
from tests.decode.script import OPENING, method, publish
from tests.encoder import Field, body, header

SECRET = b"S3cr3tPa55w0rdXYZ!"
PIECE = 4
"""Bytes of the secret that are too many to be shown together."""

PLAIN = b"\0user\0" + SECRET
AMQPLAIN = b"\5LOGINS\0\0\0\4user\x08PASSWORDS" + len(SECRET).to_bytes(4, "big") + SECRET
PROPERTIES = [(b"product", Field("S", b"x")), (b"connection_name", Field("S", b"n"))]


def _start_ok(mechanism: bytes, response: bytes) -> bytes:
    return method(
        "connection.start-ok", 0, mechanism=mechanism, response=response, locale=b"en_US",
        client_properties=PROPERTIES,
    )  # fmt: skip


FRAMES = {
    "plain": _start_ok(b"PLAIN", PLAIN),
    "amqplain": _start_ok(b"AMQPLAIN", AMQPLAIN),
    "other": _start_ok(b"X-TOKEN", SECRET),
    "secure": method("connection.secure-ok", 0, response=SECRET),
    "update": method("connection.update-secret", 0, new_secret=SECRET, reason=b"because"),
}
"""Frames that carry the secret, by what they do."""

START = method(
    "connection.start", 0, version_minor=9, mechanisms=b"PLAIN AMQPLAIN", locales=b"en_US",
    server_properties=[(b"product", Field("S", b"RabbitMQ"))],
)  # fmt: skip
TUNE = method("connection.tune", 0, channel_max=2047, frame_max=131072, heartbeat=60)
AGREED = method("connection.tune-ok", 0, channel_max=2047, frame_max=131072, heartbeat=60)
OPENED = AGREED + method("connection.open", 0, virtual_host=b"/") + method("channel.open", 1)
CONTENT = publish() + header(1, 60, 3) + body(1, b"abc")
CLOSE = method("connection.close", 0, reply_code=200, reply_text=b"bye")

Piece = tuple[int, bytes | int]
"""(direction, bytes), or (direction, how many bytes are missing)."""


class Case(NamedTuple):
    """One conversation; `begun`: its first bytes are in the capture."""

    name: str
    pieces: list[Piece]
    begun: bool = True

    def client(self) -> list[tuple[int, bytes]]:
        """What was captured of the client's half-stream, by stream offset."""
        found, offset = [], 0
        for direction, piece in self.pieces:
            if direction == CLIENT:
                if not isinstance(piece, int):
                    found.append((offset, piece))
                offset += piece if isinstance(piece, int) else len(piece)
        return found


def _case(name: str, kind: str, damaged: list[bytes | int]) -> Case:
    """A whole conversation around a damaged frame."""
    pieces: list[Piece] = [(CLIENT, OPENING), (SERVER, START)]
    late = kind == "update"
    if kind == "secure":
        pieces.append((CLIENT, _start_ok(b"X-TOKEN", b"")))
        pieces.append((SERVER, method("connection.secure", 0, challenge=b"who?")))
    if late:
        opened = _start_ok(b"PLAIN", b"\0user\0x") + OPENED
        ok = method("connection.open-ok", 0) + method("channel.open-ok", 1)
        pieces += [(CLIENT, opened), (SERVER, TUNE + ok)]
    pieces += [(CLIENT, piece) for piece in damaged if piece]
    pieces += [(SERVER, TUNE)] if not late else []
    pieces += [(CLIENT, b"" if late else OPENED), (CLIENT, CONTENT * 2 + CLOSE)]
    pieces.append((SERVER, method("connection.close-ok", 0)))
    return Case(f"{kind}-{name}", pieces)


def _holes(kind: str, frame: bytes, lengths: tuple[int, ...]) -> Iterator[Case]:
    for at in range(len(frame)):
        for length in sorted({min(length, len(frame) - at) for length in lengths}):
            rest = frame[at + length :]
            yield _case(f"hole-{at}-{length}", kind, [frame[:at], length, rest])
        yield _case(f"hole-{at}-on", kind, [frame[:at], len(frame) - at + 9])


def _changed(kind: str, frame: bytes) -> Iterator[Case]:
    """One byte that is wrong: type, channel, size, class, method or end; and a hole behind it."""
    wrong = {0: (0, 2, 3, 4, 8, 9, 65), 2: (1, 5), 7: (1,), 8: (0, 11, 60, 120, 140)}
    wrong |= {6: (frame[6] - 20, frame[6] - 1, frame[6] + 1, frame[6] + 20, 255), 9: (1,)}
    wrong |= {10: (10, 20, 31, 40, 50, 60, 71, 99), len(frame) - 1: (0, 1)}
    for place, octets in wrong.items():
        for octet in octets:
            made = frame[:place] + bytes([octet & 255]) + frame[place + 1 :]
            yield _case(f"byte-{place}-{octet}", kind, [made])
            for at in (9, len(made) - len(SECRET)):
                pieces: list[bytes | int] = [made[:at], 1, made[at + 1 :]]
                yield _case(f"byte-{place}-{octet}-hole-{at}", kind, pieces)
    for octet in (0, 2, 3, 4, 8, 9, 65):
        for channel in (1, 5, 256):
            made = bytes([octet]) + channel.to_bytes(2, "big") + frame[3:]
            yield _case(f"type-{octet}-channel-{channel}", kind, [made])


def _late(kind: str, frame: bytes) -> Iterator[Case]:
    """The capture begins inside the frame, whichever side is heard first."""
    for at in range(len(frame)):
        rest = frame[at:] + AGREED + OPENED + CONTENT + CLOSE
        yield Case(f"{kind}-late-{at}", [(CLIENT, rest), (SERVER, TUNE * 2)], begun=False)


def cases(lengths: tuple[int, ...] = (1, 4, 30)) -> Iterator[Case]:
    """Every damage of every frame; holes of these lengths begin at each byte."""
    for kind, frame in FRAMES.items():
        yield _case("whole", kind, [frame])
        yield from _holes(kind, frame, lengths)
        yield from _changed(kind, frame)
        yield from _late(kind, frame)


_PARTS = [SECRET[at : at + PIECE] for at in range(len(SECRET) - PIECE + 1)]
_WORDS = [
    form
    for part in _PARTS
    for form in (
        part.decode().lower(), part.hex(), part.hex(" "), part.hex(":"), ",".join(map(str, part)),
        str(int.from_bytes(part, "big")),
    )
] + [str(int.from_bytes(SECRET[at : at + 8], "big")) for at in range(len(SECRET) - 7)]  # fmt: skip
_PART = re.compile(b"|".join(map(re.escape, _PARTS)))
_HEX = re.compile(r"\b[0-9a-f]{6,}\b")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{6,}")


def shown(text: str) -> str | None:
    """The first piece of the secret that a text shows: clear, as numbers, in hex or base64."""
    lower = text.lower()
    for word in _WORDS:  # one after the other: an expression of all of them is looked for slowly
        if word in lower:
            return word
    for token in set(_BASE64.findall(_HEX.sub(" ", text))):
        part = _in_base64(token)
        if part is not None:
            return f"{part!r} in base64 in {token}"
    return None


@functools.cache  # the script of a report has the same words in every one
def _in_base64(token: str) -> bytes | None:
    """The piece of the secret that a word has in it, wherever its base64 begins."""
    for begin in range(4):
        octets = token[begin:]
        octets = octets[: len(octets) // 4 * 4]
        decoded = base64.b64decode(octets, b"-_" if "-" in octets or "_" in octets else None)
        found = _PART.search(decoded)
        if found is not None:
            return found[0]
    return None
