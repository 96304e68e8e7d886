"""The options of an interface that may stay: a name that systems give (`eth0`, `any`).

Other names may be a person's, or name the machine. What a section says of its machine, program and
user, comments, and names of hosts are not written to begin with.
"""

from __future__ import annotations

import re

from amqpsniff.capture.pcapng_interface import IF_NAME, Interface, Option

_PLAIN = re.compile(r"(?:any|lo|en|eth|ens|enp|eno|wlan|wlp|bond|br|docker|tun|tap|veth|bridge)"
                    r"[\ds]{0,6}\d?")  # fmt: skip


def safe_options(interface: Interface) -> list[Option]:
    """The options of an interface that tell nothing of persons and machines."""
    plain = _PLAIN.fullmatch(interface.name)
    return [(IF_NAME, interface.name.encode())] if plain else []
