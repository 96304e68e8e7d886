"""What applications do with a broker, by the client libraries they use."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.waiting import PATIENCE

MESSAGES = 60


def _parameters(host: str, port: int, properties: dict[str, str]) -> Any:
    """Of a connection of pika, which gives up a connection that is slow to come."""
    import pika

    return pika.ConnectionParameters(
        host, port, client_properties=properties, socket_timeout=PATIENCE, stack_timeout=PATIENCE
    )


def with_pika(host: str, port: int, messages: int = MESSAGES) -> None:
    """Confirmed publishes, acks one by one and many at once, a reject, and a queue redeclared."""
    import pika

    properties = {"connection_name": "orders-pika"}
    connection = pika.BlockingConnection(_parameters(host, port, properties))
    channel = connection.channel()
    channel.queue_declare("pika")
    channel.queue_bind("pika", "amq.topic", "order.#")
    channel.confirm_delivery()
    for number in range(messages):
        named = pika.BasicProperties(message_id=str(number), headers={"n": number})
        channel.basic_publish("amq.topic", f"order.{number % 5}", bytes(number * 50), named)
    for number, (method, _, _) in enumerate(
        channel.consume("pika", inactivity_timeout=PATIENCE), 1
    ):
        assert method is not None
        if number % 10 == 0:
            channel.basic_ack(method.delivery_tag, multiple=True)
        if number == messages - messages % 10:
            break
    channel.cancel()
    with contextlib.suppress(pika.exceptions.ChannelClosedByBroker):
        channel.queue_declare("pika", durable=True)
    connection.close()


def with_aio_pika(host: str, port: int, messages: int = MESSAGES) -> None:
    """Mandatory confirmed publishes, one of them to nowhere, and a consumer with a prefetch.

    In a thread of its own: where a browser was driven before, this one has an event loop.
    """
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _aio_pika(host, port, messages)).result()


async def _aio_pika(host: str, port: int, messages: int) -> None:
    import aio_pika

    connection = await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/")
    async with connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=20)
        queue = await channel.declare_queue("aio", auto_delete=True)
        exchange = channel.default_exchange
        for number in range(messages):
            await exchange.publish(aio_pika.Message(b"x" * number), routing_key="aio")
        with contextlib.suppress(aio_pika.exceptions.DeliveryError):
            await exchange.publish(aio_pika.Message(b"lost"), routing_key="nowhere")
        left = messages
        async with queue.iterator() as deliveries:
            async for message in deliveries:
                if left % 7:
                    await message.ack()
                else:
                    await message.reject(requeue=False)
                left -= 1
                if not left:
                    break


def with_amqp(host: str, port: int, messages: int = MESSAGES) -> None:
    """Publishes without confirms, a consumer without acks, and gets (py-amqp, under Celery)."""
    import amqp

    with amqp.Connection(f"{host}:{port}") as connection:
        channel = connection.channel()
        channel.queue_declare("py", auto_delete=False)
        left = messages // 2
        for number in range(messages):
            channel.basic_publish(amqp.Message("y" * number), "", "py")
        for _ in range(messages - left):
            message = channel.basic_get("py")
            channel.basic_ack(message.delivery_tag)

        def taken(_: object) -> None:
            nonlocal left
            left -= 1

        tag = channel.basic_consume("py", no_ack=True, callback=taken)
        while left:
            connection.drain_events(timeout=PATIENCE)
        channel.basic_cancel(tag)
        channel.queue_delete("py")


def keep_busy(host: str, port: int, going: threading.Event, over: threading.Event) -> None:
    """A publisher with confirms and a consumer, until it is over; then one mistake.

    It is going when there was something of everything.
    """
    import pika

    def connected(name: str) -> Any:
        properties = {"connection_name": name}
        return pika.BlockingConnection(_parameters(host, port, properties))

    publisher, consumer = connected("busy-publisher"), connected("busy-consumer")
    sending, taking = publisher.channel(), consumer.channel()
    taking.queue_declare("busy")
    taking.queue_bind("busy", "amq.topic", "load.#")
    taking.basic_qos(prefetch_count=10)
    acknowledged = []

    def take(channel: Any, method: Any, *_: object) -> None:
        channel.basic_ack(method.delivery_tag)
        acknowledged.append(method.delivery_tag)

    taking.basic_consume("busy", take)
    sending.confirm_delivery()
    number = 0
    while not over.is_set():
        for _ in range(10):
            number += 1
            sending.basic_publish("amq.topic", f"load.{number % 9}", bytes(200))
        consumer.process_data_events(0.01)
        if acknowledged:
            going.set()
    with contextlib.suppress(pika.exceptions.ChannelClosedByBroker):
        sending.queue_declare("busy", durable=True)
    publisher.close()
    consumer.close()


CLIENTS: tuple[Callable[[str, int], None], ...] = (with_pika, with_aio_pika, with_amqp)
