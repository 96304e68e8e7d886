"""Captures with packets missing, cut, or of one direction only, compared with the whole capture.

The rows of a damaged capture may say less than those of the whole one, but nothing else. What the
damage makes look open, though the capture cannot show that anything is missing (it ends before the
answer, and no packet that is left acknowledges the answer), is counted apart. With more damage:

    python -m tests.session.damaging CAPTURE … [--rounds 20] [--seed 1]
"""

from __future__ import annotations

import argparse
import random
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from amqpsniff import Engine
from tests.decode.feeding import packets_of
from tests.tcp.wire import ACK

Packet = tuple[int, int, bytes, int, int]
"""(number, ts_ns, bytes, original length, link type)."""

Row = dict[str, Any]

OPEN = ("unconfirmed", "unsettled")
LINK_BYTES = {0: 4, 1: 14, 101: 0, 113: 16, 228: 0, 229: 0, 276: 20}
SNAP_LENGTHS = (64, 80, 96, 104, 120, 128, 160, 200, 256)
COUNTS = ("published", "confirmed", "returned", "delivered", "acknowledged")
METHODS = ["client", "sender", "channel", "method", "packet_number", "response_packet_number"]
DEPTHS = ("unsettled_max", "unsettled_end", "unconfirmed_max", "unconfirmed_end")


class Segment(NamedTuple):
    """What a packet says in its TCP header; `end` is the sequence number after its payload,
    `acknowledged` None for a SYN or RST without it.
    """

    sender: tuple[bytes, int]
    receiver: tuple[bytes, int]
    end: int
    acknowledged: int | None


class Damage(NamedTuple):
    """A capture that lacks something; `kind` names what was done."""

    kind: str
    packets: list[Packet]


class Said(NamedTuple):
    """Rows of messages, channels and methods, with the packet numbers of the whole capture; `lossy`
    has the clients whose connections have holes, or messages that were cut.
    """

    messages: list[Row]
    channels: list[Row]
    methods: list[Row]
    lossy: set[str]


class Verdict(NamedTuple):
    """How many message rows say the same, less, something else, or lack what cannot be seen; or
    more, where the whole capture lacks something itself.
    """

    counts: Counter[str]
    wrong: list[str]


def rows_of(packets: Sequence[Packet]) -> Said:
    """What is said of some packets of a capture."""
    engine = Engine()
    numbers = [0]
    for number, ts_ns, octets, original, link_type in packets:
        engine.feed_packet(octets, ts_ns, link_type, original)
        numbers.append(number)
    engine.finish()
    methods = engine.take("frames").select(METHODS).to_pylist()
    said = Said(
        engine.take("messages").to_pylist(),
        engine.take("channels").to_pylist(),
        [row for row in methods if row["method"] is not None],
        {row["client"] for row in engine.take("connections").to_pylist() if row["gaps"]},
    )
    said.lossy.update(row["client"] for row in said.messages if row["status"] == "truncated")
    for row in (*said.messages, *said.channels, *said.methods):
        for name, value in row.items():
            if name.endswith("packet_number") and value is not None:
                row[name] = numbers[value]
    return said


def damages(packets: list[Packet], seed: int, rounds: int) -> Iterator[Damage]:
    """The capture damaged in every way, `rounds` times each, by chance."""
    chance = random.Random(seed)
    whole = len(packets)
    senders = sorted({segment.sender for one in packets if (segment := _segment(one))})
    for _ in range(rounds):
        lost = chance.randrange(whole)
        yield Damage("one", packets[:lost] + packets[lost + 1 :])
        share = chance.choice((0.01, 0.05, 0.2))
        yield Damage("some", [one for one in packets if chance.random() > share])
        lost, count = chance.randrange(whole), chance.choice((2, 5, 20, 60))
        yield Damage("burst", packets[:lost] + packets[lost + count :])
        snap = chance.choice(SNAP_LENGTHS)
        yield Damage("snap", [(n, t, o[:snap], full, link) for n, t, o, full, link in packets])
        late, early = chance.randrange(whole), chance.randrange(whole)
        yield Damage("late", packets[late:])
        yield Damage("early", packets[: 1 + early])
        if senders:
            side = chance.choice(senders)
            share = chance.choice((0.3, 1.0))
            yield Damage(
                "side",
                [
                    one
                    for one in packets
                    if not (found := _segment(one))
                    or found.sender != side
                    or chance.random() > share
                ],
            )
            port = chance.choice(senders)[1]
            begin = chance.randrange(whole)
            yield Damage(
                "direction",
                [
                    one
                    for at, one in enumerate(packets)
                    if at < begin or not (found := _segment(one)) or found.sender[1] != port
                ],
            )


def compare(whole: Said, packets: Sequence[Packet], damage: Damage) -> Verdict:
    """What the damaged capture says beside the whole one."""
    said = rows_of(damage.packets)
    verdict = Verdict(Counter(), [])
    known: dict[Any, list[Row]] = defaultdict(list)
    for row in whole.messages:
        known[_identity(row)].append(row)
    unseen = Unseen(packets, damage.packets)
    places: Counter[Any] = Counter()
    for row in said.messages:
        identity = _identity(row)
        meant = known.get(identity, [])
        place = places[identity]
        places[identity] += 1
        if not meant:
            verdict.counts["not comparable"] += 1
            continue
        rows = [meant[place]] if _alone(said, damage, identity, meant) else meant
        answers = {_judged(row, one, unseen) for one in rows}
        answer = min(answers, key=("same", "less", "unseen", "wrong").index)
        if answer == "wrong" and rows[0]["outcome"] is None and row["client"] in whole.lossy:
            answer = "more"  # the damage hides that something is missing
        verdict.counts[answer] += 1
        if answer == "wrong":
            one = rows[0]
            verdict.wrong.append(
                f"{damage.kind}: packet {row['packet_number']} {row['method']} "
                f"{row['delivery_tag'] or row['publish_number']}: {row['outcome']} "
                f"in {row['outcome_packet_number']}, "
                f"whole: {one['outcome']} in {one['outcome_packet_number']}"
            )
    _compare_channels(whole, said, unseen, damage, verdict)
    _compare_replies(whole, said, unseen, damage, verdict)
    return verdict


def _alone(said: Said, damage: Damage, identity: Any, meant: list[Row]) -> bool:
    """True if the rows of an identity are the same ones in both captures."""
    return sum(_identity(row) == identity for row in said.messages) == len(meant)


def _identity(row: Row) -> Any:
    names = ("client", "packet_number", "channel", "method", "delivery_tag", "routing_key")
    return tuple(row[name] for name in names)


def _judged(row: Row, whole: Row, unseen: Unseen) -> str:
    """Judge a row of a damaged capture."""
    number = row["publish_number"]
    if number is not None and number != whole["publish_number"]:
        return "wrong"
    if row["outcome"] is None:
        return "same" if whole["outcome"] is None else "less"
    if row["outcome"] == whole["outcome"]:
        return "same"
    aborted = whole["status"] == "aborted"
    decided = whole["last_packet_number" if aborted else "outcome_packet_number"]
    return "unseen" if _is_open(row) and unseen.hides(decided) else "wrong"


def _is_open(row: Row) -> bool:
    """True if nothing settled a message: an outcome of AMQP 1.0 may be said before that."""
    said = row["method"] in ("send", "receive") and row["settled_by"] is None
    return said or row["outcome"] in OPEN


class Unseen:
    """Answers that are not in a damaged capture without anything in it that shows so."""

    def __init__(self, packets: Sequence[Packet], kept: Sequence[Packet]) -> None:
        self._segments = {one[0]: _segment(one) for one in packets}
        self._kept = [found for one in kept if (found := self._segments[one[0]]) is not None]
        self._numbers = {one[0] for one in kept}

    def hides(self, number: int | None) -> bool:
        """True if a packet was lost, and nothing that is left shows that its bytes are missing."""
        answer = self._segments.get(number) if number is not None else None
        if answer is None or number in self._numbers:
            return False
        for one in self._kept:
            if one.sender == answer.sender and one.receiver == answer.receiver:
                if _after(one.end, answer.end - 1):
                    return False
            elif one.sender == answer.receiver and one.receiver == answer.sender:
                if one.acknowledged is not None and _after(one.acknowledged, answer.end - 1):
                    return False
        return True

    def again(self, number: int, other: int | None) -> bool:
        """True if two packets end with the same byte of a direction: one was sent again."""
        one, two = self._segments.get(number), self._segments.get(other or 0)
        return one is not None and two is not None and one[:3] == two[:3]


def _after(one: int, other: int) -> bool:
    return 0 < (one - other) % 2**32 < 2**31


def _segment(packet: Packet) -> Segment | None:
    """The TCP header of a packet; None for anything else."""
    _, _, octets, _, link_type = packet
    at = LINK_BYTES.get(link_type)
    if at is None or len(octets) < at + 40:
        return None
    if octets[at] >> 4 == 4:
        size = struct.unpack_from(">H", octets, at + 2)[0]
        addresses = octets[at + 12 : at + 16], octets[at + 16 : at + 20]
        tcp = at + 4 * (octets[at] & 15)
        is_tcp, rest = octets[at + 9] == 6, size - (tcp - at)
    else:
        size = struct.unpack_from(">H", octets, at + 4)[0]
        addresses = octets[at + 8 : at + 24], octets[at + 24 : at + 40]
        tcp, is_tcp, rest = at + 40, octets[at + 6] == 6, size
    if not is_tcp or len(octets) < tcp + 20:
        return None
    source, target, seq, ack, length, flags = struct.unpack_from(">HHIIBB", octets, tcp)
    end = (seq + rest - 4 * (length >> 4)) % 2**32
    acknowledged = ack if flags & ACK else None
    return Segment((addresses[0], source), (addresses[1], target), end, acknowledged)


def _compare_channels(
    whole: Said, said: Said, unseen: Unseen, damage: Damage, verdict: Verdict
) -> None:
    """Counts may be lower; how many waited has to be the same or unknown, unless the damage leaves
    no sign of an answer or of the close that is missing: such a capture ends earlier.
    """
    known = {}
    for row in whole.channels:
        if row["opened_packet_number"] is not None:
            known[row["client"], row["channel"], row["opened_packet_number"]] = row
    hidden = {
        (row["client"], row["channel"])
        for row in whole.messages
        if unseen.hides(row["outcome_packet_number"])
    }
    said_before = {  # the settlement of AMQP 1.0, with another outcome perhaps
        row["client"]
        for row in whole.messages
        if row["settled_by"] and unseen.hides(row["outcome_packet_number"])
    }
    for row in said.channels:
        key = (row["client"], row["channel"], row["opened_packet_number"])
        one = known.get(key)
        if one is None:
            continue
        wrong = [
            name
            for name in COUNTS
            if (row[name] or 0) > (one[name] or 0) and key[0] not in said_before
        ]
        closed = one["closed_packet_number"]
        over = closed is not None and closed <= damage.packets[-1][0] and not unseen.hides(closed)
        exact = over and key[:2] not in hidden
        for name in DEPTHS:
            if row[name] is None or one[name] is None:
                continue
            if (
                row[name] != one[name]
                if exact
                else (name.endswith("_max") and not hidden and row[name] > one[name])
            ):
                wrong.append(name)
        verdict.counts["channels wrong" if wrong else "channels right"] += 1
        for name in wrong:
            verdict.wrong.append(
                f"{damage.kind}: channel {key}: {name} is {row[name]}, whole: {one[name]}"
            )


def _compare_replies(
    whole: Said, said: Said, unseen: Unseen, damage: Damage, verdict: Verdict
) -> None:
    """A request has one of the replies that it has in the whole capture, or none; one behind the
    end of its connection, which may be lost, has any.
    """
    known = defaultdict(set)
    over = set()
    for row in whole.methods:
        if row["client"] not in over:
            known[tuple(row[name] for name in METHODS[:-1])].add(row["response_packet_number"])
        if row["method"] == "connection.close-ok":
            over.add(row["client"])
    for row in said.methods:
        request, reply = tuple(row[name] for name in METHODS[:-1]), row["response_packet_number"]
        if reply is None or request not in known:
            continue
        right = any(reply == one or unseen.again(reply, one) for one in known[request])
        verdict.counts["replies right" if right else "replies wrong"] += 1
        if not right:
            verdict.wrong.append(f"{damage.kind}: {request}: reply in {reply}")


def damage_all(path: Path, seed: int, rounds: int) -> Verdict:
    """Damage a capture in every way and compare."""
    packets = packets_of(path)
    whole = rows_of(packets)
    total = Verdict(Counter(), [])
    for damage in damages(packets, seed, rounds):
        verdict = compare(whole, packets, damage)
        total.counts.update(verdict.counts)
        total.wrong.extend(f"{path.name}: {one}" for one in verdict.wrong)
    return total


def main() -> None:
    """Damage captures by the rounds and show what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("captures", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=5, help="wrong rows shown of each capture")
    given = parser.parse_args()
    total: Counter[str] = Counter()
    for path in given.captures:
        verdict = damage_all(path, given.seed, given.rounds)
        total.update(verdict.counts)
        print(path.name, dict(verdict.counts), flush=True)
        for line in verdict.wrong[: given.show]:
            print("   ", line)
    print("all", dict(total))


if __name__ == "__main__":
    main()
