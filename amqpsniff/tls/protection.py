# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Records opened: the ciphers of TLS 1.0 to 1.3 over one direction's keys.

`open` checks as it decrypts, so that a record that opens is right, in its place and of these keys.
`peek` decrypts a part of a record without checking, for records of which bytes are missing; only
the ciphers that are a stream of bytes can do that.

Source: RFC 8446 §5.2, RFC 5246 §6.2.3, RFC 5288, RFC 6655, RFC 7905, RFC 7366, RFC 5932.
"""

from __future__ import annotations

import hmac
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.decrepit.ciphers import algorithms as decrepit
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305

from .derive import block_bytes, digest_bytes, traffic_keys
from .suites import TLS_1_3, Suite

BLOCK = 16


class Aead:
    """GCM, CCM or ChaCha20 with Poly1305.

    Attributes:
        overhead: Bytes by which a record's payload is longer than its content.
        prefix: Bytes of the payload before the ciphertext.
    """

    def __init__(self, suite: Suite, version: int, key: bytes, iv: bytes) -> None:
        self.kind = suite.kind
        self.key = key
        self.inner = version == TLS_1_3
        self.prefix = 8 if not self.inner and suite.kind != "chacha20" else 0
        self.tag = suite.tag_bytes
        self.overhead = self.prefix + self.tag + (1 if self.inner else 0)
        self.salt = iv
        self.mask = int.from_bytes(iv, "big")
        self.decrypt = aead_of(suite, key).decrypt

    def open(self, sequence: int, header: bytes, payload: bytes) -> bytes | None:
        """What the record with this number carries; None when it does not open."""
        if self.prefix:
            nonce = self.salt + payload[:8]
            payload = payload[8:]
        else:
            nonce = (self.mask ^ sequence).to_bytes(12, "big")
        if self.inner:
            extra = header
        else:
            count = len(payload) - self.tag
            if count < 0:
                return None
            extra = sequence.to_bytes(8, "big") + header[:3] + count.to_bytes(2, "big")
        try:
            return self.decrypt(nonce, payload, extra)
        except InvalidTag:
            return None

    def peek(self, sequence: int, head: bytes, offset: int, octets: bytes) -> bytes | None:
        """Bytes from `offset` of the ciphertext on; `head` is what stands before it."""
        if len(head) < self.prefix:
            return None
        nonce = self.salt + head if self.prefix else (self.mask ^ sequence).to_bytes(12, "big")
        if self.kind == "chacha20":
            block, skip = divmod(offset, 64)
            start = (block + 1).to_bytes(4, "little")
            cipher = Cipher(algorithms.ChaCha20(self.key, start + nonce), None)
        else:
            block, skip = divmod(offset, BLOCK)
            if self.kind == "gcm":
                start = nonce + (block + 2).to_bytes(4, "big")
            else:
                start = b"\x02" + nonce + (block + 1).to_bytes(3, "big")
            cipher = Cipher(algorithms.AES(self.key), modes.CTR(start))
        text: bytes = cipher.decryptor().update(bytes(skip) + octets)
        return text[skip:]


class Cbc:
    """AES, Camellia or 3DES in CBC mode with a MAC, before or after encryption; as `Aead`.

    One decryptor serves all records: each block needs only the one before it, which is the last
    record's (TLS 1.0) or the IV that begins the record.
    """

    inner = False

    def __init__(
        self, suite: Suite, keys: tuple[bytes, bytes, bytes], *, explicit: bool, mac_last: bool
    ) -> None:
        self.mac_key, key, iv = keys
        self.digest = suite.mac
        self.size = digest_bytes(suite.mac)
        self.block = block_bytes(suite)
        self.prefix = self.block if explicit else 0
        self.mac_last = mac_last
        self.overhead = self.prefix + self.size + 1
        self._update = Cipher(block_cipher(suite, key), modes.CBC(iv)).decryptor().update
        self._payload = b""
        self._opened = b""

    def open(self, sequence: int, header: bytes, payload: bytes) -> bytes | None:
        """What the record with this number carries; None when it does not open."""
        number = sequence.to_bytes(8, "big") + header[:3]
        sealed = payload
        if self.mac_last:
            sealed = payload[: max(0, len(payload) - self.size)]
            if not self._fits(number, sealed, payload[len(sealed) :]):
                return None
        if len(sealed) % self.block or len(sealed) < self.prefix + self.block:
            return None
        text = self._decrypted(sealed)
        count = len(text) - text[len(text) - 1] - 1
        if self.mac_last:
            return text[:count] if count >= 0 else None
        count -= self.size
        if count < 0 or not self._fits(number, text[:count], text[count : count + self.size]):
            return None
        return text[:count]

    def _decrypted(self, sealed: bytes) -> bytes:
        """The bytes of a record, which are decrypted once however often they are tried."""
        if sealed is not self._payload and sealed != self._payload:
            self._payload = sealed
            self._opened = self._update(sealed)[self.prefix :]
        return self._opened

    def _fits(self, number: bytes, text: bytes, mac: bytes) -> bool:
        checked = number + len(text).to_bytes(2, "big") + text
        return hmac.compare_digest(hmac.digest(self.mac_key, checked, self.digest), mac)

    def peek(self, sequence: int, head: bytes, offset: int, octets: bytes) -> bytes | None:
        """None: the padding in a part of a record cannot be found."""
        return None


class Stream:
    """RC4, or nothing at all, with a MAC; attributes as in `Aead`.

    RC4's bytes go on from record to record, so that what follows a hole does not open.
    """

    inner = False
    prefix = 0

    def __init__(self, suite: Suite, keys: tuple[bytes, bytes, bytes]) -> None:
        self.mac_key, key, _ = keys
        self.digest = suite.mac
        self.overhead = digest_bytes(suite.mac)
        self._update: Any = None
        if suite.cipher == "RC4":
            self._update = Cipher(decrepit.ARC4(key), None).decryptor().update
        self._payload = b""
        self._opened = b""

    def open(self, sequence: int, header: bytes, payload: bytes) -> bytes | None:
        """What the record with this number carries; None when it does not open."""
        count = len(payload) - self.overhead
        if count < 0:
            return None
        if self._update is None:
            self._opened = payload
        elif payload is not self._payload and payload != self._payload:
            self._payload = payload
            self._opened = self._update(payload)
        text, mac = self._opened[:count], self._opened[count:]
        checked = sequence.to_bytes(8, "big") + header[:3] + count.to_bytes(2, "big") + text
        if not hmac.compare_digest(hmac.digest(self.mac_key, checked, self.digest), mac):
            return None
        return text

    def peek(self, sequence: int, head: bytes, offset: int, octets: bytes) -> bytes | None:
        """Bytes that were not encrypted; of RC4 nothing."""
        return octets if self._update is None else None


def block_cipher(suite: Suite, key: bytes) -> Any:
    """A block cipher with its key."""
    if suite.cipher == "AES":
        return algorithms.AES(key)
    if suite.cipher == "3DES":
        return decrepit.TripleDES(key)
    moved = hasattr(decrepit, "Camellia")  # by later versions of the package
    return decrepit.Camellia(key) if moved else algorithms.Camellia(key)


def aead_of(suite: Suite, key: bytes) -> Any:
    """An AEAD with its key."""
    if suite.kind == "gcm":
        return AESGCM(key)
    if suite.kind == "ccm":
        return AESCCM(key, suite.tag_bytes)
    return ChaCha20Poly1305(key)


def of_traffic_secret(suite: Suite, secret: bytes) -> Aead:
    """The protection that a traffic secret of TLS 1.3 gives."""
    return Aead(suite, TLS_1_3, *traffic_keys(suite, secret))


def of_keys(
    suite: Suite, version: int, keys: tuple[bytes, bytes, bytes], *, mac_last: bool
) -> Aead | Cbc | Stream:
    """The protection of one direction before TLS 1.3; `mac_last`: encrypt then MAC."""
    if suite.kind == "cbc":
        return Cbc(suite, keys, explicit=version > 0x0301, mac_last=mac_last)
    if suite.kind == "stream":
        return Stream(suite, keys)
    return Aead(suite, version, keys[1], keys[2])
