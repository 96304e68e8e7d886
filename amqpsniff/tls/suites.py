"""Cipher suites: their numbers and names; what a suite is follows from its name.

Source: the IANA registry of TLS cipher suites, compared in tests with that of tshark.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

_NAMES = """
0001 RSA_WITH_NULL_MD5
0002 RSA_WITH_NULL_SHA
0004 RSA_WITH_RC4_128_MD5
0005 RSA_WITH_RC4_128_SHA
000A RSA_WITH_3DES_EDE_CBC_SHA
0013 DHE_DSS_WITH_3DES_EDE_CBC_SHA
0016 DHE_RSA_WITH_3DES_EDE_CBC_SHA
002F RSA_WITH_AES_128_CBC_SHA
0032 DHE_DSS_WITH_AES_128_CBC_SHA
0033 DHE_RSA_WITH_AES_128_CBC_SHA
0035 RSA_WITH_AES_256_CBC_SHA
0038 DHE_DSS_WITH_AES_256_CBC_SHA
0039 DHE_RSA_WITH_AES_256_CBC_SHA
003B RSA_WITH_NULL_SHA256
003C RSA_WITH_AES_128_CBC_SHA256
003D RSA_WITH_AES_256_CBC_SHA256
0040 DHE_DSS_WITH_AES_128_CBC_SHA256
0041 RSA_WITH_CAMELLIA_128_CBC_SHA
0045 DHE_RSA_WITH_CAMELLIA_128_CBC_SHA
0067 DHE_RSA_WITH_AES_128_CBC_SHA256
006A DHE_DSS_WITH_AES_256_CBC_SHA256
006B DHE_RSA_WITH_AES_256_CBC_SHA256
0084 RSA_WITH_CAMELLIA_256_CBC_SHA
0088 DHE_RSA_WITH_CAMELLIA_256_CBC_SHA
008C PSK_WITH_AES_128_CBC_SHA
008D PSK_WITH_AES_256_CBC_SHA
009C RSA_WITH_AES_128_GCM_SHA256
009D RSA_WITH_AES_256_GCM_SHA384
009E DHE_RSA_WITH_AES_128_GCM_SHA256
009F DHE_RSA_WITH_AES_256_GCM_SHA384
00A2 DHE_DSS_WITH_AES_128_GCM_SHA256
00A3 DHE_DSS_WITH_AES_256_GCM_SHA384
00A8 PSK_WITH_AES_128_GCM_SHA256
00A9 PSK_WITH_AES_256_GCM_SHA384
00BA RSA_WITH_CAMELLIA_128_CBC_SHA256
00BE DHE_RSA_WITH_CAMELLIA_128_CBC_SHA256
00C0 RSA_WITH_CAMELLIA_256_CBC_SHA256
00C4 DHE_RSA_WITH_CAMELLIA_256_CBC_SHA256
1301 AES_128_GCM_SHA256
1302 AES_256_GCM_SHA384
1303 CHACHA20_POLY1305_SHA256
1304 AES_128_CCM_SHA256
1305 AES_128_CCM_8_SHA256
C003 ECDH_ECDSA_WITH_3DES_EDE_CBC_SHA
C004 ECDH_ECDSA_WITH_AES_128_CBC_SHA
C005 ECDH_ECDSA_WITH_AES_256_CBC_SHA
C006 ECDHE_ECDSA_WITH_NULL_SHA
C007 ECDHE_ECDSA_WITH_RC4_128_SHA
C008 ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA
C009 ECDHE_ECDSA_WITH_AES_128_CBC_SHA
C00A ECDHE_ECDSA_WITH_AES_256_CBC_SHA
C00D ECDH_RSA_WITH_3DES_EDE_CBC_SHA
C00E ECDH_RSA_WITH_AES_128_CBC_SHA
C00F ECDH_RSA_WITH_AES_256_CBC_SHA
C010 ECDHE_RSA_WITH_NULL_SHA
C011 ECDHE_RSA_WITH_RC4_128_SHA
C012 ECDHE_RSA_WITH_3DES_EDE_CBC_SHA
C013 ECDHE_RSA_WITH_AES_128_CBC_SHA
C014 ECDHE_RSA_WITH_AES_256_CBC_SHA
C023 ECDHE_ECDSA_WITH_AES_128_CBC_SHA256
C024 ECDHE_ECDSA_WITH_AES_256_CBC_SHA384
C025 ECDH_ECDSA_WITH_AES_128_CBC_SHA256
C026 ECDH_ECDSA_WITH_AES_256_CBC_SHA384
C027 ECDHE_RSA_WITH_AES_128_CBC_SHA256
C028 ECDHE_RSA_WITH_AES_256_CBC_SHA384
C029 ECDH_RSA_WITH_AES_128_CBC_SHA256
C02A ECDH_RSA_WITH_AES_256_CBC_SHA384
C02B ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
C02C ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
C02D ECDH_ECDSA_WITH_AES_128_GCM_SHA256
C02E ECDH_ECDSA_WITH_AES_256_GCM_SHA384
C02F ECDHE_RSA_WITH_AES_128_GCM_SHA256
C030 ECDHE_RSA_WITH_AES_256_GCM_SHA384
C031 ECDH_RSA_WITH_AES_128_GCM_SHA256
C032 ECDH_RSA_WITH_AES_256_GCM_SHA384
C050 RSA_WITH_ARIA_128_GCM_SHA256
C051 RSA_WITH_ARIA_256_GCM_SHA384
C052 DHE_RSA_WITH_ARIA_128_GCM_SHA256
C053 DHE_RSA_WITH_ARIA_256_GCM_SHA384
C05C ECDHE_ECDSA_WITH_ARIA_128_GCM_SHA256
C05D ECDHE_ECDSA_WITH_ARIA_256_GCM_SHA384
C060 ECDHE_RSA_WITH_ARIA_128_GCM_SHA256
C061 ECDHE_RSA_WITH_ARIA_256_GCM_SHA384
C072 ECDHE_ECDSA_WITH_CAMELLIA_128_CBC_SHA256
C073 ECDHE_ECDSA_WITH_CAMELLIA_256_CBC_SHA384
C076 ECDHE_RSA_WITH_CAMELLIA_128_CBC_SHA256
C077 ECDHE_RSA_WITH_CAMELLIA_256_CBC_SHA384
C09C RSA_WITH_AES_128_CCM
C09D RSA_WITH_AES_256_CCM
C09E DHE_RSA_WITH_AES_128_CCM
C09F DHE_RSA_WITH_AES_256_CCM
C0A0 RSA_WITH_AES_128_CCM_8
C0A1 RSA_WITH_AES_256_CCM_8
C0A2 DHE_RSA_WITH_AES_128_CCM_8
C0A3 DHE_RSA_WITH_AES_256_CCM_8
C0AC ECDHE_ECDSA_WITH_AES_128_CCM
C0AD ECDHE_ECDSA_WITH_AES_256_CCM
C0AE ECDHE_ECDSA_WITH_AES_128_CCM_8
C0AF ECDHE_ECDSA_WITH_AES_256_CCM_8
CCA8 ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
CCA9 ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
CCAA DHE_RSA_WITH_CHACHA20_POLY1305_SHA256
CCAC ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256
"""

_MACS = {"SHA": "sha1", "SHA256": "sha256", "SHA384": "sha384", "MD5": "md5"}
_KINDS = {"GCM": "gcm", "CCM": "ccm", "8": "ccm", "POLY1305": "chacha20", "CBC": "cbc"}
_OPENED = {
    "AES": ("gcm", "ccm", "cbc"),
    "CAMELLIA": ("cbc",),
    "3DES": ("cbc",),
    "CHACHA20": ("chacha20",),
    "RC4": ("stream",),
    "NULL": ("stream",),
}
"""The kinds of each cipher that are opened."""
_KEY_BYTES = {"3DES": 24, "CHACHA20": 32, "NULL": 0}
"""Key lengths of ciphers whose names do not have them."""


class Suite(NamedTuple):
    """One cipher suite.

    Attributes:
        name: As registered, `TLS_…`; `0x….` for an unknown number.
        exchange: How the keys were agreed on: `RSA`, `ECDHE_RSA`, …; empty in TLS 1.3.
        kind: `gcm`, `ccm`, `chacha20`, `cbc`, `stream`, or empty if it cannot be opened.
        key_bytes: Length of the cipher's key.
        tag_bytes: Length of an AEAD's tag.
        mac: Hash of the MAC of a CBC or stream suite, empty for the others.
        digest: Hash of the key derivation, in TLS 1.2 and 1.3.
        cipher: `AES`, `3DES`, …; `NULL` where nothing is encrypted.
    """

    name: str
    exchange: str = ""
    kind: str = ""
    key_bytes: int = 0
    tag_bytes: int = 16
    mac: str = ""
    digest: str = "sha256"
    cipher: str = ""

    @property
    def is_rsa(self) -> bool:
        """True if the server's RSA key alone opens it."""
        return self.exchange == "RSA"


def _suite(name: str) -> Suite:
    exchange, _, sealing = name.rpartition("_WITH_")
    words = sealing.split("_")
    cipher = words[0]
    hashed = _MACS.get(words[-1], "")
    tag = 8 if "CCM_8" in sealing else 16
    parts = words[:-1] if hashed else words
    kind = _KINDS.get(parts[-1], "stream")
    if kind not in _OPENED.get(cipher, ()):
        kind = ""
    key = _KEY_BYTES[cipher] if cipher in _KEY_BYTES else int(words[1]) // 8
    mac = hashed if kind in ("cbc", "stream") else ""
    digest = "sha384" if hashed == "sha384" else "sha256"
    return Suite(f"TLS_{name}", exchange, kind, key, tag, mac, digest, cipher)


def _suites() -> dict[int, Suite]:
    rows = (line.split() for line in _NAMES.strip().splitlines())
    return {int(number, 16): _suite(name) for number, name in rows}


SUITES = _suites()
"""Suites by number."""


@cache
def suite_of(number: int) -> Suite:
    """A suite by number; an unknown one has its number for a name and cannot be decrypted."""
    return SUITES.get(number) or Suite(f"0x{number:04X}")


SSL_3_0, TLS_1_2, TLS_1_3 = 0x0300, 0x0303, 0x0304

VERSIONS = {
    0x0300: "SSL 3.0",
    0x0301: "TLS 1.0",
    0x0302: "TLS 1.1",
    0x0303: "TLS 1.2",
    0x0304: "TLS 1.3",
}
"""Names of protocol versions."""

ALERTS = {
    0: "close_notify",
    10: "unexpected_message",
    20: "bad_record_mac",
    21: "decryption_failed",
    22: "record_overflow",
    30: "decompression_failure",
    40: "handshake_failure",
    41: "no_certificate",
    42: "bad_certificate",
    43: "unsupported_certificate",
    44: "certificate_revoked",
    45: "certificate_expired",
    46: "certificate_unknown",
    47: "illegal_parameter",
    48: "unknown_ca",
    49: "access_denied",
    50: "decode_error",
    51: "decrypt_error",
    60: "export_restriction",
    70: "protocol_version",
    71: "insufficient_security",
    80: "internal_error",
    86: "inappropriate_fallback",
    90: "user_canceled",
    100: "no_renegotiation",
    109: "missing_extension",
    110: "unsupported_extension",
    111: "certificate_unobtainable",
    112: "unrecognized_name",
    113: "bad_certificate_status_response",
    114: "bad_certificate_hash_value",
    115: "unknown_psk_identity",
    116: "certificate_required",
    120: "no_application_protocol",
}
"""Descriptions of alerts (RFC 8446 §6, RFC 5246 §7.2, and those of extensions)."""
