"""Decoding gives the same rows compiled and as plain Python."""

from pathlib import Path

import pytest

from tests.conftest import REPO, SAMPLES
from tests.plain import copied, lines_of

SCRIPT = """
import random, sys
import amqpsniff
from amqpsniff.decode import decoder, resync
from tests.decode.feeding import Runs, streams_of
from pathlib import Path

print(decoder.__file__.endswith(".py") and resync.__file__.endswith(".py"))
tables = ("frames", "messages", "findings")
for name in sys.argv[1:]:
    for options in ({"bodies": True}, {"body_sha256": True, "table_dialect": "py-amqp"}):
        for table, batch in amqpsniff.open(name, **options).tables(*tables):
            for row in batch.to_pylist():
                print(table, {key: value for key, value in row.items() if key != "capture"})
    choose = random.Random(2)
    runs = Runs()
    for stream in streams_of(Path(name)):
        for _ in range(4):
            cut = choose.randrange(max(1, len(stream.octets)))
            broken = bytearray(stream.octets[cut : cut + 3000])
            for _ in range(choose.randrange(3)):
                if broken:
                    broken[choose.randrange(len(broken))] = choose.randrange(256)
            middle = len(broken) // 2
            pieces = [bytes(broken[:middle]), choose.randrange(1, 99), bytes(broken[middle:])]
            runs.add([(stream.direction, piece) for piece in pieces])
    for run in runs.take():
        print(run)
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources alone."""
    return copied(tmp_path_factory.mktemp("plain"), "tests")


def test_compiled_and_uncompiled_agree(plain: Path) -> None:
    names = [
        str(SAMPLES / name)
        for name in ("bunny.pcapng", "kombu.pcap.gz", "v08_v09.pcap", "amqplib08.pcap")
    ]
    uncompiled = lines_of(plain, SCRIPT, *names)
    assert uncompiled[0] == "True"
    assert lines_of(REPO, SCRIPT, *names)[1:] == uncompiled[1:]
    assert len(uncompiled) > 500
