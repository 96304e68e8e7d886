"""Secrets that open TLS conversations: lines of key logs, resumed sessions, RSA private keys.

Lines come from a file, which may grow while it is used, and from Decryption Secrets Blocks of
captures. The file is checked again only if a conversation needs a secret that is missing.

Source: https://datatracker.ietf.org/doc/html/rfc9850 (SSLKEYLOGFILE), and the older forms that
Wireshark documents (`RSA Session-ID:…`, `PMS_CLIENT_RANDOM`).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from amqpsniff.errors import UsageError
from amqpsniff.installation import how_to_add

MAX_SECRETS = 400_000
"""Secrets kept, those of some 100,000 connections in 110 MB; beyond, the oldest are forgotten, an
eighth at once: to find the first of a dict costs as much as was taken out before it."""

MAX_SESSIONS = 16_384
"""Sessions remembered to be resumed: their ticket or id, and the master secret."""

MAX_LINE_BYTES = 4_096
"""A line of a key log has some 200 bytes; longer ones are ignored."""

BLOCK_BYTES = 1 << 20

KEY_LOG = 0x544C534B
"""Type of a Decryption Secrets Block that holds lines of a key log."""

MASTER, PREMASTER = b"CLIENT_RANDOM", b"PMS_CLIENT_RANDOM"
HANDSHAKE = (b"CLIENT_HANDSHAKE_TRAFFIC_SECRET", b"SERVER_HANDSHAKE_TRAFFIC_SECRET")
TRAFFIC = (b"CLIENT_TRAFFIC_SECRET_0", b"SERVER_TRAFFIC_SECRET_0")
EARLY = b"CLIENT_EARLY_TRAFFIC_SECRET"
_USED = (MASTER, PREMASTER, *HANDSHAKE, *TRAFFIC, EARLY)
LABELS = {label: bytes((at,)) for at, label in enumerate(_USED)}
"""The labels that are used, each with its byte in names of secrets."""

MASTER_BYTES = 48
_RANDOM_BYTES = 32
_MASTER_LENGTHS = (MASTER_BYTES,)
_HASHED, _HASH_BYTES = (*HANDSHAKE, *TRAFFIC, EARLY), (32, 48)
_BUFFER_BYTES = 64
"""eCapture writes secrets of unknown ciphers with the rest of its buffer, zeros."""
_LENGTHS = dict.fromkeys(_HASHED, _HASH_BYTES) | {MASTER: _MASTER_LENGTHS}
"""Bytes of a secret, of the hash in TLS 1.3: a line that is still being written has fewer."""

_SESSION = b"Session-ID:"
_MASTER_KEY = b"Master-Key:"
_SESSION_MARK = b"\xff"

NEEDS = f"opening TLS needs the Python package cryptography, 43 or later: {how_to_add('tls')}"


_LINE = r"\b(CLIENT_RANDOM|[A-Z_]+_SECRET(?:_\d+)?|RSA)((?:\s+[0-9A-Fa-f]{16,}){1,2})"
_WRITTEN = r"(Master-Key:)\s*[0-9A-Fa-f]{16,}"
"""Lines of key logs, as they may stand in a text."""


def without_secrets(text: str) -> str:
    """The text without the secrets in lines like those of a key log."""
    text = re.sub(_LINE, lambda line: f"{line[1]} [redacted]", text)
    return re.sub(_WRITTEN, r"\1[redacted]", text)


class Contents(NamedTuple):
    """A file of keys that was read elsewhere: its name and its bytes."""

    name: str
    octets: bytes

    def __fspath__(self) -> str:
        return self.name


def can_decrypt() -> bool:
    """True if the package that decrypts is installed, in a version that has all that is used."""
    try:
        return find_spec("cryptography.hazmat.decrepit") is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


class Secrets:
    """Secrets by connection.

    Raises UsageError for a file that cannot be read or is no key, and when keys are given and the
    package that decrypts is not installed.

    Args:
        keylog: A key log, or None.
        keys: Files of RSA private keys, PEM or DER, or their contents.
        later: The key log may be created later: a missing one is no error.
        max_secrets, max_sessions: Numbers of secrets and sessions kept.

    Attributes:
        revision: Grows with every new secret.
        needs: The missing requirement to use the secrets; empty if none is missing.
    """

    def __init__(
        self,
        keylog: str | os.PathLike[str] | None = None,
        keys: Iterable[str | os.PathLike[str]] = (),
        *,
        later: bool = False,
        max_secrets: int = MAX_SECRETS,
        max_sessions: int = MAX_SESSIONS,
    ) -> None:
        self.max_secrets, self.max_sessions = max_secrets, max_sessions
        keys = list(keys)
        able = can_decrypt()
        if (keylog or keys) and not able:
            raise UsageError(NEEDS)
        self.needs = "" if able else NEEDS
        self.revision = 0
        self._by_name: dict[bytes, bytes] = {}
        self._sessions: dict[bytes, bytes] = {}
        self._log = _GrowingFile(keylog, later=later) if keylog else None
        self._keys = [_private_key(path) for path in keys]
        self.refresh()

    def __bool__(self) -> bool:
        """True if there are secrets or keys that could open a conversation."""
        return bool(self._by_name or self._keys or self._log)

    @property
    def has_lines(self) -> bool:
        """True if there is a key log, in a file or a capture."""
        return bool(self._by_name or self._log)

    @property
    def odd(self) -> bool:
        """True if the key log is a file of something else: lines, and none of them understood."""
        return self._log is not None and self._log.filled and not self._by_name

    def add(self, kind: int, octets: bytes) -> None:
        """Learn from a Decryption Secrets Block; other types than key logs are left alone."""
        if kind == KEY_LOG:
            self._learn(octets.split(b"\n"))

    def refresh(self) -> bool:
        """Read the new lines of the key log; True if they had a new secret."""
        before = self.revision
        if self._log is not None:
            for lines in self._log.more():
                self._learn(lines)
        return self.revision != before

    def find(self, label: bytes, client_random: bytes) -> bytes | None:
        """The secret of a label for the connection with this random of the client's."""
        return self._by_name.get(LABELS[label] + client_random)

    def session(self, name: bytes) -> bytes | None:
        """The master secret of a session by its id or ticket."""
        return self._sessions.get(name) or self._by_name.get(_SESSION_MARK + name)

    def remember(self, name: bytes, master: bytes) -> None:
        """A session may be resumed under this id or ticket."""
        if name:
            self._sessions.pop(name, None)
            self._sessions[name] = master
            _forget(self._sessions, self.max_sessions)

    def key_for(self, modulus: int | None) -> Any:
        """The private key of a certificate; without a certificate, the only key; or None."""
        for key in self._keys:
            if modulus is not None and key.public_key().public_numbers().n == modulus:
                return key
        return self._keys[0] if modulus is None and len(self._keys) == 1 else None

    def _learn(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            words = line.split()
            if len(words) != 3 or len(line) > MAX_LINE_BYTES:
                continue
            try:
                self._keep(*words)
            except ValueError:
                continue  # not hexadecimal: a line that is still being written, or another text

    def _keep(self, label: bytes, name: bytes, secret: bytes) -> None:
        if label in LABELS:
            name_key = LABELS[label] + bytes.fromhex(name.decode("ascii", "replace"))
            lengths = _LENGTHS.get(label)
            if len(name_key) != len(LABELS[label]) + _RANDOM_BYTES:
                return
        elif label == b"RSA" and name.startswith(_SESSION) and secret.startswith(_MASTER_KEY):
            name_key = _SESSION_MARK + bytes.fromhex(
                name[len(_SESSION) :].decode("ascii", "replace")
            )
            secret = secret[len(_MASTER_KEY) :]
            lengths = _MASTER_LENGTHS
        else:
            return
        value = bytes.fromhex(secret.decode("ascii", "replace"))
        if len(value) == _BUFFER_BYTES and label in _HASHED and not any(value[max(_HASH_BYTES) :]):
            short, long = (value[:length] for length in _HASH_BYTES)
            value = long if any(long[len(short) :]) else short
        if (lengths and len(value) not in lengths) or self._by_name.get(name_key) == value:
            return
        self._by_name[name_key] = value
        self.revision += 1
        _forget(self._by_name, self.max_secrets)


def _forget(entries: dict[bytes, bytes], max_count: int) -> None:
    """Forget the oldest entries if there are too many."""
    if len(entries) > max_count:
        for name in list(islice(entries, max_count // 8 + 1)):
            del entries[name]


class _GrowingFile:
    """The lines of a file that another program may be writing.

    A pipe is read once, until its writer ends: opened again it would wait for another writer.
    `filled`: it had whole lines, other than empty ones and comments.
    """

    def __init__(self, name: str | os.PathLike[str], *, later: bool) -> None:
        self._path = Path(name)
        self._last_state: tuple[int, ...] | None = None
        self._offset = 0
        self._partial_line = b""
        self.filled = False
        if not later:
            try:
                if not stat.S_ISFIFO(self._path.stat().st_mode):
                    with self._path.open("rb"):
                        pass
            except OSError as error:
                raise UsageError(f"{name}: key log cannot be read: {error.strerror}") from None

    def more(self) -> Iterable[list[bytes]]:
        """Whole lines since the last call, by block; nothing if the file did not change."""
        try:
            status = self._path.stat()
            state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            if state == self._last_state or (self._last_state and stat.S_ISFIFO(status.st_mode)):
                return
            earlier = self._last_state
            self._last_state = state
            with self._path.open("rb") as file:
                if stat.S_ISREG(status.st_mode):
                    if earlier is None or earlier[:2] != state[:2] or status.st_size < self._offset:
                        self._offset, self._partial_line = 0, b""
                    file.seek(self._offset)
                while block := file.read(BLOCK_BYTES):
                    self._offset += len(block)
                    yield self._lines(block)
                yield [self._partial_line]  # the last line may have no end
        except OSError:
            return

    def _lines(self, block: bytes) -> list[bytes]:
        *lines, self._partial_line = (self._partial_line + block).split(b"\n")
        self.filled = self.filled or any(line[:1] not in b"#\r" for line in lines)
        if len(self._partial_line) > MAX_LINE_BYTES:
            self._partial_line = b""
        return lines


def _private_key(path: str | os.PathLike[str]) -> Any:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    if isinstance(path, Contents):
        path, octets = path
    else:
        try:
            octets = Path(path).read_bytes()
        except OSError as error:
            raise UsageError(f"{path}: private key cannot be read: {error.strerror}") from None
    load = serialization.load_der_private_key
    if b"-----BEGIN" in octets:
        load = serialization.load_pem_private_key
    try:
        key = load(octets, None)
    except TypeError:
        raise UsageError(
            f'{path}: the private key has a password; write it without: "openssl pkey -in FILE"'
        ) from None
    except Exception:  # noqa: BLE001 (whatever a library raises for a file that is not a key)
        raise UsageError(f"{path}: not a private key (PEM or DER)") from None
    if not isinstance(key, RSAPrivateKey):
        raise UsageError(
            f"{path}: not an RSA key; only the RSA key exchange can be opened by a private key, "
            "others need a TLS key log"
        )
    return key
