"""One finding: a row of the findings table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .kind import Kind


@dataclass(slots=True)
class Finding:
    """One finding: where it was seen first, how often, and where last.

    Everything but `code`, `detail` and `count` may be None: not known, or not about a packet.
    `cause_code` and `cause_packet_number` name the finding that brought this one about, by its code
    and the packet where it was seen first; None when it stands for itself. `variant` keeps findings
    of one code and place apart, such as the reply codes with which channels were closed.
    """

    code: str
    detail: str
    capture: str | None = None
    packet_number: int | None = None
    ts_ns: int | None = None
    connection_id: str | None = None
    client: str | None = None
    server: str | None = None
    channel: int | None = None
    count: int = 1
    last_packet_number: int | None = None
    cause_code: str | None = None
    cause_packet_number: int | None = None
    variant: int | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What makes a finding the same one: code, connection or capture, channel, variant."""
        return self.code, self.connection_id or self.capture, self.channel, self.variant

    @property
    def kind(self) -> Kind:
        """The catalogue's row for this finding's code."""
        return _kinds()[self.code]


@cache
def _kinds() -> dict[str, Kind]:
    from .catalogue import KINDS  # most captures have nothing to say of

    return KINDS
