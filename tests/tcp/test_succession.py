"""Conversations one after the other between the same endpoints, however each begins and ends.

What was said is known, so each conversation must come out as it was, and no other. Packets of one
that is over come late: its last FINs and acknowledgements, bytes that were sent again. Those of
the responder come even after the next SYN, which it has not answered yet.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from tests.tcp.wire import ACK, FIN, MILLISECOND, RST, SYN, Packet, Result, Talk, run
from tests.thorough import rounds

HEADER = b"AMQP\x00\x00\x09\x01"
RESPONDER = b"\x16\x28"
"""The port that packets of the responder come from."""
SECOND_OF_NUMBERS = 15_600_000
"""How far Linux's initial sequence numbers get in a second."""

Said = tuple[bytes, bytes]


class Ended(NamedTuple):
    """A conversation that is over: its packets, those that may come again, and what was said."""

    talk: Talk
    late: list[Packet]
    said: Said


def conversation(
    choose: random.Random, name: str, isn: tuple[int, int], start_ns: int, begin: str
) -> Ended:
    """A conversation; `begin`: `hands`, or `header` where no SYN was captured."""
    talk = Talk(isn, step_ns=MILLISECOND // 4, start_ns=start_ns)
    if begin == "hands":
        if choose.random() < 0.1:
            talk.client(flags=SYN)
        talk.hands()
    said: tuple[bytearray, bytearray] = (bytearray(), bytearray())
    late: list[Packet] = []

    def say(side: int, octets: bytes) -> None:
        at = talk.sent[side]
        packet = talk.put(side, octets)
        said[side].extend(octets)
        late.append(packet)
        if choose.random() < 0.05:
            talk.put(side, octets, at=at)

    say(0, HEADER)
    for turn in range(choose.randrange(1, 7)):
        side = choose.randrange(2)
        say(side, f"{name} {turn} ".encode() + bytes(choose.randrange(200)))
        if choose.random() < 0.4:
            talk.put(1 - side)
    late = late[-2:]
    end = choose.choice(("fin", "fin", "fin-server", "rst", "rst-server", "half", "none"))
    if end in ("fin", "fin-server"):
        one = 0 if end == "fin" else 1
        other = 1 - one
        late.append(talk.put(one, flags=FIN | ACK))
        if choose.random() < 0.5:
            talk.put(other, ack=talk.sent[one] + 1)
        late.append(talk.put(other, flags=FIN | ACK, ack=talk.sent[one] + 1))
        if choose.random() < 0.8:
            at = talk.sent[one] + 1
            late.append(talk.put(one, at=at, ack=talk.sent[other] + 1))
            talk.sent[one] -= 1
    elif end in ("rst", "rst-server"):
        talk.put(0 if end == "rst" else 1, flags=RST | ACK)
    elif end == "half":
        late.append(talk.client(flags=FIN | ACK))
        talk.server(flags=RST | ACK, ack=talk.sent[0] + 1)
    return Ended(talk, late, (bytes(said[0]), bytes(said[1])))


def following(choose: random.Random, talk: Talk, pause_ns: int) -> tuple[int, int]:
    """Initial sequence numbers of the next conversation, beyond those that were used."""
    kind = choose.randrange(4)
    if kind == 0:
        jump = SECOND_OF_NUMBERS * pause_ns // 10**9 + 4096
        client = server = jump
    elif kind == 1:  # the least: as in RFC 6191, beyond what was sent
        client, server = (3000 + choose.randrange(5000) for _ in range(2))
    elif kind == 2:
        client, server = (choose.randrange(4096, 2**31 - 2**20) for _ in range(2))
    else:  # shortly before the wrap
        return (2**32 - choose.randrange(1, 400), 2**32 - choose.randrange(1, 400))
    return tuple(  # type: ignore[return-value]
        (talk.isn[side] + talk.sent[side] + 2 + jump) % 2**32
        for side, jump in enumerate((client, server))
    )


def jumped(talk: Talk, isn: tuple[int, int]) -> list[int]:
    """How far numbers are ahead of the last ones that were used."""
    return [(isn[side] - talk.isn[side] - talk.sent[side]) % 2**32 for side in (0, 1)]


def succession(choose: random.Random, count: int) -> tuple[list[Packet], list[Said]]:
    """Packets of conversations one after the other, and what was said in each."""
    isn = tuple(choose.choice((choose.randrange(2**32), 2**32 - choose.randrange(1, 300)))
                for _ in range(2))  # fmt: skip
    packets: list[Packet] = []
    said: list[Said] = []
    now, begin = 1_700_000_000_000_000_000, "hands"
    used = set()
    older: list[Packet] = []
    ahead = False
    for number in range(count):
        used.add(isn[0])
        ended = conversation(choose, f"conversation {number}", (isn[0], isn[1]), now, begin)
        mine = ended.talk.packets
        if begin == "hands" and older and ahead and choose.random() < 0.2:
            mine.insert(1, choose.choice(older)._replace(ts_ns=mine[0].ts_ns))
        older = [packet for packet in ended.late if packet.octets[20:22] == RESPONDER]
        packets += mine
        said.append(ended.said)
        pause_ns = choose.choice((1, 50, 500, 1500, 5000)) * MILLISECOND
        now = ended.talk.now
        if ended.late and choose.random() < 0.6:
            again = choose.choice(ended.late)
            packets.append(again._replace(ts_ns=now + pause_ns // 2))
        now += pause_ns
        isn = following(choose, ended.talk, pause_ns)
        ahead = all(4096 < jump < 2**31 for jump in jumped(ended.talk, isn))
        while isn[0] in used or (begin == "header" and not ahead):  # as they are made (RFC 6528)
            isn = following(choose, ended.talk, pause_ns)
            ahead = all(4096 < jump < 2**31 for jump in jumped(ended.talk, isn))
        begin = "header" if ahead and all(ended.said) and choose.random() < 0.2 else "hands"
    return packets, said


def told(result: Result) -> list[Said]:
    """What came out, by conversation in the order in which they opened."""
    found: dict[str, list[bytearray]] = {}
    for event in result.events:
        if event.kind == "open":
            assert event.connection_id not in found
            found[event.connection_id] = [bytearray(), bytearray()]
        elif event.kind == "data":
            assert isinstance(event.payload, bytes)
            found[event.connection_id][event.direction] += event.payload
        else:
            assert event.kind == "close", event
    return [(bytes(one), bytes(other)) for one, other in found.values()]


@pytest.mark.parametrize("seed", range(rounds(40)))
def test_each_conversation_comes_out_as_it_was(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(5):
        packets, said = succession(choose, 6)
        whole = run(packets)
        assert told(whole) == said
        assert run(packets, 1) == whole
