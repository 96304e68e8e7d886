"""Two captures of one application: what is called a difference, and what is noise."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from amqpsniff.compare import CaptureProfile, before_and_after, names, topology
from amqpsniff.compare.before_after import regressions
from amqpsniff.compare.noise import MIN_COUNT, direction, slower
from amqpsniff.session.counts import Histogram
from tests.cli.running import run
from tests.compare.editing import PAIRS
from tests.conftest import CAPTURES, SAMPLES
from tests.session.script import Script, wired
from tests.thorough import some
from tests.tls.talk import write

SECOND_NS = 1_000_000_000
MILLISECOND = 1_000_000


def spread_of(values: list[int]) -> Histogram:
    made = Histogram()
    for value in values:
        made.add(value)
    return made


def times(count: int, middle_ns: int, seed: int) -> Histogram:
    """Latencies as they come: most near a value, some far above."""
    random = Random(seed)
    return spread_of([int(middle_ns * random.lognormvariate(0, 0.5)) for _ in range(count)])


@pytest.mark.parametrize("count", [3, 19, 30, 100, 2000])
def test_the_same_latencies_are_never_called_slower(count: int) -> None:
    """40 pairs of samples of one distribution, at three quantiles each."""
    called = 0
    for seed in range(40):
        one, other = times(count, 3 * MILLISECOND, seed), times(count, 3 * MILLISECOND, 1000 + seed)
        called += any(slower(one, other, part) for part in (0.5, 0.95, 0.99))
    assert called <= 1


def test_what_is_twice_as_slow_is_called_so() -> None:
    for seed in range(20):
        one, other = times(200, 3 * MILLISECOND, seed), times(200, 6 * MILLISECOND, 99 + seed)
        assert slower(one, other, 0.5)
        assert not slower(other, one, 0.5)


def test_three_samples_say_nothing() -> None:
    one, other = spread_of([1000] * (MIN_COUNT - 1)), spread_of([10**9] * (MIN_COUNT - 1))
    assert not slower(one, other, 0.95)
    one, other = spread_of([1000] * MIN_COUNT), spread_of([10**9] * MIN_COUNT)
    assert slower(one, other, 0.5)
    assert not slower(one, other, 0.95)
    assert slower(spread_of([1000] * 127), spread_of([10**9] * 127), 0.95)


def test_differences_that_nobody_feels_are_not_told() -> None:
    assert not slower(spread_of([20_000] * 500), spread_of([90_000] * 500), 0.5)
    assert not slower(spread_of([10**7] * 500), spread_of([int(1.2 * 10**7)] * 500), 0.5)


@pytest.mark.parametrize(
    ("before", "after", "spans", "told"),
    [
        (1000, 1000, (10, 10), None),
        (1000, 100, (10, 1), None),  # a shorter capture
        (1000, 1100, (10, 10), None),  # 10 %
        (1000, 1500, (10, 10), "more"),
        (1500, 1000, (10, 10), "fewer"),
        (0, 5, (10, 10), None),  # too few
        (0, 40, (10, 10), "more"),
        (20, 30, (10, 10), None),  # chance
        (1000, 0, (10, 0), None),  # no time
    ],
)
def test_rates(before: int, after: int, spans: tuple[int, int], told: str | None) -> None:
    found = direction(before, after, (spans[0] * SECOND_NS, spans[1] * SECOND_NS))
    assert found == told


@pytest.mark.parametrize(
    ("name", "lasting"),
    [
        ("orders-2", "orders-2"),
        ("v10.eu", "v10.eu"),
        ("amq.gen-6lw3TmAY_pU9oqoVSz0EfQ", "amq.gen-*"),
        ("worker 10.0.0.1:51234 pid 20417", "worker 10.0.0.1:* pid *"),
        ("reply.0f3c2b1a-0d3e-4f5a-9b8c-7d6e5f4a3b2c", "reply.*"),
        ("ctag1.4f5e6d7c8b9a", "ctag1.*"),
        ("decade", "decade"),
        ("feedface", "feedface"),
    ],
)
def test_names_that_are_made_up(name: str, lasting: str) -> None:
    assert names.lasting(name) == lasting


def test_what_a_finding_is_about() -> None:
    detail = "404 NOT_FOUND - no queue 'missing' in vhost 'shop'; answer in packet 489"
    assert names.subjects(detail) == ("404", "missing", "shop")
    assert names.subjects("queue q08; at most 3 were unacknowledged") == ("q08",)
    assert names.subjects("60 messages in packets 18 to 325") == ()


def report(before: Path, after: Path) -> dict[str, Any]:
    """What the command says."""
    code, out, err = run("diff", before, after, "--format", "json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize(
    "path",
    some(sorted(path for path in SAMPLES.rglob("*.pcap*") if path.name != "tls13.pcap"), 2),
    ids=lambda path: path.name,
)
def test_a_capture_against_itself_has_no_differences(path: Path) -> None:
    found = report(path, path)
    assert found["notable_count"] == 0
    assert {row["change"] for row in found["findings"]} <= {"same"}
    assert all(row["change"] == "same" for row in found["clients"] + found["closes"])
    assert not any(rows for name, rows in found["topology"].items() if name != "forgotten")
    for row in found["rates"]:
        assert row["before"] == row["after"]
    for row in found["latencies"]:
        assert row["before"] == row["after"]


def test_another_version_of_an_application() -> None:
    found = report(PAIRS / "before.pcap.gz", PAIRS / "after.pcap.gz")
    latencies = {row["name"]: row for row in found["latencies"]}
    assert latencies["confirmed"]["notable"] == "slower"
    assert latencies["confirmed"]["notable_at"] == ["p50"]
    assert latencies["queue.bind"]["notable"] is None  # 1 and 2 of them
    changes = {
        name: [(row["change"], row["fields"]) for row in rows]
        for name, rows in found["topology"].items()
        if name != "forgotten"
    }
    assert [change for change, _ in changes["queues"]] == ["new", "changed"]
    assert changes["queues"][1][1] == {"arguments": [{"x-max-length": 1000}, {"x-max-length": 500}]}
    assert changes["consumers"] == [("changed", {"prefetch_count": [20, 1]})]
    assert changes["publishers"] == [("changed", {"routing_keys": [[], ["us.new"]]})]
    new = {row["code"]: row for row in found["findings"] if row["change"] == "new"}
    assert {"channel-closed-by-broker", "prefetch-too-small"} <= set(new)
    row = new["channel-closed-by-broker"]
    assert row["client"] == "orders-worker"
    assert row["about"] == ["404", "orders.us", "/"]
    assert row["before"] is None
    assert row["after"]["count"] == 1
    assert not [row for row in found["findings"] if row["change"] == "gone"]


def test_the_same_application_again_after_a_while() -> None:
    """Client's and broker's end of one run: other times and other packets, and no difference."""
    found = report(PAIRS / "path_client.pcap.gz", PAIRS / "path_broker.pcap.gz")
    assert {row["change"] for row in found["findings"]} <= {"same"}
    assert not [row for row in found["rates"] if row["notable"]]


def test_regressions() -> None:
    one, other = CaptureProfile(["a"]), CaptureProfile(["b"])
    one.latencies["outcome", "confirmed"] = times(500, 2 * MILLISECOND, 1)
    other.latencies["outcome", "confirmed"] = times(500, 3 * MILLISECOND, 2)
    one.latencies["reply", "queue.declare"] = times(3, 2 * MILLISECOND, 3)
    other.latencies["reply", "queue.declare"] = times(3, 90 * MILLISECOND, 4)
    assert [row["name"] for row in regressions(one, other, 20)] == ["confirmed"]
    assert regressions(one, other, 300) == []
    assert regressions(other, one, 0) == []


def side(**sections: list[dict[str, Any]]) -> CaptureProfile:
    empty: dict[str, Any] = {section.name: [] for section in topology.SECTIONS}
    return CaptureProfile(["x"], span_ns=SECOND_NS, topology=empty | sections)


def queue(name: str, vhost: str | None = "/", **facts: Any) -> dict[str, Any]:
    known = dict.fromkeys(("durable", "exclusive", "auto_delete", "arguments"))
    return {"vhost": vhost, "queue": name, "delivered": 0} | known | facts


def test_names_made_up_by_the_broker_are_one_name() -> None:
    one = side(queues=[queue("amq.gen-AAAA1111"), queue("amq.gen-BBBB2222")])
    other = side(queues=[queue("amq.gen-CCCC3333")])
    assert topology.compared(one, other)["queues"] == []


def test_what_began_before_a_capture_is_not_new() -> None:
    one = side(queues=[queue("orders", durable=True)])
    other = side(queues=[queue("orders", None), queue("other", None)])
    assert topology.compared(one, other)["queues"] == []
    (row,) = topology.compared(side(queues=[queue("orders")]), side())["queues"]
    assert (row["change"], row["notable"]) == ("gone", "gone")


def test_very_many_queues_of_unknown_virtual_hosts() -> None:
    """Each is looked up; compared with all others, they would take minutes."""
    unknown = side(queues=[queue(f"q{chr(0x4E00 + number)}", None) for number in range(12_000)])
    known = side(queues=[queue(f"q{chr(0x4E00 + number)}") for number in range(12_000)])
    assert topology.compared(unknown, known)["queues"] == []


def test_every_section_is_in_the_report() -> None:
    found = before_and_after(CaptureProfile(["a"]), CaptureProfile(["b"]))
    assert found["notable_count"] == 0
    assert found["rates"] == found["latencies"] == found["findings"] == []
    assert len(found["caveats"]) == 2


def test_how_channels_ended(tmp_path: Path) -> None:
    """By their own close; of those that end with their connection it is told."""
    begin = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
    close = "C1: channel.close reply_code=200\nS1: channel.close-ok\n"
    refused = "S1: channel.close reply_code=404 reply_text=gone class_id=50 method_id=10\n"
    ended = "C: connection.close reply_code=200\nS: connection.close-ok\n"
    paths = [tmp_path / "before.pcap", tmp_path / "after.pcap"]
    for path, lines in zip(paths, (close, refused + "C1: channel.close-ok\n"), strict=True):
        script = Script(begin + lines + begin[10:].replace("1", "2") + ended)
        write(path, [packet for _, packet in wired(script)])
    assert [
        (row["what"], row["closed_by"], row["code"], row["text"], row["change"], row["notable"])
        for row in report(*paths)["closes"]
    ] == [
        ("channel", "server", 404, "gone", "new", "new"),
        ("channel", "client", 200, None, "gone", None),
        ("connection", "client", 200, None, "same", None),
    ]


def test_how_sessions_ended() -> None:
    path = CAPTURES / "amqp10/rabbitmq43_rhea.pcap.gz"
    ends = [row for row in report(path, path)["closes"] if row["what"] == "channel"]
    assert [(row["closed_by"], row["text"]) for row in ends] == [
        ("server", "amqp:session:unattached-handle: Unattached link handle: 0")
    ]
