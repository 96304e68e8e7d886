"""Names that mean the same in another run of the same application.

Brokers and clients make up names: queues, consumer tags, connection names with a process id in
them. What is made up becomes `*`, so that such names are one name, in every capture.
"""

from __future__ import annotations

import re

MADE_UP = "*"

_UUID = r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}"
_MADE_UP = re.compile(
    rf"(?<=^amq\.gen-).+|(?<=^amq\.ctag-).+|(?<=^amq_)[0-9a-f]{{32}}$|{_UUID}"
    r"|(?<![0-9a-zA-Z])(?=[0-9a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{8,}(?![0-9a-zA-Z])"
    r"|(?<![0-9])\d{4,}(?![0-9])|0x[0-9a-fA-F]{4,}"
)
"""Generated queues and tags, UUIDs, hexadecimal words of 8 digits and more, numbers of 4 and more:
ports, process ids, times. `orders-2` and `v10` stay as they are."""


def lasting(name: str) -> str:
    """The name without what differs in every run."""
    return _MADE_UP.sub(MADE_UP, name)


_NAMES = re.compile(r"`([^`]*)`|'([^']*)'|\b(?:queue|exchange|user|vhost) ([^\s`',;:]+)")
_CODE = re.compile(r"^\d{3}\b")


def subjects(detail: str) -> tuple[str, ...]:
    """The subjects of a finding's detail: a reply code and the names in it, each once."""
    found = [code.group() for code in [_CODE.match(detail)] if code is not None]
    for match in _NAMES.finditer(detail):
        found.append(lasting(next(name for name in match.groups() if name is not None)))
    return tuple(dict.fromkeys(found))
