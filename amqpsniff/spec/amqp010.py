"""AMQP 0-10 as rows: the names of its controls and commands, by the numbers of class and unit.

Source: the XML of the AMQP working group with Qpid's errata, BSD-3-Clause.
"""

from __future__ import annotations

from amqpsniff.spec.constants import FRAME_OVERHEAD_BYTES

_UNITS = """
1 connection 1:start 2:start-ok 3:secure 4:secure-ok 5:tune 6:tune-ok 7:open 8:open-ok 9:redirect 10:heartbeat 11:close 12:close-ok
2 session 1:attach 2:attached 3:detach 4:detached 5:request-timeout 6:timeout 7:command-point 8:expected 9:confirmed 10:completed 11:known-completed 12:flush 13:gap
3 execution 1:sync 2:result 3:exception
4 message 1:transfer 2:accept 3:reject 4:release 5:acquire 6:resume 7:subscribe 8:cancel 9:set-flow-mode 10:flow 11:flush 12:stop
5 tx 1:select 2:commit 3:rollback
6 dtx 1:select 2:start 3:end 4:commit 5:forget 6:get-timeout 7:prepare 8:recover 9:rollback 10:set-timeout
7 exchange 1:declare 2:delete 3:query 4:bind 5:unbind 6:bound
8 queue 1:declare 2:delete 3:purge 4:query
9 file 1:qos 2:qos-ok 3:consume 4:consume-ok 5:cancel 6:open 7:open-ok 8:stage 9:publish 10:return 11:deliver 12:ack 13:reject
10 stream 1:qos 2:qos-ok 3:consume 4:consume-ok 5:cancel 6:publish 7:return 8:deliver
"""  # noqa: E501 (one class, one line)


def _units() -> dict[tuple[int, int], str]:
    names = {}
    for line in _UNITS.strip().split("\n"):
        code, name, *units = line.split()
        for unit in units:
            number, _, unit_name = unit.partition(":")
            names[int(code), int(number)] = f"{name}.{unit_name}"
    return names


UNITS: dict[tuple[int, int], str] = _units()
"""(class, unit) -> name; those of connection and session are controls, others are commands."""

SEGMENT_HEADER_BYTES = 12
"""Header of a frame."""

SEGMENTS = ("control", "command", "header-segment", "body-segment")
"""Types of segments, by their numbers."""

_OVERHEADS = {"protocol-header": 0, **dict.fromkeys(SEGMENTS, SEGMENT_HEADER_BYTES)}


def overhead_bytes(frame_type: str) -> int:
    """Bytes of a frame around its payload, by the type in the frames table."""
    return _OVERHEADS.get(frame_type, FRAME_OVERHEAD_BYTES)
