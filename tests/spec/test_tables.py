"""Content properties, constants, protocol headers, frame types, reply codes and field tags."""

import pytest

from amqpsniff.spec import (
    CONSTANTS,
    CONTENT_CLASSES,
    DIALECTS,
    FIELD_TAGS,
    FIELD_TYPES,
    FRAME_TYPES,
    METHODS,
    READINGS,
    REPLY_CODES,
    field_tags,
    properties_for,
    protocol_of,
    reply_code,
    unusual_tags,
)


def _type(reading: str, tag: str) -> str:
    return FIELD_TYPES[field_tags(reading)[ord(tag)]]


def test_basic_properties_in_flag_order() -> None:
    names = [row.name for row in properties_for("0-9-1", 60)]
    assert names[0] == "content_type"
    assert names[2] == "headers"
    assert names[-1] == "cluster_id"
    assert len(names) == 14


@pytest.mark.parametrize(
    ("dialect", "class_id", "count"),
    [("0-8", 70, 9), ("0-9", 80, 5), ("0-8", 110, 5), ("0-8", 120, 0), ("0-9-1", 70, 0),
     (None, 60, 14), (None, 70, 9), ("0-9-1", 10, 0), ("1.0", 60, 0)],
)  # fmt: skip
def test_properties_by_class(dialect: str | None, class_id: int, count: int) -> None:
    assert len(properties_for(dialect, class_id)) == count


def test_content_classes_are_those_of_methods_with_content() -> None:
    for dialect in DIALECTS:
        classes = {row.class_id for row in METHODS if row.content and dialect in row.dialects}
        assert CONTENT_CLASSES[dialect] == classes


def test_no_class_needs_a_second_flag_word() -> None:
    for dialect in DIALECTS:
        assert all(len(properties_for(dialect, class_id)) <= 15 for class_id in range(200))


@pytest.mark.parametrize(
    ("octets", "protocol"),
    [
        ("01010800", "0-8"),
        ("01010901", "0-8"),
        ("01010009", "0-9"),
        ("00000901", "0-9-1"),
        ("0101000a", "0-10"),
        ("00010000", "1.0"),
        ("02010000", "1.0 TLS"),
        ("03010000", "1.0 SASL"),
        ("0a010001", "OpenAMQ direct"),
    ],
)
def test_protocol_headers(octets: str, protocol: str) -> None:
    for form in (bytes, bytearray, memoryview):
        row = protocol_of(form(bytes.fromhex(octets)))
        assert row is not None
        assert row.protocol == protocol


@pytest.mark.parametrize("octets", ["0101000b", "00000900", "", "000009", "0000090100"])
def test_other_headers_are_unknown(octets: str) -> None:
    assert protocol_of(bytes.fromhex(octets)) is None


def test_frame_types() -> None:
    assert [row.code for row in FRAME_TYPES] == list(range(1, 11))
    real = {row.name for row in FRAME_TYPES if "0-9-1" in row.dialects}
    assert real == {"method", "header", "body", "heartbeat"}


def test_constants() -> None:
    values = [(row.name, row.value) for row in CONSTANTS]
    assert ("frame-end", 0xCE) in values
    assert [value for name, value in values if name == "frame-min-size"] == [4096, 8192]
    assert ("frame-heartbeat", 8) in values


def test_reply_codes() -> None:
    assert [row.code for row in REPLY_CODES] == sorted(row.code for row in REPLY_CODES)
    hard = {row.code for row in REPLY_CODES if row.kind == "hard"}
    assert hard == {320, 402, 501, 502, 503, 504, 505, 506, 530, 540, 541}
    assert all(row.meaning.endswith(".") for row in REPLY_CODES)
    not_found = reply_code(404)
    assert not_found is not None
    assert (not_found.name, not_found.kind) == ("not-found", "soft")
    assert reply_code(999) is None


def test_the_default_reading_is_what_brokers_use() -> None:
    assert field_tags() == field_tags("rabbitmq")
    readable = {chr(tag) for tag, code in enumerate(field_tags()) if code}
    assert readable == set("tbBsuIilLfdDSATFVxU\0cCk")
    refused = {chr(tag) for tag, flag in enumerate(unusual_tags()) if flag}
    assert refused == {"U", "\0", "c", "C", "k"}


@pytest.mark.parametrize(
    ("tag", "types"),
    [
        ("s", ("int16", "shortstr", "shortstr")),
        ("b", ("int8", "int8", "uint8")),
        ("B", ("uint8", "uint8", "int8")),
        ("l", ("int64", "uint64", "uint64")),
        ("L", ("int64", "int64", "int64")),
        ("U", ("int16", "int16", "int16")),
        ("I", ("int32", "int32", "int32")),
        ("D", ("decimal", "decimal", "decimal")),
        ("\0", ("void", "", "")),
        ("c", ("longstr", "", "")),
        ("C", ("longstr", "", "")),
        ("k", ("uint8", "", "")),
    ],
)
def test_tags_by_reading(tag: str, types: tuple[str, ...]) -> None:
    assert tuple(_type(reading, tag) for reading in READINGS) == types


def test_tags_are_rows() -> None:
    keys = [(row.reading, row.tag) for row in FIELD_TAGS]
    assert len(set(keys)) == len(keys)
    assert {row.type for row in FIELD_TAGS} == set(FIELD_TYPES[1:])
    assert all(row.note for row in FIELD_TAGS if row.unusual)
    for reading in READINGS:
        assert len(field_tags(reading)) == len(unusual_tags(reading)) == 256


def test_an_unknown_reading_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(KeyError):
        field_tags("amqp")
