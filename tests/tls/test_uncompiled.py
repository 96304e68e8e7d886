"""TLS gives the same events compiled and as plain Python."""

from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.fuzz.fuzz_tls import CONVERSATIONS
from tests.plain import copied, lines_of

SCRIPT = """
import hashlib, random, sys
from amqpsniff.tls import conversation, stage
from tests.fuzz import fuzz_tls

print(conversation.__file__.endswith(".py"), stage.__file__.endswith(".py"))
choose = random.Random(5)
for which in range(len(fuzz_tls.CONVERSATIONS)):
    keys = fuzz_tls.CONVERSATIONS[which][1].read_bytes()
    for turn in range(8):
        data = bytes((which,)) + choose.randbytes(4 * turn)
        told = fuzz_tls.events(fuzz_tls.changed(data), keys, 10)
        print(hashlib.sha256(repr(told).encode()).hexdigest())
"""


def test_same_events(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    copied(tmp_path, "tests", "samples")
    plain = lines_of(tmp_path, SCRIPT)
    assert plain[0] == "True True"
    assert plain[1:] == lines_of(REPO, SCRIPT)[1:]
    assert len(plain) == 1 + 8 * len(CONVERSATIONS)
