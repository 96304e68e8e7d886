"""What was read before gives the rows that reading it again would give."""

import random

import pytest

from amqpsniff.decode.values import MAX_CACHED_BYTES, SKIPPED_LOOKUPS, TRIAL_LOOKUPS
from tests import encoder
from tests.decode.feeding import CLIENT, SERVER, Decoded, Feeder, Talk, joined
from tests.decode.script import OPENING, method, row_of
from tests.encoder import Field

FOREVER = 2**31 - 1


def _decoded(pieces: list[tuple[int, bytes]], asleep: bool, **options: object) -> Decoded:
    """What comes of these bytes, with memories that work or rest all the time."""
    feeder = Feeder(Talk(), **options).data(CLIENT, OPENING)
    handler = feeder.decoder.handler
    if asleep:
        for each in (handler.method_cache, handler.contents.writer.tables, handler.decoder.tables):
            each.skips = FOREVER
    for direction, octets in pieces:
        feeder.data(direction, octets)
    return feeder.finish()


def _rows(done: Decoded) -> tuple[list[str], list[str], list[str]]:
    from amqpsniff.tables.batches import Maker

    found = [
        f"{finding.code} {finding.detail} {finding.packet_number}" for finding in done.findings
    ]
    frames, messages = Maker("frames").make(done.taken), Maker("messages").make(done.taken)
    return joined(frames), joined(messages), found


def _same(pieces: list[tuple[int, bytes]], **options: object) -> tuple[list[str], ...]:
    awake, asleep = (_rows(_decoded(pieces, rests, **options)) for rests in (False, True))
    assert awake == asleep
    assert awake[0]
    return awake


def _content(name: str, values: dict[str, object], **given: object) -> bytes:
    row = row_of(name)
    full = {each.name: {"s": b"", "b": False}.get(each.type, 0) for each in row.arguments} | values
    return b"".join(encoder.content(row, full, b"body", **given))


def _traffic(seed: int, count: int, names: int) -> list[tuple[int, bytes]]:
    """Publishes, deliveries and what settles them, out of so many names."""
    choose = random.Random(seed)
    texts = [f"n{i}".encode() for i in range(names)] + [b"", b"\xff", b'"delivery_tag":7', b"9"]
    tables = [
        [(name, Field("S", text))] * choose.choice((1, 1, 1, 2))
        for name in (b"a", b"\xfe", b"delivery_tag")
        for text in texts[:20] + texts[-4:]
    ]
    pieces = []
    for _ in range(count):
        text, other = choose.choice(texts), choose.choice(texts)
        tag = choose.choice((1, 9, 10, 2**40, 2**63 - 1, 2**63, 2**64 - 1))
        flag = choose.random() < 0.5
        headers = {"properties": {"headers": choose.choice(tables)}} if flag else {}
        pieces.append(
            choose.choice(
                (
                    (CLIENT, _content("basic.publish", {"exchange": text, "routing_key": other,
                                                        "mandatory": flag}, **headers)),
                    (SERVER, _content("basic.deliver", {"consumer_tag": text, "delivery_tag": tag,
                                                        "exchange": other, "redelivered": flag},
                                      **headers)),
                    (SERVER, _content("basic.get-ok", {"delivery_tag": tag, "exchange": text})),
                    (CLIENT, method("basic.ack", delivery_tag=tag, multiple=flag)),
                    (CLIENT, method("basic.reject", delivery_tag=tag, requeue=flag)),
                    (SERVER, _content("basic.return", {"reply_text": text, "exchange": other})),
                )
            )
        )  # fmt: skip
    return pieces


@pytest.mark.parametrize("tables", [("frames",), ("messages",), ("frames", "messages", "findings")])
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_those_without_a_memory(seed: int, tables: tuple[str, ...]) -> None:
    """Also for names and headers that look like the text a memory cuts at."""
    _same(_traffic(seed, 800, 12), tables=tables)


def test_payloads_that_a_few_bytes_do_not_tell_apart() -> None:
    """The one that came last is looked at first, and it is another one each time."""
    names = [b"left-%d", b"rite-%d"]
    pieces = [
        (CLIENT, _content("basic.publish", {"exchange": names[i % 2] % (i % 3),
                                            "routing_key": b"the same at the end"}))
        for i in range(60)
    ]  # fmt: skip
    _, messages, _ = _same(pieces)
    assert len(messages) == len(pieces)
    exchanges = [row.split("|")[4] for row in messages]
    assert exchanges == [(names[i % 2] % (i % 3)).decode() for i in range(60)]


def test_a_memory_that_is_full_begins_again() -> None:
    pieces = [
        (CLIENT, _content("basic.publish", {"exchange": b"%d" % (i % 3000)},
                          properties={"headers": [(b"n", Field("I", i % 3000))]}))
        for _ in range(2)
        for i in range(3000)
    ]  # fmt: skip
    _, messages, _ = _same(pieces)
    assert len(messages) == len(pieces)


def test_codes_of_names_belong_to_their_batch() -> None:
    """Names that were first seen in rows given away are there in the rows that follow."""
    feeder = Feeder(Talk()).data(CLIENT, OPENING)
    taken = []
    for exchange in (b"x", b"y", b"y", b"x"):
        feeder.decoder.use_capture("octets")
        feeder.data(CLIENT, _content("basic.publish", {"exchange": exchange}))
        taken.append(Decoded(feeder.decoder.take(), []))
    assert [done.messages()[0]["exchange"] for done in taken] == ["x", "y", "y", "x"]


def test_a_memory_rests_when_nothing_comes_twice() -> None:
    feeder = Feeder(Talk()).data(CLIENT, OPENING)
    tables = feeder.decoder.handler.contents.writer.tables
    for i in range(TRIAL_LOOKUPS + 100):
        table = [(b"n", Field("I", i))]
        octets = _content("basic.publish", {"exchange": b"x"}, properties={"headers": table})
        feeder.data(CLIENT, octets)
    assert SKIPPED_LOOKUPS - 100 <= tables.skips < SKIPPED_LOOKUPS
    assert feeder.decoder.handler.method_cache.skips == 0


def test_what_is_odd_is_reported_each_time() -> None:
    table = [(b"n", Field("I", 1)), (b"n", Field("I", 2))]
    octets = _content("basic.publish", {"exchange": b"x"}, properties={"headers": table})
    done = _decoded([(CLIENT, octets)] * 3, asleep=False)
    counts = {finding.code: finding.count for finding in done.findings}
    assert counts == {"field-name-duplicate": 3}


def test_long_ones_are_not_remembered() -> None:
    table = [(b"n", Field("S", bytes(MAX_CACHED_BYTES)))]
    octets = _content("basic.publish", {"exchange": b"x"}, properties={"headers": table})
    feeder = Feeder(Talk()).data(CLIENT, OPENING + octets + octets)
    tables = feeder.decoder.handler.contents.writer.tables
    assert tables.words.count == 0
    assert len(feeder.finish().messages()) == 2


def _start_ok(table: list[tuple[bytes, Field]]) -> tuple[int, bytes]:
    return CLIENT, method("connection.start-ok", 0, client_properties=table, response=b"\0a\0pw")


def test_tables_of_methods_that_hold_secrets_are_remembered() -> None:
    """Clients of one kind introduce themselves alike; an odd table is read each time."""
    tables = [[(b"product", Field("S", b"x"))], [(b"n", Field("I", 1)), (b"n", Field("I", 2))]]
    pieces = [_start_ok(table) for table in tables] * 3
    frames, _, findings = _same(pieces)
    assert sum('"n":1' in row for row in frames) == 3
    assert any("field-name-duplicate" in each for each in findings)
    feeder = Feeder(Talk()).data(CLIENT, OPENING)
    for direction, octets in pieces:
        feeder.data(direction, octets)
    assert feeder.decoder.handler.decoder.tables.words.count == 1


QUOTE = b"type 1, all octets = <<0,10,0,40,1,47>>: unknown_frame"


def _closes(*texts: bytes) -> list[tuple[int, bytes]]:
    return [(SERVER, method("channel.close", 1, reply_code=501, reply_text=text)) for text in texts]


def test_reply_texts_are_remembered_unless_they_quote() -> None:
    """What may be shown of a quote depends on whether the login is over."""
    quotes = _closes(QUOTE, b"<<", b"a<", b"<<1>>")
    over = [(SERVER, method("connection.tune", 0))]
    frames, _, _ = _same(quotes * 2 + over + quotes * 2 + _closes(b"ok", b"", b"\xff") * 3)
    assert sum("[redacted]" in row for row in frames) == 10
    assert sum("10,0,40" in row for row in frames) == 2
    assert sum('"reply_text":"ok"' in row for row in frames) == 3
