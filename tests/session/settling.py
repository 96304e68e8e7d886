"""One channel incarnation of the reference: publishes, confirms, consumers, deliveries, settling.

The rules in brackets are those of `tests.session.reference`.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tests.session.events import Event, Row

REFUSAL_NS = 2_000_000_000
"""How long a broker may take to refuse an acknowledgement [D13]."""

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


def handed_on(properties: dict[str, Any]) -> dict[str, Any]:
    """Properties as a broker gives them back: headers in any order, without BCC."""
    headers = properties.get("headers") or ()
    pairs = json.loads(headers).items() if isinstance(headers, str) else headers
    kept = sorted((name, repr(value)) for name, value in pairs if name not in ("BCC", b"BCC"))
    return properties | {"headers": kept}


class Message:
    """A publish or a delivery with its row."""

    def __init__(self, event: Event, row: Row) -> None:
        self.event = event
        self.row = row
        self.unknown = False  # it was answered, but how is not known [P3, D10]
        self.tag = event.arguments.get("delivery_tag")
        self.done = False  # no return can mean it any more [P6]
        self.replaced = False  # its tag was given again [D5]
        self.in_hole = False  # and it may have been settled in a loss before that [D9]
        self.wants_ack: bool | None = None
        self.noted: str | None = None  # the outcome that waits for a commit [D8]
        self.taken = False  # a commit was sent since
        self.tentative = False  # settled, unless the broker refuses it [D13]
        self.losses = 0  # those of its incarnation that were before it [P4]
        self.maybe_confirmed = False  # by a confirm that is of a publish without a number [P4]

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
        known = self.row["outcome"] is None and not self.unknown
        return known and not self.replaced and not self.tentative


class Tentative(NamedTuple):
    """An acknowledgement that the broker may refuse (`message` is None), or that of a message
    behind one [D13].
    """

    event: Event
    message: Message | None = None
    outcome: str = ""


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
        self.opened = not known  # [C9]
        self.closers: set[str] = set()
        self.ended = False
        self.heard = False  # the server said something [C2]
        self.missing: set[str] = set()  # senders not heard since a loss, at its end [P5, D9]
        self.first_tag = self.last_tag = self.lost_tag = -1  # [D10]
        self.tentative: list[Tentative] = []  # [D13]
        self.refusals_lost = False  # [D13]
        self.missed: list[int] = []  # tags of deliveries in a loss [D13]
        self.uncertain = self.deliveries_uncertain = False  # [C2]
        self.selected = False  # the mode comes from a select that was sent
        self.next_number: int | None = None
        self.numbered = False
        self.lost_publish = self.losses = 0  # [P3, P4]
        self.lost_answers = False  # [D9]
        self.publishes: list[Message] = []
        self.deliveries: list[Message] = []
        self.consumers: dict[str, Consumer] = {}
        self.cancelled: dict[str, Consumer] = {}  # by the server [D2]
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
        message.losses = self.losses
        self.row["published"] += 1
        if self.next_number is not None:
            row["publish_number"] = self.next_number
            self.next_number += 1
        self.publishes.append(message)

    def confirm(self, event: Event, outcome: str) -> None:
        """[P3]"""
        tag, multiple = event.arguments["delivery_tag"], event.arguments["multiple"]
        last = max((each.row["publish_number"] or 0 for each in self.publishes), default=0)
        if self.next_number is None and (tag > last or (tag == 0 and multiple)):
            for message in self.publishes:
                message.maybe_confirmed |= message.row["publish_number"] is None
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
            and (message.event.body or b"") == (event.body or b"")
            and handed_on(message.event.properties) == handed_on(event.properties)
        ]
        one_of_several = len(same) > 1 and same[0].maybe_confirmed
        if same and (same[0].losses < self.losses or one_of_several):
            for message in same:
                message.unknown = message.done = True
            return
        for message in same[:1]:
            message.settle("returned", event)

    # consumers and deliveries

    def consume(self, event: Event) -> Consumer:
        """[D1, C9]"""
        consumer = Consumer(event, self.declared)
        tag, no_wait = event.arguments["consumer_tag"], event.arguments["no_wait"]
        if tag and (no_wait or tag not in self.consumers):
            self.add_consumer(tag, consumer)
        if no_wait:
            self.row["consumers"] += 1
        return consumer

    def add_consumer(self, tag: str, consumer: Consumer) -> None:
        """[D1]"""
        self.cancelled.pop(tag, None)
        self.consumers[tag] = consumer

    def consumer_of(self, tag: str) -> Consumer | None:
        """[D2]"""
        if tag not in self.consumers and tag in self.cancelled:
            self.add_consumer(tag, self.cancelled[tag])
        return self.consumers.get(tag)

    def is_opening(self) -> bool:
        """[C9]"""
        return not self.opened and not self.closers

    def is_another(self, event: Event) -> bool:
        """[C9]"""
        tag = event.arguments.get("delivery_tag", -1)
        delivers = event.method in ("basic.deliver", "basic.get-ok")
        return delivers and 0 <= tag <= self.last_tag == self.lost_tag

    def deliver(self, event: Event, row: Row, consumer: Consumer | None) -> None:
        """[D3, D4, D5]"""
        message = Message(event, row)
        if message.tag > self.last_tag:
            self.refusals_lost = False
        self.believe(event.ts_ns)
        if self.lost_answers and 0 <= self.last_tag < message.tag:
            missed = range(self.last_tag + 1, message.tag)
            self.missed += missed[len(missed) - min(len(missed), 1000 - len(self.missed)) :]
        self.last_tag = message.tag
        if self.first_tag < 0:
            self.first_tag = message.tag
        self.row["delivered"] += 1
        if consumer is not None:
            row["queue"] = consumer.queue
            message.wants_ack = not consumer.no_ack
        if message.wants_ack is False:
            message.settle("automatic", event)
        else:
            self.deliveries_uncertain |= message.wants_ack is None
            for other in self.deliveries:
                if other.tag == message.tag and other.outstanding and not other.noted:
                    self._replace(other, True)
        self.deliveries.append(message)

    def _replace(self, message: Message, replaced: bool) -> None:
        """[D5, D9]"""
        message.replaced = replaced
        message.in_hole = message.tag <= self.lost_tag or "client" in self.missing

    def settle(self, event: Event, outcome: str) -> None:
        """[D6, D8, D13]"""
        tag, multiple = event.arguments["delivery_tag"], event.arguments.get("multiple")
        self.believe(event.ts_ns)
        waiting = [each for each in self.deliveries if each.outstanding and not each.noted]
        everything = multiple and tag == 0
        known = everything or (tag and any(each.tag == tag for each in waiting))
        if known is False and tag in self.missed:
            known = True
        self.missed = [
            one for one in self.missed if one != tag and not (multiple and (one < tag or tag == 0))
        ]
        if not self.transacted and not everything and (not known or tag <= self.lost_tag):
            self.tentative.append(Tentative(event))
        for message in waiting:
            if message.tag == tag or (multiple and (message.tag < tag or tag == 0)):
                if tag == 0 and not multiple:
                    continue
                sure = message.tag > self.lost_tag or message.tag == tag
                self._settle(message, outcome if sure else UNKNOWN, event)

    def _settle(self, message: Message, outcome: str, event: Event) -> None:
        if self.transacted:
            message.noted = outcome
        elif self.tentative:
            message.tentative = True
            self.tentative.append(Tentative(event, message, outcome))
        else:
            message.settle(outcome, event)

    def recover(self, event: Event) -> None:
        """[D7]"""
        for message in self.deliveries:
            if event.arguments["requeue"] and message.outstanding and not message.noted:
                outcome = "requeued" if message.tag > self.lost_tag else UNKNOWN
                if self.tentative:
                    message.tentative = True
                    self.tentative.append(Tentative(event, message, outcome))
                else:
                    message.settle(outcome, event)

    # what the broker may refuse [D13]

    def believe(self, ts_ns: int) -> None:
        """It had refused by now what it refuses."""
        while self.tentative and not self.refusals_lost:
            first = self.tentative[0]
            if first.message is None and ts_ns - first.event.ts_ns <= REFUSAL_NS:
                break
            self._take_effect()

    def believe_all(self) -> None:
        """It read everything and refused nothing."""
        if self.refusals_lost:
            self.doubt(None)
        while self.tentative:
            self._take_effect()

    def _take_effect(self) -> None:
        first = self.tentative.pop(0)
        if first.message is not None:
            first.message.tentative = False
            first.message.settle(first.outcome, first.event)

    def closed(self, event: Event, method: str | None) -> None:
        """The server closed the channel, and blames a method."""
        self.refusals_lost = False
        said = event.arguments["reply_text"].partition("unknown delivery tag ")[2]
        tags = [
            None if one.message else one.event.arguments["delivery_tag"] for one in self.tentative
        ]
        refused = None
        if said:
            refused = tags.index(int(said)) if int(said) in tags else None
        elif method in ("basic.ack", "basic.nack", "basic.reject") and self.tentative:
            refused = 0
        if refused is None:
            self.doubt(None if said else event.ts_ns)
            return
        for _ in range(refused):
            self._take_effect()
        for one in self.tentative:
            if one.message is not None:
                one.message.tentative = False
                again = any(
                    other.tag == one.message.tag and other.outstanding
                    for other in self.deliveries
                    if other is not one.message
                )
                self._replace(one.message, again)
        self.tentative.clear()

    def doubt(self, ts_ns: int | None) -> None:
        """Nothing will show what it refused."""
        if ts_ns is not None:
            self.believe(ts_ns)
        self.refusals_lost = False
        while self.tentative:
            first = self.tentative[0]
            tag = first.event.arguments.get("delivery_tag")
            if first.message is None and (self.known or tag >= self.first_tag >= 0):
                break
            self._take_effect()
        self.deliveries_uncertain |= bool(self.tentative)
        for one in self.tentative:
            if one.message is not None:
                one.message.tentative = False
                one.message.unknown = True
        self.tentative.clear()

    def lose(self, sender: str) -> None:
        """Frames of a sender may be missing up to here [P3, D10, C2]."""
        self.uncertain = True
        self.losses += 1
        if sender == "client":
            self.lost_tag = max(self.lost_tag, self.last_tag)
        else:
            self.lost_answers = True
            numbered = (one.row["publish_number"] for one in self.publishes)
            self.lost_publish = max((one or 0 for one in numbered), default=0)

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
                again = any(
                    other.tag == message.tag and other.outstanding and not other.noted
                    for other in self.deliveries
                    if other is not message
                )
                self._replace(message, again)
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
        counted = self.heard and not self.uncertain and not self.missing
        if counted and (self.known or self.numbered):
            row["unconfirmed_max"], row["unconfirmed_end"] = self.unconfirmed_max, unconfirmed
        if counted and self.known and not self.deliveries_uncertain:
            row["unsettled_max"], row["unsettled_end"] = self.unsettled_max, unsettled
        outcomes = [message.row["outcome"] for message in (*self.publishes, *self.deliveries)]
        row["confirmed"] = outcomes.count("confirmed")
        if not self.known and not row["confirmed"] and row["published"]:
            row["confirmed"] = None if row["unconfirmed_end"] is None else 0
        row["acknowledged"] = outcomes.count("acked")
        answered = self.heard and "server" not in self.missing
        for message in self.publishes:
            numbered = (message.row["publish_number"] or 0) > self.lost_publish and answered
            if numbered and message.row["outcome"] is None and not message.unknown:
                message.row["outcome"] = "unconfirmed"
        for message in self.deliveries:
            seen = message.tag > self.lost_tag and "client" not in self.missing
            seen = not message.in_hole if message.replaced else seen
            seen = seen and not (message.taken and (self.lost_answers or not answered))
            if seen and message.wants_ack and message.row["outcome"] is None:
                message.row["outcome"] = None if message.unknown else "unsettled"
