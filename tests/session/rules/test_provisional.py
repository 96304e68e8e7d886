"""What hangs is said while it hangs, and in the end as it was in the end."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from amqpsniff.findings import Finding
from amqpsniff.findings.log import FindingLog
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from amqpsniff.session.rules import provisional
from amqpsniff.session.rules.context import MAX_PROVISIONAL, RuleContext
from tests.session.script import Remembering, Script
from tests.tcp import wire

OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
CONFIRMING = OPEN + "C1: confirm.select\nS1: confirm.select-ok\n"
CONSUMING = (
    OPEN
    + """
    C1: basic.qos prefetch_count=1
    S1: basic.qos-ok
    C1: basic.consume queue=q consumer_tag=t
    S1: basic.consume-ok consumer_tag=t
"""
)
ALIVE = "@+{}ms S: connection.unblocked\n"
PUBLISH = "C1: basic.publish exchange=e | body=5\n"
DELIVER = "S1: basic.deliver consumer_tag=t delivery_tag=1 | body=5\n"
CALL = "C1: basic.publish routing_key=work | body=1 reply_to=q correlation_id={}\n"
ANSWER = "S1: basic.deliver consumer_tag=t delivery_tag=1 | body=1 correlation_id={}\n"
STUCK = (
    "consumer 't' of queue 'q' held 1 delivery of 1 allowed, the oldest from packet 17, and "
    "acknowledged nothing for {} so far"
)
UNANSWERED = (
    "1 request without an answer, on channel 1 to the default exchange with routing key 'work', "
    "for {}"
)
TAKEN_BACK = "taken back"


def said(text: str, code: str, at_once: bool = False) -> tuple[list[str], list[str]]:
    """Details of a code: as they become news, packet by packet or all at once, and in the end."""
    pipeline = Pipeline(plan=Plan(("messages", "findings")))
    pipeline.log.watch()
    talk = wire.Talk()
    talk.hands()
    stamps = [packet.ts_ns for packet in talk.packets]
    packets = Script(text).packets
    for packet in packets:
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    base = max(stamps)
    times = stamps + [base + packet.ts_ns - packets[0].ts_ns for packet in packets]
    fed = [one._replace(ts_ns=ns) for one, ns in zip(talk.packets, times, strict=True)]
    news: list[str] = []
    step = len(fed) if at_once else 1
    for place in range(0, len(fed), step):
        pipeline.feed(wire.batch(fed[place : place + step], place + 1))
        told = [one for one in pipeline.log.news() if one.code == code]
        news += [one.detail if one.count else TAKEN_BACK for one in told]
    pipeline.finish()
    return news, [one.detail for one in pipeline.findings() if one.code == code]


CASES = {
    "confirms-slow": (
        CONFIRMING + PUBLISH + PUBLISH + ALIVE.format(5000) + ALIVE.format(9000),
        "publish number 1 was without a confirm for 5.00 s",
        "2 publishes without a confirm, the first, number 1, for 14.0 s",
    ),
    "consumer-slow": (
        CONSUMING + DELIVER + ALIVE.format(30_000) + "@+9000ms C1: basic.ack delivery_tag=1\n",
        "delivery 1 was not acknowledged for 30.0 s (from 'q')",
        "1 acknowledgement, after 39.0 s (from 'q')",
    ),
    "reply-missing": (
        OPEN + "C1: queue.declare queue=q\n" + ALIVE.format(5001) + ALIVE.format(9000),
        "queue.declare on channel 1 had no answer in 5.00 s",
        "queue.declare on channel 1 had no answer in 14.0 s",
    ),
    "consumer-stuck": (
        CONSUMING + DELIVER + ALIVE.format(30_000) + ALIVE.format(9000),
        STUCK.format("30.0 s"),
        STUCK.format("39.0 s"),
    ),
    "rpc-unanswered": (
        CONSUMING + CALL.format("a") + ALIVE.format(10_001) + ALIVE.format(9000),
        UNANSWERED.format("10.0 s"),
        UNANSWERED.format("19.0 s"),
    ),
    "connection-blocked": (
        OPEN + "S: connection.blocked reason=disk\n@+3000ms S: connection.unblocked\n",
        "disk",
        "disk, for 3.00 s",
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_it_is_said_while_it_goes_on(code: str) -> None:
    text, early, late = CASES[code]
    news, end = said(text, code)
    assert news[0] == early
    assert end == [late]


@pytest.mark.parametrize("code", CASES)
def test_it_does_not_depend_on_batches(code: str) -> None:
    text = CASES[code][0]
    assert said(text, code)[1] == said(text, code, at_once=True)[1]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("confirms-slow", CONFIRMING + PUBLISH + ALIVE.format(4999)),
        ("consumer-slow", CONSUMING + DELIVER + ALIVE.format(29_999)),
        ("reply-missing", OPEN + "C1: queue.declare queue=q\n" + ALIVE.format(5000)),
        ("consumer-stuck", CONSUMING + DELIVER + ALIVE.format(29_999)),
        ("rpc-unanswered", CONSUMING + CALL.format("a") + ALIVE.format(10_000)),
    ],
)
def test_one_step_less_is_no_hang(code: str, text: str) -> None:
    assert said(text, code) == ([], [])


def test_what_was_foreseen_and_is_not_said_at_the_end_stays() -> None:
    """A nack is no slow confirm; that the publisher waited so long is true all the same."""
    text = CONFIRMING + PUBLISH + ALIVE.format(6000) + "@+1ms S1: basic.nack delivery_tag=1\n"
    news, end = said(text, "confirms-slow")
    assert news == end == ["publish number 1 was without a confirm for 6.00 s"]


def test_an_answer_that_came_late_takes_the_place_of_one_that_was_missing() -> None:
    text = OPEN + "C1: queue.declare queue=q\n" + ALIVE.format(6000)
    news, end = said(text + "@+3000ms S1: queue.declare-ok queue=q\n", "reply-missing")
    assert news == ["queue.declare on channel 1 had no answer in 6.00 s", *end]
    assert end == ["queue.declare was answered after 9.00 s"]


GOES_ON = {
    "consumer-stuck": (
        CONSUMING + DELIVER + ALIVE.format(30_000),
        "@+1ms C1: basic.ack delivery_tag=1\n" + DELIVER.replace("tag=1", "tag=2"),
    ),
    "rpc-unanswered": (
        CONSUMING + CALL.format("a") + ALIVE.format(10_001),
        "@+1ms " + ANSWER.format("a"),
    ),
}


def test_a_consumer_that_has_done_its_work_is_not_stuck_any_more() -> None:
    """What goes on is taken back, though nothing waits for its acknowledgement now."""
    hangs, _ = GOES_ON["consumer-stuck"]
    text = hangs + "@+1ms C1: basic.ack delivery_tag=1\n" + ALIVE.format(5000)
    news, end = said(text, "consumer-stuck")
    assert (news[1:], end) == ([TAKEN_BACK], [])


@pytest.mark.parametrize(
    "close",
    [
        "C1: channel.close\n",
        "S1: channel.close reply_code=404\n",
        "C: connection.close\n",
        "S: connection.close\n",
    ],
)
def test_what_waits_when_somebody_closes_is_not_foreseen(close: str) -> None:
    waits = CONFIRMING + PUBLISH
    assert said(waits + ALIVE.format(6000), "confirms-slow")[0]
    assert not said(waits + close + ALIVE.format(6000), "confirms-slow")[0]


@pytest.mark.parametrize("code", GOES_ON)
@pytest.mark.parametrize("after", ["", ALIVE.format(5000), "C1: channel.close\n", "FIN C\n"])
def test_what_goes_on_after_all_is_taken_back(code: str, after: str) -> None:
    """When the next frame comes after a while, or the channel ends: a file says nothing of it."""
    hangs, goes_on = GOES_ON[code]
    news, end = said(hangs + goes_on + after, code)
    assert (len(news), end) == (2 if after.startswith("@") else 1, [])
    assert news[1:] in ([], [TAKEN_BACK])
    assert said(hangs + goes_on + after, code, at_once=True)[1] == []


def test_what_hangs_again_is_said_again() -> None:
    hangs, goes_on = GOES_ON["consumer-stuck"]
    slept = "@+1000ms C1: basic.ack delivery_tag=2\n" + DELIVER.replace("tag=1", "tag=3")
    text = hangs + goes_on + ALIVE.format(5000) + slept + ALIVE.format(400_000)
    news, end = said(text, "consumer-stuck")
    assert [one == TAKEN_BACK for one in news] == [False, True, False]
    assert end == news[2:]


def test_more_requests_without_an_answer_are_counted() -> None:
    one = CALL.format("a") + ALIVE.format(11_000)
    two = CALL.format("b") + ALIVE.format(5000) + ALIVE.format(6000) + ALIVE.format(5000)
    news, end = said(CONSUMING + one + two, "rpc-unanswered")
    assert [line.split(" without")[0] for line in (*news, *end)] == [
        "1 request", "2 requests", "2 requests"
    ]  # fmt: skip


def test_a_channel_opened_again_is_another() -> None:
    hangs = "C1: confirm.select\nS1: confirm.select-ok\n" + PUBLISH + ALIVE.format(6000)
    again = "C1: channel.close\nS1: channel.close-ok\nC1: channel.open\nS1: channel.open-ok\n"
    _, end = said(OPEN + hangs + again + hangs, "confirms-slow")
    assert end == ["1 publish without a confirm, the first, number 1, for 6.00 s"]


def test_no_more_channels_than_the_limit_are_looked_at() -> None:
    most = provisional.MAX_CHECKED - 1  # channel 0 is one
    channels = "".join(
        f"C{n}: channel.open\nS{n}: channel.open-ok\nC{n}: confirm.select\n"
        f"S{n}: confirm.select-ok\nC{n}: basic.publish exchange=e | body=5\n"
        for n in range(1, most + 3)
    )
    news, end = said("handshake\n" + channels + ALIVE.format(6000), "confirms-slow")
    assert (len(news), len(end)) == (most, most + 2)


def test_many_of_one_code_leave_room_for_another() -> None:
    numbers = range(1, MAX_PROVISIONAL + 3)
    opened = "C{0}: channel.open\nS{0}: channel.open-ok\n"
    memory = Remembering(Script("handshake\n" + "".join(map(opened.format, numbers))))
    tracker, session = memory.pipeline.tracker, memory.session
    tracker.log.watch()
    for number in numbers:
        at = RuleContext(tracker, session, session.slot(number).channel, 1, 1)
        at.report_provisional("confirms-slow", "detail", 1, 1, absent=False)
    at.report_provisional("consumer-slow", "detail", 1, 1, absent=False)
    codes = [one.code for one in tracker.log.news()]
    assert codes == ["confirms-slow"] * MAX_PROVISIONAL + ["consumer-slow"]


def test_what_is_found_already_is_not_foreseen() -> None:
    log = FindingLog()
    log.watch()
    assert log.foresee(Finding("confirms-slow", "first", connection_id="c", channel=1))
    assert not log.foresee(Finding("confirms-slow", "second", connection_id="c", channel=1))
    (key,) = [one.key for one in log.news()]
    log.withdraw(key)
    log.withdraw(key)
    assert [(one.detail, one.count) for one in log.news()] == [("first", 0)]
    assert (log.news(), log.take()) == ([], [])


@pytest.mark.parametrize("waiting", [1, 3, 64, 2_000])
def test_a_frame_pays_for_one_channel_at_most(waiting: int) -> None:
    """Who leaves many channels waiting and sends a heartbeat now and then has no more looked at."""
    asked: list[int] = []

    class Tracker:
        def emit(self, event: str, channel: SimpleNamespace, *more: object) -> None:
            asked.append(channel.number)

    slots = {
        number: SimpleNamespace(
            number=number,
            requests=[],
            channel=SimpleNamespace(
                number=number, closing=(False, False), by_tag={}, unconfirmed=1, unsettled=0
            ),
        )
        for number in range(1, waiting + 1)
    }
    session = SimpleNamespace(
        closed_by=None, memory={}, pending_rpcs=0, frames=0, slots=slots.values
    )
    for number in range(1_000):
        session.frames += 1
        provisional.check_waiting(Tracker(), session, number, number * 5_000_000_000)
    assert 200 <= len(asked) <= 1_000 + provisional.MAX_CHECKED
    assert len(set(asked)) == min(waiting, provisional.MAX_CHECKED)
