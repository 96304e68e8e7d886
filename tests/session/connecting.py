"""Connections of the reference: replies, channels, and what the handshake says.

The rules in brackets are those of `tests.session.reference`.
"""

from __future__ import annotations

from typing import Any

from tests.session.events import DEFINED, FIN, LOSS, OTHER, RST, Event, Row, Rows
from tests.session.settling import Consumer, Declared, Incarnation, Message, message_row

_BY_ID = {(row.class_id, row.method_id): row.name for row in DEFINED.values()}

_PRODUCT = ("product", "library")
_VERSION = ("version", "product_version", "library_version")
_CLIENT_FACTS = {
    "client_product": _PRODUCT,
    "client_version": _VERSION,
    "client_platform": ("platform",),
    "connection_name": ("connection_name",),
}
_SERVER_FACTS = {"server_product": _PRODUCT, "server_version": _VERSION}
CONNECTION = (
    "vhost user mechanism client_product client_version client_platform connection_name "
    "server_product server_version channel_max frame_max heartbeat channels published delivered "
    "acknowledged blocked_ns closed_by close_code close_text close_method"
).split()
CHANNEL = (
    "opened_packet_number closed_packet_number start_ns end_ns mode prefetch_count published "
    "confirmed returned delivered acknowledged unsettled_max unsettled_end unconfirmed_max "
    "unconfirmed_end consumers closed_by close_code close_text close_method"
).split()
_COUNTS = {"published", "confirmed", "returned", "delivered", "acknowledged", "consumers"}


CLOSES = ("channel.close", "connection.close")


class Request:
    """A request that is pending, and what its effect needs when the reply comes."""

    def __init__(self, event: Event, row: Row) -> None:
        self.event = event
        self.row = row
        self.consumer: Consumer | None = None
        self.declared: Declared | None = None
        self.committed: tuple[list[Message], list[Message]] = ([], [])


class Connection:
    """One connection: fed its events in order, then finished."""

    def __init__(self, name: str, midstream: bool) -> None:
        self.row: Row = {"connection": name, "midstream": midstream, "protocol": "0-9-1"}
        self.row.update(dict.fromkeys(CONNECTION))
        self.rows = Rows([], [], [], [self.row])
        self.pending: list[Request] = []
        self.incarnations: list[Incarnation] = []
        self.closers: set[str] = set()
        self.unanswered: set[tuple[int, str]] = set()  # channels and who asks in vain [R3]
        self.close: Event | None = None
        self.over = False
        self.blocked_since: int | None = None
        self.blocked_ns: int | None = 0
        self.blocked_before = False
        self.heard = False
        self.missing: set[str] = set()
        self.end_ns = 0
        self.ended_by: str | None = None

    def feed(self, event: Event) -> None:
        """The next event."""
        self.end_ns = event.ts_ns
        over = self.over
        if event.method in (FIN, RST):
            self._end(event)
        elif event.method == LOSS:
            self._lose(event)
        else:
            self._method(event)
        for incarnation in self.incarnations:
            if not incarnation.ended and not over:
                incarnation.heard, incarnation.missing = self.heard, set(self.missing)
            incarnation.count()

    def finish(self) -> Rows:
        """Everything ended."""
        for incarnation in self.incarnations:
            incarnation.doubt(self.end_ns)
            incarnation.finish()
            row = incarnation.row
            if row["closed_by"] is None and incarnation is self._current(row["channel"]):
                row["closed_by"] = self.close.sender if self.close else self.ended_by
                if self.close:
                    row["closed_packet_number"] = self.close.packet
                    row["end_ns"] = self.close.ts_ns
        if self.blocked_since is not None and self.blocked_ns is not None:
            self.blocked_ns += self.end_ns - self.blocked_since
        row = self.row
        if row["closed_by"] is None:
            row["closed_by"] = self.ended_by
        row["blocked_ns"] = self.blocked_ns
        row["channels"] = len(self.incarnations)
        for count in ("published", "delivered", "acknowledged"):
            row[count] = sum(incarnation.row[count] for incarnation in self.incarnations)
        self.rows.channels.extend(incarnation.row for incarnation in self.incarnations)
        return self.rows

    def _end(self, event: Event) -> None:
        """[N3]"""
        self.ended_by = self.ended_by or event.method

    # every method

    def _method(self, event: Event) -> None:
        row = {
            "connection": event.connection,
            "packet_number": event.packet,
            "sender": event.sender,
            "channel": event.channel,
            "method": event.method,
            "response_packet_number": None,
            "response_ns": None,
        }
        self.rows.frames.append(row)
        definition = DEFINED[event.method]
        message = message_row(event)
        if definition.content:
            self.rows.messages.append(message)
        if definition.sender not in ("both", event.sender):
            return
        if (event.channel == 0) != (definition.class_name == "connection"):
            return
        if self.over and event.method != "connection.close-ok":
            return
        if event.sender == "server":
            self.heard = True
        if event.sender in self.missing:
            self.missing.remove(event.sender)
            self._lose_answers(event.sender)
        answered = self._answered(event)
        request = Request(event, row)
        if event.channel == 0:
            self._on_connection(event)
        else:
            self._on_channel(event, message, request, answered)
        if definition.synchronous and not event.arguments.get("no_wait"):
            self._ask(request)

    # replies

    def _ask(self, request: Request) -> None:
        """[R1, R3]"""
        event = request.event
        other = OTHER[event.sender]
        if other in self.closers and event.method not in CLOSES:
            return
        if (event.channel, event.sender) in self.unanswered and event.method not in CLOSES:
            return
        self.pending.append(request)

    def _answered(self, event: Event) -> Request | None:
        """[R2]"""
        for request in self.pending:
            asked = request.event
            if (
                asked.sender == OTHER[event.sender]
                and asked.channel == event.channel
                and event.method in DEFINED[asked.method].replies
            ):
                self.pending.remove(request)
                request.row["response_packet_number"] = event.packet
                request.row["response_ns"] = event.ts_ns - asked.ts_ns
                return request
        return None

    def _lose(self, event: Event) -> None:
        """[R5, C2, P2, P3, D3, D10, N4]"""
        if event.sender == "server":
            self.blocked_before = False
            if self.blocked_since is not None:
                self.blocked_since = self.blocked_ns = None
        self.pending = [each for each in self.pending if each.event.sender == event.sender]
        self.missing.add(event.sender)
        self._lose_answers(event.sender)
        for incarnation in self.incarnations:
            if incarnation.ended or self.over:
                continue
            if event.sender == "client":
                incarnation.next_number = None
                incarnation.declared = None

    def _lose_answers(self, sender: str) -> None:
        """[C2, P3, P5, D9, D10, D13]"""
        for incarnation in self.incarnations:
            if not incarnation.ended and not self.over:
                incarnation.lose(sender)
                if sender == "server" and incarnation.tentative:
                    incarnation.refusals_lost = True

    def _no_reply(
        self, channels: list[int], senders: tuple[str, ...], but: tuple[str, ...]
    ) -> None:
        """Requests of these senders on these channels get no reply [R3, R4]."""
        self.pending = [
            each
            for each in self.pending
            if each.event.channel not in channels
            or each.event.sender not in senders
            or each.event.method in but
        ]

    # connection methods

    def _on_connection(self, event: Event) -> None:
        given, row = event.arguments, self.row
        if event.method == "connection.start":
            _facts(row, _SERVER_FACTS, given["server_properties"])
        elif event.method == "connection.start-ok":
            _facts(row, _CLIENT_FACTS, given["client_properties"])
            row["mechanism"] = given["mechanism"]
            row["user"] = _user(given["mechanism"], given["response"])
        elif event.method == "connection.tune-ok":
            for name in ("channel_max", "frame_max", "heartbeat"):
                row[name] = given[name]
        elif event.method == "connection.open":
            row["vhost"] = given["virtual_host"]
        elif event.method in ("connection.blocked", "connection.unblocked"):
            self._blocked(event)
        elif event.method == "connection.close":
            if _counts(row, event):
                self.close = event
                _closed(row, event)
            self.closers.add(event.sender)
            channels = [each.event.channel for each in self.pending]
            self._no_reply(channels, (OTHER[event.sender],), CLOSES)
        elif event.method == "connection.close-ok" and OTHER[event.sender] in self.closers:
            self.over = True
            for incarnation in self.incarnations:
                if event.sender == "server" and self.close and self.close.sender == "client":
                    incarnation.believe_all()
                incarnation.doubt(event.ts_ns)

    def _blocked(self, event: Event) -> None:
        """[N4]"""
        if event.method == "connection.blocked":
            self.blocked_before = True
            if self.blocked_since is None:
                self.blocked_since = event.ts_ns
        elif self.blocked_since is None:
            if not self.blocked_before:
                self.blocked_ns = None
        elif self.blocked_ns is not None:
            self.blocked_ns += event.ts_ns - self.blocked_since
            self.blocked_since = None

    # channels

    def _current(self, channel: int) -> Incarnation | None:
        for incarnation in self.incarnations:
            if incarnation.row["channel"] == channel and not incarnation.ended:
                return incarnation
        return None

    def _begin(self, event: Event, known: bool) -> Incarnation:
        """[C1, C2]"""
        row: Row = {"connection": event.connection, "channel": event.channel}
        row.update({name: 0 if name in _COUNTS else None for name in CHANNEL})
        before = [each for each in self.incarnations if each.row["channel"] == event.channel]
        row["incarnation"] = 1 + len(before)
        if known:
            row["opened_packet_number"], row["start_ns"] = event.packet, event.ts_ns
        self.incarnations.append(Incarnation(row, known))
        return self.incarnations[-1]

    def _on_channel(
        self, event: Event, message: Row, request: Request, answered: Request | None
    ) -> None:
        incarnation = self._current(event.channel)
        if event.method == "channel.open":
            if incarnation:
                incarnation.doubt(self.end_ns)
                incarnation.ended = True
            self._begin(event, known=True)
            self.unanswered -= {(event.channel, "client"), (event.channel, "server")}
            self._no_reply([event.channel], ("client", "server"), ())
            return
        if event.method == "channel.close-ok":
            if incarnation and OTHER[event.sender] in incarnation.closers:
                if event.sender == "server" and incarnation.closers == {"client"}:
                    incarnation.believe_all()
                incarnation.doubt(event.ts_ns)
                incarnation.ended = True
                self._no_reply([event.channel], ("client", "server"), CLOSES)
            return
        opens = event.method == "channel.open-ok" and event.sender == "server"
        again = opens and incarnation and not answered and not incarnation.is_opening()
        if again:
            self._lose(event._replace(sender="client"))
            incarnation.missing = set(self.missing)
        if incarnation and (again or incarnation.is_another(event)):
            incarnation.doubt(event.ts_ns)
            incarnation.ended = True
            incarnation = None
        incarnation = incarnation or self._begin(event, known=False)
        incarnation.opened |= opens
        if event.method == "channel.close":
            if _counts(incarnation.row, event):
                _closed(incarnation.row, event)
                incarnation.row["closed_packet_number"] = event.packet
                incarnation.row["end_ns"] = event.ts_ns
            if event.sender == "server":
                given = event.arguments
                incarnation.closed(event, _BY_ID.get((given["class_id"], given["method_id"])))
            incarnation.closers.add(event.sender)
            self.unanswered.add((event.channel, OTHER[event.sender]))
            self._no_reply([event.channel], (OTHER[event.sender],), CLOSES)
        elif event.sender == "server":
            _from_server(incarnation, event, message, answered)
        elif event.method == "basic.publish":
            incarnation.publish(event, message)
        elif not incarnation.closers and not self.closers:
            _from_client(incarnation, event, request)


def _from_client(incarnation: Incarnation, event: Event, request: Request) -> None:
    """What the client asks of an open channel."""
    method, given = event.method, event.arguments
    if method in ("confirm.select", "tx.select"):
        incarnation.select(method.partition(".")[0], sent=True)
    elif method == "basic.qos":
        incarnation.row["prefetch_count"] = given["prefetch_count"]
    elif method == "queue.declare":
        request.declared = incarnation.declared = Declared(given["queue"])
    elif method == "basic.consume":
        request.consumer = incarnation.consume(event)
    elif method == "basic.get":
        request.consumer = Consumer(event, incarnation.declared)
    elif method == "basic.ack":
        incarnation.settle(event, "acked")
    elif method in ("basic.nack", "basic.reject"):
        incarnation.settle(event, "requeued" if given["requeue"] else "discarded")
    elif method in ("basic.recover", "basic.recover-async", "basic.recover-sync"):
        incarnation.recover(event)
    elif method == "tx.commit":
        request.committed = incarnation.commit()
    elif method == "tx.rollback":
        incarnation.rollback()


def _from_server(
    incarnation: Incarnation, event: Event, message: Row, answered: Request | None
) -> None:
    """What the server says on a channel."""
    method, given = event.method, event.arguments
    consumer = answered.consumer if answered else None
    if method in ("confirm.select-ok", "tx.select-ok") and answered is None:
        incarnation.select(method.partition(".")[0], sent=False)
    elif method == "basic.ack":
        incarnation.confirm(event, "confirmed")
    elif method == "basic.nack":
        incarnation.confirm(event, "rejected")
    elif method == "basic.return":
        incarnation.returned(event)
    elif method == "basic.deliver":
        incarnation.deliver(event, message, incarnation.consumer_of(given["consumer_tag"]))
    elif method == "basic.get-ok":
        incarnation.deliver(event, message, consumer)
    elif method == "basic.consume-ok":
        incarnation.row["consumers"] += 1
        if consumer is not None:
            incarnation.add_consumer(given["consumer_tag"], consumer)
    elif method in ("basic.cancel", "basic.cancel-ok"):
        gone = incarnation.consumers.pop(given["consumer_tag"], None)
        if gone is not None and method == "basic.cancel":
            incarnation.cancelled[given["consumer_tag"]] = gone
    elif method == "queue.declare-ok" and answered and answered.declared:
        answered.declared.name = answered.declared.name or given["queue"]
    elif method == "tx.commit-ok" and answered:
        publishes, noted = answered.committed
        for each in publishes:
            each.done = True
        for each in noted:
            each.settle(str(each.noted), event)


def _counts(row: Row, event: Event) -> bool:
    """[C3]"""
    return (
        row["closed_by"] is None or (row["close_code"] or 0) < 300 <= event.arguments["reply_code"]
    )


def _closed(row: Row, event: Event) -> None:
    """[C3]"""
    given = event.arguments
    row["closed_by"] = event.sender
    row["close_code"], row["close_text"] = given["reply_code"], given["reply_text"]
    row["close_method"] = _BY_ID.get((given["class_id"], given["method_id"]))


def _facts(row: Row, facts: dict[str, tuple[str, ...]], properties: dict[str, Any]) -> None:
    for column, names in facts.items():
        said = [properties[name] for name in names if isinstance(properties.get(name), str)]
        row[column] = max(said, key=bool, default=None)


def _user(mechanism: str, response: str | dict[str, str]) -> str | None:
    """[N1]"""
    if mechanism == "PLAIN" and isinstance(response, str):
        parts = response.split("\0")
        return parts[1] if len(parts) == 3 else None
    if mechanism == "AMQPLAIN" and isinstance(response, dict):
        return response.get("LOGIN")
    return None
