"""Bodies as text: encodings undone, formats read, and what is neither left as bytes."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import pickle
import sys
import zlib
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as some

import amqpsniff
from amqpsniff.analysis import binary_values
from amqpsniff.analysis.body_text import MAX_UNPACKED_BYTES, body_text
from tests.conftest import REPO

TEXT = '{"order": 7}'


def shown(body: bytes, **message: Any) -> tuple[str, str | None]:
    found = body_text({"body": body, **message})
    assert found is not None
    return found.form, found.text


@pytest.mark.parametrize(
    ("encoding", "pack", "name"),
    [
        ("gzip", gzip.compress, "gzip"),
        ("deflate", zlib.compress, "zlib"),
        ("zstd", zstandard.ZstdCompressor().compress, "zstd"),
        ("bzip2", bz2.compress, "bzip2"),
        ("application/x-lzma", lzma.compress, "xz"),
    ],
)
def test_content_encoding(encoding: str, pack: Any, name: str) -> None:
    body = pack(TEXT.encode())
    assert shown(body, content_encoding=encoding) == (name, TEXT)
    assert shown(body, headers=json.dumps({"compression": encoding})) == (name, TEXT)
    assert shown(body[:-9], content_encoding=encoding)[0] in ("", name)


def test_brotli() -> None:
    brotli = pytest.importorskip("brotli")
    packed = brotli.compress(TEXT.encode() * 1000)
    assert shown(packed, content_encoding="br") == ("brotli", TEXT * 1000)
    assert shown(packed[:-1], content_encoding="br") == ("", None)


def test_brotli_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "brotli", None)
    assert shown(b"\x0b\x02\x80abc\x03", content_encoding="br") == ("", None)


def test_gzip_that_nothing_announces() -> None:
    assert shown(gzip.compress(TEXT.encode())) == ("gzip", TEXT)
    assert shown(b"\x1f\x8b\x08 not gzip") == ("", None)


def test_a_body_that_grows() -> None:
    found = body_text({"body": gzip.compress(b"a" * (1 << 24))}, 10)
    assert found is not None
    assert (len(found.octets), found.cut, found.text) == (MAX_UNPACKED_BYTES, True, "a" * 10)


@pytest.mark.parametrize(
    ("content_type", "content_encoding"),
    [("text/plain; charset=ISO-8859-1", None), ("text/plain", "latin-1")],
)
def test_charset(content_type: str, content_encoding: str | None) -> None:
    message = {"content_type": content_type, "content_encoding": content_encoding}
    assert shown("größer".encode("latin-1"), **message) == ("", "größer")
    assert shown("größer".encode("latin-1")) == ("", None)


@pytest.mark.parametrize("name", ["zlib", "rot13", "idna\0", "hex", "undefined", "utf-16"])
def test_charset_that_is_none(name: str) -> None:
    shown(b"abc", content_encoding=name)


MSGPACK = bytes.fromhex("82a56f7264657207a46c6973749301c0cb3ff8000000000000")
CBOR = bytes.fromhex("a2656f7264657207646c697374830120f93e00")
PROTOBUF = bytes.fromhex("089601120774657374696e671d0000803f")


@pytest.mark.parametrize(
    ("content_type", "body", "name", "text"),
    [
        ("application/x-msgpack", MSGPACK, "msgpack", '{"order": 7, "list": [1, null, 1.5]}'),
        ("application/cbor", CBOR, "CBOR", '{"order": 7, "list": [1, -1, 1.5]}'),
        ("application/cbor", bytes.fromhex("bf616101ff"), "CBOR", '{"a": 1}'),
        ("application/cbor", bytes.fromhex("c11a514b67b0"), "CBOR", '{"tag 1": 1363896240}'),
        ("application/x-protobuf", PROTOBUF, "protobuf", '1: 150\n2: "testing"\n3: 0x3f800000'),
    ],
)
def test_format(content_type: str, body: bytes, name: str, text: str) -> None:
    assert shown(body, content_type=content_type) == (name, text)
    assert shown(body[:-1], content_type=content_type)[0] != name or name == "protobuf"


def test_formats_inside_an_encoding() -> None:
    body = gzip.compress(MSGPACK)
    assert shown(body, content_type="application/msgpack")[0] == "gzip, msgpack"


def test_avro() -> None:
    schema = b'{"type":"int"}'
    body = b"Obj\x01\x02\x16avro.schema" + bytes([2 * len(schema)]) + schema + b"\0" + bytes(16)
    assert shown(body) == ("Avro", 'avro.schema: {"type":"int"}')


class _Trap:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/never",)


def test_a_pickle_is_listed_and_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(os, "system", ran.append)
    name, text = shown(pickle.dumps(_Trap()), content_type="application/x-python-serialize")
    assert name == "pickle"
    assert "REDUCE" in (text or "")
    assert "'touch /tmp/never'" in (text or "")
    assert ran == []


@given(some.binary(max_size=200))
def test_any_bytes(octets: bytes) -> None:
    for kind in ("msgpack", "cbor", "protobuf", "x-python-serialize", "text/plain"):
        shown(octets, content_type=f"application/{kind}")
    shown(b"Obj\x01" + octets)
    shown(b"\x80\x04\x95" + octets)
    shown(octets, method="send")


@pytest.mark.parametrize("body", [b"\x91" * 5000, b"\x81" * 5000])
def test_depth_is_bounded(body: bytes) -> None:
    for read in (binary_values.msgpack, binary_values.cbor):
        with pytest.raises(ValueError, match=r"deep|early"):
            read(body)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'\xa1\x06{"\xc3\xa9"}', '{"é"}'),
        (b"\xc1\x06\x02\xa1\x01n\x54\x07", '{"n":7}'),
        (b'\xa0\x08{"a": 1}', '{"a": 1}'),  # binary, as Proton for Python sends bytes
        (b'\xb0\0\0\0\x08{"a": 1}', '{"a": 1}'),
        (b'\xa0\x07{"a": 1}', None),
        (b"\xa0\x02\xffa", None),
        (b"\xa1\x01ab", None),  # a byte behind it
        (b"\xa1\x05ab", None),
    ],
)
def test_values_of_amqp10(body: bytes, text: str | None) -> None:
    assert shown(body, method="send") == ("" if text is None else "AMQP value", text)
    assert shown(body, method="basic.publish") == ("", None)


def test_formats_in_a_binary_value() -> None:
    body = b"\xa0" + bytes([len(MSGPACK)]) + MSGPACK
    form, text = shown(body, method="send", content_type="application/msgpack")
    assert (form, text) == ("AMQP value, msgpack", shown(MSGPACK, content_type="msgpack")[1])


def test_messages_of_a_capture() -> None:
    capture = REPO / "tests" / "captures" / "packs" / "kombu.pcap.gz"
    messages = amqpsniff.open(capture, bodies=True).messages(method="basic.publish")
    assert [one.body_text for one in messages][:3] == [f'{{"order": {n}}}' for n in range(3)]
    assert next(amqpsniff.open(capture).messages()).body_text is None
