"""Causes of findings: the catalogue has the possible ones, place and time decide."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from .attempts import REFUSED, STOPPED, UNANSWERED
from .finding import Finding
from .records import NEVER


def find_causes(findings: Iterable[Finding], others: Iterable[Finding] = ()) -> None:
    """Give findings without a cause the likely one by the catalogue, if it was found.

    Candidates are the findings on the same connection (and the same channel, if both have one) with
    a code among the `causes` of the finding's kind. The cause is the last one that began before the
    finding ended; without any, a finding about the whole capture. Failed connections use findings
    of other connections to their server instead. An immediate reaction of a client, `_AT_ONCE`, is
    caused by the finding right before it. `others` can be causes and get none.
    """
    listed = list(findings)
    all_findings = [*listed, *others]
    first = {finding.code: finding for finding in reversed(all_findings)}
    causes = {
        code: [cause for cause in finding.kind.causes if cause in first]
        for code, finding in first.items()
    }
    cause_codes: set[str] = set().union(*causes.values())
    seen = _Seen([finding for finding in all_findings if finding.code in cause_codes])
    for finding in listed:
        if causes[finding.code] and finding.cause_code is None:
            cause = seen.before(finding, causes[finding.code])
            if cause is not None:
                finding.cause_code = cause.code
                finding.cause_packet_number = cause.packet_number


def is_of_capture(finding: Finding) -> bool:
    """True if a finding shows a flaw of the capture, and not an event of the traffic."""
    return finding.code == "publish-repeated" and finding.cause_code == "proxy-on-both-sides"


AFTERMATH_NS = 1_000_000_000
"""Time after the end of a cause in which it can still have consequences."""

STOPPING_NS = 1_000_000_000
"""Time before the first connection ended in which a broker that stops closes them."""

_OF_SERVER = (REFUSED, UNANSWERED)
"""Findings of connections that never were: what became of others to the same server is a cause."""


_AT_ONCE = "closed-by-client"
"""Finding of an answer to what the client just got: what was there once, and earlier, is none of
its causes."""

_OF_STOPS = ("disconnect-unclean", "connection-forced-closed", REFUSED)
"""Findings of connections that a broker ends, or refuses, which is stopped."""


class _Seen:
    """Findings by place and code, in the order of time: the search must not be a square one."""

    def __init__(self, findings: list[Finding]) -> None:
        self._places: dict[tuple[object, ...], list[Finding]] = {}
        for finding in sorted(findings, key=_began):
            for key in _keys(finding):
                self._places.setdefault(key, []).append(finding)

    def before(self, finding: Finding, codes: Iterable[str]) -> Finding | None:
        """The last finding of one of these codes that may have brought this one about."""
        until_ns = finding.until_ns or finding.ts_ns
        over_ns = _began(finding) - AFTERMATH_NS
        for places in _possible_places(finding):
            if places[0][0] == STOPPED and until_ns is not None:
                until_ns += STOPPING_NS
            causes = [
                cause
                for place in places
                for code in codes
                if (cause := self._last((*place, code), until_ns, over_ns)) is not None
                and (finding.code != _AT_ONCE or _ended(cause) >= over_ns)
            ]
            if causes:
                return max(causes, key=_began)
        return None

    def _last(self, key: tuple[object, ...], ts_ns: int | None, over_ns: int) -> Finding | None:
        """The last one that began by a time; the last of all if the time is None.

        Findings that ended before `over_ns` do not count.
        """
        listed = self._places.get(key)
        if listed is None:
            return None
        at = len(listed)
        if ts_ns is not None and ts_ns < _began(listed[-1]):
            at = bisect_right(listed, ts_ns, key=_began)
        while at and listed[at - 1].until_ns is not None and listed[at - 1].until_ns < over_ns:
            at -= 1
        return listed[at - 1] if at else None


def _began(finding: Finding) -> int:
    """Time of its first case; without a time it may have existed from the start."""
    return finding.ts_ns or 0


def _ended(finding: Finding) -> int:
    """Time of its end; with several cases the last may be at any time."""
    once = finding.count == 1 and finding.until_ns is None
    return _began(finding) if once else finding.until_ns or NEVER


def _keys(finding: Finding) -> Iterator[tuple[object, ...]]:
    """Under which keys a finding is looked for: its connection with its channel, and with any."""
    if finding.code == STOPPED:
        yield STOPPED, finding.server, finding.code
    elif finding.connection_id is None:
        yield finding.capture, finding.code
    else:
        yield finding.connection_id, finding.channel or 0, finding.code
        yield finding.connection_id, None, finding.code
        yield "server", finding.server, finding.code


def _possible_places(finding: Finding) -> Iterator[list[tuple[object, ...]]]:
    """The places where a cause may be, nearest first: connection, capture, all captures."""
    connection_id, channel = finding.connection_id, finding.channel
    if connection_id is not None:
        yield [(connection_id, channel), (connection_id, 0)] if channel else [(connection_id, None)]
    if finding.code in _OF_SERVER:
        yield [("server", finding.server)]
    if finding.code in _OF_STOPS:
        yield [(STOPPED, finding.server)]
    yield [(finding.capture,)]
    yield [(None,)]
