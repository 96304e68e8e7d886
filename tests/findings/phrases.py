"""What many conversations of `scripts` begin with, say and end with."""

from __future__ import annotations


def each(count: int, *lines: str) -> str:
    """Lines again and again: `{n}` counts from 1."""
    return "".join("\n".join(lines).replace("{n}", str(n)) + "\n" for n in range(1, count + 1))


def login(name: str = "a", more: str = 'client=\'{"connection_name": "app"}\'') -> str:
    """A connection, by name."""
    return f"{name}.handshake {more}\n"


def opened(name: str = "a", channel: int = 1) -> str:
    """A channel."""
    return f"{name}.C{channel}: channel.open\n{name}.S{channel}: channel.open-ok\n"


def queue(name: str = "work", more: str = "") -> str:
    """A new queue."""
    return f"C1: queue.declare queue={name} {more}\nS1: queue.declare-ok\n"


def consumer(name: str = "work", more: str = "", at: str = "a.", tag: str = "c") -> str:
    """A consumer of a queue."""
    return (
        f"{at}C1: basic.consume queue={name} consumer_tag={tag} {more}\n{at}S1: basic.consume-ok\n"
    )


def prefetch(count: int) -> str:
    """A prefetch count."""
    return f"C1: basic.qos prefetch_count={count}\nS1: basic.qos-ok\n"


def said(channel: int, method: str, answered: bool = True, more: str = "") -> str:
    """A request and its reply."""
    answer = f"S{channel}: {method}-ok\n" if answered else ""
    return f"C{channel}: {method} {more}\n{answer}"


LOGIN = login()
START = LOGIN + opened()
WORK = START + queue()
END = "C: connection.close reply_code=200\nS: connection.close-ok\nFIN C\n"
PUBLISH = "C1: basic.publish routing_key=work | body=10 message_id=m{n}"
DELIVER = "S1: basic.deliver"
CONFIRM = said(1, "confirm.select")
