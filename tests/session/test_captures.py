"""Real captures: what is known to have happened on them, and cut ones, which must not guess."""

from collections import Counter
from pathlib import Path

import pytest

import amqpsniff
from tests.session.capturing import comparable, events_of, rows_of
from tests.session.comparing import ENGINES, same
from tests.session.events import Rows
from tests.session.reference import expected
from tests.thorough import rounds

WHOLE = (
    "aiopika_rpc.pcap",
    "amqplib08.pcap",
    "blocked.pcap",
    "bunny.pcapng",
    "kombu.pcap.gz",
    "node.pcap",
    "php_churn.pcap",
    "pika_mix.pcap",
    "v08_v09.pcap",
)
"""Sample captures from the beginning of their connections on, without losses."""


def _outcomes(rows: Rows) -> dict[str, int]:
    return dict(
        Counter(
            f"{row['method'].partition('.')[2]} {row['outcome'] or '-'}" for row in rows.messages
        )
    )


@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        ("node.pcap", {"publish confirmed": 500, "deliver acked": 500}),
        (
            "aiopika_rpc.pcap",
            {
                "publish confirmed": 100,
                "publish returned": 20,
                "return -": 20,
                "deliver acked": 60,
                "deliver automatic": 60,
            },
        ),
        ("amqplib08.pcap", {"publish -": 26, "get-ok acked": 5, "deliver acked": 20}),
        ("php_churn.pcap", {"publish -": 30, "get-ok acked": 10}),
        ("kombu.pcap.gz", {"publish -": 30, "deliver acked": 30, "deliver requeued": 3}),
        (
            "bunny.pcapng",
            {"publish confirmed": 11, "publish returned": 9, "return -": 9, "deliver acked": 11},
        ),
        (
            "pika_mix.pcap",
            {
                "publish confirmed": 51,
                "publish -": 2,
                "deliver acked": 40,
                "deliver discarded": 10,
                "deliver requeued": 8,
            },
        ),
    ],
)
def test_outcomes_of_whole_captures(samples: Path, name: str, outcomes: dict[str, int]) -> None:
    """Everything was settled, for the clients waited for it."""
    assert _outcomes(expected(events_of(samples / name))) == outcomes


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "reference"])
@pytest.mark.parametrize("name", WHOLE)
def test_the_engine_says_what_the_reference_says(samples: Path, name: str, engine: str) -> None:
    """The session columns of whole captures."""
    same(rows_of(samples / name), comparable(expected(events_of(samples / name))))


@pytest.mark.parametrize("name", ["aiopika_rpc.pcap", "node.pcap", "pika_mix.pcap"])
def test_a_cut_capture_says_nothing_else(samples: Path, name: str) -> None:
    """What is known of a message without the capture's beginning is what is known with it."""
    events = events_of(samples / name)
    whole = _by_place(expected(events))
    everything = frozenset(event.connection for event in events)
    last = events[-1].packet
    for first in range(1, last, max(1, last // rounds(40))):
        cut = [event for event in events if event.packet >= first]
        for place, row in _by_place(expected(cut, everything)).items():
            known = {column: value for column, value in row.items() if value is not None}
            assert known.items() <= whole[place].items(), first


def _by_place(rows: Rows) -> dict[tuple[str, int, int, int], dict[str, object]]:
    """Messages by connection, channel, packet and place in it."""
    seen: Counter[tuple[str, int, int]] = Counter()
    places = {}
    for row in rows.messages:
        packet = (row["connection"], row["channel"], row["packet_number"])
        place = (*packet, seen[packet])
        places[place] = row
        seen[packet] += 1
    return places


def test_no_time_is_negative_where_the_clock_was_set_back() -> None:
    """In the middle of four connections, by an hour; real, with its times shifted by editcap."""
    capture = amqpsniff.open("tests/captures/cases/clock_set_back.pcapng.gz")
    (finding,) = (one for one in capture.findings() if one.code == "clock-set-back")
    assert finding.packet_number == 151
    assert finding.detail.startswith("packet 151 is 1 h before")
    for table in ("frames", "messages", "connections", "channels"):
        for row in capture.table(table).to_pylist():
            assert all(value >= 0 for name, value in row.items() if name.endswith("_ns") and value)
            assert (row.get("end_ns") or row.get("start_ns", 0)) >= row.get("start_ns", 0)
