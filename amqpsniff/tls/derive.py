"""Keys from secrets: the PRF of TLS 1.0 to 1.2, the key schedule of TLS 1.3.

Source: RFC 5246 §5, §6.3 and §8.1, RFC 2246 §5, RFC 7627 §4, RFC 8446 §7.1 to §7.3.
"""

from __future__ import annotations

import hmac

from .secrets import MASTER_BYTES
from .suites import TLS_1_2, Suite


def prf(version: int, digest: str, secret: bytes, label: bytes, seed: bytes, count: int) -> bytes:
    """`count` bytes of the pseudorandom function of a version before TLS 1.3."""
    if version >= TLS_1_2:
        return _expand(digest, secret, label + seed, count)
    half = (len(secret) + 1) // 2
    with_md5 = _expand("md5", secret[:half], label + seed, count)
    with_sha1 = _expand("sha1", secret[len(secret) - half :], label + seed, count)
    return bytes(a ^ b for a, b in zip(with_md5, with_sha1, strict=True))


def _expand(digest: str, secret: bytes, seed: bytes, count: int) -> bytes:
    """P_hash."""
    expanded = b""
    chain = seed
    while len(expanded) < count:
        chain = hmac.digest(secret, chain, digest)
        expanded += hmac.digest(secret, chain + seed, digest)
    return expanded[:count]


def expand_label(digest: str, secret: bytes, label: bytes, count: int) -> bytes:
    """HKDF-Expand-Label with an empty context (RFC 8446 §7.1)."""
    label = b"tls13 " + label
    info = count.to_bytes(2, "big") + bytes((len(label),)) + label + b"\0"
    expanded = b""
    block = b""
    turn = 1
    while len(expanded) < count:
        block = hmac.digest(secret, block + info + bytes((turn,)), digest)
        expanded += block
        turn += 1
    return expanded[:count]


def next_secret(digest: str, secret: bytes) -> bytes:
    """The traffic secret after a KeyUpdate."""
    return expand_label(digest, secret, b"traffic upd", len(secret))


def traffic_keys(suite: Suite, secret: bytes) -> tuple[bytes, bytes]:
    """Key and IV of a traffic secret of TLS 1.3."""
    key = expand_label(suite.digest, secret, b"key", suite.key_bytes)
    return key, expand_label(suite.digest, secret, b"iv", 12)


def master_secret(
    version: int, suite: Suite, premaster: bytes, randoms: bytes, session_hash: bytes
) -> bytes:
    """The master secret; with a `session_hash` it is the extended one (RFC 7627)."""
    label, seed = (
        (b"extended master secret", session_hash) if session_hash else (b"master secret", randoms)
    )
    return prf(version, suite.digest, premaster, label, seed, MASTER_BYTES)


def digest_bytes(digest: str) -> int:
    """Length of a hash's result; 0 for no hash."""
    return {"md5": 16, "sha1": 20, "sha256": 32, "sha384": 48}.get(digest, 0)


def block_bytes(suite: Suite) -> int:
    """Length of a CBC suite's blocks."""
    return 8 if suite.cipher == "3DES" else 16


def key_block(
    version: int, suite: Suite, master: bytes, server_random: bytes, client_random: bytes
) -> list[tuple[bytes, bytes, bytes]]:
    """(MAC key, key, IV) of the client's direction and of the server's."""
    mac = digest_bytes(suite.mac)
    iv = {"gcm": 4, "ccm": 4, "chacha20": 12, "cbc": block_bytes(suite)}.get(suite.kind, 0)
    lengths = (mac, mac, suite.key_bytes, suite.key_bytes, iv, iv)
    seed = server_random + client_random
    block = prf(version, suite.digest, master, b"key expansion", seed, sum(lengths))
    parts = []
    at = 0
    for length in lengths:
        parts.append(block[at : at + length])
        at += length
    return [(parts[0], parts[2], parts[4]), (parts[1], parts[3], parts[5])]
