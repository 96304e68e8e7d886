"""The catalogue of findings: every row, by subject and by code."""

from __future__ import annotations

from amqpsniff.findings.kind import Kind

from . import (
    captures,
    channels,
    closings,
    contents,
    delivery,
    efficiency,
    frames,
    frameworks,
    handshake,
    methods,
    publishing,
    security,
    timing,
)

SUBJECTS: dict[str, tuple[Kind, ...]] = {
    "capture": captures.CAPTURES,
    "handshake": handshake.HANDSHAKE,
    "frames": frames.FRAMES,
    "methods": methods.METHODS,
    "contents": contents.CONTENTS,
    "channels": channels.CHANNELS,
    "closings": closings.CLOSINGS,
    "publishing": publishing.PUBLISHING,
    "delivery": delivery.DELIVERY,
    "timing": timing.TIMING,
    "efficiency": efficiency.EFFICIENCY,
    "security": security.SECURITY,
    "frameworks": frameworks.FRAMEWORKS,
}
"""The catalogue's rows by what they are about."""

KINDS: dict[str, Kind] = {kind.code: kind for kinds in SUBJECTS.values() for kind in kinds}
"""The catalogue's rows by code."""
