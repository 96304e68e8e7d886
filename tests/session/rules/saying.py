"""What the rules find in a script, as short text.

    acknowledgement-invalid ack 1 x2: delivery 1 was settled before

is a finding's code, the packet by its label (`#7` for one without), its channel (`-` for none), its
count when it is not 1, and its detail, where packets have their labels too.
"""

from __future__ import annotations

import re

from tests.session.script import Fed, Script, feed

_PACKETS = re.compile(r"(packets?) (\d+)(?: to (\d+))?")


def said(text: str, *codes: str) -> list[str]:
    """The findings of these codes in a script, in order."""
    script = Script(text)
    fed = feed(script)
    return [
        _shown(script, fed, finding) for finding in fed.engine.findings() if finding.code in codes
    ]


def found(text: str, *codes: str) -> list[str]:
    """Only codes and packets."""
    return [" ".join(line.split()[:2]) for line in said(text, *codes)]


def _shown(script: Script, fed: Fed, finding: object) -> str:
    labels = {number: label for label, number in script.labels.items()}

    def name(number: int | None) -> str:
        if number is None:
            return "-"
        packet = fed.numbers.get(number)
        return labels.get(packet or 0, f"#{packet}")

    def named(match: re.Match[str]) -> str:
        more = f" to {name(int(match[3]))}" if match[3] else ""
        return f"{match[1]} {name(int(match[2]))}{more}"

    code, number = finding.code, finding.packet_number  # type: ignore[attr-defined]
    channel, count = finding.channel, finding.count  # type: ignore[attr-defined]
    words = [code, name(number), "-" if channel is None else str(channel)]
    if count != 1:
        words.append(f"x{count}")
    detail = _PACKETS.sub(named, finding.detail)  # type: ignore[attr-defined]
    return f"{' '.join(words)}: {detail}"
