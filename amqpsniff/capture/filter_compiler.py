"""Capture filters compiled by libpcap, through scapy, in a process of its own: scapy takes 20 MB.

Run with an expression and link types, it prints for each of these a list of instructions, each a
list of numbers, or the text of the error, as JSON.
"""

from __future__ import annotations

import json
import sys

from scapy.arch.common import compile_filter, free_filter
from scapy.error import Scapy_Exception

from amqpsniff.link_types import LINK_RAW

_LIBPCAP_RAW_IP = 12
"""The number that libpcap has for LINK_RAW on Linux."""


def _compiled(expression: str, link_type: int) -> list[list[int]] | str:
    """The instructions of a filter; the text of the error if it is invalid."""
    try:
        program = compile_filter(
            expression, linktype=_LIBPCAP_RAW_IP if link_type == LINK_RAW else link_type
        )
    except ImportError:
        return (
            "a capture filter needs libpcap; install it (Debian: libpcap0.8, Fedora: libpcap) or "
            "leave out the filter and the ports"
        )
    except Scapy_Exception as error:
        return f"invalid capture filter {expression!r}: {error}"
    instructions = [
        [instruction.code, instruction.jt, instruction.jf, instruction.k]
        for instruction in program.bf_insns[: program.bf_len]
    ]
    free_filter(program)
    return instructions


if __name__ == "__main__":
    json.dump([_compiled(sys.argv[1], int(link_type)) for link_type in sys.argv[2:]], sys.stdout)
