"""AMQP 1.0 made safe: the shape of every frame and section stays, and what it says does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpsniff.decode import claims
from amqpsniff.decode.claims import Claim
from amqpsniff.sanitize import SanitizeOptions, amqp10, policy
from amqpsniff.sanitize.frames import Cleaner
from amqpsniff.sanitize.policy import filler
from amqpsniff.spec.amqp10 import COMPOSITES, SECRETS
from tests.amqp10 import (
    Described,
    Symbol,
    composite,
    error,
    frame,
    message,
    source,
    target,
    value,
)

TOKEN = b"SharedAccessSignature sr=orders&sig=0123456789"


def cleaned(*frames: bytes, size: int = 0, **options: object) -> bytes:
    """One direction of frames as it stands in the safe capture.

    With `size` a frame is claimed up to there, and its rest in pieces of that size.
    """
    cleaner = Cleaner(SanitizeOptions(**options))  # type: ignore[arg-type]
    stream = bytearray()
    for one in frames:
        cut = size or len(one)
        for at in range(0, len(one), cut):
            kind = claims.AMQP10_PAYLOAD if at else claims.AMQP10
            piece = one[at : at + cut]
            stream += cleaner.clean(Claim(0, 0, kind, len(stream), 0, len(piece), piece))
            for offset, octets in cleaner.amqp10.mended():
                stream[offset : offset + len(octets)] = octets
    assert len(stream) == sum(map(len, frames))
    return bytes(stream)


def same(*frames: bytes, gone: tuple[bytes, ...], **options: object) -> bytes:
    """Frames in which only the texts in `gone` become filler."""
    safe = cleaned(*frames, **options)
    expected = b"".join(frames)
    for one in gone:
        expected = expected.replace(one, filler(len(one)))
    assert safe == expected
    return safe


def test_every_secret_of_sasl_is_replaced() -> None:
    fields = policy.actions(policy.AMQP10_FIELDS)
    for name in SECRETS:
        assert fields.get(name.encode(), policy.FILL) in (policy.LOGIN, policy.FILL)
    names = {field.name for row in COMPOSITES for field in row.fields}
    assert {rule.name for rule in policy.AMQP10_FIELDS} <= names


def test_a_login() -> None:
    init = frame("sasl_init", mechanism=Symbol("PLAIN"), initial_response=b"\0jane\0s3cret")
    same(init, gone=(b"jane", b"s3cret"))
    scram = frame("sasl_init", mechanism=Symbol("SCRAM-SHA-256"), initial_response=b"n,,n=jane,r=1")
    response = frame("sasl_response", response=b"c=biws,p=0123")
    challenge = frame("sasl_challenge", challenge=b"r=123,s=QSX")
    outcome = frame("sasl_outcome", code=1, additional_data=b"v=98765")
    gone = (b"n,,n=jane,r=1", b"c=biws,p=0123", b"r=123,s=QSX", b"v=98765")
    same(scram, response, challenge, outcome, gone=gone)


def test_a_connection() -> None:
    opened = frame(
        "open",
        container_id="host-1",
        hostname="vhost:shop",
        idle_time_out=5000,
        offered_capabilities=[Symbol("ANONYMOUS-RELAY"), Symbol("secret-cap")],
        properties={Symbol("product"): "lab", Symbol("pid"): 4711},
    )
    safe = cleaned(opened)
    for kept in (b"vhost:shop", b"ANONYMOUS-RELAY", b"product", b"lab", b"pid"):
        assert kept in safe
    for gone in (b"host-1", b"secret-cap", (4711).to_bytes(4, "big")):
        assert gone not in safe
    names = cleaned(opened, names=True)
    assert b"vhost:nnn0" in names
    assert b"nnn0-" not in names


def test_a_link() -> None:
    attach = frame(
        "attach",
        name="orders-1",
        handle=3,
        role=True,
        source=source(
            "/queues/or%2Fders",
            filter={Symbol("sel"): Described("apache.org:selector-filter:string", "name = 'jane'")},
        ),
        target=target("amqps://broker.example.com/back"),
        unsettled={b"tag-1": composite("accepted")},
    )
    gone = (b"name = 'jane'", b"broker.example.com")
    same(attach, gone=gone)
    safe = cleaned(attach, names=True)
    for kept in (b"/queues/n0%2Fnnn", b"apache.org:selector-filter:string", b"sel"):
        assert kept in safe
    for one in (b"orders", b"tag-1", b"ders", b"back"):
        assert one not in safe


def test_an_error() -> None:
    said = error("amqp:not-found", "no queue 'jane' in vhost")
    same(frame("detach", handle=0, closed=True, error=said), gone=(b"jane",))
    own = error("com.example:bad-jane", "no")
    same(frame("close", error=own), gone=(b"com.example:bad-jane",))


def test_a_message() -> None:
    sent = frame(
        "transfer",
        handle=0,
        delivery_id=0,
        delivery_tag=b"7",
        payload=message(
            b"the secret body",
            header=composite("header", durable=True, ttl=9),
            properties=composite("properties", message_id="m-1", user_id=b"jane", subject="new"),
            message_annotations={Symbol("x-opt-sequence-number"): 77, Symbol("x-own"): "jane"},
            application_properties={"card": "4111", "count": 4111, "flag": True},
        ),
    )
    safe = cleaned(sent)
    expected = sent
    for one in (b"the secret body", b"jane", b"4111"):
        expected = expected.replace(one, filler(len(one)))
    expected = expected.replace(value(4111), value(0)).replace(b"flag\x41", b"flag\x42")
    assert safe == expected
    assert b"the secret body" in cleaned(sent, keep_bodies=True)
    assert cleaned(safe) == safe


def test_a_value_for_a_body() -> None:
    body = {"card": "4111", "items": [1, "two", {"deep": b"x1"}]}
    sent = frame("transfer", handle=0, delivery_id=0, payload=b"\0\x53\x77" + value(body))
    expected = {"xxxx": "xxxx", "xxxxx": [0, "xxx", {"xxxx": b"xx"}]}
    made = frame("transfer", handle=0, delivery_id=0, payload=b"\0\x53\x77" + value(expected))
    assert cleaned(sent) == made


@pytest.mark.parametrize("size", [1, 2, 7, 30])
@pytest.mark.parametrize("names", [False, True])
def test_sections_over_many_transfers(size: int, names: bool) -> None:
    whole = message(
        b"a body of some length",
        properties=composite("properties", message_id="m-1", user_id=b"jane", to="/queues/orders"),
        application_properties={"card": "4111", "more": "jane"},
    ) + b"\0\x53\x78" + value({Symbol("sum"): b"jane"})  # fmt: skip
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    split = [
        frame("transfer", handle=0, delivery_id=0, more=at < len(parts) - 1, payload=part)
        for at, part in enumerate(parts)
    ]
    other = frame("transfer", handle=1, delivery_id=1, payload=message(b"jane between"))
    safe = cleaned(*split[:2], other, *split[2:], names=names)
    at, payload = 0, b""
    for one in (*split[:2], other, *split[2:]):
        if one is not other:
            head = len(one) - len(parts[split.index(one)])
            assert safe[at : at + head] == one[:head]
            payload += safe[at + head : at + len(one)]
        at += len(one)
    (once,) = (frame("transfer", handle=0, delivery_id=0, payload=whole),)
    assert cleaned(once, names=names).endswith(payload)
    assert b"jane" not in safe


def test_a_large_transfer_in_pieces() -> None:
    sent = frame("transfer", handle=0, delivery_id=0, payload=message(b"jane" * 40) * 3)
    assert cleaned(sent, size=64) == cleaned(sent)
    assert b"jane" not in cleaned(sent, size=64)
    assert cleaned(sent, size=64, keep_bodies=True) == sent


@pytest.mark.parametrize("attached", [True, False])
def test_tokens_are_no_bodies_that_are_kept(attached: bool) -> None:
    attach = frame("attach", name="cbs", handle=0, role=False, target=target("$cbs"))
    sent = frame(
        "transfer",
        handle=0,
        delivery_id=0,
        payload=message(
            application_properties={"operation": "put-token", "name": "sb://ns/orders"},
        )[: -len(value(b"hello")) - 3] + b"\0\x53\x77" + value(TOKEN.decode()),
    )  # fmt: skip
    safe = cleaned(*([attach] if attached else []), sent, keep_bodies=True)
    assert TOKEN not in safe
    assert b"put-token" in safe
    assert b"sb://ns/orders" not in safe
    assert TOKEN in cleaned(sent.replace(b"put-token", b"get-token"), keep_bodies=True)


@pytest.mark.parametrize("path", ["/auth/tokens", "/queues/orders"])
def test_tokens_of_rabbitmq_are_no_bodies_that_are_kept(path: str) -> None:
    asked = composite("properties", message_id="1", to=path, subject="PUT", reply_to="$me")
    sent = frame(
        "transfer", handle=0, delivery_id=0, payload=message(TOKEN, properties=asked)
    )  # fmt: skip
    safe = cleaned(sent, keep_bodies=True)
    assert (TOKEN in safe) == (path != "/auth/tokens")


def test_links_beyond_the_limit() -> None:
    numbers = range(amqp10.MAX_LINKS + 1)
    links = [frame("attach", name="l", handle=at, role=False) for at in numbers]
    sends = [
        frame("transfer", handle=at, delivery_id=at, more=True, payload=message(b"jane%d." % at))
        for at in numbers
    ]
    safe = cleaned(*links, *sends, keep_bodies=True)
    assert [at for at in numbers if b"jane%d." % at not in safe] == [numbers[-1]]


def test_a_section_beyond_the_limit() -> None:
    large = message(application_properties={"a": "jane" * (amqp10.MAX_SECTION_BYTES // 4)})
    assert b"jane" not in cleaned(frame("transfer", handle=0, delivery_id=0, payload=large))
    held = [
        frame("transfer", handle=0, delivery_id=0, more=True, payload=large[at : at + 100_000])
        for at in range(0, len(large), 100_000)
    ]
    assert b"jane" not in cleaned(*held, keep_bodies=True)


@given(st.binary(max_size=200), st.booleans(), st.sampled_from([0, 9, 40]))
def test_any_bytes(octets: bytes, names: bool, size: int) -> None:
    """Nothing raises, no length changes, and what is safe stays as it is."""
    head = frame("transfer", handle=0, delivery_id=0)[8:]
    for body in (octets, head + octets, head + b"\0\x53\x77" + octets, b"\0\x53\x12" + octets):
        one = (len(body) + 8).to_bytes(4, "big") + b"\2\0\0\0" + body
        safe = cleaned(one, names=names, size=size)
        assert len(safe) == len(one)
        assert cleaned(safe, names=names, size=size) == safe
