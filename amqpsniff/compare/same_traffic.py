"""The same connections captured at two places: delays, losses and alterations of bytes."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from itertools import pairwise
from typing import Any, NamedTuple

from amqpsniff.compare import losses as fates
from amqpsniff.compare.clock import ClockDifference
from amqpsniff.compare.losses import Loss, View
from amqpsniff.compare.matching import Pair, pairs
from amqpsniff.compare.sighting import (
    CRC_BITS,
    NO_TIME,
    CapturedConnection,
    Direction,
    Readable,
    Sighter,
    Sighting,
    Vocabulary,
)
from amqpsniff.findings.finding import at_least
from amqpsniff.session.counts import Histogram
from amqpsniff.units import octets, plural

Row = dict[str, Any]

WAYS = ("to-broker", "to-client")
"""The two directions, by number."""

SEEN_AT = ("both", "client_side_only", "broker_side_only")
"""Which captures have a frame."""

FATES = {"altered": "error", "lost": "warning", "unrepaired": "warning", "dropped": "warning",
         "doubled": "info", "sender-capture": "info", "receiver-capture": "info"}  # fmt: skip
"""Severities of losses and alterations. A needless repetition has none."""

MAX_ROWS = 1_000
"""Connections, losses, alterations and frames that are listed; all are counted."""


class SameTraffic:
    """Two captures of the same connections: `read` them, then `report`; `close` lets go of files.

    `client` is the capture made nearer to the clients, `broker` the other one.
    """

    def __init__(self, client: Readable, broker: Readable) -> None:
        self._words = Vocabulary()
        self._sighters = [Sighter(source, self._words) for source in (client, broker)]

    @property
    def sightings(self) -> tuple[Sighting, Sighting]:
        """The connections of each capture."""
        client, broker = self._sighters
        return client.sighting, broker.sighting

    def read(self) -> Iterator[int]:
        """Read both; gives the packets read, now and then."""
        done = 0
        for sighter in self._sighters:
            for packets in sighter.read():
                yield done + packets
            done += sighter.sighting.totals.packets

    def close(self) -> None:
        """Let go of the temporary files."""
        for sighting in self.sightings:
            sighting.spill.close()

    def report(self, top: int = MAX_ROWS) -> Row:
        """The report, for JSON; `top` rows of each list."""
        client, broker = self.sightings
        found, near, far = pairs(client, broker)
        clock = ClockDifference()
        for pair in found:
            for way in (0, 1):
                learn(clock, pair, way)
        clock.settle()
        overall = _Overall(clock, self._words, client, min(top, MAX_ROWS))
        for pair in found:
            overall.add(pair)
        return {
            "client_side": _side(client),
            "broker_side": _side(broker),
            "connections": {
                "both": len(found),
                "client_side_only": len(near),
                "broker_side_only": len(far),
            },
            "clock": clock.report(),
            **overall.report(),
            "unmatched": [
                *(_unmatched(connection, "client-side") for connection in near[:top]),
                *(_unmatched(connection, "broker-side") for connection in far[:top]),
            ],
        }


def _side(sighting: Sighting) -> Row:
    totals = sighting.totals
    return {
        "captures": sighting.names,
        "packets": totals.packets,
        "start_ns": totals.first_ns,
        "end_ns": totals.last_ns,
        "connections": len(sighting.connections),
        "connections_forgotten": sighting.forgotten,
    }


def _unmatched(connection: CapturedConnection, side: str) -> Row:
    return {
        "side": side, "connection_id": connection.connection_id, "client": connection.address,
        "server": connection.server,
    }  # fmt: skip


class _Overall:
    """Adds connections up."""

    def __init__(
        self, clock: ClockDifference, words: Vocabulary, client: Sighting, top: int
    ) -> None:
        self._clock = clock
        self._words = words
        self._names = client.connection_names
        self._top = top
        self._delays = (Delays(), Delays())
        self._frames: Counter[tuple[int, str]] = Counter()
        self._rows: list[Row] = []
        self._losses: list[Row] = []
        self._altered: list[Row] = []
        self._altered_bytes = self._altered_places = 0
        self._compared = 0
        self._fates: Counter[tuple[int, str, str]] = Counter()
        self._slowest = Slowest(top)
        for way, delays in enumerate(self._delays):
            delays.base_ns = clock.report()["highest_ns" if not way else "lowest_ns"] or 0
            if way:
                delays.base_ns = -delays.base_ns

    def add(self, pair: Pair) -> None:
        """Take one connection."""
        row = _connection(pair, self._names)
        for way, name in enumerate(WAYS):
            row[name] = self._way(pair, way)
        row["slowest_ns"] = max(
            (row[name]["delays"]["raw"]["max_ns"] for name in WAYS if row[name]["delays"]),
            default=0,
        )
        self._rows.append(row)
        if len(self._rows) > 2 * MAX_ROWS:
            self._rows = _worst(self._rows, MAX_ROWS)

    def _way(self, pair: Pair, way: int) -> Row:
        direction = direction_of(pair, way)
        near = View(pair.client.directions[direction], 0)
        far = View(pair.broker.directions[direction ^ pair.turned], pair.shifts[direction])
        sender, receiver = (far, near) if way else (near, far)
        lost = fates.losses(sender, receiver)
        counts: Counter[str] = Counter()
        for loss in lost:
            counts[loss.kind] += 1
            self._fates[way, loss.kind, "places"] += 1
            self._fates[way, loss.kind, "bytes"] += (loss.end - loss.begin) * loss.times
        altered = [] if pair.rewritten else self._differing(pair, direction)
        delays, frames = self._frames_of(pair, way, lost, altered, fates.shared(sender, receiver))
        return {
            "delays": delays.report(is_known=self._clock.is_known),
            "frames": frames,
            **{kind: counts[kind] for kind in fates.KINDS},
            "altered": len(altered),
        }

    def _frames_of(
        self,
        pair: Pair,
        way: int,
        lost: list[Loss],
        altered: list[tuple[int, int]],
        bounds: tuple[int, int] | None,
    ) -> tuple[Delays, Row]:
        """Delays of one way of a connection, and how many frames which capture has."""
        delays = Delays(self._delays[way].base_ns)
        counts: Counter[str] = Counter()
        touched = Touched(lost, altered)
        for near, far in both(pair, direction_of(pair, way)):
            if near is None or far is None:
                frame = near or far
                assert frame is not None
                if (
                    bounds is not None
                    and bounds[0] <= frame[0]
                    and frame[0] + frame[3] <= bounds[1]
                ):
                    counts["client_side_only" if far is None else "broker_side_only"] += 1
                touched.look(frame, self._words)  # it may have been lost
                continue
            counts["both"] += 1
            touched.look(near, self._words)
            self._time(pair, way, near, far, delays)
        self._list(pair, way, touched)
        for name, number in counts.items():
            self._frames[way, name] += number
        return delays, {name: counts[name] for name in SEEN_AT}

    def _time(self, pair: Pair, way: int, near: Frame, far: Frame, delays: Delays) -> None:
        times = timed(near, far, way)
        if times is None:
            return
        sent_ns, came_ns, client_ns = times
        raw_ns = came_ns - sent_ns
        corrected_ns = raw_ns
        if self._clock.is_known:
            ahead_ns = self._clock.ahead_ns(client_ns)
            corrected_ns = max(raw_ns + ahead_ns if way else raw_ns - ahead_ns, 0)
        for target in (delays, self._delays[way]):
            target.raw.add(raw_ns - target.base_ns)
            target.corrected.add(corrected_ns)
        if self._slowest.slower_than(corrected_ns):
            self._slowest.add(Slow(corrected_ns, raw_ns, pair, way, near, far))

    def _differing(self, pair: Pair, direction: int) -> list[tuple[int, int]]:
        """Blocks of bytes that differ, as spans of the client's stream offsets, joined."""
        shift = pair.shifts[direction]
        client_blocks = pair.client.directions[direction].blocks
        broker_blocks = iter(pair.broker.directions[direction ^ pair.turned].blocks)
        far: Any = next(broker_blocks, None)
        found: list[tuple[int, int]] = []
        for begin, block in client_blocks:
            while far is not None and far[0] + shift < begin:
                far = next(broker_blocks, None)
            if far is None:
                break
            octets = block >> CRC_BITS
            if far[0] + shift != begin or far[1] >> CRC_BITS != octets:
                continue
            self._compared += octets
            if far[1] != block:
                if found and found[-1][1] == begin:
                    found[-1] = (found[-1][0], begin + octets)
                else:
                    found.append((begin, begin + octets))
        return found

    def _list(self, pair: Pair, way: int, touched: Touched) -> None:
        place = {
            "connection_id": pair.client.connection_id,
            "client": pair.client.address,
            "way": WAYS[way],
        }
        for at, (begin, end) in enumerate(touched.altered):
            self._altered_bytes += end - begin
            self._altered_places += 1
            if len(self._altered) < self._top:
                span = {"offset": begin, "bytes": end - begin}
                self._altered.append(place | span | {"frames": touched.frames["altered", at]})
        for at, loss in enumerate(touched.lost):
            if len(self._losses) < self._top:
                row = {
                    "kind": loss.kind,
                    "offset": loss.begin,
                    "bytes": loss.end - loss.begin,
                    "times": loss.times,
                    "packet_number": loss.number,
                    "ts_ns": loss.ts_ns,
                    "frames": touched.frames["lost", at],
                }
                self._losses.append(place | row)

    def report(self) -> Row:
        """The figures of all connections together."""
        is_known = self._clock.is_known
        ways = {}
        for way, name in enumerate(WAYS):
            ways[name] = {
                "delays": self._delays[way].report(is_known=is_known),
                "frames": {side: self._frames[way, side] for side in SEEN_AT},
                **{
                    kind: {
                        "places": self._fates[way, kind, "places"],
                        "bytes": self._fates[way, kind, "bytes"],
                    }
                    for kind in fates.KINDS
                },
            }
        rows = _worst(self._rows, self._top)
        for row in rows:
            del row["slowest_ns"]
        return {
            **ways,
            "compared_bytes": self._compared,
            "altered": {"places": self._altered_places, "bytes": self._altered_bytes},
            "by_connection": rows,
            "losses": self._losses,
            "alterations": self._altered,
            "slowest": [self._slow(slow) for slow in self._slowest.listed()],
        }

    def _slow(self, slow: Slow) -> Row:
        return {
            "connection_id": slow.pair.client.connection_id,
            "client": slow.pair.client.address,
            "way": WAYS[slow.way],
            "delay_ns": slow.delay_ns if self._clock.is_known else None,
            "raw_ns": slow.raw_ns,
            "method": self._words.names[slow.near[4]],
            "channel": slow.near[5],
            "client_side_packet_number": slow.near[2],
            "broker_side_packet_number": slow.far[2],
        }


def _worst(rows: list[Row], limit: int) -> list[Row]:
    return sorted(rows, key=lambda row: -row["slowest_ns"])[:limit]


def _connection(pair: Pair, names: dict[str, str]) -> Row:
    """Which connection it is, in both captures."""
    near, far = pair.client, pair.broker
    return {
        "connection_id": near.connection_id,
        "broker_side_connection_id": far.connection_id,
        "client": near.address,
        "server": near.server,
        "broker_side_client": far.address,
        "broker_side_server": far.server,
        "connection_name": names.get(near.connection_id),
        "matched_by": pair.how,
        "translated": pair.translated,
    }


MAX_FRAMES = 5
"""Frames that are named for a loss or an alteration; it is seldom more than one."""


class Touched:
    """Names the frames that losses and alterations lie in."""

    def __init__(self, lost: list[Loss], altered: list[tuple[int, int]]) -> None:
        self.lost = lost
        self.altered = altered
        self.frames: dict[tuple[str, int], list[str]] = {
            **{("lost", at): [] for at in range(len(lost))},
            **{("altered", at): [] for at in range(len(altered))},
        }
        self._spans = {
            "lost": [(loss.begin, loss.end) for loss in lost],
            "altered": altered,
        }

    def look(self, frame: Frame, words: Vocabulary) -> None:
        """Take a frame that comes behind the one before."""
        begin = frame[0]
        for kind, spans in self._spans.items():
            if not spans:
                continue
            end = begin + frame[3]
            at = max(bisect_right(spans, (begin, begin)) - 1, 0)
            while at and spans[at - 1][1] > begin:  # of the same bytes two things may be told
                at -= 1
            while at < len(spans) and spans[at][0] < end:
                frame_names = self.frames[kind, at]
                if spans[at][1] > begin and len(frame_names) < MAX_FRAMES:
                    frame_names.append(words.names[frame[4]])
                at += 1


def failures(report: Row, fail_on: str | None) -> list[str]:
    """Losses and alterations that are at least as bad as `fail_on`, one line each."""
    if not report["connections"]["both"]:
        return ["the captures have no connection in common"]
    found = []
    for kind, severity in FATES.items():
        if not at_least(severity, fail_on):
            continue
        sums = [report["altered"]] if kind == "altered" else [report[way][kind] for way in WAYS]
        places = sum(total["places"] for total in sums)
        if places:
            text = fates.KINDS.get(kind, "altered on the way")
            size = octets(sum(total["bytes"] for total in sums))
            found.append(f"{severity}: {text}: {plural(places, 'place')}, {size}")
    return found


Frame = tuple[int, ...]
"""Columns of `sighting.FRAME`."""


def both(pair: Pair, direction: int) -> Iterator[tuple[Frame | None, Frame | None]]:
    """Frames of a direction of the client's capture, as (there, at the broker's), in order.

    None if one of them does not have the frame. Offsets are those of the client's capture.
    """
    near = pair.client.directions[direction]
    far = pair.broker.directions[direction ^ pair.turned]
    near_frames, far_frames = _forward(near, 0), _forward(far, pair.shifts[direction])
    client_frame, broker_frame = next(near_frames, None), next(far_frames, None)
    while client_frame is not None or broker_frame is not None:
        if broker_frame is None or (client_frame is not None and client_frame[0] < broker_frame[0]):
            yield client_frame, None
            client_frame = next(near_frames, None)
        elif client_frame is None or broker_frame[0] < client_frame[0]:
            yield None, broker_frame
            broker_frame = next(far_frames, None)
        else:
            yield client_frame, broker_frame
            client_frame, broker_frame = next(near_frames, None), next(far_frames, None)


def _forward(direction: Direction, shift: int) -> Iterator[Frame]:
    """Frames with their offsets shifted; what was read again after a hole is left out.

    One in which a hole of the capture lies has no time: the packet that completed it is not known.
    """
    last = None
    spans = direction.coverage.spans
    holes = [(span[1], following[0]) for span, following in pairwise(spans)]
    at = 0
    for frame in direction.frames:
        begin = frame[0]
        while at < len(holes) and holes[at][1] <= begin:
            at += 1
        if at < len(holes) and holes[at][0] < begin + frame[3]:
            frame = (begin, NO_TIME, *frame[2:])  # noqa: PLW2901
        if last is None or begin > last:
            last = begin
            yield (begin + shift, *frame[1:]) if shift else frame


class Slow(NamedTuple):
    """A frame that took long."""

    delay_ns: int
    raw_ns: int
    pair: Pair
    way: int
    near: Frame
    far: Frame


@dataclass
class Delays:
    """Delays of one way: `raw`, as the two clocks say, less `base_ns`; `corrected` by the clock."""

    base_ns: int = 0
    raw: Any = field(default_factory=Histogram)
    corrected: Any = field(default_factory=Histogram)

    def report(self, *, is_known: bool) -> dict[str, Any] | None:
        """Quantiles in ns; None without a frame.

        Corrected ones are null unless the offset of the clocks `is_known`."""
        if not self.raw.facts()[0]:
            return None
        return {
            "frames": self.raw.facts()[0],
            "raw": _quantiles(self.raw, self.base_ns),
            "corrected": _quantiles(self.corrected, 0) if is_known else None,
        }


def _quantiles(spread: Any, base_ns: int) -> dict[str, int]:
    names = ("min_ns", "p50_ns", "p95_ns", "p99_ns")
    found = dict(zip(names, spread.quantiles(0, 0.5, 0.95, 0.99), strict=True))
    found["max_ns"] = spread.facts()[2]
    return {name: value + base_ns for name, value in found.items()}


class Slowest:
    """The frames that took longest."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[tuple[int, int, Slow]] = []
        self._count = 0

    def add(self, slow: Slow) -> None:
        """Take a frame that is one of the slowest so far."""
        self._count += 1
        push = heappush if len(self._heap) < self._limit else heappushpop
        push(self._heap, (slow.delay_ns, -self._count, slow))

    def slower_than(self, delay_ns: int) -> bool:
        """True if a delay would be among them."""
        if len(self._heap) < self._limit:
            return True
        return bool(self._heap) and delay_ns > self._heap[0][0]

    def listed(self) -> list[Slow]:
        """The slowest frames, the slowest first."""
        return [slow for _, _, slow in sorted(self._heap, reverse=True)]


def timed(near: Frame, far: Frame, way: int) -> tuple[int, int, int] | None:
    """When a frame was sent, when it came, and when on the client's clock; None without times.

    `way` is 0 from the client to the broker, 1 back.
    """
    if NO_TIME in (near[1], far[1]):
        return None
    return (far[1], near[1], near[1]) if way else (near[1], far[1], near[1])


def learn(clock: ClockDifference, pair: Pair, way: int) -> None:
    """Let the clock see every frame of one way of a connection."""
    for near, far in both(pair, direction_of(pair, way)):
        if near is not None and far is not None:
            times = timed(near, far, way)
            if times is not None:
                clock.learn(way, times[0], times[1])


def direction_of(pair: Pair, way: int) -> int:
    """The direction, in the client's capture, of what goes to the broker (0) or comes back (1)."""
    return (pair.client.client or 0) ^ way
