"""Records protected again, with keys of their own: the opposite of `protection`.

The keys follow from a client's random and the label of the secret, and from nothing else: whoever
has them, as all have who get them with the capture, learns nothing about those that were used on
the wire. Lines of a key log (`SecretsOfOwn.lines`) open what was protected with them.

Source: as in `protection`.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import Any

from cryptography.hazmat.decrepit.ciphers import algorithms as decrepit
from cryptography.hazmat.primitives.ciphers import Cipher, modes

from .claims import Keys, OpenedClaim
from .derive import (
    block_bytes,
    digest_bytes,
    key_block,
    next_secret,
    traffic_keys,
)
from .hello import TLS_1_3
from .protection import aead_of, block_cipher
from .secrets import MASTER_BYTES

_PURPOSE = b"amqpsniff: keys of a capture made safe"


class SecretsOfOwn:
    """The secrets in place of those that were used."""

    def __init__(self) -> None:
        self._known: dict[Keys, bytes] = {}
        self._lines: dict[tuple[bytes, bytes], bytes] = {}

    def lines(self) -> Iterator[bytes]:
        """Lines of a key log, one for each secret that was asked for."""
        for (label, client_random), secret in self._lines.items():
            yield b" ".join((label, *(part.hex().encode() for part in (client_random, secret))))

    def secret(self, keys: Keys) -> bytes:
        """The secret of keys: the master secret before TLS 1.3, else a traffic secret."""
        renewed = []
        first: Keys | None = keys
        while first is not None and first not in self._known:
            renewed.append(first)
            first = first.before
        for one in reversed(renewed):
            self._known[one] = self._made(one)
        return self._known[keys]

    def _made(self, keys: Keys) -> bytes:
        if keys.before is not None:
            return next_secret(keys.suite.digest, self._known[keys.before])
        octets = MASTER_BYTES
        if keys.version == TLS_1_3:
            octets = digest_bytes(keys.suite.digest)
        made = hmac.digest(_PURPOSE, keys.label + keys.session, "sha384")[:octets]
        if keys.label:
            self._lines[keys.label, keys.client_random] = made
        return made


class AeadSealer:
    """GCM, CCM or ChaCha20 with Poly1305; `key` and `iv` as derived."""

    def __init__(self, keys: Keys, key: bytes, iv: bytes) -> None:
        self._inner = keys.version == TLS_1_3
        self._salt = iv
        self._mask = int.from_bytes(iv, "big")
        self._encrypt = aead_of(keys.suite, key).encrypt

    def seal(self, claim: OpenedClaim, text: bytes) -> bytes:
        """The payload of the claim's record when it carries `text`, of the same length."""
        nonce = self._salt + claim.prefix
        if not claim.prefix:
            nonce = (self._mask ^ claim.number).to_bytes(12, "big")
        if self._inner:
            extra = claim.header
            text += bytes((claim.kind,)) + bytes(claim.padding)
        else:
            extra = _numbered(claim, text)[:13]
        return claim.prefix + bytes(self._encrypt(nonce, text, extra))


class CbcSealer:
    """A block cipher in CBC mode with a MAC; `seal` as in `AeadSealer`.

    Before TLS 1.1 the records of a direction are one chain: all of them are sealed, in their order.
    """

    def __init__(self, keys: Keys, parts: tuple[bytes, bytes, bytes]) -> None:
        self._mac_key, key, iv = parts
        self._digest = keys.suite.mac
        self._mac_last = keys.mac_last
        self._bytes = block_bytes(keys.suite)
        self._cipher = block_cipher(keys.suite, key)
        self._chain = self._encryptor(iv)

    def _encryptor(self, iv: bytes) -> Any:
        return Cipher(self._cipher, modes.CBC(iv)).encryptor()

    def seal(self, claim: OpenedClaim, text: bytes) -> bytes:
        """The payload of the claim's record when it carries `text`, of the same length."""
        chain = self._encryptor(claim.prefix) if claim.prefix else self._chain
        inside = text if self._mac_last else text + self._mac(_numbered(claim, text))
        outside = digest_bytes(self._digest) if self._mac_last else 0
        padding = claim.size - outside - len(claim.prefix) - len(inside)
        sealed = claim.prefix + bytes(chain.update(inside + bytes((padding - 1,)) * padding))
        return sealed + self._mac(_numbered(claim, sealed)) if self._mac_last else sealed

    def _mac(self, octets: bytes) -> bytes:
        return hmac.digest(self._mac_key, octets, self._digest)


class StreamSealer:
    """RC4, or nothing at all, with a MAC; `seal` as in `AeadSealer`, of all records in order."""

    def __init__(self, keys: Keys, parts: tuple[bytes, bytes, bytes]) -> None:
        self._mac_key, key, _ = parts
        self._digest = keys.suite.mac
        self._update: Any = bytes
        if keys.suite.cipher == "RC4":
            self._update = Cipher(decrepit.ARC4(key), None).encryptor().update

    def seal(self, claim: OpenedClaim, text: bytes) -> bytes:
        """The payload of the claim's record when it carries `text`, of the same length."""
        mac = hmac.digest(self._mac_key, _numbered(claim, text), self._digest)
        return bytes(self._update(text + mac))


def _numbered(claim: OpenedClaim, octets: bytes) -> bytes:
    """What a MAC is made of: number, type, version and length of bytes, and these."""
    head = claim.number.to_bytes(8, "big") + claim.header[:3]
    return head + len(octets).to_bytes(2, "big") + octets


def sealer(keys: Keys, secret: bytes) -> AeadSealer | CbcSealer | StreamSealer:
    """What protects records as those of `keys` were, with another secret."""
    if keys.version == TLS_1_3:
        return AeadSealer(keys, *traffic_keys(keys.suite, secret))
    randoms = (keys.server_random, keys.client_random)
    parts = key_block(keys.version, keys.suite, secret, *randoms)[keys.side]
    if keys.suite.kind == "cbc":
        return CbcSealer(keys, parts)
    if keys.suite.kind == "stream":
        return StreamSealer(keys, parts)
    return AeadSealer(keys, parts[1], parts[2])
