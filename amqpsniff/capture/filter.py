"""Programs that the kernel runs on every packet to choose those that are captured (classic BPF).

A filter expression is compiled by libpcap (`filter_compiler.py`), once for interfaces whose packets
begin with an Ethernet header and once for all others, where it sees only the IP packet. One
program is put together from both: it leaves out what a loopback interface sends (the packet comes
once more, as received), keeps the chosen interfaces, and continues with the part that fits.

Source: linux/Documentation/networking/filter.rst, linux/include/uapi/linux/filter.h.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

from amqpsniff.child_processes import safe_environment
from amqpsniff.errors import UsageError
from amqpsniff.installation import how_to_add
from amqpsniff.link_types import LINK_ETHERNET, LINK_RAW

WHOLE_BYTES = 262_144
"""What a packet is cut to, the most that tcpdump and Wireshark read; a loopback packet may have
65,550 bytes, which is more than filters compiled by scapy let through."""

MAX_INTERFACES = 200
"""Interfaces that can be named: a program has at most 4,096 instructions."""

_LOAD, _LOAD_HALF, _LOAD_BYTE = 0x20, 0x28, 0x30
_HEADER_LENGTH = 0xB1
_RETURN, _JUMP, _JUMP_EQUAL = 0x06, 0x05, 0x15
_INDIRECT = (0x40, 0x48, 0x50)
_DIRECT = (_LOAD, _LOAD_HALF, _LOAD_BYTE, _HEADER_LENGTH)

_ANCILLARY = 0xFFFFF000
_PACKET_TYPE, _INTERFACE, _HARDWARE = _ANCILLARY + 4, _ANCILLARY + 8, _ANCILLARY + 28
_NETWORK = 0xFFF00000
"""Offsets from here on are counted from the IP header, wherever it is."""

_OUTGOING = 4
_ARPHRD_ETHERNET, _ARPHRD_LOOPBACK = ETHERNET_LIKE = 1, 772
"""ARPHRD_ values of interfaces whose packets begin with an Ethernet header."""

_HOME_FOLDERS = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
"""Environment variables that say where scapy makes folders when it is imported."""


class Instruction(NamedTuple):
    """One instruction: operation, places to jump when true and when false, and a number."""

    code: int
    true: int
    false: int
    number: int


def ports_expression(ports: Iterable[int]) -> str:
    """The filter for conversations with one of these ports; null text for any.

    Fragments of IP packets have no ports, so they are let through.
    """
    terms = " or ".join(f"port {port}" for port in sorted(ports))
    if not terms:
        return ""
    return f"(tcp and ({terms})) or (ip[6:2] & 0x1fff != 0) or (ip6 proto 44)"


def program(expression: str, indices: Sequence[int] = ()) -> bytes:
    """The whole program for the kernel; `indices` are the interfaces to capture, empty for all.

    If the expression tests Ethernet headers, no other interface's packets pass. Raises
    UsageError for an expression that libpcap does not understand.
    """
    ethernet = _compiled(expression, LINK_ETHERNET)
    other = [_from_network(instruction) for instruction in _without_ethernet(expression)]
    chosen = [
        Instruction(_LOAD, 0, 0, _HARDWARE),
        Instruction(_JUMP_EQUAL, 2, 0, _ARPHRD_ETHERNET),
        Instruction(_JUMP_EQUAL, 1, 0, _ARPHRD_LOOPBACK),
        Instruction(_JUMP, 0, 0, len(ethernet)),
        *ethernet,
        *other,
    ]
    return b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in [*_received(), *_wanted(indices), *chosen]
    )


def needs_ethernet(expression: str) -> bool:
    """True if an expression tests fields that only packets with an Ethernet header have.

    Raises UsageError for one that libpcap does not understand at all.
    """
    _compiled(expression, LINK_ETHERNET)
    try:
        _compiled(expression, LINK_RAW)
    except UsageError:
        return True
    return False


def _without_ethernet(expression: str) -> list[Instruction]:
    """The program for packets that begin with their IP header."""
    if needs_ethernet(expression):
        return [Instruction(_RETURN, 0, 0, 0)]
    return _compiled(expression, LINK_RAW)


def attach(socket_: object, instructions: bytes) -> None:
    """Have the kernel run a program on every packet of a socket; raises OSError."""
    import socket

    buffer = ctypes.create_string_buffer(instructions)
    header = struct.pack("HL", len(instructions) // 8, ctypes.addressof(buffer))
    so_attach_filter = 26
    socket_.setsockopt(socket.SOL_SOCKET, so_attach_filter, header)  # type: ignore[attr-defined]


def _received() -> list[Instruction]:
    """Leave out packets that a loopback interface sends."""
    return [
        Instruction(_LOAD, 0, 0, _PACKET_TYPE),
        Instruction(_JUMP_EQUAL, 0, 3, _OUTGOING),
        Instruction(_LOAD, 0, 0, _HARDWARE),
        Instruction(_JUMP_EQUAL, 0, 1, _ARPHRD_LOOPBACK),
        Instruction(_RETURN, 0, 0, 0),
    ]


def _wanted(indices: Sequence[int]) -> list[Instruction]:
    """Leave out all interfaces but these; without any, all are captured."""
    if not indices:
        return []
    listed = list(indices)[:MAX_INTERFACES]
    tests = [
        Instruction(_JUMP_EQUAL, len(listed) - at, 0, index) for at, index in enumerate(listed)
    ]
    return [Instruction(_LOAD, 0, 0, _INTERFACE), *tests, Instruction(_RETURN, 0, 0, 0)]


def _compiled(expression: str, link_type: int) -> list[Instruction]:
    """The program that libpcap compiles from an expression, accepting whole packets."""
    if not expression.strip():
        return [Instruction(_RETURN, 0, 0, WHOLE_BYTES)]
    result = _programs(expression)[link_type]
    if isinstance(result, str):
        raise UsageError(result)
    return [
        instruction._replace(number=WHOLE_BYTES)
        if instruction.code == _RETURN and instruction.number
        else instruction
        for instruction in (Instruction(*numbers) for numbers in result)
    ]


@cache
def _programs(expression: str) -> dict[int, list[list[int]] | str]:
    """Programs from `filter_compiler` by link type; the text of an error instead of one.

    It is kept, since a process that gave up its rights may not start another one. scapy must not
    touch the home directory, which may belong to another user (`sudo -E`): folders that cannot be
    made are those it does without.
    """
    pipe = "or pipe: `tcpdump -U -w - | amqpsniff live -`"
    if find_spec("scapy") is None:
        raise UsageError(f"a capture filter needs scapy; run `{how_to_add('live')}`, {pipe}")
    links = (LINK_ETHERNET, LINK_RAW)
    folders = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    homes = dict.fromkeys(_HOME_FOLDERS, f"{os.devnull}/none")
    done = subprocess.run(
        [sys.executable, "-m", "amqpsniff.capture.filter_compiler", expression, *map(str, links)],
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        env=safe_environment() | folders | homes,
    )
    if done.returncode:  # it reads much of the system when it is imported
        reason = (done.stderr.splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UsageError(f"a capture filter needs scapy, whose import failed ({reason}); {pipe}")
    return dict(zip(links, json.loads(done.stdout), strict=True))


def _from_network(instruction: Instruction) -> Instruction:
    """An instruction that reads from the IP header on."""
    if instruction.code in _DIRECT or instruction.code in _INDIRECT:
        if instruction.number < _NETWORK:
            return instruction._replace(number=instruction.number + _NETWORK)
    return instruction
