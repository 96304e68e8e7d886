"""Captures with a part that was not captured, and what is found in them that rests on absence.

A capture is a list of packets. `damage` takes out one packet, several, a run, one direction's bare
acknowledgements, all that a snap length cuts, or the beginning; before the place of the damage time
may pass, for the whole capture too, so that what waits there waits for long.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from amqpsniff.capture import open_capture
from amqpsniff.capture.packets import PacketBatch
from amqpsniff.findings import Finding
from amqpsniff.live.finding_updates import FindingUpdates
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from tests.tcp import wire
from tests.tcp.wire import Packet

SECOND_NS = 1_000_000_000
PAUSES_S = (0, 0, 7, 35, 100)
"""Time that passes at the place of the damage: more than each rule waits for something."""

RESTING = frozenset(
    """
    acknowledgement-invalid acknowledgement-stale authentication-failed backlog-in-client
    broker-not-reading celery-eta-prefetch channel-mode-mixed channel-not-open
    channel-opened-twice channels-leaking client-not-reading confirms-slow connect-refused
    connect-unanswered connection-half-open connection-silent connection-start-delayed
    connections-leaking consumer-cancelled consumer-interrupted consumer-not-restored consumer-slow
    consumer-starved-after-timeout consumer-stuck consumer-timed-out content-body-shorter
    content-interrupted content-unexpected-frame credit-exceeded credit-exhausted
    credit-not-renewed dead-letter-target-missing dead-letter-unread deliveries-after-cancel
    deliveries-deleted deliveries-in-doubt deliveries-stopped delivery-aborted
    delivery-limit-bystander delivery-limit-near disconnect-unclean eta-beyond-consumer-timeout
    field-table-malformed handshake-out-of-order handshake-slow heartbeat-missed
    idle-connection-cut login-demanded login-not-tried message-stalled messages-dropped
    notifications-unread outcome-not-settled path-interrupted prefetch-exceeded
    prefetch-unlimited protocol-header-unanswered protocol-version-refused publish-incomplete
    publish-number-wrong publish-repeated publish-while-blocked publishes-after-deletion
    publishes-discarded publishes-in-doubt publishes-unbound publishes-unprotected
    publishes-unreceived queue-abandoned queue-expired reconnect-loop reply-missing
    reply-queue-per-call rpc-caller-gone rpc-server-lost rpc-unanswered session-links-blocked
    session-window-closed stream-offset-gap stream-reread stream-start-next task-result-unread
    tls-alert-encrypted tls-ended-early tls-handshake-unanswered trace-context-lost
    trace-context-never traffic-after-close traffic-stopped transaction-per-message
    transaction-uncommitted tuning-rejected
    """.split()
)
"""Codes of the catalogue that rest on something that did not come: a reply, a confirm, an
acknowledgement, a close, a heartbeat, the rest of a message, credit, a consumer, a method that
would have allowed what was sent. Rates and mean times are not among them: they are those of what
was captured.
"""

OF_MANY = frozenset(
    ("connections-leaking", "idle-connection-cut", "publishes-unprotected", "reconnect-loop")
)
"""Those that stand for several connections, at the first of them."""

OF_SILENCE = {"path-interrupted": "heartbeat-missed"}
"""Findings for the silence of one side: which one is raised depends on captured retransmissions."""

Place = tuple[str, frozenset[str], int | None]


class Damaged(NamedTuple):
    """A capture as it was and with something missing."""

    what: str
    whole: list[Packet]
    part: list[Packet]


def packets_in(path: Path) -> list[Packet]:
    """The packets of a capture."""
    return [
        Packet(
            batch.octets[start : start + captured],
            batch.ts_ns[row],
            batch.original[row],
            batch.link_type[row],
        )
        for batch in open_capture(str(path))
        for row in range(batch.begin, batch.end)
        for start, captured in [(batch.start[row], batch.captured[row])]
    ]


def batch_of(packets: list[Packet], first: int) -> PacketBatch:
    """Packets as a batch; the first has this number."""
    return wire.batch(packets, first)


def findings_in(packets: list[Packet]) -> list[Finding]:
    """Findings that rest on absence."""
    pipeline = Pipeline(plan=Plan(("messages", "findings")))
    pipeline.feed(batch_of(packets, 1))
    pipeline.finish()
    return [one for one in pipeline.findings() if one.code in RESTING]


def rows_of_live(packets: list[Packet], pieces: int) -> list[Finding]:
    """The same as a live run gives them, in pieces: rows in their order."""
    pipeline, news = Pipeline(plan=Plan(("messages", "findings"))), FindingUpdates()
    pipeline.log.watch()
    given: list[Finding] = []
    step = max(1, -(-len(packets) // pieces))
    for turn, place in enumerate(range(0, len(packets), step)):
        pipeline.feed(batch_of(packets[place : place + step], place + 1))
        given += news.add(pipeline.log.news(), turn * SECOND_NS)
    pipeline.finish()
    given += news.rest(pipeline.findings())
    return [one for one in given if one.code in RESTING]


def left_of(rows: list[Finding]) -> list[Finding]:
    """The last row of each finding, without those taken back."""
    return [one for one in {one.key: one for one in rows}.values() if one.count]


def places(found: list[Finding]) -> dict[Place, str]:
    """Findings by what they are of, each with its words."""
    return {
        (one.code, frozenset(), None)
        if one.code in OF_MANY
        else (
            OF_SILENCE.get(one.code, one.code),
            frozenset((one.client or "", one.server or "")),
            one.channel,
        ): (f"packet {one.packet_number}: {one.detail}")
        for one in found
    }


def damages(packets: list[Packet], chance: random.Random, count: int) -> Iterator[Damaged]:
    """Captures with something missing, of which the packets that stay show that it is missing.

    What is lost at the end of a direction is shown by nothing: such a capture ends earlier. So the
    last packet of each direction of each conversation stays.
    """
    last = {direction_of(one): at for at, one in enumerate(packets)}
    stays = frozenset(last.values())
    for _ in range(count):
        place = chance.randrange(len(packets))
        pause_ns = chance.choice(PAUSES_S) * SECOND_NS
        whole = [
            one._replace(ts_ns=one.ts_ns + pause_ns * (at > place))
            for at, one in enumerate(packets)
        ]
        what, part = _part(whole, place, stays, chance)
        yield Damaged(f"{what}, {pause_ns // SECOND_NS} s after {place + 1}", whole, part)


def direction_of(packet: Packet) -> bytes:
    """What tells one direction of a conversation from others: addresses and ports."""
    offset = {1: 14, 113: 16, 0: 4}.get(packet.link_type, 0)
    header = packet.octets[offset:]
    size = 4 * (header[0] & 15) if header else 0
    return header[12:20] + header[size : size + 4]


def _part(
    whole: list[Packet], place: int, stays: frozenset[int], chance: random.Random
) -> tuple[str, list[Packet]]:
    few = place + chance.randrange(2, 30)
    back = max(0, place - chance.randrange(1, 10))
    share = chance.choice((0.005, 0.03, 0.2))
    snap = chance.randrange(60, 400)
    way = chance.randrange(8)
    if way == 7:
        return f"from {place + 1} on", whole[place:]
    gone = {
        3: set(range(place, few)),
        4: set(range(back, place + 1)),
        5: {at for at in range(len(whole)) if chance.random() < share},
        6: {back, place},
    }.get(way, {place})
    gone -= stays
    if way == 6:
        whole = [cut(one, snap) for one in whole]
    named = ", ".join(str(at + 1) for at in sorted(gone)[:12])
    what = f"without {named}" + (f", cut to {snap}" if way == 6 else "")
    return what, [one for at, one in enumerate(whole) if at not in gone]


def cut(packet: Packet, snap: int) -> Packet:
    """A packet as a snap length leaves it."""
    original = packet.original or len(packet.octets)
    return packet._replace(octets=packet.octets[:snap], original=original)


def more_in(damaged: Damaged) -> dict[Place, str]:
    """What is found in the part that is not found in the whole."""
    part = places(findings_in(damaged.part))
    if not part:
        return {}
    known = places(findings_in(damaged.whole))
    return {place: said for place, said in part.items() if place not in known}
