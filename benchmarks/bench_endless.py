"""Streams without end: what is resident while they go on.

    python benchmarks/bench_endless.py [--messages 1000000] [COMMAND…]

Pipes packets of a long connection into commands (`COMMANDS` when none is named) and prints what is
resident after each tenth, and the peak. Exits with 1 where the last is more than `MAX_TIMES` that
after the third tenth, or the peak is above `MAX_MB`. The streams: publishes and deliveries that
are settled, and that never are, alone and together; mandatory publishes whose routing keys never
come again, as those of replies, settled and not, on a channel of each mode, and beside requests
without replies; deliveries of which one in 5,000 is never acknowledged; long headers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile

sys.path.insert(0, str(Path(__file__).parent.parent))

from amqpsniff.tables.schema import EVERYTHING
from tests.capture.build import pcap_header, pcap_record
from tests.session.script import Script
from tests.tcp import wire

MAX_TIMES = 1.5
MAX_MB = 300
NEVER = 5_000
"""Of so many deliveries one is never acknowledged."""
OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
CONFIRM = "C1: confirm.select\nS1: confirm.select-ok\n"
CONSUME = "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
NAME, TAG = b"000000000", (1).to_bytes(8, "big")
"""What stands in a template for a message's number: its digits, and its delivery tag."""
MESSAGE = "| body=20 message_id=m000000000 correlation_id=c000000000\n"
PUBLISH = f"C1: basic.publish routing_key=q {MESSAGE}"
ELSEWHERE = f"C1: basic.publish routing_key=r000000000 mandatory=1 {MESSAGE}"
DELIVER = f"S1: basic.deliver consumer_tag=t routing_key=q delivery_tag=1 {MESSAGE}"
ACK, CONFIRMED = "C1: basic.ack delivery_tag=1\n", "S1: basic.ack delivery_tag=1\n"
SELECT = "C1: tx.select\nS1: tx.select-ok\n"
DECLARE = "C1: queue.declare queue=r000000000\n"
LONG = PUBLISH.replace(" message_id", f" headers={json.dumps({'h': 'x' * 1500})!r} message_id")
STREAMS = {
    "settled": (CONFIRM + CONSUME, (PUBLISH, CONFIRMED, DELIVER, ACK), 0),
    "nothing settles": (CONFIRM + CONSUME, (PUBLISH, DELIVER), 0),
    "replies": (CONFIRM, (ELSEWHERE, CONFIRMED), 0),
    "one in 5,000 waits": (CONSUME, (DELIVER, ACK), NEVER),
    "not confirmed": (CONFIRM, (PUBLISH,), 0),
    "not acknowledged": (CONSUME, (DELIVER,), 0),
    "mandatory": ("", (ELSEWHERE,), 0),
    "mandatory, not confirmed": (CONFIRM, (ELSEWHERE,), 0),
    "mandatory, not committed": (SELECT + CONSUME, (ELSEWHERE, DELIVER, ACK), 0),
    "all of it, and no replies": (CONFIRM + CONSUME, (ELSEWHERE, DELIVER, DECLARE), 0),
    "long headers": (CONFIRM, (LONG,), 0),
}
"""By name: what comes first, what each message is, and which message lacks the last of it."""
FILE = "FILE"
"""In a command: the stream as a file, for commands that read captures twice, and for those that
take most: from a pipe less waits."""
EVERY_COLUMN = ",".join(EVERYTHING["messages"].names)
COMMANDS = (
    ("messages", "-", "--format", "ndjson"),
    ("export", "-", "-t", "messages", "--format", "parquet"),
    ("export", "-", "-t", "frames", "--format", "parquet"),
    ("export", "-", "-t", "messages", "--format", "parquet", "--where", "body_size > 0"),
    ("summary", "-"),
    ("diagnose", "-"),
    ("export", "-", "-t", "messages", "--format", "parquet", "--columns", "packet_number,match"),
    ("trace", "-", "--routing-key", "q"),
    ("topology", "-"),
    ("sql", "-", "SELECT outcome, count(*) FROM messages GROUP BY ALL"),
    ("follow", FILE, "--connection", ":40000"),
    ("diff", FILE, FILE),
    ("export", FILE, "-t", "messages", "--format", "parquet", "--columns", EVERY_COLUMN),
    ("sql", FILE, "SELECT * FROM messages", "--format", "parquet"),
    ("sql", FILE, "SELECT * FROM messages ORDER BY message_id", "--format", "ndjson"),
    ("report", FILE, "-o", os.devnull),
)


def packets(name: str, count: int) -> Iterator[list[wire.Packet]]:
    """The packets of a stream, those of one message together."""
    before, lines, never = STREAMS[name]
    talk = wire.Talk(step_ns=20_000).hands()
    for packet in Script(OPEN + before).packets:
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    said = [Script(OPEN + line).packets[-1] for line in lines]
    for number in range(1, count + 1):
        most = len(said) - (1 if never and number % never == 1 else 0)
        for packet in said[:most]:
            octets = packet.octets.replace(NAME, b"%09d" % number)
            octets = octets.replace(TAG, number.to_bytes(8, "big"))
            talk.put(0 if packet.sender == "client" else 1, octets)
        yield talk.packets
        talk.packets.clear()


def octets(name: str, count: int) -> Iterator[bytes]:
    """A stream as a pcap file: its header, then the packets of each message."""
    yield pcap_header(link=wire.IPV4_LINK)
    for some in packets(name, count):
        yield b"".join(
            pcap_record("<", one.ts_ns // 10**9, one.ts_ns % 10**9 // 1000, one.octets)
            for one in some
        )


def start(command: tuple[str, ...], given: int) -> subprocess.Popen[bytes]:
    """Start a command."""
    code = "import sys; from amqpsniff.cli.entry import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, *command], stdin=given, stdout=subprocess.DEVNULL
    )


def most(process: subprocess.Popen[bytes]) -> int:
    """MB that were resident at most, once it has ended."""
    _, _, used = os.wait4(process.pid, 0)
    process.wait()
    return used.ru_maxrss // 1024


def resident(name: str, count: int, command: tuple[str, ...]) -> list[int]:
    """MB that are resident after each tenth of a stream, and at most; of a file only at most."""
    if FILE in command:
        with NamedTemporaryFile(suffix=".pcap") as file:
            file.writelines(octets(name, count))
            file.flush()
            named = tuple(file.name if one == FILE else one for one in command)
            return [most(start(named, subprocess.DEVNULL))]
    process = start(command, subprocess.PIPE)
    assert process.stdin
    found = []
    for number, some in enumerate(octets(name, count)):
        process.stdin.write(some)
        if number and number % (count // 10) == 0:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            found += [int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS")]
    process.stdin.close()
    return [*found, most(process)]


def main() -> int:
    """Measure; 1 where what is resident goes on growing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("command", nargs="*")
    given = parser.parse_args()
    missed = 0
    for name in STREAMS:
        for command in [tuple(given.command)] if given.command else COMMANDS:
            found = resident(name, given.messages, command)
            grows = len(found) > 1 and found[-2] > MAX_TIMES * found[2]
            missed += grows or found[-1] > MAX_MB
            print(f"{name}, {' '.join(command)}: {found[:-1]}, peak {found[-1]} MB", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
