"""Findings about many connections, made of what readers of some of them have recorded."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from amqpsniff.findings import Finding, FindingLog, Records
from amqpsniff.session.rules import (
    access,
    blocking,
    celery,
    churn,
    closing,
    consuming,
    ending,
    guessing,
    limits,
    queues,
    returning,
    sizes,
)
from amqpsniff.session.rules.remembering import report_at
from amqpsniff.session.rules.scene import Place, Scene

_MODULES = (access, blocking, churn, closing, consuming, ending, guessing, queues, returning)


def judge_together(records: Records, log: FindingLog, last_ns: int | None) -> None:
    """Add to a log what all records together show; `last_ns` is the last packet's time."""
    whole = Scene(_Whole(log), None, None, None, last_ns)
    for key, (_, detail, place, count, _, last) in sorted(
        records.once.items(), key=lambda one: one[1][0]
    ):
        report_at(whole, Place(*place), key[0], detail, count, last)
    for _, name, payload in sorted(records.notes, key=lambda note: note[0]):
        _judge(name)(whole, *payload)
    for finding in records.attempts.report():
        log.add(finding)
    returning.judge_leaks(whole)
    records.forget(whole.everything.get("forgotten", {}))
    if forgotten := records.forgotten:
        detail = limits.words(forgotten)
        log.add(Finding("rules-limit", detail, ts_ns=last_ns, count=len(forgotten)))
    if records.exchanges:
        sizes.judge_amplified(whole, records.exchanges)
        celery.judge_noise(whole, records.exchanges)


class _Whole:
    """What a scene needs of a tracker: what rules remember, and where findings go."""

    def __init__(self, log: FindingLog) -> None:
        self.log = log
        self.memory: dict[str, Any] = {}


@cache
def _judge(name: str) -> Callable[..., None]:
    """The function that a note is for."""
    module, _, function = name.partition(".")
    where = next(one for one in _MODULES if one.__name__.rpartition(".")[2] == module)
    judge: Callable[..., None] = getattr(where, function)
    return judge
