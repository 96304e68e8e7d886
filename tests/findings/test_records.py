"""What readers of some connections record, and what it comes to together."""

from __future__ import annotations

import marshal
from types import SimpleNamespace

import pytest

from amqpsniff.findings import Records
from amqpsniff.findings.records import NEVER, Order, order_of, order_of_end

PLACE = ("x.pcap", 7, 70, "id", "c:1", "s:2")
KEY = ("connection-unnamed", "x.pcap", "client")


@pytest.mark.parametrize(
    ("given", "order"),
    [
        ((5, "x.pcap", 9), (5, 0, "x.pcap", 9)),
        ((None, None, None), (0, 0, "", 0)),
    ],
)
def test_when_something_is_known(
    given: tuple[int | None, str | None, int | None], order: Order
) -> None:
    assert order_of(*given) == order


@pytest.mark.parametrize(
    ("over_ns", "start_ns", "capture", "order"),
    [
        (8, 3, "x.pcap", (8, 0, "x.pcap", 9)),
        (0, 3, None, (0, 0, "", 9)),
        (-1, 3, "x.pcap", (NEVER, 3, "x.pcap", 4)),
        (-1, -5, None, (NEVER, 0, "", 4)),
    ],
)
def test_when_an_end_is_known(
    over_ns: int, start_ns: int, capture: str | None, order: Order
) -> None:
    """What never ended while the capture lasted comes after all that did, oldest first."""
    one = SimpleNamespace(
        over_ns=over_ns, start_ns=start_ns, first_packet_number=4, last_packet_number=9
    )
    assert order_of_end(one, capture) == order
    one.first_packet_number = one.last_packet_number = None
    assert order_of_end(one, capture) == (*order[:3], 0)
    assert order < (2**63 - 1, 4, "", 0)


def seen(*times: int) -> Records:
    """The same thing seen in packets of these times."""
    records = Records()
    for at in times:
        place = ("x.pcap", at, *PLACE[2:])
        records.seen(order_of(at, "x.pcap", at), KEY, lambda at=at: f"at {at}", place)  # type: ignore[misc]
    return records


@pytest.mark.parametrize("times", [(3, 5, 8), (8, 5, 3), (5, 3, 8), (5, 8, 3)])
@pytest.mark.parametrize("shared", [False, True])
def test_it_is_told_as_the_first_says(times: tuple[int, ...], shared: bool) -> None:
    """Whoever sees it first, and by however many readers."""
    records = seen() if shared else seen(*times)
    for at in times if shared else ():
        records.add(seen(at))
    order, words, place, count, last, packet = records.once[KEY]
    assert (order[0], words, place[1], count, last[0], packet) == (3, "at 3", 3, 3, 8, 8)


def test_words_are_made_for_the_first_only() -> None:
    records = seen(3)
    records.seen(order_of(3, "x.pcap", 3), KEY, lambda: 1 / 0, PLACE)  # type: ignore[arg-type,return-value]
    assert records.once[KEY][3] == 2


def test_packets_that_are_not_known() -> None:
    records = Records()
    for number in (None, None, 4, None):
        place = ("x.pcap", number, *PLACE[2:])
        records.seen(order_of(1, "x.pcap", number), KEY, str, place)
    assert records.once[KEY][5] == 4
    records = Records()
    for _ in range(2):
        records.seen(order_of(1, "x.pcap", None), KEY, str, ("x.pcap", None, *PLACE[2:]))
    assert records.once[KEY][5] is None


def whole() -> Records:
    """Something of everything."""
    records = seen(3)
    records.note((1, 0, "x.pcap", 2), "churn.judge_short", "x.pcap", (1, ["a"]))
    records.count("news", (1, 2, 3, 4))
    records.outstanding.append(((1, 0, "x.pcap", 2), ("host", 1), 5, ((1, 2),)))
    records.unknown_acks.append(
        ((1, 0, "x.pcap", 2), ("host", 1), 7, (0, 0, "", 0), 3, ("id", 1, 1))
    )
    records.forget({"names": 2})
    records.hit({"rows": 3})
    records.attempts.ports.add(5672)
    records.attempts.established("10.0.0.2:5672", 7)
    return records


def test_records_as_plain_values() -> None:
    records = whole()
    again = Records.of(marshal.loads(marshal.dumps(records.plain())))
    assert vars(again.attempts) == vars(records.attempts)
    assert {**vars(again), "attempts": None} == {**vars(records), "attempts": None}


def test_records_of_two() -> None:
    records = whole()
    records.add(whole())
    assert records.once[KEY][3] == 2
    assert [len(each) for each in (records.notes, records.outstanding, records.unknown_acks)] == [
        2,
        2,
        2,
    ]
    assert records.exchanges == {"news": (2, 4, 6, 8)}
    assert (records.forgotten, records.limits) == ({"names": 4}, {"rows": 6})
