"""Events that call rules, their bounds, and the bits of their gates."""

from amqpsniff.session.counts import SECOND_NS

EVENTS = {
    "channel-begins": "a channel incarnation begins; facts: none",
    "channel-not-open": "a method came on a channel number that is not open; facts: method, "
    "channel (its number), side",
    "channel-opened-twice": "channel.open on a channel that is open; `channel` is the old one",
    "channel-ends": "a channel incarnation is over, before its entries are given up; facts: none",
    "connection-ends": "a connection is over, before its channels are ended; facts: none",
    "capture-ends": "there is no more, for all connections together; facts: exchanges (name → "
    "publishes, their bytes, deliveries, theirs), forgotten (messages by kind, and what readers of "
    "some connections forgot)",
    "wrong-direction": "a method that its sender may not send; facts: method, channel, side",
    "wrong-channel": "a method of class connection on a channel, or another on 0; facts: method, "
    "channel, side",
    "out-of-order": "a method of the connection that its state does not allow; facts: method, "
    "side, state (before it)",
    "after-close": "a method of a side that has closed the connection; facts: method, channel, "
    "side",
    "tag-unknown": "a client's ack, nack or reject that means nothing outstanding; facts: tag, "
    "multiple, outcome (a code of session.codes.OUTCOMES)",
    "published-on-closed": "a publish after the server closed the channel, or after an end of TCP; "
    "facts: frames, row",
    "published-again": "the first publish of a channel with message-id, properties, size and route "
    "of an earlier one, further ones are counted; facts: first (packet of that), rows, row",
    "published-while-blocked": "a publish after connection.blocked; facts: none",
    "frames-lost": "frames of a side may be missing from here on; facts: side",
    "consumer-cancelled": "the broker cancelled one; facts: consumer (None: not known), tag",
    "delivery-tag-gap": "a delivery whose tag is not the last one plus 1; facts: tag, last",
    "got-automatically": "a basic.get with no-ack, at its own packet, brought a message; facts: "
    "queue (None: not known)",
    "confirmed-late": "a confirm that took `LATE_CONFIRM_NS` or longer; facts: since_ns "
    "(time of its publish)",
    "rejected": "a nack of the broker for a publish; facts: entry",
    "returned": "a return whose content is whole; facts: entry (of the publish, None), rows, row",
    "requeued": "a delivery that its consumer gives back; facts: entry",
    "discarded": "a delivery that its consumer rejects; facts: entry",
    "redelivered": "a delivery with redelivered set; facts: entry (None: not known), rows, row",
    "dead-lettered": "a message with an x-death header; facts: entry, rows, row",
    "to-be-done-later": "a message whose eta header has a time; facts: entry, rows, row",
    "noted": "a message of which packs say something that stands out; facts: entry, rows, row, "
    "meaning (see `decode.meanings.Note.meaning`)",
    "looked-at": "a publish that has values of `packs.catalogue.SAMPLED`, of many one in some; "
    "facts: entry, rows, row, fields (sources of its values by name)",
    "large-headers": "a message with headers of more than `LARGE_HEADERS_BYTES`, or of more than "
    "`MANY_TABLES`; facts: entry, rows, row",
    "called": "a publish with reply-to and correlation-id; facts: entry, rows, row",
    "lock-renewed": "a `called` that asks Azure for more time; facts: entry, rows, row, link",
    "answered": "a delivery with a correlation-id, or one that is cut, while calls wait; facts: "
    "entry, rows, row",
    "half-sent": "a publish that took longer than `STALLED_NS`, or was not whole at its end; "
    "facts: rows, row, took_ns (None: not whole)",
    "paused": "a publish whose end came `PAUSED_NS` (from, to) after its method; facts: "
    "rows, row, took_ns",
    "held-up": "a delivery whose method came `BEHIND_NS` or sooner behind one of `BULKY_BYTES` or "
    "more on another channel, which took `BULKY_NS` or longer, or behind another such delivery, no "
    "later after it than it took; facts: behind (its channel number, size, took_ns)",
    "long-on-its-way": "a message of `TRANSFERRED_BYTES` or more that took `BULKY_NS` or longer; "
    "facts: publish (else a delivery), size, end_ns (the time of its last byte)",
    "large": "a message above `LARGE_BYTES`; facts: entry, rows, row",
    "channel-waits": "now and then while a channel has publishes that are not confirmed or "
    "deliveries that are not settled, and no bytes are waited for, see `provisional`; facts: none",
    "connection-waits": "the same of a connection that has requests or calls without a reply",
    "amqp10-opened": "both sides of a connection of AMQP 1.0 have opened; facts: state (its "
    "`Amqp10Connection`)",
    "amqp10-closed": "the first close of a connection of AMQP 1.0; facts: side, found (its "
    "`Performative`)",
    "frame-oversized": "a frame of AMQP 1.0 above the other side's max-frame-size; facts: side, "
    "size, limit",
    "login-offered": "the broker's sasl-mechanisms; facts: its arguments",
    "login-refused": "a sasl-outcome that is not ok; facts: its arguments",
    "sender-stopped": "a flow of the broker takes back what a client might send; facts: none",
    "sender-resumed": "a flow of the broker lets such a client go on; facts: none",
    "session-ended": "the first end of a session; facts: side, found, of (its `Amqp10Session`)",
    "link-attached": "both sides have attached a link; facts: link, side (of the second), of",
    "link-taken": "a side attaches a name that it has attached; facts: link (the old), side, of",
    "link-detached": "a detach; facts: link, side, found, of",
    "link-ends": "a link is over, before its row; facts: link",
    "credit-awaited": "a delivery that waited for credit; facts: link, side, found, of",
    "delivery-aborted": "a sender gives up a delivery; facts: link, side, found, of",
    "publish-outcome": "an outcome of a delivery of the client that is not accepted; facts: of "
    "(its `Transferred`)",
    "settlement-refused": "the broker says an error of its own delivery; facts: link, side, "
    "found, of",
    "deliveries-taken-back": "the broker releases deliveries of its own that are not settled; "
    "facts: side, found, of (its `Amqp10Session`)",
    "larger-than-link": "a message larger than the link's max-message-size; facts: entry, rows, "
    "row, link",
    "claims-answered": "a message of the node for tokens; facts: entry, rows, row, link",
    "managed": "a request to RabbitMQ's management node, or its answer; facts: entry, rows, row, "
    "link",
    "deliveries-left": "a session is over that has deliveries nobody settled; facts: left (lists "
    "of `Transferred` by side and link)",
    "replied": "an answer that took longer than `MISSING_NS`, or any of a connection of which "
    "something is foreseen; `request` is answered; facts: none",
}
"""Occasions that are not methods, and what is known then."""

LARGE_BYTES = 1 << 20
"""Size of a body from which on the event `large` comes."""

LARGE_HEADERS_BYTES = 4_096
"""Size of headers, as JSON, from which on `large-headers` comes: more than most bodies have."""

MANY_TABLES = 16
"""Tables and arrays in headers from which on `large-headers` comes too."""

PROVISIONAL = "foreseen"
"""Name in `RuleContext.memory` of what was foreseen: a `ProvisionalFinding` by (code, channel)."""

LATE_CONFIRM_NS = SECOND_NS // 2
"""Time to a confirm that is long: a healthy disk takes some milliseconds."""

PAUSED_ACKS_NS = SECOND_NS // 2
"""Time without an acknowledgement of a consumer that holds all it may, which is a pause."""

STALLED_NS = SECOND_NS
"""Time from a method to the end of its content from which on `half-sent` comes."""

PAUSED_NS = (35_000_000, 55_000_000)
"""Times from a method to the end of its content with which `paused` comes: so long waits who waits
for a delayed acknowledgement."""

BULKY_BYTES = 1 << 16
"""Size of a body that may hold up others: a smaller one is in most buffers at once."""

BULKY_NS = SECOND_NS // 10
"""Time from the method to the end of such a delivery, from which on it holds up others."""

TRANSFERRED_BYTES = 1 << 14
"""Size of a body from which on the time on its way is looked at: it is in several packets."""

BEHIND_NS = SECOND_NS // 1000
"""Time after the end of such a delivery, or after what waited for it, in which what comes has
waited for it, too."""


MISSING_NS = 5 * SECOND_NS
"""Longest wait for an answer that is not worth an error: clients give up after 5 s or more."""

SLOW_NS = SECOND_NS
"""Time to an answer that is long; a broker needs milliseconds."""

PUBLISHED, DELIVERED, BUSY, CONFIRMS, UNOPENED, UNCLEAN, LEFT_OPEN, WAITING, ZERO_WINDOW, QUIET = (
    1 << place for place in range(10)
)
"""What became of a channel or connection that ends, as bits: it has publishes; it has deliveries;
`BUSY_MESSAGES` of either or more, or a channel has deliveries of `BUSY_BYTES`; publishes have
confirms, or wait for them; its handshake was begun and not completed; it was not closed by both
sides; neither AMQP nor TCP ended it; requests wait for replies; a TCP window was closed; a side
sent nothing for `QUIET_NS`, or sent bytes again.
"""

DOUBTED, STAYED, SPOKE, SHORT, LASTED, OPENS, READ = (
    1 << place for place in (16, 17, 18, 19, 24, 25, 26)
)
"""More of a connection that ends: its beginning, frames, its start-ok or the time of its end may be
missing; it lived longer than `STAYED_NS`; it has methods; it lived less than `SHORT_NS`; it did
not; it opened `SEVERAL_CHANNELS`; rules look at the bodies of its messages."""

HELD, WAITED, UNPROTECTED, REPEATS = (1 << place for place in range(20, 24))
"""More of a channel that ends: deliveries are not settled, or something was noted of what consumers
hold; a delivery waited `WAITED_NS` in its queue, or for its acknowledgement; it has publishes, and
no confirms or transactions; it has publishes that came before."""

WAITED_NS = SECOND_NS
"""Waiting that is worth a look; rules that say something of it ask for more."""

STUCK, OLDEST = "cancelled while stuck", "oldest deliveries"
"""Names in `RuleContext.memory` of what consumers hold, see `stuck_consumers`: those that were
cancelled while they were stuck, and the oldest deliveries, by channel."""

SEVERAL_CHANNELS = 10
"""Channels of a connection below which there is nothing to judge of how it opens them."""

SHORT_NS = SECOND_NS
"""Life of a connection that was not worth its opening."""

STAYED_NS = 30 * SECOND_NS
"""A client that is connected for longer has had its time to consume again."""

QUIET_NS = SECOND_NS
"""The shortest heartbeat interval."""

SILENCES = "end of the client's silence", "end of the broker's silence"
"""Names in `RuleContext.memory` of the (packet, time) with which a side's longest silence ended."""

BUSY_MESSAGES = 10
"""Messages below which there is nothing to judge of how a program works."""

BUSY_BYTES = 10_000_000
"""Bytes with which few messages may be too many for a client at once."""

PASSIVE, EXTENDED, NESTED, EXCLUSIVE, BY_BROKER, CONSUMES = (1 << place for place in range(10, 16))
"""Bits of a method and its arguments: `passive` is true; a name begins with `x-`; the JSON is
longer than `MANY_ENTRIES_BYTES` or has more than `DEEP` tables and arrays; `exclusive` or
`auto_delete` is true, or was cut; the broker sent it; it is about a connection or channel that has
or had consumers.
"""

SINCE = "consumers since"
"""Name in `memory` of (time, packet) of the last basic.consume by (channel number, queue)."""

MANY_ENTRIES_BYTES = 20_000
"""Length of tables as JSON below which they cannot have as many entries as make a reader slow: in
an array two bytes are enough for one."""

DEEP = 16
"""Tables and arrays inside each other beyond which no application goes: three are usual in headers
of brokers (x-death)."""

ANYTHING = -1
"""All of them: for events where rules look themselves."""
