"""A client that costs next to nothing: it sends frames that were encoded once, as fast as they go.

`publish` says the same 200 bytes again and again, in writes of a hundred messages; with `confirms`
the broker answers, which is read and thrown away. `consume` takes messages without acks. What is
left of the processor is for the broker and for who watches.

    python benchmarks/flood.py PORT SECONDS publish|confirms|consume
"""

from __future__ import annotations

import contextlib
import select
import socket
import sys
import time

from pamqp import base, body, commands, frame, header

QUEUE = "load"
BODY = bytes(200)
BATCH = 100
"""Messages a write: some 30 kB."""

OPENING = b"AMQP\0\0\x09\x01"


def _encoded(channel: int, *methods: base.Frame) -> bytes:
    return b"".join(frame.marshal(method, channel) for method in methods)


def _await(link: socket.socket, name: str) -> None:
    """Read until a method of this name came."""
    waiting = b""
    while True:
        read, _, found = frame.unmarshal(waiting) if len(waiting) >= 8 else (0, 0, None)
        if read:
            waiting = waiting[read:]
            if found is not None and found.name == name:
                return
            continue
        waiting += link.recv(65536)


def connect(port: int) -> socket.socket:
    """A connection with a channel and the queue."""
    link = socket.create_connection(("127.0.0.1", port))
    link.sendall(OPENING)
    _await(link, "Connection.Start")
    login = commands.Connection.StartOk(
        client_properties={"product": "flood", "capabilities": {"publisher_confirms": True}},
        response="\0guest\0guest",
    )
    link.sendall(_encoded(0, login))
    _await(link, "Connection.Tune")
    tuned = commands.Connection.TuneOk(channel_max=10, frame_max=131072, heartbeat=0)
    link.sendall(_encoded(0, tuned, commands.Connection.Open()))
    _await(link, "Connection.OpenOk")
    link.sendall(_encoded(1, commands.Channel.Open(), commands.Queue.Declare(queue=QUEUE)))
    _await(link, "Queue.DeclareOk")
    return link


def publish(port: int, seconds: float, *, confirms: bool) -> None:
    """Publish for so long."""
    link = connect(port)
    if confirms:
        link.sendall(_encoded(1, commands.Confirm.Select()))
        _await(link, "Confirm.SelectOk")
    properties = commands.Basic.Properties(delivery_mode=1)
    message = _encoded(
        1,
        commands.Basic.Publish(exchange="", routing_key=QUEUE),
        header.ContentHeader(body_size=len(BODY), properties=properties),
        body.ContentBody(BODY),
    )
    octets = memoryview(message * BATCH)
    link.setblocking(False)
    end, rest = time.monotonic() + seconds, octets
    while time.monotonic() < end or len(rest) < len(octets):
        reads, writes, _ = select.select([link], [link], [], 1)
        if reads and not link.recv(1 << 20):
            return
        if writes:
            rest = rest[link.send(rest) :] or octets
    link.setblocking(True)
    close = commands.Connection.Close(reply_code=200, reply_text="", class_id=0, method_id=0)
    link.sendall(_encoded(0, close))
    with contextlib.suppress(ConnectionResetError):
        while link.recv(1 << 20):
            pass


def consume(port: int, seconds: float) -> None:
    """Take messages for so long."""
    link = connect(port)
    link.sendall(_encoded(1, commands.Basic.Consume(queue=QUEUE, no_ack=True)))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([link], [], [], 0.2)[0] and not link.recv(1 << 20):
            return
    link.close()


def main() -> None:
    """Do what the arguments say."""
    port, seconds, kind = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    if kind == "consume":
        consume(port, seconds)
    else:
        publish(port, seconds, confirms=kind == "confirms")


if __name__ == "__main__":
    main()
