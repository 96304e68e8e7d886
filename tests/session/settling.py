"""One channel incarnation of the reference: publishes, confirms, consumers, deliveries, settling.

The rules in brackets are those of `tests.session.reference`.
"""

from __future__ import annotations

from tests.session.events import Event, Row

UNKNOWN = "unknown"
"""An outcome that is not known, and will not be."""


def message_row(event: Event) -> Row:
    """The session columns of a message before anything is known."""
    return {
        "connection": event.connection,
        "packet_number": event.packet,
        "channel": event.channel,
        "method": event.method,
        "publish_number": None,
        "queue": None,
        "outcome": None,
        "outcome_packet_number": None,
        "outcome_ns": None,
    }


class Message:
    """A publish or a delivery with its row."""

    def __init__(self, event: Event, row: Row) -> None:
        self.event = event
        self.row = row
        self.unknown = False  # it was answered, but how is not known [P3, D10]
        self.tag = event.arguments.get("delivery_tag")
        self.done = False  # no return can mean it any more [P6]
        self.replaced = False  # its tag was given again [D5]
        self.wants_ack: bool | None = None
        self.noted: str | None = None  # the outcome that waits for a commit [D8]
        self.taken = False  # a commit was sent since

    def settle(self, outcome: str, event: Event) -> None:
        """The outcome is decided by an event [D10, D11]."""
        if outcome == UNKNOWN:
            self.unknown = True
            return
        self.row["outcome"] = outcome
        self.row["outcome_packet_number"] = event.packet
        self.row["outcome_ns"] = event.ts_ns - self.event.ts_ns

    @property
    def outstanding(self) -> bool:
        """Whether a delivery can still be settled."""
        return self.row["outcome"] is None and not self.replaced and not self.unknown


class Declared:
    """A queue.declare: the name of its queue, null until it is known."""

    def __init__(self, name: str) -> None:
        self.name = name or None


class Consumer:
    """A basic.consume, or a basic.get."""

    def __init__(self, event: Event, declared: Declared | None) -> None:
        self.named = event.arguments["queue"]
        self.declared = declared
        self.no_ack = bool(event.arguments["no_ack"])

    @property
    def queue(self) -> str | None:
        """[D3]"""
        if self.named:
            return str(self.named)
        return self.declared.name if self.declared else None


class Incarnation:
    """What is known of a channel between its opening and its end."""

    def __init__(self, row: Row, known: bool) -> None:
        self.row = row
        self.known = known  # its beginning was seen [C2]
        self.closers: set[str] = set()
        self.ended = False
        self.heard = False  # the server said something [C2]
        self.last_tag = self.lost_tag = -1  # [D10]
        self.selected = False  # the mode comes from a select that was sent
        self.next_number: int | None = None
        self.numbered = False
        self.lost_publish = 0  # [P3]
        self.publishes: list[Message] = []
        self.deliveries: list[Message] = []
        self.consumers: dict[str, Consumer] = {}
        self.declared: Declared | None = None
        self.unconfirmed_max = 0
        self.unsettled_max = 0

    # modes and limits

    def select(self, mode: str, sent: bool) -> None:
        """[C7, P1]"""
        if self.row["mode"] is not None:
            return
        self.row["mode"] = mode
        self.selected = sent
        if mode == "confirm" and sent:
            self.next_number = 1
            self.numbered = True

    @property
    def transacted(self) -> bool:
        """Whether acks wait for a commit [D8]."""
        return self.selected and self.row["mode"] == "tx"

    # publishes

    def publish(self, event: Event, row: Row) -> None:
        """[P1]"""
        message = Message(event, row)
        self.row["published"] += 1
        if self.next_number is not None:
            row["publish_number"] = self.next_number
            self.next_number += 1
        self.publishes.append(message)

    def confirm(self, event: Event, outcome: str) -> None:
        """[P3]"""
        tag, multiple = event.arguments["delivery_tag"], event.arguments["multiple"]
        for message in self.publishes:
            number = message.row["publish_number"]
            if number is None or message.row["outcome"] is not None or message.unknown:
                continue
            if number == tag or (multiple and (number < tag or tag == 0)):
                sure = number > self.lost_publish or number == tag
                message.settle(outcome if sure else UNKNOWN, event)
                message.done = message.done or not sure

    def returned(self, event: Event) -> None:
        """[P4]"""
        self.row["returned"] += 1
        given = event.arguments
        same = [
            message
            for message in self.publishes
            if (message.event.arguments["mandatory"] or message.event.arguments["immediate"])
            and message.row["outcome"] is None
            and not message.done
            and message.event.arguments["exchange"] == given["exchange"]
            and message.event.arguments["routing_key"] == given["routing_key"]
            and len(message.event.body or b"") == len(event.body or b"")
            and message.event.properties == event.properties
        ]
        for message in same[:1]:
            message.settle("returned", event)

    # consumers and deliveries

    def consume(self, event: Event) -> Consumer:
        """[D1, C9]"""
        consumer = Consumer(event, self.declared)
        tag, no_wait = event.arguments["consumer_tag"], event.arguments["no_wait"]
        if tag and (no_wait or tag not in self.consumers):
            self.consumers[tag] = consumer
        if no_wait:
            self.row["consumers"] += 1
        return consumer

    def deliver(self, event: Event, row: Row, consumer: Consumer | None) -> None:
        """[D3, D4, D5]"""
        message = Message(event, row)
        self.last_tag = message.tag
        self.row["delivered"] += 1
        if consumer is not None:
            row["queue"] = consumer.queue
            message.wants_ack = not consumer.no_ack
        if message.wants_ack is False:
            message.settle("automatic", event)
        else:
            for other in self.deliveries:
                if other.tag == message.tag and other.outstanding and not other.noted:
                    other.replaced = True
        self.deliveries.append(message)

    def settle(self, event: Event, outcome: str) -> None:
        """[D6, D8]"""
        tag, multiple = event.arguments["delivery_tag"], event.arguments.get("multiple")
        for message in self.deliveries:
            if not message.outstanding or message.noted:
                continue
            if message.tag == tag or (multiple and (message.tag < tag or tag == 0)):
                if tag == 0 and not multiple:
                    continue
                sure = message.tag > self.lost_tag or message.tag == tag
                if self.transacted:
                    message.noted = outcome if sure else UNKNOWN
                else:
                    message.settle(outcome if sure else UNKNOWN, event)

    def recover(self, event: Event) -> None:
        """[D7]"""
        for message in self.deliveries:
            if event.arguments["requeue"] and message.outstanding and not message.noted:
                message.settle("requeued" if message.tag > self.lost_tag else UNKNOWN, event)

    # transactions

    def commit(self) -> tuple[list[Message], list[Message]]:
        """The publishes and the noted deliveries that a tx.commit takes [P6, D8]."""
        if not self.transacted:
            return [], []
        noted = [message for message in self.deliveries if message.noted and not message.taken]
        for message in noted:
            message.taken = True
        return list(self.publishes), noted

    def rollback(self) -> None:
        """[P6, D8]"""
        if not self.transacted:
            return
        for message in self.deliveries:
            if message.noted and not message.taken:
                message.noted = None
                message.replaced = any(
                    other.tag == message.tag and other.outstanding and not other.noted
                    for other in self.deliveries
                    if other is not message
                )
        for message in self.publishes:
            message.done = True

    # counts

    def _waiting(self) -> tuple[int, int]:
        unconfirmed = [
            message
            for message in self.publishes
            if message.row["publish_number"] is not None
            and message.row["outcome"] is None
            and not message.unknown
        ]
        unsettled = [
            message for message in self.deliveries if message.wants_ack and message.outstanding
        ]
        return len(unconfirmed), len(unsettled)

    def count(self) -> None:
        """[C11]"""
        unconfirmed, unsettled = self._waiting()
        self.unconfirmed_max = max(self.unconfirmed_max, unconfirmed)
        self.unsettled_max = max(self.unsettled_max, unsettled)

    def finish(self) -> None:
        """[C2, C10, C11, P5, D9]"""
        unconfirmed, unsettled = self._waiting()
        row = self.row
        if self.heard and (self.known or self.numbered):
            row["unconfirmed_max"], row["unconfirmed_end"] = self.unconfirmed_max, unconfirmed
        if self.heard and self.known:
            row["unsettled_max"], row["unsettled_end"] = self.unsettled_max, unsettled
        outcomes = [message.row["outcome"] for message in (*self.publishes, *self.deliveries)]
        row["confirmed"] = outcomes.count("confirmed")
        row["acknowledged"] = outcomes.count("acked")
        for message in self.publishes:
            numbered = message.row["publish_number"] is not None
            if numbered and message.row["outcome"] is None and not message.unknown:
                message.row["outcome"] = "unconfirmed"
        for message in self.deliveries:
            if message.wants_ack and message.row["outcome"] is None and not message.unknown:
                message.row["outcome"] = "unsettled"
