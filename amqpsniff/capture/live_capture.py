"""Live capture from network interfaces of this machine (Linux).

One packet socket serves one interface, several or all: where it is more than one it is bound to
none, and the kernel's filter keeps those that are wanted. So packets come in one order whatever
interface they are seen on, and an interface that goes away and comes back is taken up again without
any right. Packets are read from a `Ring`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from amqpsniff.capture import filter as filters
from amqpsniff.capture.packet_ring import BUFFER_BYTES, Ring, index_of
from amqpsniff.capture.packets import PacketBatch
from amqpsniff.capture.pcapng_interface import InterfaceStatistics
from amqpsniff.errors import CaptureError, UsageError
from amqpsniff.findings import Finding

ANY = "any"
"""The name that means all interfaces, also those that come later."""

LOOK_SECONDS = 0.5
"""Seconds between checks that interfaces still exist."""

_ALL_PROTOCOLS = 3
_SO_TIMESTAMPNS = 35
_SOL_PACKET, _ADD_MEMBERSHIP, _PROMISCUOUS = 263, 1, 1
_UP = 1


def available() -> list[str]:
    """Names of the interfaces of this host."""
    return [name for _, name in socket.if_nameindex()]


def has_ethernet(name: str) -> bool:
    """True if packets of an interface begin with an Ethernet header, as those of loopback do."""
    try:
        kind = int(Path(f"/sys/class/net/{name}/type").read_text())
    except (OSError, ValueError):
        return True
    return kind in filters.ETHERNET_LIKE


def is_down(name: str) -> bool:
    """True if an interface was taken down, as by `ip link set down`."""
    try:
        return not int(Path(f"/sys/class/net/{name}/flags").read_text(), 16) & _UP
    except (OSError, ValueError):
        return False


class InterfaceCapture:
    """Packets of interfaces, as they come.

    Raises UsageError for an unknown interface or an invalid filter, CaptureError if this process
    may not capture.

    Args:
        names: Interfaces; `any` alone for all of them.
        expression: A filter in the language of tcpdump; empty for none.
        buffer_bytes: Size of the memory for packets that wait to be read.

    Attributes:
        capture: The value of the column `capture`: the interfaces' names.
        packets: Packets taken so far.
        received, dropped: The kernel's counts of packets that passed the filter, and of those
            among them without room.
        notes: Messages for the user (an interface was removed), to be taken from the list.
    """

    def __init__(
        self,
        names: Iterable[str],
        expression: str = "",
        buffer_bytes: int = BUFFER_BYTES,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self.look_seconds = look_seconds
        self.names = list(dict.fromkeys(names)) or [ANY]
        self.all = self.names == [ANY]
        if ANY in self.names and not self.all:
            raise UsageError("`any` means all interfaces; leave out the others")
        if len(self.names) > filters.MAX_INTERFACES:
            raise UsageError(f"more than {filters.MAX_INTERFACES} interfaces; use `any`")
        self.capture = ",".join(self.names)
        self.received = self.dropped = 0
        self.notes: list[str] = []
        self.findings: list[Finding] = []
        self.ended = False
        self.live = True
        self._expression = expression
        self._names_by_index: dict[int, str] = {}
        self._indices = self._look_up()
        self._refuse_other_links()
        self._down: set[str] = set()
        self._look_down()
        self._looked = time.monotonic()
        self._socket = self._open()
        try:
            self._aim()
            self._ring = Ring(self.capture, self._socket, buffer_bytes)
        except BaseException:
            self._socket.close()
            raise
        self.statistics()  # packets before the filter was set do not count
        self.received = self.dropped = 0

    @property
    def packets(self) -> int:
        """Packets taken so far."""
        return self._ring.packets

    @property
    def missing(self) -> list[str]:
        """Interfaces that went away and have not come back."""
        return [name for name, index in self._indices.items() if not index]

    def fileno(self) -> int:
        """A descriptor that is readable when packets are there."""
        return self._ring.fileno()

    def held(self) -> bool:
        """True if the kernel has packets that it did not hand over yet."""
        return self._ring.held

    def take(self, max_packets: int) -> Iterator[tuple[PacketBatch, Sequence[int]]]:
        """Batches of the available packets, with a maximum, and each packet's interface index."""
        if self._ring.error() or time.monotonic() - self._looked > self.look_seconds:
            self._look()
        return self._ring.take(max_packets)

    def name_of(self, index: int) -> str:
        """The name of an interface by the kernel's index."""
        name = self._names_by_index.get(index)
        if name is None:
            try:
                name = socket.if_indextoname(index)
            except OSError:
                name = f"interface {index}"
            self._names_by_index[index] = name
        return name

    def take_secrets(self) -> list[tuple[int, bytes]]:
        """No secrets come over an interface."""
        return []

    def statistics(self) -> InterfaceStatistics:
        """The kernel's counts since the beginning."""
        received, dropped = (0, 0) if self.ended else self._ring.statistics()
        self.received += received
        self.dropped += dropped
        return InterfaceStatistics(self.capture, self.received, None, self.dropped)

    def finish(self) -> None:
        """End of the capture: report the losses."""
        statistics = self.statistics()
        if statistics.dropped_by_system:
            number = self.packets or None
            text = statistics.text()
            self.findings.append(Finding("interface-dropped", text, self.capture, number))
        self.ended = True

    def close(self) -> None:
        """Let go of socket and memory."""
        self._ring.close()
        self._socket.close()

    def _look_up(self) -> dict[str, int]:
        if self.all:
            return {}
        indices = {name: index_of(name) for name in self.names}
        for name, index in indices.items():
            if not index:
                choices = ", ".join([*available(), ANY])
                raise UsageError(f"there is no interface `{name}`; there are {choices}")
        return indices

    def _refuse_other_links(self) -> None:
        """Report interfaces whose link type the filter excludes; UsageError if it excludes all."""
        if not filters.needs_ethernet(self._expression):
            return
        names = available() if self.all else self.names
        excluded = [name for name in names if not has_ethernet(name)]
        listed = ", ".join(excluded)
        text = f"filter {self._expression!r} needs Ethernet headers, which are not on {listed}"
        if len(excluded) == len(names):
            raise UsageError(text)
        if excluded:
            self.notes.append(f"{text}: nothing is captured there")

    def _open(self) -> socket.socket:
        """A packet socket that is bound to nothing yet; a single interface is promiscuous."""
        if not sys.platform.startswith("linux"):
            raise CaptureError(
                "capturing from interfaces needs Linux; use `tcpdump -U -w - | amqpsniff live -`"
            )
        try:
            opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        except PermissionError:
            raise CaptureError(_no_right(self.names)) from None
        except OSError as error:
            raise CaptureError(f"{self.capture}: cannot capture: {error.strerror}") from None
        opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)  # as packets come, not later
        if len(self._indices) == 1:
            (index,) = self._indices.values()
            membership = struct.pack("iHH8x", index, _PROMISCUOUS, 0)
            with suppress(OSError):  # of an interface that cannot be, its own packets come
                opened.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, membership)
        return opened

    def _aim(self) -> None:
        """Capture the requested interfaces from now on.

        Raises CaptureError if that is impossible, except for an interface that was just removed:
        the next look detects it.
        """
        present = [index for index in self._indices.values() if index]
        if not self.all and not present:
            return
        single = self.names[0] if len(self.names) == 1 and not self.all else ""
        instructions = filters.program(self._expression, [] if single or self.all else present)
        try:
            filters.attach(self._socket, instructions)
            _bind(self._socket, self._indices[single] if single else 0)
        except OSError as error:
            if error.errno == errno.ENODEV:
                return
            reason = error.strerror
            raise CaptureError(f"{self.capture}: cannot capture: {reason}") from None

    def _look(self) -> None:
        """Notice interfaces that went away or came back."""
        self._looked = time.monotonic()
        changed = False
        for name, before in self._indices.items():
            index = index_of(name)
            if index == before:
                continue
            changed = True
            self._indices[name] = index
            if before:
                self.notes.append(f"interface {name} went away; capturing goes on when it is back")
            if index:
                self.notes.append(f"interface {name} is back")
        if changed:
            self._aim()
        self._look_down()

    def _look_down(self) -> None:
        """Note interfaces that exist and went down, or came up again."""
        down = {name for name, index in self._indices.items() if index and is_down(name)}
        for name in sorted(down - self._down):
            self.notes.append(f"interface {name} is down; capturing goes on when it is up")
        for name in sorted(self._down - down):
            if self._indices[name]:
                self.notes.append(f"interface {name} is up")
        self._down = down


def _bind(socket_: socket.socket, index: int) -> None:
    """Bind a packet socket to an interface, or to all for 0, which Python's `bind` cannot."""
    address = struct.pack(
        "=HHiHBB8x", socket.AF_PACKET, socket.htons(_ALL_PROTOCOLS), index, 0, 0, 0
    )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.bind(socket_.fileno(), address, len(address)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _no_right(names: Sequence[str]) -> str:
    """The missing rights for capturing, and the remedy."""
    interface = names[0] if len(names) == 1 else ANY
    python = os.path.realpath(sys.executable)
    return (
        f"capturing on {','.join(names)} needs the capability CAP_NET_RAW; run it with sudo, give "
        f"Python the capability (`sudo setcap cap_net_raw=ep {python}`), or pipe from a program "
        f"that has it: `sudo tcpdump -i {interface} -U -w - | amqpsniff live -`"
    )
