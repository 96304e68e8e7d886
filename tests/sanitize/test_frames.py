"""Frames are cleaned by the rows of the policy; what no row names is filler."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpsniff.decode import claims
from amqpsniff.decode.claims import Claim
from amqpsniff.decode.decoder import Decoder
from amqpsniff.findings import FindingLog
from amqpsniff.options import Options
from amqpsniff.plan import Plan
from amqpsniff.sanitize import SanitizeOptions, policy
from amqpsniff.sanitize.frames import Cleaner
from amqpsniff.spec import METHODS, properties_for
from tests import encoder
from tests.decode.feeding import Talk
from tests.decode.strategies import tables
from tests.thorough import rounds

STRANGE = SanitizeOptions(names=True)


def claim(payload: bytes, method: int = -1, kind: int = claims.METHOD, exact: bool = True) -> Claim:
    return Claim(0, 0, kind, 0, 1, len(payload), payload, method, exact)


def cleaned(payload: bytes, method: int, options: SanitizeOptions | None = None) -> bytes:
    """The payload as it stands in the safe capture, filler included."""
    made = Cleaner(options or SanitizeOptions()).clean(claim(payload, method))
    assert made[:7] == struct.pack(">BHI", 1, 1, len(payload))
    return made[7:].ljust(len(payload), b"x")


def test_every_text_of_the_protocol_has_a_rule_or_is_filler() -> None:
    """Names in the policy are names of arguments and properties."""
    texts = {a.name for m in METHODS for a in m.arguments if a.type in "sSFC"}
    assert {rule.name for rule in policy.METHOD_ARGUMENTS} - texts <= {"filter"}
    assert {rule.name for rule in policy.PROPERTIES} == {
        row.name for row in properties_for(None, 60)
    }


def test_every_secret_is_replaced() -> None:
    for method in METHODS:
        for argument in method.arguments:
            if argument.secret:
                action = policy.actions(policy.METHOD_ARGUMENTS).get(argument.name.encode())
                assert action in (None, policy.LOGIN), method.name


class _Numbered(Talk):
    """A conversation with the number that claims give."""

    serial = 0


def claimed(frame: bytes, cut: int = 0) -> Claim:
    """What the decoder says of a client's first method, of which the last bytes are missing."""
    decoder = Decoder(FindingLog(), Plan(claims=True), Options())
    decoder.open(0, _Numbered())
    decoder.data(0, 0, encoder.PROTOCOL_HEADERS["0-9-1"] + frame[: len(frame) - cut])
    decoder.gap(0, 0, cut)
    (found,) = (each for each in decoder.take_claims() if each.kind == claims.METHOD)
    return found


@pytest.mark.parametrize("cut", [0, 4])
@pytest.mark.parametrize(
    ("place", "more"), [(7, 4), (7, 9), (7, 23), (8, -3), (8, 4), (8, 9), (8, 23)]
)
def test_a_secret_beside_a_wrong_length(place: int, more: int, cut: int) -> None:
    """It may stand in a text that is kept, or be the name of a field."""
    (method,) = (each for each in METHODS if each.name == "connection.start-ok")
    values = {"mechanism": b"PLAIN", "response": b"\0jane\0s3cret"}
    values |= {"client_properties": [], "locale": b"en_US"}
    frame = bytearray(encoder.method(method, values, 0))
    frame[7 + place] += more
    made = Cleaner(SanitizeOptions()).clean(claimed(bytes(frame), cut))[7:]
    assert made == frame[7:11]


def test_a_method_of_the_login_that_nobody_knows() -> None:
    frame = encoder.frame(1, 0, b"\0\x0a\0\x63s3cret")
    assert Cleaner(SanitizeOptions()).clean(claimed(frame)) == frame[:11]


TEXTS = {"s": b"secret", "S": b"a secret", "C": (0, b"a secret"), "T": 1_700_000_000}
NUMBERS = {"b": True, "o": 7, "h": 300, "l": 70_000, "L": 2**40}


@pytest.mark.parametrize("options", [SanitizeOptions(), STRANGE])
def test_methods(options: SanitizeOptions) -> None:
    """Numbers stay, texts have their length, and a second time changes nothing."""
    kinds = TEXTS | NUMBERS | {"F": [(b"key", encoder.Field("S", b"secret"))]}
    actions = policy.actions(policy.METHOD_ARGUMENTS)
    for index, method in enumerate(METHODS):
        values = {argument.name: kinds[argument.type] for argument in method.arguments}
        payload = encoder.method_payload(method, values)
        made = cleaned(payload, index, options)
        assert len(made) == len(payload), method
        assert cleaned(made, index, options) == made, method
        shown = {actions.get(argument.name.encode()) for argument in method.arguments}
        if options.names or policy.NAME not in shown:
            assert (b"secret" in made) == (policy.KEEP in shown), method


@settings(max_examples=rounds(200))
@given(st.integers(-1, len(METHODS) - 1), st.binary(max_size=200), st.booleans())
def test_any_bytes(method: int, payload: bytes, names: bool) -> None:
    """Nothing raises; what comes out is no longer than what went in."""
    cleaner = Cleaner(SanitizeOptions(names=names))
    for kind in (*range(12), claims.END, claims.PROTOCOL_HEADER, claims.PROXY, claims.UNFINISHED):
        made = cleaner.clean(claim(payload, method, kind, exact=False))
        if kind < claims.PROTOCOL_HEADER:
            assert len(made) <= 7 + len(payload)


@settings(max_examples=rounds(100))
@given(tables("rabbitmq"))
def test_any_table(table: list[tuple[bytes, encoder.Field]]) -> None:
    """Lengths stay, so it can be read, and cleaning what is clean changes nothing."""
    payload = struct.pack(">HHQH", 60, 0, 0, 0x2000) + encoder.table(table)
    cleaner = Cleaner(SanitizeOptions())
    made = cleaner.clean(claim(payload, -1, claims.HEADER))[7:]
    assert len(made) == len(payload)
    assert cleaner.clean(claim(made, -1, claims.HEADER))[7:] == made


def test_what_is_kept_in_tables() -> None:
    """Numbers under names of brokers, words of brokers; not what stands there and is neither."""
    table = [
        (b"x-message-ttl", encoder.Field("I", 60000)),
        (b"x-max-length", encoder.Field("S", b"secret")),
        (b"x-queue-type", encoder.Field("S", b"quorum")),
        (b"x-dead-letter-exchange", encoder.Field("S", b"dead")),
        (b"x-mine", encoder.Field("l", 7)),
        (b"nested", encoder.Field("F", [(b"x-message-ttl", encoder.Field("I", 5))])),
    ]
    declare = next(m for m in METHODS if m.name == "queue.declare")
    values = {argument.name: b"" if argument.type == "s" else 0 for argument in declare.arguments}
    payload = encoder.method_payload(declare, values | {"arguments": table})
    kept = encoder.method_payload(
        declare,
        values
        | {
            "arguments": [
                table[0],
                (b"x-max-length", encoder.Field("S", b"xxxxxx")),
                *table[2:4],
                (b"x-mine", encoder.Field("l", 0)),
                (b"nested", encoder.Field("F", [(b"x-message-ttl", encoder.Field("I", 0))])),
            ]
        },
    )
    assert cleaned(payload, declare.index) == kept
