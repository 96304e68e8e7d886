"""A live capture beside a RabbitMQ and clients that go as fast as they can, on the same cores.

For each way to run `amqpsniff live`: messages and packets a second, processor time of the sniffer
per message, packets that the kernel dropped, and its memory after a third of the time and at the
end; and what is to be said of it. `flood` has clients that send frames encoded before, which leave
the processor to the broker: the most that it takes on these cores; the other ways have pika. Needs
the right to capture, RabbitMQ, pika and pamqp.

    python benchmarks/bench_live.py [SECONDS] [WAY...]
"""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.live.broker import Broker, free_port

PROGRAM = (
    sys.executable,
    "-c",
    "import sys; from amqpsniff.cli.entry import main; sys.exit(main())",
    "live",
    "-i",
    "lo",
)
PUBLISH = """
import pika, sys, time
connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", int(sys.argv[1])))
channel = connection.channel()
channel.queue_declare("load")
body, end, number = bytes(200), time.time() + float(sys.argv[2]), 0
if sys.argv[3] == "confirms":
    channel.confirm_delivery()
while time.time() < end:
    for _ in range(100):
        channel.basic_publish("", "load", body)
    number += 100
    connection.process_data_events(0)
connection.close()
"""
CONSUME = """
import pika, sys, time
connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", int(sys.argv[1])))
channel = connection.channel()
channel.queue_declare("load")
channel.basic_qos(prefetch_count=500)
end, number = time.time() + float(sys.argv[2]), 0
for method, _, _ in channel.consume("load", inactivity_timeout=0.2):
    if method is not None:
        number += 1
        if number % 50 == 0:
            channel.basic_ack(method.delivery_tag, multiple=True)
    if time.time() > end:
        break
connection.close()
"""
FLOOD = str(Path(__file__).resolve().parent / "flood.py")
CLIENTS = (
    (("-c", PUBLISH, "plain"), ("-c", PUBLISH, "confirms"), ("-c", CONSUME, "")),
    ((FLOOD, "publish"), (FLOOD, "confirms"), (FLOOD, "consume"), (FLOOD, "consume")),
)
WAYS = {
    "ndjson": ("-t", "messages", "--format", "ndjson"),
    "findings": ("-t", "findings", "--format", "ndjson"),
    "written": ("-t", "findings", "--format", "ndjson", "-w", "load.pcapng",
                "--rotate-size", "100MB", "--keep", "2"),
    "dashboard": (),
    "flood": ("-t", "messages", "--format", "ndjson"),
}  # fmt: skip
MORE_MB = 8
"""Memory that may come in two thirds of a run: pages that were not touched before, no more."""


def _used(number: int) -> float:
    """Processor seconds of a process."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(number: int) -> float:
    """MB of memory that a process has."""
    return int(Path(f"/proc/{number}/statm").read_text().split()[1]) * 4096 / 1e6


def _drain(descriptor: int) -> None:
    """Read what is written to a terminal."""
    try:
        while os.read(descriptor, 65536):
            pass
    except OSError:
        return


def _counted(port: int) -> dict[str, float]:
    """The sniffer's own counts."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)
            if not name.startswith("#")}  # fmt: skip


def measure(way: str, port: int, seconds: float, folder: str) -> str:
    """One run, in a line."""
    metrics = free_port()
    leader, follower = pty.openpty()
    out = follower if way == "dashboard" else subprocess.DEVNULL
    sniffer = subprocess.Popen(
        (*PROGRAM, "--port", str(port), "--metrics", f":{metrics}", *WAYS[way]), stdin=follower,
        stdout=out, stderr=subprocess.DEVNULL, cwd=folder, env=os.environ | {"TERM": "xterm"},
    )  # fmt: skip
    threading.Thread(target=_drain, args=(leader,), daemon=True).start()
    time.sleep(2)
    began = _used(sniffer.pid)
    clients = [
        subprocess.Popen((sys.executable, *code, str(port), str(seconds), kind))
        for *code, kind in CLIENTS[way == "flood"]
    ]
    time.sleep(seconds / 3)
    early = _resident(sniffer.pid)
    for client in clients:
        client.wait()
    time.sleep(0.2)
    used, late = _used(sniffer.pid) - began, _resident(sniffer.pid)
    found = _counted(metrics)
    sniffer.send_signal(signal.SIGTERM)
    sniffer.wait()
    os.close(follower)
    methods = ("basic.publish", "basic.deliver")
    messages = sum(found.get(f'amqpsniff_methods_total{{method="{one}"}}', 0) for one in methods)
    packets, dropped = found["amqpsniff_packets_total"], found["amqpsniff_packets_dropped_total"]
    flat = late - early <= MORE_MB
    return (
        f"{way:<10} {messages / seconds:>8,.0f} messages/s {packets / seconds:>8,.0f} packets/s "
        f"{1e6 * used / messages:>6.2f} us/message {100 * used / seconds:>4.0f} % of a core "
        f"{dropped:>4.0f} dropped {'BAD' if dropped else 'ok'}   "
        f"{early:>4.0f} MB, {late:>4.0f} MB {'ok' if flat else 'GROWS'}"
    )


def main() -> None:
    """Measure every way."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    broker = Broker(f"bench_{os.getpid()}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            for way in sys.argv[2:] or WAYS:
                print(measure(way, broker.port, seconds, folder), flush=True)
    finally:
        broker.close()


if __name__ == "__main__":
    main()
