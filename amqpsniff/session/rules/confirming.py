"""How publishers make sure: confirms that are slow or waited for, transactions."""

from __future__ import annotations

from typing import Any

from amqpsniff.columns import NULL
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.publishing import unconfirmed
from amqpsniff.session.rules.scene import Rule, Scene, after
from amqpsniff.session.rules.wording import number_of, took_text
from amqpsniff.units import duration, rate

SLOW_NS = SECOND_NS // 2
"""Mean time to a confirm that is long: a healthy disk takes some milliseconds."""

VERY_SLOW_NS = 5 * SECOND_NS
"""A single time to a confirm that is long, also where none came at all."""

FEW = 10
"""Confirms or commits below which there is no pattern."""

WAITED_PUBLISHES = 50
"""Publishes that each waited for a confirm, from which on it is how the program works."""

WAITED_SHARE = 0.8
"""Share of the time between publishes that goes into waiting; else there was little to send."""


def judge_confirms(scene: Scene) -> None:
    """channel-ends: confirms that came late, or did not come while the broker sent other frames."""
    channel = scene.channel
    if not channel.published:
        return
    details, number, ts_ns = [], channel.slow_confirm_number, channel.slow_confirm_ns
    mean = channel.confirm_ns / max(channel.confirmed, 1)
    often = channel.confirmed >= FEW and mean >= SLOW_NS
    if scene.complete and (often or channel.confirm_ns_max >= VERY_SLOW_NS):
        took = took_text(channel.confirmed, channel.confirm_ns, channel.confirm_ns_max)
        details.append(f"{number_of(channel.confirmed, 'confirm')}, after {took}")
    waiting = _neglected(scene)
    if waiting:
        first = waiting[0]
        if not details:
            number, ts_ns = first.packet_number, first.ts_ns
        details.append(
            f"{number_of(len(waiting), 'publish', 'publishes')} without a confirm, the first, "
            f"number {first.number}, for {duration(scene.session.last_server_ns - first.ts_ns)}"
        )
    if details:
        scene.report("confirms-slow", "; ".join(details), number=number, ts_ns=ts_ns)


def _neglected(scene: Scene) -> list[Any]:
    """Publishes that were whole, and after which the broker sent something for long, but no answer
    to them.
    """
    if not scene.certain:
        return []
    until_ns = scene.session.last_server_ns - VERY_SLOW_NS
    unfinished = {one[0] for one in scene.memory.get("under way", ())}
    return [
        entry
        for entry in unconfirmed(scene.channel)
        if NULL != entry.ts_ns <= until_ns and entry.packet_number not in unfinished
    ]


def foresee_confirms(scene: Scene) -> None:
    """channel-waits: the oldest publish has no confirm for long, though the broker sends others."""
    if not scene.certain:
        return
    entry = next(iter(scene.channel.publishes), None)
    if entry is None or entry.rows is None or entry.ts_ns == NULL:
        return  # none waits, or it is not whole yet
    waited = scene.session.last_server_ns - entry.ts_ns
    unfinished = {one[0] for one in scene.memory.get("under way", ())}
    if waited >= VERY_SLOW_NS and entry.packet_number not in unfinished:
        detail = f"publish number {entry.number} was without a confirm for {duration(waited)}"
        scene.foresee("confirms-slow", detail, entry.packet_number, entry.ts_ns)


def judge_waiting(scene: Scene) -> None:
    """channel-ends: a publisher that waits for each confirm."""
    channel = scene.channel
    numbered = channel.next_number - 1
    spent = channel.last_publish_ns - channel.first_publish_ns
    if channel.waited_publishes < WAITED_PUBLISHES or channel.waited_publishes < 0.95 * numbered:
        return
    if spent <= 0 or channel.confirm_ns < WAITED_SHARE * spent:
        return
    detail = (
        f"{channel.waited_publishes} publishes, each after the confirm of the one before; "
        f"a confirm took {duration(channel.confirm_ns / max(channel.confirmed, 1))} on average, "
        f"and {rate(numbered * SECOND_NS / spent)} messages a second were published"
    )
    scene.report(
        "confirm-per-message",
        detail,
        number=channel.first_publish_number,
        ts_ns=channel.first_publish_ns,
        last=channel.last_publish_number,
    )


def note_commit(scene: Scene) -> None:
    """tx.commit: remember where the first is, and the last."""
    noted = scene.memory.setdefault("commits", {})
    place = scene.channel.number
    first = noted.get(place, (scene.number, scene.ts_ns))
    noted[place] = (first[0], first[1], scene.number)


@after("commits")
def judge_commits(scene: Scene) -> None:
    """channel-ends: a commit for every publish or acknowledgement."""
    channel = scene.channel
    number, ts_ns, last = scene.memory.get("commits", {}).pop(channel.number, (None, None, None))
    done = channel.published + channel.acks
    if channel.commits < FEW or not channel.commits <= 2 * done < 4 * channel.commits:
        return
    if not scene.complete:
        return
    detail = f"{channel.commits} commits for {channel.published} publishes"
    if channel.acks:
        detail += f" and {channel.acks} acknowledgements"
    count = channel.commits
    scene.report(
        "transaction-per-message", detail, number=number, ts_ns=ts_ns, count=count, last=last
    )


RULES: dict[str, tuple[Rule, ...]] = {
    "tx.commit": (note_commit,),
    "channel-waits": (foresee_confirms,),
    "channel-ends": (judge_confirms, judge_waiting, judge_commits),
}
