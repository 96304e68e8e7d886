"""Frames as tshark shows them, packet by packet.

tshark is asked for PDML of the AMQP layer alone, which is the only one of its outputs that keeps
frames of one packet apart, fields in their order and tables nested; it is read as it comes, without
an object for what is not AMQP. tshark looks for AMQP on port 5672 and nowhere else, so it is given
the ports.

pyshark's own objects of these packets cost 2.1 ms each from PDML and 0.7 ms from JSON, this 0.5 ms,
of which tshark takes the larger part (measured on 1,002 packets with 3,454 frames).
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from xml.parsers import expat

from amqpsniff.capture.formats import shown
from amqpsniff.capture.tshark import SILENCE_S, Run, Tshark, arguments
from amqpsniff.errors import TsharkError

LAYER = "amqp"
MALFORMED = "_ws.malformed"
PAYLOAD = "amqp.payload"
"""The field whose bytes are not kept: a body, which the output has five times."""

TCP = "tcp"
_ADDRESSED = ("ip", "ipv6", TCP)
_BETWEEN = re.compile(r"Src(?: Port)?: ([^, ]+), Dst(?: Port)?: ([^, ]+)")

MAX_DEPTH = 100
"""Nesting of fields that is read: tshark's own limit is of that size, and ours is 32."""


class TsharkField(NamedTuple):
    """One field: its name, what is shown of it with and without its name, its bytes if it says
    which, and the fields below it."""

    name: str
    label: str
    show: str
    octets: bytes | None
    fields: list[TsharkField]

    def below(self, name: str) -> TsharkField | None:
        """The first field of that name directly below this one."""
        for field in self.fields:
            if field.name == name:
                return field
        return None


class Dissected(NamedTuple):
    """One frame: the packet that completes it, the ends of its connection as `address:port`, its
    fields, and whether it is called malformed."""

    packet_number: int
    ends: frozenset[str]
    fields: TsharkField
    malformed: bool


def dissect(
    tshark: Tshark,
    path: str | os.PathLike[str],
    ports: Iterable[int] = (),
    tls_ports: Iterable[int] = (),
    *,
    keylog: str | os.PathLike[str] | None = None,
    keys: Iterable[str | os.PathLike[str]] = (),
    silence_s: float = SILENCE_S,
) -> Iterator[Dissected]:
    """The AMQP frames that tshark sees in a capture file, in its order.

    `ports` are those of AMQP servers, `tls_ports` those behind TLS, which `keylog` and `keys`
    (files of RSA private keys) open. Raises TsharkError when tshark fails or what it writes cannot
    be read.
    """
    sealed = set(tls_ports)
    decode_as = {f"tcp.port=={port}": LAYER for port in sorted(set(ports) - sealed)}
    decode_as |= {f"tcp.port=={port}": "tls" for port in sorted(sealed)}
    decode_as |= {f"tls.port=={port}": LAYER for port in sorted(sealed)}
    preferences = {"tcp.reassemble_out_of_order": "TRUE"}
    if keylog is not None:
        preferences["tls.keylog_file"] = os.fspath(keylog)
    opened = [word for key in keys for word in ("-o", f'uat:rsa_keys:"{os.fspath(key)}",""')]
    options = arguments(
        path,
        display_filter=LAYER,
        preferences=preferences,
        decode_as=decode_as,
        more=["-T", "pdml", "-J", LAYER, *opened],
    )
    reader = _Pdml()
    with Run(tshark, options, silence_s=silence_s) as run:
        while octets := run.read():
            yield from reader.feed(octets)
        yield from reader.finish()


class _Pdml:
    """Reads PDML in pieces."""

    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        # tshark repeats the capture's name, which may be of any bytes
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._number = 0
        self._addresses = ("", "")
        self._ends: frozenset[str] = frozenset()
        self._open: list[TsharkField] = []
        self._frames: list[Dissected] = []

    def feed(self, octets: bytes) -> list[Dissected]:
        self._parse(octets, last=False)
        return self._take()

    def finish(self) -> list[Dissected]:
        self._parse(b"", last=True)
        return self._frames

    def _parse(self, octets: bytes, *, last: bool) -> None:
        try:
            self._parser.Parse(self._text.decode(octets, last), last)
        except expat.ExpatError as error:
            reason = expat.errors.messages[error.code]
            raise TsharkError(
                f"what tshark writes cannot be read: {reason} in line {error.lineno} of its output"
            ) from None

    def _take(self) -> list[Dissected]:
        """The frames of packets that are over: the last one may still be called malformed."""
        last = [frame for frame in self._frames if frame.packet_number == self._number]
        complete = self._frames[: len(self._frames) - len(last)]
        self._frames = last
        return complete

    def _start(self, kind: str, attributes: dict[str, Any]) -> None:
        name = attributes.get("name", "")
        if self._open or (kind == "proto" and name == LAYER):
            self._push(name, attributes)
        elif kind == "proto" and name in _ADDRESSED:
            self._pass(name, attributes.get("showname", ""))
        elif kind == "field" and name == "num":
            self._number = _integer(attributes.get("show", ""))
        elif kind == "proto" and name == MALFORMED and self._frames:
            # it stands behind the frame that it is about
            self._frames[-1] = self._frames[-1]._replace(malformed=True)

    def _pass(self, name: str, label: str) -> None:
        """A header outside of AMQP: its label has source and destination."""
        match = _BETWEEN.search(label)
        if match is None:
            return
        if name != TCP:
            self._addresses = (match[1], match[2])
            return
        pairs = zip(self._addresses, match.groups(), strict=True)
        self._ends = frozenset(
            f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
            for address, port in pairs
        )

    def _push(self, name: str, attributes: dict[str, Any]) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise TsharkError("what tshark writes cannot be read: fields nested without end")
        octets = None
        if name != PAYLOAD and attributes.get("value"):
            octets = _bytes(attributes.get("unmaskedvalue") or attributes["value"])
        show = "" if name == PAYLOAD else attributes.get("show", "")
        field = TsharkField(name, attributes.get("showname", ""), show, octets, [])
        if self._open:
            self._open[-1].fields.append(field)
        self._open.append(field)

    def _end(self, kind: str) -> None:
        if self._open:
            field = self._open.pop()
            if not self._open and field.name == LAYER:
                self._frames.append(Dissected(self._number, self._ends, field, False))


def _bytes(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise TsharkError(
            f"what tshark writes cannot be read: a packet's number is {shown(text[:40])!r}"
        ) from None
