"""The readers give the same rows compiled and as plain Python."""

from pathlib import Path

from tests.capture import build
from tests.conftest import REPO, SHARED
from tests.plain import copied, lines_of

SCRIPT = """
import hashlib, sys
from amqpsniff.capture import open_capture, pcap, read
from amqpsniff.errors import CaptureError

print(pcap.__file__.endswith(".py"))
for name in sys.argv[1:]:
    found = hashlib.sha256()
    try:
        captures = open_capture(name)
    except CaptureError as error:
        print(error)
        continue
    for batch in captures:
        for row in range(batch.begin, batch.end):
            columns = (batch.number, batch.ts_ns, batch.captured, batch.original, batch.link_type)
            found.update(repr([column[row] for column in columns]).encode())
            found.update(batch.packet(row))
    print(found.hexdigest(), captures.findings, captures.secrets, captures.link_types)
for batch in read(sys.argv[1:]):
    print(batch.capture, batch.number[batch.begin], batch.end - batch.begin)
"""


def test_compiled_and_uncompiled_agree(tmp_path: Path) -> None:
    copied(tmp_path)
    made = {
        "pcap": build.pcap(packets=100),
        "modified": build.pcap(">", magic=build.MODIFIED),
        "pcapng": build.pcapng(),
        "big": build.pcapng(">"),
        "damaged": build.pcapng()[:700] + bytes(100),
        "cut": build.pcap()[:-1],
    }
    for name, octets in made.items():
        (tmp_path / name).write_bytes(octets)
    names = [str(tmp_path / name) for name in made]
    names += [str(path) for path in sorted((SHARED / "captures" / "public" / "formats").glob("*"))]
    plain = lines_of(tmp_path, SCRIPT, *names)
    assert plain[0] == "True"
    assert lines_of(REPO, SCRIPT, *names)[1:] == plain[1:]
