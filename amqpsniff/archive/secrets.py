"""Secrets of TLS, carried to tasks that see neither the files of keys nor all captures.

Keys travel by their contents. Secrets that stand inside captures may open conversations in other
captures, so every task is given those of all. Nothing of it is kept in the folder of the tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from amqpsniff.capture import CaptureFile
from amqpsniff.errors import CaptureError
from amqpsniff.options import Options
from amqpsniff.tls.secrets import KEY_LOG, Contents, Secrets

from .filesystem import Opener, StorageOptions
from .surveys import Surveyed

ONE_TASK = 1 << 62
"""Bytes of a task that has everything."""


def carried(options: Options) -> Options:
    """The options with the contents of their key files; raises UsageError for an invalid one."""
    if not options.tls_keylog and not options.tls_keys:
        return options
    Secrets(options.tls_keylog, options.tls_keys)
    secrets = list(options.secrets)
    if options.tls_keylog:
        secrets.append((KEY_LOG, Path(options.tls_keylog).read_bytes()))
    keys = tuple(
        key if isinstance(key, Contents) else Contents(str(key), Path(key).read_bytes())
        for key in options.tls_keys
    )
    return replace(options, tls_keylog=None, tls_keys=keys, secrets=tuple(secrets))


def with_secrets_of(
    files: Sequence[Surveyed], options: Options, storage: StorageOptions | None = None
) -> Options:
    """The options with the secrets that stand inside captures."""
    found = [secret for file in files if file.secrets for secret in _secrets_of(file, storage)]
    if not found:
        return options
    return replace(options, secrets=tuple(dict.fromkeys([*options.secrets, *found])))


def task_bytes_for(options: Options, task_bytes: int) -> int:
    """Size of tasks; with private keys there is a single task.

    With a private key, a resumed session needs the full handshake of the session that it resumes.
    """
    return ONE_TASK if options.tls_keys else task_bytes


def digest(options: Options) -> str:
    """8 hex digits that change with the secrets for TLS; empty without secrets."""
    keys = [key.octets for key in options.tls_keys if isinstance(key, Contents)]
    contents = [*(octets for _, octets in options.secrets), *keys]
    if not contents:
        return ""
    machine = hashlib.blake2b(digest_size=4)
    for octets in contents:
        machine.update(hashlib.blake2b(octets).digest())
    return machine.hexdigest()


def _secrets_of(file: Surveyed, storage: StorageOptions | None) -> list[tuple[int, bytes]]:
    """The secrets inside a capture, which is read as far as they go: usually its first block."""
    try:
        with CaptureFile(file.path, opener=Opener(storage or {})) as packets:
            for _ in packets:
                if len(packets.secrets) >= file.secrets:
                    break
            return packets.secrets[: file.secrets]
    except CaptureError:
        return []
