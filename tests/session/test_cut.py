"""Methods cut by a snap length before their bits: what is not known is not decided."""

from __future__ import annotations

from typing import Any

import pytest

from tests.decode.feeding import Row, run_packets
from tests.decode.script import OPENING, method
from tests.encoder import body, header
from tests.tcp import wire

IP_AND_TCP = 40
BITS = {"basic.nack": 19, "basic.reject": 19, "basic.ack": 19, "basic.consume": 17}
"""Bytes of each frame before its bits."""


def delivered(answer: str, cut: str = "") -> Row:
    """The delivery of a script of which one frame may be cut before its bits."""
    talk = wire.Talk().hands()
    talk.client(OPENING)
    talk.client(method("channel.open"))
    talk.server(method("channel.open-ok"))
    talk.client(method("basic.consume", queue=b"q", consumer_tag=b"t"))
    if cut == "basic.consume":
        talk.packets[-1] = talk.packets[-1].cut(IP_AND_TCP + BITS["basic.consume"])
    talk.server(method("basic.consume-ok", consumer_tag=b"t"))
    talk.server(method("basic.deliver", consumer_tag=b"t", delivery_tag=1, exchange=b"x"))
    talk.server(header(1, 60, 1) + body(1, b"a"))
    if answer:
        talk.client(method(answer, delivery_tag=1))
        if cut == answer:
            talk.packets[-1] = talk.packets[-1].cut(IP_AND_TCP + BITS[answer])
    packets = [
        (number, packet.ts_ns, packet.octets, packet.original or len(packet.octets), 228)
        for number, packet in enumerate(talk.packets, 1)
    ]
    (row,) = run_packets(packets).messages()
    return row


@pytest.mark.parametrize(
    ("answer", "whole", "cut"),
    [
        ("basic.nack", "discarded", None),
        ("basic.reject", "discarded", None),
        ("basic.ack", "acked", "acked"),
        ("", "unsettled", "unsettled"),
    ],
)
def test_an_answer_whose_bits_were_cut(answer: str, whole: str, cut: str | None) -> None:
    assert delivered(answer)["outcome"] == whole
    assert delivered(answer, answer)["outcome"] == cut


def test_a_consumer_whose_bits_were_cut() -> None:
    row: Any = delivered("", "basic.consume")
    assert row["queue"] == "q"
    assert row["outcome"] is None
    assert delivered("basic.ack", "basic.consume")["outcome"] == "acked"


def returned(kept: int | None, back: int | None) -> list[Any]:
    """Outcomes of two publishes, of which the second came back.

    Of the first one's header so many bytes are captured, and of the return's.
    """
    talk = wire.Talk().hands()
    talk.client(OPENING)
    talk.client(method("channel.open"))
    talk.server(method("channel.open-ok"))
    for mine in (b"1", b"2"):
        talk.client(method("basic.publish", exchange=b"x", mandatory=True))
        talk.client(header(1, 60, 0, properties={"message_id": mine}))
        if mine == b"1" and kept is not None:
            talk.packets[-1] = talk.packets[-1].cut(IP_AND_TCP + kept)
    talk.server(method("basic.return", reply_code=312, exchange=b"x"))
    talk.server(header(1, 60, 0, properties={"message_id": b"2"}))
    if back is not None:
        talk.packets[-1] = talk.packets[-1].cut(IP_AND_TCP + back)
    packets = [
        (number, packet.ts_ns, packet.octets, packet.original or len(packet.octets), 228)
        for number, packet in enumerate(talk.packets, 1)
    ]
    return [row["outcome"] for row in run_packets(packets).messages()]


def test_a_return_is_of_what_may_be_the_same() -> None:
    """Of a header that was cut nothing is known: which of two publishes it is of cannot be told."""
    assert returned(None, None) == [None, "returned", None]
    assert returned(20, None) == [None, None, None]
    assert returned(None, 20) == [None, None, None]
