"""Findings that wait until the other direction has been read and shows no excuse.

The two directions of a connection are read separately: if packets of one are missing or late, the
other is ahead of it for a while, and acknowledges frames that were not read yet. So a deferred
finding waits until the broker closes the channel or connection, or until the connection ends, and
is dropped if frames were missing or late by then.
"""

from __future__ import annotations

from collections.abc import Callable

from amqpsniff.session.codes import SERVER
from amqpsniff.session.rules.context import Rule, RuleContext, requires

MAX_DEFERRED = 1_000
"""Channels, codes and tags of one connection that wait; a connection has few faults before it is
closed."""


class DeferredFinding:
    """A fault of one kind on one channel: where it was seen first and last, and how often.

    `awaited`: a delivery tag that excuses it when it comes after all, or None. `variant`: gives the
    variant of the finding when it is reported, or None.
    """

    def __init__(
        self,
        context: RuleContext,
        code: str,
        detail: Callable[[], str],
        awaited: int | None,
        variant: Callable[[], int] | None,
    ) -> None:
        self.code = code
        self.detail = detail()
        self.channel = context.channel
        self.number = context.number
        self.ts_ns = context.ts_ns
        self.last = context.number
        self.count = 1
        self.awaited = awaited
        self.variant = variant

    @property
    def excused(self) -> bool:
        """True if what seemed to be missing came late."""
        return self.awaited is not None and self.channel.last_tag >= self.awaited


def defer(
    context: RuleContext,
    code: str,
    detail: Callable[[], str],
    awaited: int | None = None,
    variant: Callable[[], int] | None = None,
) -> None:
    """Report a fault on the context's channel when it is certain; see `DeferredFinding`.

    `detail` gives its words, when they are needed.
    """
    waiting = context.memory.setdefault("suspicions", {})
    key = (code, context.channel.number, context.channel.incarnation, awaited)
    known = waiting.get(key)
    if known is not None:
        known.count += 1
        known.last = context.number
    elif len(waiting) < MAX_DEFERRED:
        waiting[key] = DeferredFinding(context, code, detail, awaited, variant)
    else:
        context.forget("suspicions")


@requires("suspicions")
def _answered(context: RuleContext) -> None:
    if context.frame.side == SERVER:
        flush(context)


@requires("suspicions")
def _excuse(context: RuleContext) -> None:
    """Packets of a connection that come in another order than they were sent leave it uncertain."""
    if any(suspicion.excused for suspicion in context.memory.get("suspicions", {}).values()):
        context.session.has_loss = True


@requires("suspicions")
def flush(context: RuleContext) -> None:
    """All frames of the other side were read: report the deferred findings."""
    _excuse(context)
    waiting = context.memory.pop("suspicions", {})
    if not context.certain:
        return
    before = context.channel
    for finding in waiting.values():
        context.channel = finding.channel
        context.report(
            finding.code,
            finding.detail,
            number=finding.number,
            ts_ns=finding.ts_ns,
            count=finding.count,
            last=finding.last,
            variant=None if finding.variant is None else finding.variant(),
        )
    context.channel = before


RULES: dict[str, tuple[Rule, ...]] = {
    "channel.close": (_answered,),
    "channel-ends": (_excuse,),
    "connection.close": (_answered,),
    "connection-ends": (flush,),
}
