"""Declarations, bindings and polls that a client repeats."""

from __future__ import annotations

from typing import Any

from amqpsniff.decode.method_layout import FLAGS_CUT
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.amounts import drop, open_channels, remember
from amqpsniff.session.rules.scene import Rule, Scene, after
from amqpsniff.session.rules.wording import exchange_text, name_at, queue_text
from amqpsniff.units import duration, rate

REPEATED = 10
"""Repeated declarations from which on they are a habit, not the start of parts of a program."""

POLLS = 10
"""Polls of a queue's length from which on a rate says something."""

POLLS_PER_SECOND = 1

GETS = 20
"""Gets from a queue from which on a rate says something."""

GETS_PER_SECOND = 5

CHANGES = 20
"""Changes of queues and bindings from which on a rate says something."""

CHANGES_PER_SECOND = 5

DECLARES = ("queue.declare", "exchange.declare", "queue.bind", "exchange.bind")
MAKES = {"queue.declare": 0, "queue.bind": 1}
UNMAKES = {"queue.delete": 0, "queue.unbind": 1}


class Series:
    """Alike events of a connection: how many, where the first and the last are."""

    def __init__(self, scene: Scene) -> None:
        """None of them yet; the scene is that of the first."""
        self.count = self.others = 0
        self.number, self.ts_ns = scene.number, scene.ts_ns

    def add(self, scene: Scene) -> None:
        """One more."""
        self.count += 1
        self.last, self.last_ns = scene.number, scene.ts_ns

    @property
    def lasted_ns(self) -> int:
        """From the first to the last; 0 when that is not known."""
        if self.ts_ns is None or self.last_ns is None:
            return 0
        return max(self.last_ns - self.ts_ns, 0)

    @property
    def rate(self) -> float:
        """How many a second; 0 when that is not known."""
        return (self.count - 1) * SECOND_NS / self.lasted_ns if self.lasted_ns else 0.0

    def report(self, scene: Scene, code: str, detail: str) -> None:
        """Raise a finding that stands for all of them."""
        raised: dict[str, Any] = {"number": self.number, "ts_ns": self.ts_ns}
        scene.report(code, detail, **raised, count=self.count, last=self.last)


# declarations


def note_declaration(scene: Scene) -> None:
    """A declaration or binding: was there the same before?"""
    event = scene.event
    octets = event.octets
    if not octets or not event.whole or b'"passive":true' in octets:
        return
    if event.name == "queue.declare" and not event.queue:
        return  # each makes a queue with a name of its own
    declared = scene.memory.setdefault("declared", {})
    subject = subject_of(event)
    known = declared.get(subject)
    if known is None:
        known = remember(scene, declared, subject, set())
    if known is None:
        return
    key = hash((event.name, octets))
    if key not in known:
        if len(known) < REPEATED:
            known.add(key)
        return
    if "repeated" not in scene.memory:
        scene.memory["repeated"] = (Series(scene), event.name, subject)
    scene.memory["repeated"][0].add(scene)


def subject_of(event: Any) -> tuple[str, Any]:
    """What a declaration or binding is about: its queue, or its exchange."""
    if event.name.startswith("queue."):
        return "queue", event.queue
    return "exchange", name_at(event.rows, "exchange", event.row)


def forget_declaration(scene: Scene) -> None:
    """A deletion or unbinding: what is declared after it is new."""
    declared, subject = scene.memory.get("declared", {}), subject_of(scene.event)
    for one in [subject] if scene.event.whole or subject[1] else list(declared):
        drop(scene, declared, one)


@after("repeated")
def judge_declarations(scene: Scene) -> None:
    """connection-ends: more repeated declarations than one for two publishes."""
    series, method, (kind, name) = scene.memory["repeated"]
    published = scene.session.published
    published += sum(channel.published for channel in open_channels(scene.session))
    if scene.session.lossy or series.count < REPEATED or 2 * series.count <= published:
        return
    named = queue_text(name) if kind == "queue" else exchange_text(name)
    detail = f"{series.count} repeated for {published} publishes, the first a {method} of {named}"
    answers = scene.memory.get("answers", {})
    waited = sum(answers[one].took_ns for one in DECLARES if one in answers)
    if waited:
        detail += f"; {duration(waited)} of waiting for all declarations"
    series.report(scene, "declaration-repeated", detail)


# polls


def note_poll(scene: Scene) -> None:
    """queue.declare: is it passive, to ask for the length of a queue?"""
    octets = scene.event.octets
    if octets and b'"passive":true' in octets:
        _count(scene, "polled", scene.event.queue)


def note_get(scene: Scene) -> None:
    """basic.get: one more from its queue."""
    if not scene.channel.deaf and scene.event.queue is not None:
        _count(scene, "got", scene.queue)


def note_empty(scene: Scene) -> None:
    """basic.get-empty: the get was for nothing."""
    if scene.request is not None and scene.request.subject is not None:
        series = scene.memory.get("got", {}).get(scene.request.subject.queue)
        if series is not None:
            series.others += 1


def _count(scene: Scene, name: str, queue: str | None) -> None:
    counted = scene.memory.setdefault(name, {})
    series = counted.get(queue) or remember(scene, counted, queue, Series(scene))
    if series is not None:
        series.add(scene)


@after("polled")
def judge_polls(scene: Scene) -> None:
    """connection-ends: queues whose length is polled."""
    for queue, series in scene.memory["polled"].items():
        if series.count >= POLLS and series.rate > POLLS_PER_SECOND:
            detail = f"{queue_text(queue)}: {series.count} times, {rate(series.rate)} a second"
            series.report(scene, "queue-length-polling", detail)


@after("got")
def judge_gets(scene: Scene) -> None:
    """connection-ends: queues whose messages are polled."""
    for queue, series in scene.memory["got"].items():
        if series.count < GETS or series.rate < GETS_PER_SECOND:
            continue
        if 2 * series.others > series.count:
            detail = (
                f"{queue_text(queue)}: {series.count} gets, {rate(series.rate)} a second, "
                f"{series.others} of them in vain"
            )
            series.report(scene, "get-polling", detail)


# changes


def note_change(scene: Scene) -> None:
    """A queue or binding is made or deleted."""
    event = scene.event
    octets = event.octets
    passive = event.flags & FLAGS_CUT or (octets and b'"passive":true' in octets)
    if event.name == "queue.declare" and passive:
        return
    if "changes" not in scene.memory:
        scene.memory["changes"] = (Series(scene), [0, 0], [0, 0], event.queue)
    series, made, unmade, _ = scene.memory["changes"]
    series.add(scene)
    if event.name in MAKES:
        made[MAKES[event.name]] += 1
    else:
        unmade[UNMAKES[event.name]] += 1


@after("changes")
def judge_changes(scene: Scene) -> None:
    """connection-ends: what is made is deleted again, at a high rate."""
    series, made, unmade, first = scene.memory["changes"]
    pairs = [min(each) for each in zip(made, unmade, strict=True)]
    if 2 * sum(pairs) < CHANGES or not series.lasted_ns:
        return
    pace = 2 * sum(pairs) * SECOND_NS / series.lasted_ns
    if pace > CHANGES_PER_SECOND:
        kinds = ("queues declared and deleted", "bindings made and removed")
        parts = [f"{count} {kind}" for count, kind in zip(pairs, kinds, strict=True) if count]
        named = f", the first of {queue_text(first)}" if first else ""
        detail = f"{', '.join(parts)}: {rate(pace)} changes a second{named}"
        series.report(scene, "topology-churn", detail)


RULES: dict[str, tuple[Rule, ...]] = {
    "queue.declare": (note_declaration, note_poll, note_change),
    "queue.bind": (note_declaration, note_change),
    "queue.delete": (forget_declaration, note_change),
    "queue.unbind": (forget_declaration, note_change),
    "exchange.declare": (note_declaration,),
    "exchange.bind": (note_declaration,),
    "exchange.delete": (forget_declaration,),
    "exchange.unbind": (forget_declaration,),
    "basic.get": (note_get,),
    "basic.get-empty": (note_empty,),
    "connection-ends": (judge_declarations, judge_polls, judge_gets, judge_changes),
}
