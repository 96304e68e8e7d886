"""Options of decoding: those of the Python API, the command line and the Spark jobs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypedDict

from amqpsniff.arguments import check_types, several
from amqpsniff.capture.open import AUTO, READERS
from amqpsniff.errors import UsageError
from amqpsniff.limits import Limits
from amqpsniff.packs import PackFile, load
from amqpsniff.spec import DIALECTS, READINGS

File: TypeAlias = str | os.PathLike[str]
Files: TypeAlias = File | Iterable[File]
"""One file, or several."""


class Decoding(TypedDict, total=False):
    """Decoding options as keyword arguments; documented in `amqpsniff.open`."""

    ports: int | Iterable[int]
    dialect: str | None
    table_dialect: str
    bodies: bool
    body_sha256: bool
    show_secrets: bool
    tls_keylog: File | None
    tls_key: Files
    packs: Files
    limits: Limits | None


@dataclass(frozen=True)
class Options:
    """Options of decoding.

    Attributes:
        ports: Follow only conversations with one of these ports; empty for any port, by content.
        dialect: Decode every connection as this dialect; None to find out.
        table_dialect: Reading of field-table tags: `rabbitmq`, `spec091` or `py-amqp`.
        bodies: Keep message bodies.
        body_sha256: Compute the SHA-256 of whole bodies.
        show_secrets: Write credentials as they are instead of `[redacted]`.
        tls_keylog: A key log that opens TLS conversations; it may grow while it is used.
        tls_keylog_later: The key log need not be there yet: that is no error.
        tls_keys: Files of RSA private keys that open TLS conversations, or `Contents` of them.
        secrets: Secrets given beforehand: (type, bytes), in the form of Decryption Secrets Blocks.
        packs: Files of packs, which describe the messages of a framework; they precede ours.
        reader: Reader of captures: `own`, `tshark`, or `auto`: tshark for what ours cannot read.
        limits: Bounds on waiting rows and on remembered state.
    """

    ports: frozenset[int] = frozenset()
    dialect: str | None = None
    table_dialect: str = "rabbitmq"
    bodies: bool = False
    body_sha256: bool = False
    show_secrets: bool = False
    tls_keylog: File | None = None
    tls_keylog_later: bool = False
    tls_keys: tuple[File, ...] = ()
    secrets: tuple[tuple[int, bytes], ...] = ()
    packs: tuple[File | PackFile, ...] = ()
    reader: str = AUTO
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def of(
        cls,
        *,
        ports: int | Iterable[int] = (),
        tls_key: Files = (),
        packs: Files = (),
        limits: Limits | None = None,
        **others: Any,
    ) -> Options:
        """The options from arguments with the names of `Decoding` or of fields."""
        return cls(
            ports=frozenset(several("ports", ports, int)),
            tls_keys=several("file", tls_key, str, os.PathLike),
            packs=several("file", packs, str, os.PathLike),
            limits=limits or Limits(),
            **others,
        )

    def __post_init__(self) -> None:
        check_types(self)
        if "" in (self.tls_keylog, *self.tls_keys):
            kind = "private key" if "" in self.tls_keys else "key log"
            raise UsageError(f"the name of the {kind} is empty; name its file, or leave it out")
        if self.packs:  # read now: errors show at once, and other machines need no file
            read = tuple(map(PackFile.read, self.packs))
            load(*read)
            object.__setattr__(self, "packs", read)
        for port in self.ports:
            if port not in range(1 << 16):
                raise UsageError(f"no port `{port}`; ports are numbers from 0 to 65535")
        if self.dialect is not None and self.dialect not in DIALECTS:
            raise UsageError(f"no dialect `{self.dialect}`; there are {', '.join(DIALECTS)}")
        if self.reader not in READERS:
            raise UsageError(f"no reader `{self.reader}`; there are {', '.join(READERS)}")
        if self.table_dialect not in READINGS:
            raise UsageError(
                f"no table dialect `{self.table_dialect}`; there are {', '.join(READINGS)}"
            )
