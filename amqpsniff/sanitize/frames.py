"""Frames: the bytes of the safe capture for each claim of a frame.

`Cleaner.clean` gives the bytes from a claim's offset on. What it does not give (bodies, what a
frame holds behind its last argument, frames of unknown types) is filler, because no bytes of the
output come from anywhere else.
"""

from __future__ import annotations

import re
import struct

from amqpsniff.decode import claims
from amqpsniff.decode.claims import Claim
from amqpsniff.decode.preamble import SIGNATURE, header_bytes, safe_request
from amqpsniff.decode.redaction import SECRET_NUMBERS
from amqpsniff.sanitize import policy
from amqpsniff.sanitize.amqp10 import Amqp10Cleaner
from amqpsniff.sanitize.credentials import safe_login
from amqpsniff.sanitize.policy import FILL, HIDDEN, KEEP, NAME, SanitizeOptions
from amqpsniff.sanitize.replies import safe_reply
from amqpsniff.sanitize.values import ValueCleaner
from amqpsniff.spec import METHODS, Method, properties_for

AMQP10_CLAIMS = (claims.AMQP10, claims.AMQP10_PAYLOAD)
END_BYTE = b"\xce"
HEADER_BYTES = 7
MAX_REMEMBERED = 4096
"""Content headers whose cleaned form is remembered: most of a long capture are alike."""

_WIDTHS = {"o": 1, "h": 2, "l": 4, "L": 8, "T": 8}
_PROXY_VERSION_2_BYTES = 16
_BEGIN = b"\x08\0\0\0\0\0"
"""The begin of a heartbeat: what stands for less than a frame header at the end of a stream."""


class Cleaner:
    """Cleans frames by the options."""

    def __init__(self, options: SanitizeOptions) -> None:
        self.options = options
        self.values = ValueCleaner(options)
        self.amqp10 = Amqp10Cleaner(self.values, keep_bodies=options.keep_bodies)
        self._arguments = policy.actions(policy.METHOD_ARGUMENTS)
        self._properties = policy.actions(policy.PROPERTIES)
        unchanged = {KEEP} if options.names else {KEEP, NAME}
        self._harmless = [self._is_harmless(method, unchanged) for method in METHODS]
        self._mechanisms: dict[tuple[int, int], bytes] = {}
        self._safe_headers: dict[bytes, bytes] = {}

    def clean(self, claim: Claim) -> bytes:
        """The bytes from the claim's offset on."""
        if claim.kind < claims.PROTOCOL_HEADER:
            head = struct.pack(">BHI", claim.kind, claim.channel, claim.size)
            return head + self._payload(claim)
        if claim.kind == claims.END:
            return END_BYTE
        if claim.kind == claims.PROTOCOL_HEADER:
            return claim.payload
        if claim.kind in AMQP10_CLAIMS:
            return self.amqp10.clean(claim)
        if claim.kind == claims.PROXY:
            return safe_proxy_header(claim.payload)
        return self._unfinished(claim.payload)

    def _unfinished(self, octets: bytes) -> bytes:
        """A frame header, or what stands for a piece of one."""
        if len(octets) < HEADER_BYTES:
            return _BEGIN[: len(octets)]
        return octets[:HEADER_BYTES]

    def _payload(self, claim: Claim) -> bytes:
        if claim.kind == claims.METHOD:
            return self._method(claim)
        login = not claim.channel or claim.payload[:4] in SECRET_NUMBERS  # or may be one
        if claim.kind == claims.HEADER and not login:
            return self._remembered(claim.payload)
        return b""

    def _remembered(self, payload: bytes) -> bytes:
        """A content header cleaned, or as it was cleaned before."""
        safe = self._safe_headers.get(payload)
        if safe is None:
            if len(self._safe_headers) >= MAX_REMEMBERED:
                self._safe_headers.clear()
            safe = self._safe_headers[payload] = self._header(payload)
        return safe

    # methods

    def _is_harmless(self, method: Method, unchanged: set[str]) -> bool:
        """True if nothing of a method is replaced, whatever its arguments are."""
        return method.arguments_known and all(
            argument.type in _WIDTHS
            or argument.type == "b"
            or self._action(argument.name) in unchanged
            for argument in method.arguments
        )

    def _action(self, name: str) -> str:
        return self._arguments.get(name.encode(), FILL)

    def _method(self, claim: Claim) -> bytes:
        payload = claim.payload
        if claim.method < 0:
            return payload[:4]
        if claim.exact and self._harmless[claim.method]:
            return payload
        method = METHODS[claim.method]
        octets = bytearray(payload)
        at = self._walk(claim, method, octets)
        return bytes(octets[:at])

    def _walk(self, claim: Claim, method: Method, octets: bytearray) -> int:
        """Clean the arguments of a method; how many of the payload's bytes are now safe."""
        at, end, bits = 4, len(octets), 0
        for position, argument in enumerate(method.arguments):
            if argument.type == "b":
                if bits & 7 == 0:
                    at += 1
                    if at > end:
                        return end
                    octets[at - 1] &= _bits_of(method, position)
                bits += 1
                continue
            bits = 0
            width = _WIDTHS.get(argument.type)
            if width is not None:
                if at + width > end:
                    return at
                at += width
                continue
            at = self._text(claim, argument.name, argument.type, octets, at)
            if at < 0:
                return -at
        return min(at, end)

    def _text(self, claim: Claim, name: str, kind: str, octets: bytearray, at: int) -> int:
        """Clean a text or a table; the position behind it, its negative where the bytes end."""
        end = len(octets)
        prefix = 1 if kind == "s" else 5 if kind == "C" else 4
        start = at + prefix
        if start > end:
            return -at
        length = octets[at] if kind == "s" else int.from_bytes(octets[start - 4 : start], "big")
        stop = min(start + length, end)
        action = self._action(name)
        if kind == "F":
            choose = self.values.choosers.get(action, self.values.choosers[policy.ARGUMENTS])
            self.values.table(octets, start, stop, choose)
        else:
            octets[start:stop] = self._replaced(claim, name, action, bytes(octets[start:stop]))
        return stop if stop == start + length else -stop

    def _replaced(self, claim: Claim, name: str, action: str, text: bytes) -> bytes:
        if name == "mechanism":
            self._mechanisms[claim.conversation, claim.direction] = text
        if action == policy.LOGIN:
            mechanism = self._mechanisms.get((claim.conversation, claim.direction), b"")
            return safe_login(mechanism, text, lambda user: self.values.text(user, HIDDEN))
        if action == policy.TEXT:
            return safe_reply(text, self.values.text)
        return self.values.text(text, action)

    # content headers

    def _header(self, payload: bytes) -> bytes:
        if len(payload) < 14:
            return payload[: min(len(payload), 12)]
        octets = bytearray(payload)
        class_id = int.from_bytes(payload[:2], "big")
        flags = word = int.from_bytes(payload[12:14], "big")
        at = 14
        while word & 1:
            if at + 2 > len(octets):
                return bytes(octets[:at])
            word = int.from_bytes(octets[at : at + 2], "big")
            at += 2
        rows = properties_for(None, class_id)
        for position in range(15):
            if not (flags >> (15 - position)) & 1 or position >= len(rows):
                continue
            row = rows[position]
            at = self._property(row.name, row.type, octets, at)
            if at < 0:
                return bytes(octets[:-at])
        return bytes(octets[:at])

    def _property(self, name: str, kind: str, octets: bytearray, at: int) -> int:
        end = len(octets)
        action = self._properties.get(name.encode(), FILL)
        if kind not in ("s", "F"):
            width = _WIDTHS.get(kind, 0)
            return at + width if at + width <= end else -at
        prefix = 1 if kind == "s" else 4
        start = at + prefix
        if start > end:
            return -at
        stop = start + int.from_bytes(octets[at:start], "big")
        cut = stop > end
        stop = min(stop, end)
        if kind == "F":
            self.values.table(octets, start, stop, self.values.choosers[policy.HEADERS])
        else:
            octets[start:stop] = self.values.text(bytes(octets[start:stop]), action)
        return -stop if cut else stop


def _bits_of(method: Method, first: int) -> int:
    """The bits of a byte that arguments from `first` on have."""
    count = 0
    for argument in method.arguments[first : first + 8]:
        if argument.type != "b":
            break
        count += 1
    return (1 << count) - 1


def safe_proxy_header(octets: bytes) -> bytes:
    """A proxy's header of the same kind and length, with zeros for addresses, fields and names."""
    if not header_bytes(octets):
        return safe_request(octets)
    if octets.startswith(SIGNATURE):
        head = octets[:_PROXY_VERSION_2_BYTES]
        return head + bytes(len(octets) - len(head))
    begin, blank, fields = octets.partition(b" ")
    family, second, addresses = fields.partition(b" ")
    hidden = re.sub(rb"[^\s.:]", b"0", addresses)
    return begin + blank + family + second + hidden
