"""Reply texts: a broker's own words are kept, quotes are not.

A text is split into quotes, words and the rest. A word is kept if it is one that RabbitMQ
uses (measured on RabbitMQ 3.10.8) or a number in a broker's text; what stands between quotation
marks is a name where the word before says of what, else filler; bytes that are quoted
(`<<0,60,…>>`) and all other words are filler. A text without a reply code's name at its begin is
not a broker's: its numbers are filler too, and so is every quote.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from amqpsniff.sanitize.policy import DECLARED, FILL, HIDDEN, NAME, filler, zeros
from amqpsniff.spec import METHODS, REPLY_CODES

VOCABULARY = frozenset(
    (
        "a abnormal access acknowledge acknowledged acknowledgement active alarm all allowed "
        "already an and another any arg argument attempt authenticate authenticated "
        "authentication auto autodelete bad basic bcc be been binding blocked body boolean broker "
        "but by can cannot cause cc channel channel_max channels class client close closed "
        "closing closure code command configure configured confirm connection connection_closed "
        "connections consume consumer consumers contains content could current data database "
        "declaration declare declared decode default delete deleted delivery denied details "
        "detected direct disk does down durable during empty error exceeded exchange exclusive "
        "exist exists expected expiration failed failure false fanout fast feature flow for "
        "forced found frame frame_max frame_size frame_too_large frames from get goodbye got "
        "guide has have header headers heartbeat immediate implemented in inequivalent instead "
        "int integer internal invalid invalid_frame_end_marker is it kind larger leader length "
        "limit local locked logfile login long longstr low maintenance malformed management "
        "mandatory match max maximum mechanism memory message method minimum missing mode more ms "
        "must name negotiated new no no_integer node non none normal not number obtain octets of "
        "on one open opened operation operator or ordinary original originally other out owner "
        "passive payload permitted plain please prefetch prefetch_size prefix priority property "
        "protocol publish purge queue reached read reason received refused reject rejected reply "
        "requested requeue required reserved resource restricted reuse routable route routing "
        "running second see seen server set shortstr should shutdown signedint single size some "
        "state still stopped stream supported switch table tag temporarily than that the there "
        "this timed timeout to too topic transactional true try tuned tx type unable "
        "unacceptable_type_in_header unavailable unexpected unimplemented unknown unknown_frame "
        "unroutable unsupported until use used user user_id using utf-8 value version vhost was "
        "when while with without write you your zero "
        "above activity cbs credential detach detached detach-forced entity expired expiredtoken "
        "force handle handles idle idle_timeout link links local-idle-timeout many messaging "
        "renewtoken session sessions source target token tokens ok "
    ).split()
)
"""Words of brokers, and of clients that close."""

EXCHANGE_TYPES = ("direct", "fanout", "headers", "topic")

_CODES = frozenset(row.name.upper().replace("-", "_").encode() for row in REPLY_CODES)
_QUOTED = VOCABULARY.union(
    (method.name for method in METHODS), (rule.name for rule in DECLARED), EXCHANGE_TYPES
)
"""What may stand between quotation marks of a broker's text."""

_BROKER = re.compile(rb"([A-Z_]{4,})(?: - |$)")
_PIECES = re.compile(rb"<<[^>]*(?:>>)?|'[^']*'?|[A-Za-z_][A-Za-z0-9_.-]*|\d+|[^\w'<]+|.", re.DOTALL)
_UNPRINTABLE = ord("?")
_NAMED = frozenset((b"queue", b"exchange", b"vhost", b"name", b"key", b"tag", b"prefix"))
_USER = b"user"

Replace = Callable[[bytes, str], bytes]
"""Replaces a text by one of its length, as an action says."""


def safe_reply(text: bytes, replace: Replace) -> bytes:
    """A text of the same length without its quotes and names."""
    broker = _BROKER.match(text)
    is_broker = broker is not None and broker[1] in _CODES
    pieces: list[bytes] = []
    last = b""
    for piece in _PIECES.findall(text):
        pieces.append(_safe(piece, last, replace, is_broker=is_broker))
        if piece.strip():
            last = piece
    return b"".join(pieces)


def _safe(piece: bytes, last: bytes, replace: Replace, *, is_broker: bool) -> bytes:
    if piece.startswith(b"<<"):
        closed = piece.endswith(b">>") and len(piece) >= 4
        return b"<<" + filler(len(piece) - (4 if closed else 2)) + (b">>" if closed else b"")
    if piece.startswith(b"'"):
        return _safe_quote(piece, last, replace, is_broker=is_broker)
    if piece[:1].isdigit():
        return piece if is_broker else zeros(len(piece))
    if piece[:1].isalpha() or piece[:1] == b"_":
        word = piece.rstrip(b".-")
        is_kept = word.decode("ascii", "replace").lower() in VOCABULARY or word in _CODES
        return piece if is_kept else filler(len(word)) + piece[len(word) :]
    return bytes(octet if 0x20 <= octet < 0x7F else _UNPRINTABLE for octet in piece)


def _safe_quote(piece: bytes, last: bytes, replace: Replace, *, is_broker: bool) -> bytes:
    end = b"'" if len(piece) > 1 and piece.endswith(b"'") else b""
    inside = piece[1 : len(piece) - len(end)]
    action = FILL
    if is_broker:
        action = NAME if last in _NAMED else HIDDEN if last == _USER else FILL
        if action == FILL and inside.decode("ascii", "replace") in _QUOTED:
            return piece
    return b"'" + replace(inside, action) + end
