"""Random conversations as scripts: mostly what clients and brokers do, and what they must not.

A step is five numbers: which connection, which channel, what is done, and two that choose its
arguments. `Talker` knows just enough to make most steps fit what came before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.session.events import DEFINED
from tests.session.script import Script

NAMES = ("a", "b")
CHANNELS = (1, 2, 65535)


class Step(NamedTuple):
    """One thing that happens."""

    connection: int
    channel: int
    action: str
    one: int
    two: int


class Side:
    """What a talker remembers of one channel number."""

    def __init__(self) -> None:
        self.opened = False
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.published = 0
        self.delivered = 0
        self.tags = 0


class Talker:
    """Makes a script of steps."""

    def __init__(self, midstream: bool = False) -> None:
        self.script = Script()
        self.sides: dict[tuple[str, int], Side] = {}
        for name in NAMES:
            self.script.add(f"{name}.{'midstream' if midstream else 'handshake'}")

    def do(self, step: Step) -> None:
        """One step."""
        self.name = NAMES[step.connection % len(NAMES)]
        self.channel = CHANNELS[step.channel % len(CHANNELS)]
        self.side = self.sides.setdefault((self.name, self.channel), Side())
        self.join = step.two % 5 == 4
        ACTIONS[step.action](self, step.one, step.two)

    def say(
        self, sender: str, method: str, content: tuple[bytes, Any] | None = None, **arguments: Any
    ) -> None:
        """A method on the channel of the step, in the packet before where that is possible."""
        channel = 0 if method.startswith("connection.") else self.channel
        row = DEFINED[method]
        if row.synchronous and not arguments.get("no_wait"):
            self.side.asked.append((sender, method, arguments))
        packets = self.script.packets
        before = packets[-1] if packets else None
        join = self.join and before is not None and not before.end
        join = join and before[1:3] == (self.name, sender)
        if not join:
            self.script.wait()
        body, properties = content or (b"" if row.content else None, None)
        self.script.method(
            self.name, sender, channel, method, arguments, body, properties, join=join
        )

    def reply(self, one: int, two: int) -> None:
        """The oldest request is answered, or sometimes another."""
        asked = self.side.asked
        if not asked:
            return
        sender, method, arguments = asked.pop(two % len(asked) if one % 8 == 7 else 0)
        replies = DEFINED[method].replies
        answer = replies[one % len(replies)]
        given: dict[str, Any] = {}
        if answer == "queue.declare-ok":
            given["queue"] = arguments.get("queue") or f"amq.gen-{two}"
        elif answer == "basic.consume-ok":
            self.side.tags += 1
            tag = arguments.get("consumer_tag") or f"amq.ctag-{self.side.tags % 3}"
            given["consumer_tag"] = tag
        elif answer == "basic.cancel-ok":
            given["consumer_tag"] = arguments.get("consumer_tag", "")
        elif answer == "basic.get-ok":
            self.side.delivered += 1
            given["delivery_tag"] = self.side.delivered
        self.say("client" if sender == "server" else "server", answer, **given)

    def unasked(self, one: int, two: int) -> None:
        """A reply that nobody waits for, from the server."""
        answers = (
            "channel.open-ok queue.declare-ok basic.consume-ok basic.cancel-ok basic.get-ok "
            "basic.get-empty confirm.select-ok tx.select-ok tx.commit-ok tx.rollback-ok "
            "channel.close-ok basic.qos-ok basic.recover-ok connection.close-ok"
        ).split()
        answer = answers[one % len(answers)]
        given: dict[str, Any] = {}
        if answer in ("basic.consume-ok", "basic.cancel-ok"):
            given["consumer_tag"] = _TAGS[two % 4]
        elif answer == "queue.declare-ok":
            given["queue"] = "s"
        elif answer == "basic.get-ok":
            given["delivery_tag"] = 1 + two % 9
        self.say("server", answer, **given)

    def deliver(self, one: int, two: int) -> None:
        """The next delivery, or sometimes one whose tag was there already."""
        self.side.delivered += 1
        tag = 1 + two % 9 if one % 16 == 15 else self.side.delivered
        tags = ("c", "c", "c", "d", "e", "amq.ctag-1", "amq.ctag-2")
        self.say("server", "basic.deliver", consumer_tag=tags[one % len(tags)], delivery_tag=tag)

    def settle(self, one: int, two: int) -> None:
        """The client settles a delivery, or several, or none, seldom after a long time."""
        if two % 32 == 31:
            self.join = False
            self.script.wait("3000")
        method = ("basic.ack", "basic.ack", "basic.nack", "basic.reject")[one % 4]
        given: dict[str, Any] = {"delivery_tag": _near(self.side.delivered, two)}
        if method != "basic.reject":
            given["multiple"] = one % 3 == 0
        if method != "basic.ack":
            given["requeue"] = one % 5 < 2
        self.say("client", method, **given)

    def confirm(self, one: int, two: int) -> None:
        """The server confirms."""
        method = "basic.nack" if one % 4 == 3 else "basic.ack"
        tag = _near(self.side.published, two)
        self.say("server", method, delivery_tag=tag, multiple=one % 3 == 0)

    def publish(self, one: int, two: int) -> None:
        """The client publishes."""
        self.side.published += 1
        self.say(
            "client",
            "basic.publish",
            _content(two),
            **_route(one),
            mandatory=one % 2 == 0,
            immediate=one % 9 == 1,
        )

    def send_back(self, one: int, two: int) -> None:
        """The server returns a message."""
        self.say("server", "basic.return", _content(two), reply_code=312, **_route(one))

    def ask(self, one: int, two: int) -> None:
        """The client asks for something that changes little."""
        method = _ASKED[one % len(_ASKED)]
        given: dict[str, Any] = {}
        for argument in DEFINED[method].arguments:
            if argument.name == "no_wait":
                given["no_wait"] = two % 3 == 0
            elif argument.name in ("requeue", "no_ack"):
                given[argument.name] = two % 2 == 0
            elif argument.name == "queue":
                given["queue"] = ("", "q", "r")[two % 3]
            elif argument.name == "consumer_tag":
                given["consumer_tag"] = _TAGS[two // 3 % 4]
            elif argument.name == "prefetch_count":
                given["prefetch_count"] = two
        self.say("client", method, **given)

    def open(self, one: int, two: int) -> None:
        """The client opens the channel."""
        if self.side.opened and one % 8:
            return
        self.side.opened = True
        self.side.published = self.side.delivered = 0
        self.say("client", "channel.open")
        if one % 4:
            self.reply(0, 0)

    def close(self, one: int, two: int) -> None:
        """A side closes the channel."""
        if two % 2:
            return
        self.side.opened = False
        sender = "client" if one % 2 else "server"
        place = {"class_id": two % 3 and 60, "method_id": (0, 40, 80, 81)[two // 2 % 4]}
        text = "no"
        if two % 4 == 2:
            text = f"PRECONDITION_FAILED - unknown delivery tag {_near(self.side.delivered, one)}"
        self.say(sender, "channel.close", reply_code=200 + two, reply_text=text, **place)
        if one % 3:
            self.reply(0, 0)
            self.say("server" if one % 2 else "client", "channel.close-ok")

    def end(self, one: int, two: int) -> None:
        """A side closes the connection, seldom."""
        if two % 24 == 1:
            sender = "client" if one % 2 else "server"
            self.say(sender, "connection.close", reply_code=320, reply_text="over")

    def block(self, one: int, two: int) -> None:
        """The server blocks the connection or ends that."""
        self.say("server", ("connection.blocked", "connection.unblocked")[one % 2])

    def lose(self, one: int, two: int) -> None:
        """Bytes are lost, seldom."""
        if two % 3 == 1:
            self.script.add(f"{self.name}.GAP {'CS'[one % 2]} {1 + two}")


_TAGS = ("", "c", "d", "e")
_ASKED = (
    "confirm.select tx.select tx.commit tx.commit tx.rollback queue.declare queue.declare "
    "queue.bind basic.consume basic.consume basic.consume basic.cancel basic.get basic.get "
    "basic.recover basic.recover-async basic.qos exchange.declare channel.flow queue.unbind"
).split()
ACTIONS: dict[str, Callable[[Talker, int, int], None]] = {
    name: getattr(Talker, name)
    for name in (
        "reply unasked deliver settle confirm publish send_back ask open close end block lose"
    ).split()
}


def _near(last: int, choice: int) -> int:
    """A tag around those that there are, 0 sometimes."""
    return 0 if choice % 7 == 0 else 1 + choice % (last + 2)


def _route(choice: int) -> dict[str, Any]:
    return {"exchange": ("", "e")[choice % 2], "routing_key": ("k", "j")[choice // 2 % 2]}


def _content(choice: int) -> tuple[bytes, dict[str, Any]]:
    properties = {"message_id": b"%d" % (choice % 2)} if choice % 3 else {}
    return (b"", b"x", b"y")[choice // 2 % 3], properties


_WEIGHTS = {"reply": 6, "deliver": 5, "settle": 5, "confirm": 4, "publish": 5, "ask": 7, "open": 2}
_MIX = 0x9E3779B97F4A7C15
"""Spreads drawn numbers, of which most are small, over all choices; 0 stays 0."""
_PRELUDES = {
    "confirm": ["confirm.select"],
    "tx": ["tx.select"],
    "consumers": [],
    "confirm and consumers": ["confirm.select"],
    "tx and consumers": ["tx.select"],
}


def scripts(losses: bool = False, midstream: bool = False) -> st.SearchStrategy[Script]:
    """Random conversations of two connections, of some two hundred packets.

    A conversation is drawn as a list of numbers that shrink to doing nothing.
    """
    actions = [""] + [
        name for name in ACTIONS if losses or name != "lose" for _ in range(_WEIGHTS.get(name, 1))
    ]
    numbers = st.lists(st.integers(0, 2**40), min_size=40, max_size=200)
    return numbers.map(lambda drawn: _made(drawn, actions, midstream))


def _made(drawn: list[int], actions: list[str], midstream: bool) -> Script:
    talker = Talker(midstream)
    if not midstream:
        for place, choice in enumerate(drawn[:4]):
            _prelude(talker, place, choice * _MIX % 2**64 // 7)
    for number in drawn[4:]:
        rest, action = divmod(number * _MIX % 2**64, len(actions))
        rest, two = divmod(rest, 997)
        rest, one = divmod(rest, 1009)
        connection, channel = rest % 8 == 1, (0, 0, 0, 0, 0, 1, 1, 2)[rest // 8 % 8]
        if actions[action]:
            talker.do(Step(connection, channel, actions[action], one, two))
    ends = ("", "FIN C", "FIN S", "RST S", "RST C")
    if all(packet.end != "GAP" for packet in talker.script.packets):
        for place, name in enumerate(NAMES):
            end = ends[drawn[place] // 7 % len(ends)]
            if end and any(packet.connection == name for packet in talker.script.packets):
                talker.script.add(f"{name}.{end}")
    return talker.script


def _prelude(talker: Talker, place: int, choice: int) -> None:
    """A channel is opened, given a mode and consumers."""
    talker.do(Step(place % 2, place // 2, "open", 1, 0))
    kinds = list(_PRELUDES)
    kind = ("", *kinds)[choice % (1 + len(kinds))]
    for method in _PRELUDES.get(kind, ()):
        talker.say("client", method)
        talker.reply(0, 0)
    if "consumers" in kind:
        for tag in ("c", "d"):
            talker.say("client", "basic.consume", queue="q", consumer_tag=tag, no_ack=tag == "d")
            talker.reply(0, 0)
