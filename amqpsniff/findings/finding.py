# cython: language_level=3, boundscheck=True, nonecheck=True
"""One finding: a row of the findings table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import cython

from .kind import Kind

FURTHER = "further ones, first: "
"""Begins the detail of the finding that counts all subjects after the first ones."""


@dataclass
@cython.cclass
class Finding:
    """One finding: its first place, its number of cases, and its last place.

    All fields except `code`, `detail` and `count` may be None: unknown, or not about a packet.
    Numbers of packets and channels and the time are integers, the others are texts.
    `cause_code` and `cause_packet_number` name the finding that caused this one, by its code and
    first packet; None without a cause. `variant` separates findings of one code and place, such as
    the queues for which channels were closed. `until_ns`: the end of a state that began at `ts_ns`:
    a cause may have come in that time.
    """

    code: str
    detail: str
    capture: Any = None
    packet_number: Any = None
    ts_ns: Any = None
    connection_id: Any = None
    client: Any = None
    server: Any = None
    channel: Any = None
    count: cython.longlong = 1
    last_packet_number: Any = None
    cause_code: Any = None
    cause_packet_number: Any = None
    variant: Any = None
    until_ns: Any = None

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of a finding: code, connection or capture, channel, variant."""
        return self.code, self.connection_id or self.capture, self.channel, self.variant

    @property
    def kind(self) -> Kind:
        """The catalogue's row for this finding's code."""
        return _kinds()[self.code]


@cache
def _kinds() -> dict[str, Kind]:
    from .catalogue import KINDS  # most captures have none of these

    return KINDS
