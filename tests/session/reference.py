"""What the session columns of a conversation must be, computed in the plainest way.

Written apart from the tracker and never quick: lists are searched from end to end, nothing is kept
in two places. Its rules are those below; where brokers differ they are RabbitMQ's from 3.10 on.

Events. A connection is a list of events in the order of their packets, inside a packet in the order
of the stream: a method with its arguments (and its content, which is known whole at the method), a
*loss*, and the end of TCP. A loss is a place of one direction where frames may be missing; a hole
that took bytes of one body only is not one. A method that the protocol does not let its sender
send changes nothing, nor does one of class connection on another channel than 0 or of another
class on channel 0, and neither does an argument that was not captured. `X` below is one side of
the connection, `Y` the other. Every time is that of a method frame's packet.

Replies (`response_packet_number`, `response_ns` of frames)

R1  A request is a method that the specification's row calls synchronous and whose sender it allows,
    with `no_wait` false or without such an argument. It is pending from then on.
R2  A method of Y answers the oldest pending request of X on the same channel number that has it
    among its replies. Requests of different methods are independent: there is a queue for each
    (channel, side, request method). A reply without a request links nothing and changes
    nothing below, where a rule does not say otherwise.
R3  Y sent channel.close: requests of X on that channel, earlier and later ones, other than
    channel.close and connection.close, get no reply until the channel is opened again. Those that Y
    itself sent before still may. Y sent connection.close: the same for every channel.
R4  A close-ok that ends the channel (C4) ends all pending requests of the channel but those for
    channel.close; channel.open ends all that were before it, and is pending then itself.
R5  A loss in the direction of Y: no pending request of X gets a reply any more.

Channels (rows of `channels`; channel 0 has none)

C1  channel.open by the client begins an incarnation, also when one is there (its close was not
    captured: the old row keeps what it has, so closed_by is null unless a close was seen).
    opened_packet_number and start_ns are those of channel.open.
C2  Any other method on a number without an incarnation, but channel.close-ok, begins one whose
    beginning is not known: opened_packet_number, start_ns, unsettled_max, unsettled_end are null,
    and unconfirmed_max, unconfirmed_end too unless confirm.select is seen. All four are null, too,
    where the server said nothing so far on any channel, and where frames may be missing while the
    incarnation is there: from a loss to the next method of its sender. The first two are null after
    a delivery of which it is not known whether it wants an ack, and where D13 leaves an outcome
    null. Incarnations are numbered from 1 on a connection's channel number, those with unknown
    beginnings included. If unconfirmed_end of such a one is null and it
    has publishes, confirmed is null instead of 0.
C3  The first channel.close of either side sets closed_by (its sender), closed_packet_number, end_ns
    (its packet and time), close_code, close_text, and close_method: the method that class_id and
    method_id name, null for 0/0 and for ids that are no method. A later close changes none of it,
    unless it is the first with a code of 300 or more: then all of it is that one's.
C4  close-ok of X ends the incarnation when Y has sent channel.close. What comes between is still of
    it.
C5  What the client sends after a channel.close or connection.close of either side is discarded by
    the server: acks, nacks, rejects, recovers, commits, rollbacks, selects, qos, declares,
    consumes, gets and cancels change nothing then. A publish is a row, counts and has its number,
    and a channel.open opens. What the server sends after the client's close counts as ever: a
    confirm is a fact, even if the client does not look at it any more.
C6  A channel that is open (or closing) when its connection ends, ends with it. If no channel.close
    was seen, closed_by is the connection's, closed_packet_number and end_ns are those of
    connection.close, null when there was none; code, text and method stay null (they are the
    connection's). An incarnation that channel.open replaced (C1) had ended before.
C7  mode: `confirm` or `tx` from the first select that was sent, or, where none was seen, from a
    select-ok that answers nothing (its request was lost or before the capture). The other select
    later changes nothing.
C8  prefetch_count: of the last basic.qos sent, global or not; null when there was none.
C9  A delivery or get-ok whose tag is not above the last one, behind a loss of what the client sent
    since that one, begins an incarnation: a channel.close and channel.open were lost. So does a
    channel.open-ok that answers nothing, where the last channel.open has its own or the channel was
    closed since; what the client sent may be missing before it.
C9  consumers: consume-ok seen (answering or not), and basic.consume with no_wait.
C10 published: basic.publish of the client. returned: basic.return. delivered: basic.deliver and
    get-ok. confirmed, acknowledged: messages of the incarnation whose outcome is `confirmed`,
    `acked`.
C11 unconfirmed: publishes with a publish_number and without an outcome. unsettled: deliveries that
    are known to want an ack and have no outcome. `_max` is the most there were at once, after any
    event; `_end` what there was at the end, of the incarnation or the capture.

Publishes (publish_number, outcome)

P1  Numbering begins, at 1 for the next publish, with the confirm.select that sets the mode (C7).
    A second one does not begin again. Without it there are no numbers, whatever select-ok proves.
P2  A loss in the client's direction ends the numbering of all channels of the connection: later
    publishes of these incarnations have no number. Earlier ones can still be settled.
P3  basic.ack of the server: `confirmed`; basic.nack: `rejected`. delivery_tag names the
    publish_number; with multiple every number up to it; tag 0 with multiple every number so far,
    tag 0 without it none. Only publishes without an outcome change. Those before a loss in the
    server's direction, or before its first method after that, may have been answered in it: what
    answers several answers them without an
    outcome, which stays null, but for the one that it names; no return means them any more.
P4  basic.return belongs to the oldest publish of the incarnation that was mandatory or immediate,
    has no outcome, is not done with (P6), and has the same exchange and routing_key, body and
    properties, headers in any order and without BCC. Where not all of these were captured, and
    several may be meant, none of them has an outcome; nor has any where the oldest is from before a
    loss in any direction, or before the first method after it, or where it is one of several
    without a number and a confirm came since then that names no number: it may be of any of them.
    The one that is meant is `returned`, with the packet and time of the return. The ack that
    follows changes nothing.
P5  At the end a numbered publish without an outcome is `unconfirmed` (packet and ns null), unless
    it may have been answered in a loss (P3); one without a number has a null outcome.
P6  In tx mode the publishes up to a tx.commit are done with when commit-ok answers it, those up to
    a tx.rollback when the rollback is sent: no later return can mean them.

Consumers and deliveries (queue, outcome)

D1  A consumer of an incarnation is known by its tag: from basic.consume on when its tag is given
    and no consumer has it, or with no_wait; otherwise (also a tag that the server chooses) from the
    consume-ok that answers it, under the tag there (with no_wait and no tag:
    never). A known tag consumed again is replaced so.
D2  A consumer is forgotten at the server's cancel-ok (by its consumer_tag) and at the server's
    basic.cancel; after the latter a delivery that names it brings it back. A client's cancel with
    no_wait forgets nothing: deliveries may be under way.
D3  The queue is that of basic.consume or of the basic.get that get-ok answers. When it is empty
    there: the queue of the last queue.declare that was sent on the incarnation before it, as named
    in the declare or, when that is empty too, in the declare-ok that answers it; null when there
    was none, when it is not answered by then, or when a loss in the client's direction stands
    between the two. Unknown consumer, unlinked get-ok: null.
D4  no_ack is that of the same consume or get; not known for an unknown consumer or an unlinked
    get-ok. With no_ack the outcome is `automatic` at once: its own packet, 0 ns.
D5  Otherwise it is outstanding under its delivery_tag. A delivery with the tag of an outstanding
    one (that is not noted, D8) takes its place: nothing settles the older any more, nor does it
    count as unsettled; D9 holds for it.
D6  The client's basic.ack: `acked`; basic.nack and basic.reject: `requeued` with requeue,
    `discarded` without. delivery_tag names a delivery; with multiple all outstanding up to it (it
    need not be outstanding itself), tag 0 with multiple all; tag 0 without multiple none. Those of
    unknown no_ack are meant too. Settled and unknown tags change nothing.
D7  basic.recover, recover-async, recover-sync with requeue: all that is outstanding is `requeued`
    at the packet of the recover. Without requeue: nothing.
D8  In tx mode (by a tx.select that was sent, here and in P6; with an unlinked select-ok or in an
    unknown mode D6 holds as it is) an ack, nack or reject is noted with the deliveries it means
    when it is sent, and means only those that are outstanding and not noted before. tx.commit takes
    what was noted since the commit before; when commit-ok answers it they settle, with the packet
    and time of commit-ok. tx.rollback forgets, when it is sent, what was noted since the last
    commit; those can be settled again (unless their tag has been taken, D5). recover takes effect
    at once, on what is not noted.
D9  At the end an outstanding delivery is `unsettled` when it is known to want an ack and not to
    have been settled in a loss (D10), else null. Packet and ns are null. One that a commit took
    (D8) is not known where the answer may be missing: after a loss in the server's direction.
D10 A loss changes no outcome. Deliveries before a loss in the client's direction, or before its
    first method after that, those with tags
    up to that of the last one, may have been settled in it: what then settles several (multiple, a
    recover) settles them without an outcome, which stays null, but for the one that it names. After
    a loss in the client's direction nothing is forgotten of the consumers that are known.
D11 outcome_ns is the time of the outcome less that of the message's method frame.
D12 Of an ack, nack, reject or recover that was cut, what it may mean is not known: null at the end
    or with a later multiple, in P5 too; but an ack settles its tag, if that is there.
D13 An ack, nack or reject of a tag that is not outstanding may be refused: the server then closes
    the channel, and neither it nor what the client settles on the channel after it takes effect.
    The same holds for a tag that may have been settled in a loss (D10), not for tag 0 with multiple
    and not in tx mode; nor for a tag, named for the first time, between those of two deliveries
    that came one after the other behind a loss in the server's direction: it was delivered in it
    (the latest 1,000 of them). Until it shows, what it and later ones settle is tentative and
    counts as settled. It takes effect when the server answers the client's close and has not closed
    itself, or 2 s later, at the next ack, nack, reject or delivery of the channel or at its end. It
    is refused, with all that follows, by the server's channel.close with "unknown delivery tag" and
    its tag, or without this text but with close_method basic.ack, basic.nack or basic.reject (then
    the first). Where neither comes before another channel.close of the server or the end of the
    incarnation, the outcome is null; but where the beginning of the incarnation is not known and
    the tag is below its first one, it takes effect. After a loss in the server's direction, and its
    first method after one, nothing takes effect before a channel.close of the server, or a delivery
    with a tag above the last one, shows that the channel had not been closed.

Connections

N1  midstream: its beginning (SYN or the client's protocol header) was not captured. protocol: the
    dialect. vhost: virtual_host of connection.open. user: of start-ok's response, the name in
    PLAIN (authzid, 0, name, 0, password) and AMQPLAIN (LOGIN); null with other mechanisms.
    mechanism: start-ok's. client_product, client_version, client_platform, connection_name: of
    start-ok's client_properties; server_product, server_version: of start's server_properties;
    null where they are missing or no string. channel_max, frame_max, heartbeat: tune-ok's. All
    null until the method was seen.
N2  channels: rows of the channels table. published, delivered, acknowledged: sums over them.
N3  closed_by: sender of the connection.close that counts, as in C3; without one `fin` or `rst`,
    whichever came first, null when TCP did not end. close_code, close_text, close_method as in C3.
N4  blocked_ns: from each connection.blocked to the next unblocked, or to the connection's last
    packet; a second blocked changes nothing. 0 when there was none; null when an unblocked came
    first, of the connection or after a loss in the server's direction, and when there was such a
    loss between a blocked and its unblocked, or the end: it is not known from there on whether it
    is blocked, until the next of the two.
N5  connection.close-ok of X ends the connection when Y has sent connection.close. What comes later
    is rows without session columns and counts nowhere; only a connection.close-ok may still answer
    the other side's connection.close.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.session.connecting import Connection
from tests.session.events import Event, Rows


def expected(events: Iterable[Event], midstream: frozenset[str] = frozenset()) -> Rows:
    """The rows of a capture from its events in order; `midstream` names connections."""
    connections: dict[str, Connection] = {}
    for event in events:
        if event.connection not in connections:
            name = event.connection
            connections[name] = Connection(name, name in midstream)
        connections[event.connection].feed(event)
    rows = Rows([], [], [], [])
    for connection in connections.values():
        for table, more in zip(rows, connection.finish(), strict=True):
            table.extend(more)
    return rows
