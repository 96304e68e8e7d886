"""The difference of two hosts' clocks, estimated from the traffic between them.

What leaves one host at t on its clock and comes to the other at u on that one's took u - t: its
delay, plus how far the second clock is ahead. The other way it is the delay minus that. No delay is
negative, so the smallest difference of each direction bounds the offset from one side; what lies
between the bounds is the shortest round trip. Nothing in the traffic says where between them: the
middle is right where the path takes as long one way as the other.

Clocks also run at different speeds. The middle is found for each of some windows of time, and the
line through these, where it is steeper than they scatter, is the drift.
"""

from __future__ import annotations

from statistics import median
from typing import Any

MAX_WINDOWS = 256
"""Windows of time, each with its smallest difference; twice as many become half as many."""

FIRST_WINDOW_NS = 10_000_000
"""Length of a window at first."""

MIN_WINDOWS = 8
"""Windows with both directions that it takes to tell a drift."""

STEEP = 4.0
"""How much more a line must change over the whole time than the windows scatter around it."""

MIN_DRIFT_NS = 20_000
"""Change over the whole time below which no drift is reported: time stamps are not more exact."""

MAX_NS = 1 << 63

EXACT_NS = 5_000
"""How far two bounds may cross: time stamps are whole microseconds, and a drift is estimated."""

MAX_DRIFT = 1e-3
"""A thousandth: no clock is so wrong (quartz: 1e-4); what looks so was set, or is congestion."""


class ClockDifference:
    """Learns from differences: `learn` for each frame, then `settle`, then `ahead_ns`.

    Directions: 0 from the client's capture to the broker's, 1 back. Times are those of the client's
    capture; `ahead_ns` is how far the broker's clock is ahead of it.
    """

    def __init__(self) -> None:
        self._windows: dict[int, list[tuple[int, int] | None]] = {}
        self._length_ns = FIRST_WINDOW_NS
        self._smallest: list[int | None] = [None, None]
        self._largest = [-MAX_NS, -MAX_NS]
        self._origin_ns = 0
        self._offset_ns = 0.0
        self._drift = 0.0
        self._halfway_ns: float | None = None

    def learn(self, direction: int, sent_ns: int, came_ns: int) -> None:
        """A frame was sent and came, each on its own clock."""
        difference = came_ns - sent_ns
        least = self._smallest[direction]
        if least is None or difference < least:
            self._smallest[direction] = difference
        self._largest[direction] = max(self._largest[direction], difference)
        client_ns = came_ns if direction else sent_ns
        slot = client_ns // self._length_ns
        window = self._windows.get(slot)
        if window is None:
            window = self._windows[slot] = [None, None]
            if len(self._windows) > MAX_WINDOWS:
                self._widen()
                window = self._windows[client_ns // self._length_ns]
        best = window[direction]
        if best is None or difference < best[0]:
            window[direction] = (difference, client_ns)

    def _widen(self) -> None:
        """Make windows twice as long."""
        self._length_ns *= 2
        windows: dict[int, list[tuple[int, int] | None]] = {}
        for slot, window in self._windows.items():
            merged = windows.setdefault(slot // 2, [None, None])
            for direction, bound in enumerate(window):
                best = merged[direction]
                if bound is not None and (best is None or bound < best):
                    merged[direction] = bound
        self._windows = windows
        if len(windows) > MAX_WINDOWS:
            self._widen()

    @property
    def is_known(self) -> bool:
        """True if both directions were seen, so that the offset is bounded from both sides."""
        return None not in self._smallest

    def settle(self) -> None:
        """Everything was learnt: find the offset and the drift."""
        if not self.is_known:
            return
        middles = []
        for window in self._windows.values():
            to_broker, to_client = window
            if to_broker is not None and to_client is not None:
                middles.append(
                    ((to_broker[1] + to_client[1]) / 2, (to_broker[0] - to_client[0]) / 2)
                )
        self._origin_ns = int(middles[0][0]) if middles else 0
        self._drift = _slope([(at - self._origin_ns, value) for at, value in middles])
        self._place()

    def _place(self) -> None:
        """The offset at the origin: the middle of the bounds that the drift leaves."""
        upper, lower = [], []
        for to_broker, to_client in self._windows.values():
            if to_broker is not None:
                upper.append(to_broker[0] - self._drift * (to_broker[1] - self._origin_ns))
            if to_client is not None:
                lower.append(-to_client[0] - self._drift * (to_client[1] - self._origin_ns))
        self._offset_ns = (min(upper) + max(lower)) / 2
        self._halfway_ns = (min(upper) - max(lower)) / 2

    def ahead_ns(self, client_ns: int) -> int:
        """Time by which the broker's clock is ahead, at a time of the client's."""
        return round(self._offset_ns + self._drift * (client_ns - self._origin_ns))

    def report(self) -> dict[str, Any]:
        """The offset of the clocks and its bounds, in ns; None where one direction was not seen.

        If each round trip is negative, the captures are `exchanged`: the broker's is the client's.
        """
        to_broker, to_client = self._smallest
        return {
            "offset_ns": round(self._offset_ns) if self.is_known else None,
            "uncertainty_ns": None if self._halfway_ns is None else round(self._halfway_ns),
            "highest_ns": to_broker,
            "lowest_ns": None if to_client is None else -to_client,
            "drift_ppm": round(self._drift * 1e6, 3) if self._drift else None,
            "exchanged": self.is_known and sum(self._largest) < -EXACT_NS,
            "consistent": self._halfway_ns is None or self._halfway_ns >= -EXACT_NS,
        }


def _slope(points: list[tuple[float, float]]) -> float:
    """The drift that points (time, offset) show; 0 if they show none that is certain.

    The median of the slopes between all of them (Theil and Sen), which a few windows of congestion
    do not turn.
    """
    if len(points) < MIN_WINDOWS:
        return 0.0
    slopes = [
        (later[1] - point[1]) / (later[0] - point[0])
        for at, point in enumerate(points)
        for later in points[at + 1 :]
        if later[0] != point[0]
    ]
    if not slopes:
        return 0.0
    slope = median(slopes)
    level = median(value - slope * at for at, value in points)
    scatter = median(abs(value - slope * at - level) for at, value in points)
    span = max(at for at, _ in points) - min(at for at, _ in points)
    change = abs(slope * span)
    if change < max(STEEP * scatter, MIN_DRIFT_NS) or abs(slope) > MAX_DRIFT:
        return 0.0
    return slope
