"""Random conversations of AMQP 1.0: the engine gives the rows that the reference expects.

A talker knows just enough to make most steps fit what came before: sessions of either side, links
with handles used again, transfers of several frames, outcomes of ranges, flows, drains, detaches,
numbers near 2^32, and holes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from amqpsniff import Engine
from tests import amqp10
from tests.session.reference10 import LATE, LOSS, SIDES, Said, expected
from tests.session.script import MS, START_NS
from tests.tcp import wire
from tests.thorough import rounds

KEY = ("10.0.0.1:40000", "10.0.0.2:5672")
FIRST = 2**32 - 3
"""Where numbers begin, so that they wrap."""
STATES = (None, "accepted", "accepted", "rejected", "released", "modified", "received")
_MIX = 0x9E3779B97F4A7C15


class Pair:
    """What a talker remembers of a session: numbers, links by side and handle, deliveries."""

    def __init__(self, numbers: list[int | None]) -> None:
        self.numbers = numbers
        self.links: list[tuple[dict[str, Any], list[int | None]]] = []
        self.sent, self.begun = [FIRST, FIRST], [0, 0]
        self.open: dict[tuple[int, int], int] = {}
        self.ended: set[int] = set()


class Talker:
    """Makes a conversation of numbers."""

    def __init__(self) -> None:
        self.said: list[tuple[Said, bytes]] = []
        self.pairs: list[Pair] = []
        self.now = START_NS

    def say(
        self, side: int, channel: int, word: str, payload: bytes = b"", /, **fields: Any
    ) -> None:
        """A frame in a packet of its own."""
        self.now += MS
        sent = dict(fields)
        state = sent.get("state")
        if state is not None:
            inner = {"error": amqp10.error(state[1])} if state[1] else {}
            if state[0] == "received":
                inner = {"section_number": 0, "section_offset": 0}
            sent["state"] = amqp10.composite(state[0], **inner)
        if sent.get("error") is not None:
            sent["error"] = amqp10.error(*sent["error"])
        if word == "attach":
            sent |= {"source": amqp10.source("q"), "target": amqp10.target("q")}
        octets = amqp10.frame(word, channel, payload, **sent)
        said = Said(len(self.said) + 1, self.now, side, channel, word, fields, len(payload))
        self.said.append((said, octets))

    def lose(self, side: int, octets: int) -> None:
        """Bytes of a side are lost between two frames."""
        self.now += MS
        self.said.append((Said(len(self.said) + 1, self.now, side, 0, LOSS, {}, octets), b""))

    # steps: two numbers that choose

    def begin(self, one: int, two: int) -> None:
        """A session, by the client but seldom."""
        side = int(one % 8 == 7)
        used = {pair.numbers[side] for pair in self.pairs if side not in pair.ended}
        number = next(n for n in range(9) if n not in used)
        if sum(not pair.ended for pair in self.pairs) > 3:
            return
        given = {"next_outgoing_id": FIRST, "incoming_window": 3 + two % 9, "outgoing_window": 9}
        self.say(side, number, "begin", **given)
        pair = Pair([None, None])
        pair.numbers[side] = number
        used = {pair.numbers[1 - side] for pair in self.pairs if 1 - side not in pair.ended}
        answer = next(n for n in range(two % 3, 12) if n not in used)
        pair.numbers[1 - side] = answer
        self.pairs.append(pair)
        self.say(1 - side, answer, "begin", remote_channel=number, **given)

    def _pair(self, choice: int) -> Pair | None:
        there = [pair for pair in self.pairs if not pair.ended or choice == 6]
        return there[choice % len(there)] if there else None

    def _link(self, one: int) -> Any:
        pair = self._pair(one % 7)
        if pair is None or not pair.links:
            return None
        return pair, *pair.links[one // 7 % len(pair.links)]

    def attach(self, one: int, two: int) -> None:
        """A link, by either side; sometimes a name or a handle that is in use."""
        pair = self._pair(one % 7)
        if pair is None or len(pair.links) > 4:
            return
        side, sends = one % 2, two % 2
        name = f"l{two // 2 % 3}"
        taken = [handles[side] for _, handles in pair.links]
        handle = next(h for h in range(9) if h not in taken or two % 23 == 1)
        answer = next(h for h in range(two % 2, 9) if h not in [x[1 - side] for _, x in pair.links])
        link = {"name": name, "sender": side if sends else 1 - side}
        pair.links = [each for each in pair.links if each[0] != link]
        handles = [0, 0]
        handles[side], handles[1 - side] = handle, answer
        for who in (side, 1 - side):
            role = who != link["sender"]
            first = {} if role else {"initial_delivery_count": FIRST + two % 5}
            self.say(who, pair.numbers[who], "attach", name=name, handle=handles[who], role=role,
                     **{key: value % 2**32 for key, value in first.items()})  # fmt: skip
        if two % 23 == 1:
            pair.links = [each for each in pair.links if each[1][side] != handle]
        link["count"] = (FIRST + two % 5) % 2**32
        pair.links.append((link, handles))
        if one % 3:
            self.flow(one, two)

    def flow(self, one: int, two: int) -> None:
        """Credit of the receiver, a drain, or the sender's word; seldom of the session alone."""
        found = self._link(one)
        if found is None:
            return
        pair, link, handles = found
        side = link["sender"] if two % 5 == 4 else 1 - link["sender"]
        fields: dict[str, Any] = {
            "next_incoming_id": pair.sent[1 - side] % 2**32, "incoming_window": two % 12,
            "next_outgoing_id": pair.sent[side] % 2**32, "outgoing_window": 9,
        }  # fmt: skip
        if two % 11:
            fields |= {"handle": handles[side], "link_credit": two % 7,
                       "delivery_count": link["count"]}  # fmt: skip
            if side != link["sender"]:
                fields["drain"] = two % 13 == 1
                if two % 3 == 1:
                    del fields["delivery_count"]
        self.say(side, pair.numbers[side], "flow", **fields)

    def transfer(self, one: int, two: int) -> None:
        """A frame of a delivery."""
        found = self._link(one)
        if found is None:
            return
        pair, link, handles = found
        side = link["sender"]
        handle = handles[side]
        payload = amqp10.message(b"x" * (two % 40))
        fields: dict[str, Any] = {"handle": handle}
        going = pair.open.get((side, handle))
        if going is None or two % 17 == 0:
            number = (FIRST + pair.begun[side]) % 2**32
            if two % 29 != 1:
                pair.begun[side] += 1
            link["count"] = (link["count"] + 1) % 2**32
            fields |= {"delivery_id": number, "delivery_tag": b"t", "message_format": 0}
            if two % 4 == 1:
                fields["settled"] = True
        elif two % 2:
            fields["delivery_id"] = going
        if two % 3 == 0:
            fields["more"] = True
        elif two % 19 == 1:
            fields["aborted"] = True
        pair.sent[side] += 1
        self.say(side, pair.numbers[side], "transfer", payload, **fields)
        if fields.get("more"):
            pair.open[side, handle] = fields.get("delivery_id", going)
        else:
            pair.open.pop((side, handle), None)

    def settle(self, one: int, two: int) -> None:
        """A disposition for one or several."""
        pair = self._pair(one % 7)
        if pair is None:
            return
        sender = one % 2
        side = sender if two % 5 == 4 else 1 - sender
        state = STATES[two % len(STATES)]
        first = FIRST + (one // 7) % (pair.begun[sender] + 2) - 1
        last = first + (0, 0, 1, 3, 2**31 - 1)[two // 7 % 5]
        fields: dict[str, Any] = {"role": side != sender, "first": first % 2**32}
        if last > first or two % 2:
            fields["last"] = last % 2**32
        if two % 4:
            fields["settled"] = True
        if state is not None:
            fields["state"] = (state, "amqp:not-allowed" if state == "rejected" else None)
        self.say(side, pair.numbers[side], "disposition", **fields)

    def detach(self, one: int, two: int) -> None:
        """Both sides detach, sometimes with an error."""
        if two % 3:
            return
        found = self._link(one)
        if found is None:
            return
        pair, link, handles = found
        pair.links.remove((link, handles))
        side = one % 2
        for who in (side, 1 - side):
            wrong = ("amqp:not-found", "no q") if two % 2 and who == side else None
            self.say(who, pair.numbers[who], "detach", handle=handles[who], closed=two % 9 != 0,
                     error=wrong)  # fmt: skip
            pair.open.pop((who, handles[who]), None)

    def end(self, one: int, two: int) -> None:
        """Both sides end a session, or only one, and the other later."""
        half = [pair for pair in self.pairs if len(pair.ended) == 1]
        if half and two % 2:
            side = 1 - next(iter(half[0].ended))
            self.say(side, half[0].numbers[side], "end")
            half[0].ended.add(side)
            return
        pair = self._pair(one % 7)
        if pair is None or two % 5:
            return
        side = one % 2
        wrong = ("amqp:internal-error", "why") if two % 2 else None
        self.say(side, pair.numbers[side], "end", error=wrong)
        pair.ended.add(side)
        if two % 3:
            self.say(1 - side, pair.numbers[1 - side], "end")
            pair.ended.add(1 - side)

    def gap(self, one: int, two: int) -> None:
        """A hole."""
        if two % 4 == 1:
            self.lose(one % 2, 8 + two)


ACTIONS: list[Callable[[Talker, int, int], None]] = [
    getattr(Talker, name)
    for name, often in {
        "begin": 2, "attach": 4, "flow": 3, "transfer": 10, "settle": 6, "detach": 2, "end": 1,
        "gap": 1,
    }.items()
    for _ in range(often)
]  # fmt: skip


def made(numbers: list[int], holes: bool, late: bool) -> list[tuple[Said, bytes]]:
    """A conversation of numbers; `late`: its first half is not in the capture."""
    talker = Talker()
    talker.begin(0, 1)
    for number in numbers:
        rest, action = divmod(number * _MIX % 2**64, len(ACTIONS))
        one, two = divmod(rest, 1009)
        if holes or ACTIONS[action] is not Talker.gap:
            ACTIONS[action](talker, one % 997, two)
    if numbers[0] % 3 == 0:
        talker.say(numbers[0] % 2, 0, "close")
    if not late:
        return talker.said
    kept = talker.said[len(talker.said) // 2 :]
    first = Said(0, START_NS, 0, 0, LATE, {})
    return [(first, b""), *kept]


def by_engine(conversation: list[tuple[Said, bytes]]) -> dict[str, list[dict[str, Any]]]:
    """The rows that the engine gives; packets have the numbers of what was said."""
    engine, fed = Engine(ports=[5672]), {}
    late = conversation[0][0].name == LATE
    if any(said.name == LOSS for said, _ in conversation):
        for octets, side in (amqp10.HEADER, 0), (amqp10.HEADER, 1), *_opens():
            engine.feed_bytes(KEY, SIDES[side], octets, START_NS)
            fed[len(fed) + 1] = 0
        for said, octets in conversation:
            fed[len(fed) + 1] = said.packet
            if said.name == LOSS:
                engine.gap(KEY, SIDES[said.side], said.octets, said.ts_ns)
            else:
                engine.feed_bytes(KEY, SIDES[said.side], octets, said.ts_ns)
    else:
        talk = wire.Talk(ports=(40000, 5672), step_ns=0)
        if not late:
            talk.hands()
            for octets, side in (amqp10.HEADER, 0), (amqp10.HEADER, 1), *_opens():
                talk.put(side, octets)
        numbers = [(0, packet) for packet in talk.packets]
        for said, octets in conversation:
            talk.packets.clear()
            if octets:
                talk.put(said.side, octets)
            numbers += [(said.packet, each._replace(ts_ns=said.ts_ns)) for each in talk.packets]
        for place, (number, packet) in enumerate(numbers, 1):
            fed[place] = number
            engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type)
    engine.finish()
    found = {}
    for table in ("messages", "links", "channels"):
        found[table] = [
            {
                name: fed.get(value, value) if name.endswith("packet_number") else value
                for name, value in row.items()
            }
            for row in engine.take(table).to_pylist()
        ]
    return found


def _opens() -> list[tuple[bytes, int]]:
    return [(amqp10.frame("open", container_id=side), place) for place, side in enumerate(SIDES)]


def same(conversation: list[tuple[Said, bytes]]) -> None:
    """The engine's rows have what the reference's have, in any order."""
    wanted = expected([said for said, _ in conversation])
    found = by_engine(conversation)
    for table, rows in wanted.items():
        names = list(rows[0]) if rows else []
        mine = [{name: row[name] for name in names if name in row} for row in found[table]]
        assert not mine or mine[0].keys() == set(names)
        assert _sorted(mine) == _sorted(rows), table


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: [str(row[name]) for name in sorted(row)])


@pytest.mark.parametrize(("holes", "late"), [(False, False), (True, False), (False, True)])
@given(numbers=st.lists(st.integers(0, 2**40), min_size=20, max_size=120))
@example([1, 1, 1, 1, 1, 1, 1, 1, 0, 2, 2, 2, 10, 302940, 1, 0, 0, 0, 0, 1])
@example([1, 2, 2, 992, 2717, 1, 1, 2, 2, 5977, 0, 0, 1, 1, 1, 1, 1, 1735, 1208, 181])
@example([1, 0, 1, 1, 1, *[2] * 5, 64980, 22805, *[0] * 7, 31311386])
@example([1, 1, 1, 91, *[1] * 9, 80355662, 159496, 273577, 1491, 0, 2456, 217])
@settings(max_examples=rounds(200))
def test_the_engine_agrees_with_the_reference(holes: bool, late: bool, numbers: list[int]) -> None:
    """Messages, links and sessions of random conversations."""
    same(made(numbers, holes, late))
