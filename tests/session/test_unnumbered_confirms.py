"""The least times to confirms of publishes without known numbers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.session.settling import FEW_PLACES, UnnumberedConfirms
from tests.session.script import Script, written
from tests.thorough import rounds

MS = 1_000_000


def talk(chance: random.Random) -> list[tuple[int, str, int, bool]]:
    """A channel from before: (time, "publish" or "confirm", number, multiple), times are unique.

    Negative times are before the capture. A confirm of several names the last of them; others come
    one by one, some before those of earlier publishes.
    """
    at, moments = -400, []
    waiting: list[tuple[int, int]] = []
    window = chance.choice((1, 3, 30, 300))
    patience = chance.choice((1, 20, 500))
    number = 0
    for _ in range(600):
        at += chance.randint(1, 3)
        if len(waiting) < window and chance.random() < 0.5:
            number += 1
            waiting.append((number, at))
            moments.append((at, "publish", number, False))
            continue
        old = [one for one in waiting if at - one[1] >= patience]
        if not old:
            continue
        some = chance.choice(old)[0]
        multiple = chance.random() < 0.5
        moments.append((at, "confirm", some, multiple))
        waiting = [one for one in waiting if (one[0] > some if multiple else one[0] != some)]
    return moments


@pytest.mark.parametrize("turn", range(rounds(200)))
def test_no_time_is_longer_than_it_was(turn: int) -> None:
    chance = random.Random(turn)
    confirms = UnnumberedConfirms()
    published: dict[int, int] = {}
    measured = 0
    for at, what, number, multiple in talk(chance):
        if what == "publish":
            published[number] = at
        if at < 0:
            continue
        if what == "publish":
            if confirms.is_crowded():
                confirms.grow()
            confirms.publish(number, at, False)
            continue
        first = confirms.confirm(number, multiple)
        for one in range(first, number + 1) if first > 0 else ():
            bound = confirms.sent[confirms.place(one) + 1]
            assert published[one] <= bound <= at
            measured += 1
        assert confirms.unconfirmed <= number + len(published)
    assert measured


def test_places_are_few_where_confirms_come_soon() -> None:
    confirms = UnnumberedConfirms()
    for number in range(1, 1000):
        assert not confirms.is_crowded()
        confirms.publish(number, number, False)
        assert confirms.confirm(number + 70, False) == number + 70
    assert confirms.places == FEW_PLACES
    for number in range(1000, 1100):
        if confirms.is_crowded():
            confirms.grow()
        confirms.publish(number, number, False)
    assert confirms.places > 100
    assert [one for one, _ in confirms.waiting()] == list(range(1000, 1100))
    assert confirms.confirm(1100 + 69, True) == 1000 + 70
    assert not confirms.waiting()


def test_a_confirm_of_what_is_no_longer_remembered_makes_room() -> None:
    confirms = UnnumberedConfirms()
    for number in range(1, 21):
        confirms.publish(number, number, False)
        confirms.confirm(number + 70 if number != 5 else 70, False)
    assert not confirms.is_crowded()
    assert confirms.confirm(75, False) == -1
    assert confirms.is_crowded()


JOINED = "midstream\n" + "".join(
    f"C1: basic.publish exchange=e | body=5\n@+{ms}ms S1: basic.ack delivery_tag={tag}\n"
    for tag, ms in enumerate((3, 4, 900, 5), 91)
)


def test_the_summary_has_them(tmp_path: Path) -> None:
    path = written(Script(JOINED), tmp_path / "joined.pcap")
    result = amqpsniff.open(path).summary()
    assert result["confirms_at_least"] == {
        "count": 4, "p50_ns": pytest.approx(4 * MS, rel=0.01), "p95_ns": 900 * MS,
        "p99_ns": 900 * MS, "max_ns": 900 * MS,
    }  # fmt: skip
    assert [one["outcome"] for one in result["outcomes"]] == [None]
    assert amqpsniff.open(path).summary(channel=1)["confirms_at_least"] is None
    assert result["quality"]["unmeasured_publishes"] == 0
    assert "confirmed" not in amqpsniff.open(path).diagnose().verdict.sentences[-1]


def test_the_verdict_says_where_nothing_is_known(tmp_path: Path) -> None:
    text = "midstream\n" + 2 * "C1: basic.publish exchange=e | body=5\n"
    found = amqpsniff.open(written(Script(text), tmp_path / "joined.pcap")).diagnose()
    assert found.quality["unmeasured_publishes"] == 2
    assert str(found.verdict).endswith(
        "it is not known if and when 2 published messages were confirmed."
    )


def test_confirms_behind_a_loss_are_measured(tmp_path: Path) -> None:
    opened = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
    script = Script(opened + "C1: confirm.select\nS1: confirm.select-ok\n")
    before = len(script.packets)
    for tag, ms in enumerate((2, 3, 7, 9, 30), 1):
        script.add("C1: basic.publish exchange=e | body=5\n")
        script.add(f"@+{ms}ms S1: basic.ack delivery_tag={tag}\n")
    path = written(script, tmp_path / "lossy.pcap", lost=[before + 3])
    capture = amqpsniff.open(path)
    least = capture.summary()["confirms_at_least"]
    assert (least["count"], least["p50_ns"]) == (3, pytest.approx(9 * MS, rel=0.01))
    assert least["max_ns"] == 30 * MS
    assert [one.outcome for one in capture.messages()] == ["confirmed", None, None, None]
    assert capture.summary()["quality"]["unmeasured_publishes"] == 0


def test_publishes_behind_a_loss_without_confirms_are_not_measured(samples: Path) -> None:
    found = amqpsniff.open(samples / "lost.pcap").diagnose()
    assert found.quality["unmeasured_publishes"] == 1
    assert str(found.verdict).endswith(
        "it is not known if and when 1 published message was confirmed."
    )
