"""Damaged logins: no piece of their secret is in anything that is made of the bytes."""

from __future__ import annotations

import base64
import os
from itertools import islice

import pytest

from amqpsniff.decode.redaction import secret_positions
from amqpsniff.sanitize.frames import Cleaner
from amqpsniff.sanitize.policy import SanitizeOptions
from tests.decode.feeding import Decoded, Feeder, Talk
from tests.decode.logins import FRAMES, SECRET, Case, cases, shown
from tests.decode.script import publish, sent
from tests.encoder import header


def dumped(case: Case, done: Decoded) -> str:
    """The bytes of the client's frames, but those that are masked."""
    there = {
        offset + at: octet for offset, piece in case.client() for at, octet in enumerate(piece)
    }
    made = []
    for row in done.frames():
        if row["client"] != "10.0.0.1:40000" or row["sender"] == "server":
            continue
        begin = row["stream_offset"]
        end = begin + row["size"] + (8 if row["frame_type"] != "protocol-header" else 0)
        missing = frozenset(at - begin for at in range(begin, end) if at not in there)
        octets = bytes(there.get(at, 0) for at in range(begin, end))
        hidden = secret_positions(
            row["frame_type"], row["channel"], row["method"], row["sender"], octets, missing
        )
        seen = (octet for at, octet in enumerate(octets) if at not in hidden and at not in missing)
        made.append(f"{row}\n{bytes(seen).hex()}")
    return "\n".join(made)


EVERY = int(os.environ.get("AMQPSNIFF_EVERY_LOGIN", "6"))
"""Of so many damaged logins one is decoded; 1 decodes all 2,400."""


@pytest.mark.parametrize("kind", FRAMES)
def test_nothing_of_a_damaged_login_is_shown(kind: str) -> None:
    """Neither rows, findings nor hex dumps have it, nor the bytes of a capture made safe."""
    cleaner = Cleaner(SanitizeOptions())
    count = 0
    for case in islice(cases(), 0, None, EVERY):
        if not case.name.startswith(kind):
            continue
        count += 1
        feeder = Feeder(Talk(case.begun), claims=True, bodies=True)
        for direction, piece in case.pieces:
            if isinstance(piece, int):
                feeder.gap(direction, piece)
            else:
                feeder.data(direction, piece)
        done = feeder.finish()
        claims = feeder.decoder.take_claims()
        safe = b"".join(cleaner.clean(claim) for claim in claims)
        text = f"{done.findings}{done.messages()}{dumped(case, done)}{safe.hex()}{safe!r}"
        assert shown(text) is None, case.name
    assert count > 200 // EVERY


def test_what_is_looked_for_is_found() -> None:
    """A secret in any form in which it could be shown."""
    for at in range(3):
        octets = b"x" * at + SECRET
        assert shown(base64.b64encode(octets).decode())
        for text in (octets.decode(), octets.hex(), octets.hex(" "), ",".join(map(str, octets))):
            assert shown(text[6:])


def test_a_body_on_channel_zero_is_not_given_out() -> None:
    """There it may be a login whose frame has a wrong type."""
    for channel, kept in ((0, None), (1, FRAMES["plain"][7:-1])):
        message = publish(channel) + header(channel, 60, len(FRAMES["plain"]) - 8)
        login = b"\x03" + channel.to_bytes(2, "big") + FRAMES["plain"][3:]
        (row,) = sent(message + login, bodies=True).messages()
        assert row["body"] == kept
