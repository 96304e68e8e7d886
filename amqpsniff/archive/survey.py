"""The survey of a capture file, without following a conversation: the facts that a plan is made of.

A survey reads every packet's headers once. It is the same for every choice of options, so it is
kept beside the tables of an archive and made again only when the file has changed.
"""

from __future__ import annotations

import json
from array import array
from dataclasses import asdict, dataclass, field
from typing import Any

from amqpsniff.capture import CaptureFile
from amqpsniff.capture.file import Opener
from amqpsniff.errors import CaptureError
from amqpsniff.findings import Finding
from amqpsniff.tcp.headers import unread_tunnels
from amqpsniff.tcp.partition import Survey


@dataclass
class Surveyed:
    """One file, as it was found.

    Attributes:
        path: Its name.
        size, modified_ns: Its length in bytes and the time of its last change; None where the file
            system does not say.
        error: Why it could not be read at all; None when it could.
        packets, segments: Packets, and TCP segments among them.
        octets: Captured bytes of its packets.
        first_ns: Time of the first packet that has one; None when none has.
        least_ns, last_ns: The earliest and the latest time.
        findings: What is wrong with the file.
        secrets: Decryption Secrets Blocks in it.
        marks, mark_bytes: Its conversations by mark (`amqpsniff.tcp.partition`), and the captured
            bytes of each one's packets.
    """

    path: str
    size: int | None = None
    modified_ns: int | None = None
    error: str | None = None
    packets: int = 0
    segments: int = 0
    octets: int = 0
    first_ns: int | None = None
    least_ns: int | None = None
    last_ns: int | None = None
    secrets: int = 0
    findings: list[Finding] = field(default_factory=list)
    marks: array[int] = field(default_factory=lambda: array("q"))
    mark_bytes: array[int] = field(default_factory=lambda: array("q"))

    def forget_conversations(self) -> None:
        """Let go of them: when the plan is made, the tasks know them."""
        self.marks, self.mark_bytes = array("q"), array("q")

    def to_table(self) -> Any:
        """Itself as an Arrow table: a row for each conversation, the rest as its metadata."""
        import pyarrow as pa

        facts = {
            name: value
            for name, value in vars(self).items()
            if name not in ("findings", "marks", "mark_bytes")
        }
        facts["findings"] = [asdict(one) for one in self.findings]
        columns = [integers(one) for one in (self.marks, self.mark_bytes)]
        table = pa.Table.from_arrays(columns, names=["mark", "octets"])
        return table.replace_schema_metadata({"survey": json.dumps(facts)})

    @classmethod
    def from_table(cls, table: Any) -> Surveyed:
        """The opposite of `to_table`."""
        facts = json.loads(table.schema.metadata[b"survey"])
        facts["findings"] = [Finding(**one) for one in facts["findings"]]
        columns = [numbers(table.column(name)) for name in ("mark", "octets")]
        return cls(**facts, marks=columns[0], mark_bytes=columns[1])


def survey(
    path: str,
    size: int | None = None,
    modified_ns: int | None = None,
    opener: Opener | None = None,
) -> Surveyed:
    """Read the headers of a file's packets; a file that cannot be read is told, not raised."""
    found = Surveyed(path, size, modified_ns)
    counts = Survey()
    try:
        with CaptureFile(path, opener=opener) as packets:
            for batch in packets:
                counts.feed(batch)
            found.findings = packets.findings
            if counts.unread:
                found.findings = [*packets.findings, unread_tunnels(path, counts.unread)]
            found.secrets = len(packets.secrets)
    except CaptureError as error:
        found.error = str(error)
        found.findings = [Finding("capture-unreadable", found.error, path)]
        return found
    found.packets, found.segments = counts.packet_count, counts.segment_count
    found.octets = counts.octets
    found.first_ns, found.least_ns, found.last_ns = counts.times
    found.marks, _, found.mark_bytes = counts.conversations()
    return found


def integers(values: array[int]) -> Any:
    """64-bit integers as Arrow has them."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def numbers(column: Any) -> array[int]:
    """The opposite of `integers`, of an array or a column of a table."""
    values = array("q")
    for chunk in getattr(column, "chunks", (column,)):
        octets = chunk.buffers()[1]
        begin = chunk.offset * 8
        values.frombytes(memoryview(octets)[begin : begin + len(chunk) * 8])
    return values
