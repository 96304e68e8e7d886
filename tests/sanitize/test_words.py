"""Names, reply texts, logins and addresses: what they become, and that it is as long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpsniff.sanitize import SanitizeOptions
from amqpsniff.sanitize.addresses import AddressPseudonyms
from amqpsniff.sanitize.credentials import safe_login
from amqpsniff.sanitize.frames import safe_proxy_header
from amqpsniff.sanitize.names import Pseudonyms
from amqpsniff.sanitize.replies import safe_reply
from amqpsniff.sanitize.values import ValueCleaner

INEQUIVALENT = (
    "PRECONDITION_FAILED - inequivalent arg '{}' for queue 'rq' in vhost '/': received {}"
)
KEEPING = ValueCleaner(SanitizeOptions()).text


def test_names() -> None:
    pseudonyms = Pseudonyms()
    said = [pseudonyms.name(each) for each in (b"orders.eu", b"eu", b"orders", b"order.*.eu.#")]
    assert said == [b"nnnnn0.n0", b"n0", b"nnnnn0", b"nnnn0.*.n0.#"]


@pytest.mark.parametrize(
    ("name", "made"),
    [
        (b"", b""),
        (b"/", b"/"),
        (b"amq.topic", b"amq.topic"),
        (b"amq.rabbitmq.reply-to", b"amq.rabbitmq.reply-to"),
        (b"amq.rabbitmq.reply-to.g1h2AA==", b"amq.rabbitmq.reply-to.nnnnnnn0"),
        (b"amq.gen-Xk3", b"amq.gen-nn0"),
        (b"amq.ctag-abc", b"amq.ctag-nn0"),
        (b"amqp", b"nnn0"),
        (b"a b:c@d/e", b"0 1:2@3/4"),
        ("größe".encode(), b"nnnnnn0"),
        (b"\xff\xfe", b"n0"),
    ],
)
def test_a_name(name: bytes, made: bytes) -> None:
    assert Pseudonyms().name(name) == made


@given(st.lists(st.binary(max_size=12)))
def test_pseudonyms_of_pseudonyms_are_the_same(words: list[bytes]) -> None:
    first, second = Pseudonyms(), Pseudonyms()
    once = [first.name(word) for word in words]
    assert [len(word) for word in once] == [len(word) for word in words]
    assert [second.name(word) for word in once] == once


def test_many_names() -> None:
    pseudonyms = Pseudonyms(max_words=2)
    assert [pseudonyms.name(each) for each in (b"aa", b"bb", b"cc", b"aa")] == [
        b"n0", b"n1", b"xx", b"n0",
    ]  # fmt: skip
    assert pseudonyms.forgotten


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("NOT_FOUND - no queue 'missing' in vhost 'shop'",) * 2,
        ("ACCESS_REFUSED - access to queue 'q' in vhost '/' refused for user 'jane'",
         "ACCESS_REFUSED - access to queue 'q' in vhost '/' refused for user 'xxxx'"),
        ("PRECONDITION_FAILED - unknown delivery tag 77",) * 2,
        (INEQUIVALENT.format("durable", "'true' but current is 'false'"),) * 2,
        (INEQUIVALENT.format("x-max-length", "the value '10' of type 'signedint'"),
         INEQUIVALENT.format("x-max-length", "the value 'xx' of type 'signedint'")),
        (INEQUIVALENT.format("x-mine", "the value '10' of type 'signedint'"),
         INEQUIVALENT.format("xxxxxx", "the value 'xx' of type 'signedint'")),
        ("FRAME_ERROR - type 1, all octets = <<0,60,1>>: {invalid_frame_end_marker,0}",
         "FRAME_ERROR - type 1, all octets = <<xxxxxx>>: {invalid_frame_end_marker,0}"),
        ("FRAME_ERROR - cannot decode <<0,10,0,11", "FRAME_ERROR - cannot decode <<xxxxxxxxx"),
        ("CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'",) * 2,
        ("CONNECTION_FORCED - closed by jane at 10.1.2.3",
         "CONNECTION_FORCED - closed by xxxx xx 10.1.2.3"),
        ("Normal shutdown", "Normal shutdown"),
        ("failed to charge card 4111 of 'jane'", "failed to xxxxxx xxxx 0000 of 'xxxx'"),
        ("SECRET_TOKEN - abc", "xxxxxxxxxxxx - xxx"),
        ("caf\u00e9", "xxx??"),
        ("", ""),
        ("it's a 'queue", "it'xxxx'queue"),
    ],
)  # fmt: skip
def test_replies(text: str, made: str) -> None:
    assert safe_reply(text.encode(), KEEPING).decode() == made


def test_names_in_replies() -> None:
    cleaner = ValueCleaner(SanitizeOptions(names=True))
    assert cleaner.text(b"jobs", "name") == b"nnn0"
    reply = safe_reply(b"NOT_FOUND - no queue 'jobs' in vhost 'jobs'", cleaner.text)
    assert reply == b"NOT_FOUND - no queue 'nnn0' in vhost 'nnn0'"


@given(st.binary(max_size=255))
def test_any_reply(text: bytes) -> None:
    made = safe_reply(text, KEEPING)
    assert len(made) == len(text)
    assert safe_reply(made, KEEPING) == made


AMQPLAIN = b"\x05LOGINS\0\0\0\x04jane\x08PASSWORDS\0\0\0\x03s3c"


@pytest.mark.parametrize(
    ("mechanism", "response", "made"),
    [
        (b"PLAIN", b"\0jane\0s3cret", b"\0xxxx\0xxxxxx"),
        (b"PLAIN", b"admin\0jane\0s3cret", b"xxxxx\0xxxx\0xxxxxx"),
        (b"PLAIN", b"\0jane\0s3\0cret", b"x" * 13),
        (b"PLAIN", b"jane", b"xxxx"),
        (b"AMQPLAIN", AMQPLAIN, AMQPLAIN.replace(b"jane", b"xxxx").replace(b"s3c", b"xxx")),
        (b"AMQPLAIN", AMQPLAIN[:-1], AMQPLAIN[:11] + b"x" * (len(AMQPLAIN) - 12)),
        (b"AMQPLAIN", b"LOGIN jane", b"x" * 10),
        (b"EXTERNAL", b"", b""),
        (b"XOAUTH2", b"Bearer abc", b"x" * 10),
        (b"", b"\0jane\0s3cret", b"x" * 12),
    ],
)
def test_logins(mechanism: bytes, response: bytes, made: bytes) -> None:
    assert safe_login(mechanism, response, lambda user: b"x" * len(user)) == made


@pytest.mark.parametrize(
    ("header", "made"),
    [
        (b"PROXY TCP4 192.0.2.1 192.0.2.20 40000 5672\r\n",
         b"PROXY TCP4 000.0.0.0 000.0.0.00 00000 0000\r\n"),
        (b"PROXY TCP6 2001:db8::1 ::1 40000 5672\r\n",
         b"PROXY TCP6 0000:000::0 ::0 00000 0000\r\n"),
        (b"PROXY UNKNOWN\r\n", b"PROXY UNKNOWN\r\n"),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(range(12)),
         b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12)),
    ],
)  # fmt: skip
def test_proxies(header: bytes, made: bytes) -> None:
    assert safe_proxy_header(header) == made


def test_addresses() -> None:
    pseudonyms = AddressPseudonyms()

    def four(*octets: int) -> str:
        return ".".join(map(str, pseudonyms.ipv4(bytes(octets))))

    assert four(192, 168, 7, 9) == "10.0.0.1"
    assert four(192, 168, 7, 1) == "10.0.0.2"
    assert four(172, 16, 0, 1) == "10.0.1.1"
    assert four(192, 168, 7, 9) == "10.0.0.1"
    for kept in ((127, 0, 0, 1), (0, 0, 0, 0), (224, 0, 0, 251), (255, 255, 255, 255)):
        assert four(*kept) == ".".join(map(str, kept))
    assert pseudonyms.ipv6(b"\x20\x01" + bytes(13) + b"\x05").hex() == "fd" + "0" * 29 + "1"
    assert pseudonyms.ipv6(b"\xfe\x80" + bytes(6) + b"12345678").hex() == "fe80" + "0" * 27 + "1"
    assert pseudonyms.ipv6(bytes(15) + b"\1") == bytes(15) + b"\1"
    mapped = bytes(10) + b"\xff\xff\xc0\xa8\x07\x09"
    assert pseudonyms.ipv6(mapped) == bytes(10) + b"\xff\xff\x0a\0\0\1"
    group = b"\xff\x02" + bytes(9) + b"\1\xff\x12\x34\x56"
    assert pseudonyms.ipv6(group) == group[:13] + bytes(3)
    assert pseudonyms.mac(b"\xaa\xbb\xcc\xdd\xee\xff") == b"\x02\0\0\0\0\1"
    assert pseudonyms.mac(b"\x33\x33\xff\x12\x34\x56") == b"\x33\x33\xff\0\0\0"
    assert [pseudonyms.port(port) for port in (5672, 50000, 40000, 50000)] == [
        5672, 32768, 32769, 32768,
    ]  # fmt: skip


@given(st.lists(st.binary(min_size=16, max_size=16), max_size=20))
def test_pseudonyms_of_addresses_are_the_same(addresses: list[bytes]) -> None:
    first, second = AddressPseudonyms(), AddressPseudonyms()
    six = [first.ipv6(each) for each in addresses]
    assert [second.ipv6(each) for each in six] == six
    four = [first.ipv4(each[:4]) for each in addresses]
    assert len(set(four)) == len({each[:4] for each in addresses})
