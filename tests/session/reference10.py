"""What sessions, links and deliveries of AMQP 1.0 must give, written a second time.

Slow and simple, and without any code of the engine: a conversation is a list of `Said`, everything
is kept in lists, and whatever is looked for is looked for from the first to the last. `expected`
gives the rows of `messages`, `links` and `channels` with the columns that are named here.

Sessions (rows of `channels`)

S1  A begin without remote-channel begins a session; one with it joins the session that the other
    side has on that number. Without such a session its beginning is not known: the begin that it
    answers is missing. A side has one number for a session, its last. A session that its side began
    on that number before is over then. What a side that did not end it said last may be missing: a
    loss of that side for all but transfers.
S2  `end` of a side frees its number. The second one ends the session, the first is its close.
S3  What a side sends on a number without a session means nothing. After a loss, and in a capture
    that begins late, it is a session whose beginning is not known: the only one of the other side,
    if this side has none yet, and its own beginning is not known either or nothing of the other
    side is missing, else a new one.
S4  A session that is open at the end ends with the connection: closed_by is that of the connection,
    the packet that of its close.
S5  The window of a side is the incoming-window that it said last. The least that was left of it is
    counted from its first word, or from the first transfer by next-outgoing-id and that window.

Links (rows of `links`)

L1  A link is a name and the side that sends. The first attach begins it, that of the other side
    joins it; one of a side that has it attached begins another, which has the name from then on.
    The old one goes on by its handles; it is over where not both sides had attached it, or where
    the handle is that of the old one.
L2  A handle of a side means the link that the side attached with it last, until it detaches.
L3  The first detach is that of the row; the error is the first that was said. A link is over when
    no side has it attached, or when its session is over.
L4  The sender counts from its initial-delivery-count, or from a flow of its own; each delivery
    counts one. The receiver's flow sets the limit: delivery-count + link-credit; without
    delivery-count, and before any delivery, it counts from the initial one. What it gave before
    the sender's count was known is granted once that is. What is left at the end is negative if a
    delivery began without credit; for half a second, and where times are not known, the limit
    before a lower one allows it too.
L5  Counts of a row are those at the end of the link. What is said later counts for the delivery.
L6  Numbers that wait are not known of a session that was there while frames were missing: from a
    loss to the next word of that side. A capture that begins late misses nothing that comes later.
L7  A transfer on a handle without a link is one of no link; of a session with an unknown beginning,
    or after a loss, one of a link without a name.

Deliveries (rows of `messages`)

D1  A transfer begins a delivery, but where the last one of its channel and handle had `more` and
    neither its detach nor the end or another begin of its side came between, and no other
    delivery-id is said: then it is one more of that. A delivery that is begun and does not end is
    incomplete; one that may lack transfers because of a loss is truncated. So is one that begins
    without a delivery-id behind a loss of its side, or in a capture that begins late.
D2  `settled` on any transfer: presettled. It has no outcome if sent, `automatic` if received.
D3  A disposition means the deliveries of the other side (role sender: of its own side) in its
    session that wait, in first..last modulo 2^32. The last outcome that was said before a delivery
    is settled is its outcome, with the packet of that word; without a word it has none. What the
    broker took back (released or modified, of its own) the client cannot give another outcome.
D4  A delivery whose number is begun again while it waits, or whose session is over, is left: an
    outcome that was said counts, otherwise it is `unconfirmed` or `unsettled`; null after a loss.
    One that begins behind a receiver's settlement of it, or of a later one, has no outcome either,
    and how many waited in its session is not known.
D5  An aborted delivery does not wait.
D6  Behind a loss since the delivery began, of either side, a disposition says nothing of the inside
    of first..last: who is settled by it has no outcome. Behind a loss since an outcome was said it
    counts no more, unless the settlement says one itself. A loss lasts until its side says more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Row = dict[str, Any]

SIDES = ("client", "server")
LOSS, LATE = "loss", "late"
"""Names of what is no performative: bytes of a side are lost; the capture begins here."""

OUTCOMES = (
    {"accepted": "confirmed", "rejected": "rejected", "released": "returned",
     "modified": "returned"},
    {"accepted": "acked", "rejected": "discarded", "released": "requeued", "modified": "requeued"},
)  # fmt: skip

TAKEN_BACK = ("released", "modified")

UNDER_WAY_NS = 500_000_000


class Said(NamedTuple):
    """A performative of a side, with Python values; a state is (name, condition or None)."""

    packet: int
    ts_ns: int
    side: int
    channel: int
    name: str
    fields: dict[str, Any]
    octets: int = 0


class Delivery:
    """A message under way or over; `said` is the last outcome with its packet and time."""

    def __init__(self, said: Said, session: Any, link: Any) -> None:
        self.first, self.session, self.link = said, session, link
        self.last, self.transfers, self.octets = said.packet, 0, 0
        self.id = said.fields.get("delivery_id")
        self.status = "incomplete"
        self.presettled = self.perhaps_settled = self.waits = self.holed = False
        self.losses = 0 if session is None else session.losses
        self.said_losses = 0
        self.said: Any = None
        self.taken_back = False
        self.settled_by: str | None = None
        self.outcome: Any = (None, None, None)
        self.over = False


class Link:
    """A link."""

    def __init__(self, name: str | None, sender: int, said: Said, session: Any) -> None:
        self.name, self.sender, self.session = name, sender, session
        self.attached: set[int] = set()
        self.replaced = False
        self.over = False
        self.former: int | None = None
        self.lowered_ns: int | None = None
        self.answered: set[int] = set()
        self.handles: list[int | None] = [None, None]
        self.began = said.packet if name is not None else None
        self.detached: Any = None
        self.error: tuple[Any, Any] = (None, None)
        self.used: int | None = None
        self.limit: int | None = None
        self.promised: int | None = None
        self.row: Row | None = None
        self.counts = dict.fromkeys(
            "deliveries accepted rejected released modified presettled aborted unsettled_max "
            "message_bytes flows drains credit_granted".split(), 0
        )  # fmt: skip
        self.most: int | None = None

    def begin(self, used: int) -> None:
        """The sender says where its count is; credit may have been given before."""
        was_known, self.used = self.used is not None, used
        left = self.left()
        if left is not None and left > 0:
            self.most = max(self.most or 0, left)
            self.counts["credit_granted"] += 0 if was_known else left

    def allow(self, limit: int, ts_ns: int | None) -> None:
        """The receiver says up to where the sender may count."""
        if self.limit is not None and _apart(limit, self.limit) < 0:
            if not self.under_way(ts_ns) or _apart(self.limit, self.former) > 0:
                self.former = self.limit
            self.lowered_ns = ts_ns
        before = self.used if self.limit is None else self.limit
        if before is not None:
            self.counts["credit_granted"] += max(_apart(limit, before), 0)
        self.limit = limit % 2**32
        left = self.left()
        if left is not None:
            self.most = max(self.most or 0, left, 0)

    def under_way(self, ts_ns: int | None) -> bool:
        """True if what the limit before the last one allowed may still come."""
        if self.former is None:
            return False
        known = ts_ns is not None and self.lowered_ns is not None
        return not known or ts_ns - self.lowered_ns <= UNDER_WAY_NS

    def use(self, ts_ns: int | None) -> None:
        """One delivery more."""
        if self.used is None:
            return
        before = self.left()
        self.used = (self.used + 1) % 2**32
        meant = self.under_way(ts_ns) and _apart(self.former, self.used) >= 0
        self.over = self.over or (before is not None and before <= 0 and not meant)

    def left_at_the_end(self) -> int | None:
        """The same at the end, of a sender that kept to what it was allowed."""
        left = self.left()
        return left if left is None or self.over else max(left, 0)

    def left(self) -> int | None:
        """Credit that is left."""
        if self.used is None or self.limit is None:
            return None
        return _apart(self.limit, self.used)


class Session:
    """A session; `numbers` are those of client and server."""

    def __init__(self, said: Said, known: bool, incarnation: int) -> None:
        self.numbers: list[int | None] = [None, None]
        self.slot = (said.side, said.channel)
        self.number, self.incarnation = said.channel, incarnation
        self.known, self.began, self.closed = known, said.packet if known else None, None
        self.ended: set[int] = set()
        self.over = False
        self.links: list[Link] = []
        self.handles: list[dict[int, Link]] = [{}, {}]
        self.deliveries: list[Delivery] = []
        self.uncertain, self.losses = False, 0
        self.settled_to: list[int | None] = [None, None]
        self.most = [0, 0]
        self.error: str | None = None
        self.window: list[int | None] = [None, None]
        self.used: list[int | None] = [None, None]
        self.limit: list[int | None] = [None, None]
        self.least: list[int | None] = [None, None]
        self.row: Row | None = None


class Conversation:
    """A connection."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        self.open: list[dict[int, Session]] = [{}, {}]
        self.deliveries: list[Delivery] = []
        self.under_way: list[dict[tuple[int, int], Delivery]] = [{}, {}]
        self.closed: Any = None
        self.lost = self.late = False
        self.missing: set[int] = set()
        self.lossy: set[int] = set()
        self.begun: dict[Any, int] = {}
        self.links: list[Row] = []

    # what is said

    def feed(self, said: Said) -> None:
        """One word."""
        if said.name != LATE and said.side in self.missing:
            self._lose(said.side)
            self.missing.discard(said.side)
        if said.name == LATE:
            self.late = True
            self.lossy = {0, 1}
        elif said.name == LOSS:
            self._lose(said.side)
            self.lossy.add(said.side)
            for one in self.under_way[said.side].values():
                one.holed = True
        elif said.name == "close":
            self.closed = self.closed or said
        elif said.name == "begin":
            self._begin(said)
        else:
            session = self.open[said.side].get(said.channel) or self._proved(said)
            if session is not None:
                getattr(self, f"_{said.name}")(said, session)
            elif said.name == "transfer":
                self._transfer(said, None)
            elif said.name == "end":
                self._cut(said.side, lambda at: at[0] == said.channel)

    def _lose(self, side: int) -> None:
        for session in self.sessions:
            session.uncertain = session.uncertain or session.row is None
            session.losses += 1
        self.lost = True
        self.missing.add(side)

    def _begin(self, said: Said) -> None:
        self._cut(said.side, lambda at: at[0] == said.channel)
        session = self.open[1 - said.side].get(said.fields.get("remote_channel"))
        if session is None:
            session = self._new(said, said.fields.get("remote_channel") is None)
        self._use(session, said)
        session.window[said.side] = said.fields["incoming_window"]
        session.used[said.side] = said.fields["next_outgoing_id"]

    def _new(self, said: Said, known: bool) -> Session:
        key = (said.side, said.channel)
        for old in self.sessions:
            if old.row is None and old.slot == key:
                for side in {0, 1} - old.ended:
                    self._lose(side)
                self._over(old)
        self.begun[key] = self.begun.get(key, 0) + 1
        session = Session(said, known, self.begun[key])
        self.sessions.append(session)
        return session

    def _use(self, session: Session, said: Said) -> None:
        mine = self.open[said.side]
        for number in [number for number, one in mine.items() if one is session]:
            del mine[number]
        mine[said.channel] = session
        if said.side == 0 and said.channel != session.numbers[0] and session.slot[0] != 0:
            self.begun[0, said.channel] = self.begun.get((0, said.channel), 0) + 1
            session.number, session.incarnation = said.channel, self.begun[0, said.channel]
        session.numbers[said.side] = said.channel

    def _proved(self, said: Said) -> Session | None:
        if not (self.lost or self.late):
            return None
        mine, others = self.open[said.side], self.open[1 - said.side]
        session = next(iter(others.values())) if len(others) == 1 and not mine else None
        if session is not None and said.side in session.ended:
            session = None
        if session is None or (session.known and 1 - said.side in self.lossy):
            session = self._new(said, False)
        self._use(session, said)
        return session

    def _end(self, said: Said, session: Session) -> None:
        self._cut(said.side, lambda at: at[0] == said.channel)
        session.ended.add(said.side)
        session.closed = session.closed or said
        del self.open[said.side][said.channel]
        if len(session.ended) == 2:
            self._over(session)

    def _attach(self, said: Said, session: Session) -> None:
        fields, side = said.fields, said.side
        sender = 1 - side if fields["role"] else side
        link = next((one for one in session.links if one.row is None and not one.replaced
                     and one.name is not None
                     and (one.name, one.sender) == (fields["name"], sender)), None)  # fmt: skip
        if link is not None and side in link.attached:
            link.replaced = True
            if len(link.answered) < 2 or link.handles[side] == fields["handle"]:
                self._link_over(link)
            link = None
        if link is None:
            link = Link(fields["name"], sender, said, session)
            session.links.append(link)
        link.attached.add(side)
        link.answered.add(side)
        link.handles[side] = fields["handle"]
        session.handles[side][fields["handle"]] = link
        if side == sender:
            link.begin(fields["initial_delivery_count"])
            if link.promised is not None:
                link.allow(link.used + link.promised, None)

    def _detach(self, said: Said, session: Session) -> None:
        self._cut(said.side, lambda at: at == (said.channel, said.fields["handle"]))
        link = session.handles[said.side].pop(said.fields["handle"], None)
        if link is None:
            return
        link.attached.discard(said.side)
        link.detached = link.detached or said
        if link.error == (None, None):
            link.error = said.fields.get("error") or (None, None)
        if not link.attached:
            self._link_over(link)

    def _flow(self, said: Said, session: Session) -> None:
        fields, side = said.fields, said.side
        session.window[side] = fields["incoming_window"]
        session.used[side] = fields["next_outgoing_id"]
        if fields.get("next_incoming_id") is not None:
            session.limit[1 - side] = (
                fields["next_incoming_id"] + fields["incoming_window"]
            ) % 2**32
            self._window(session, 1 - side)
        link = session.handles[side].get(fields.get("handle"))
        if link is None:
            return
        link.counts["flows"] += 1
        if side == link.sender:
            if "delivery_count" in fields:
                link.begin(fields["delivery_count"])
            return
        link.counts["drains"] += fields.get("drain", False)
        count = fields.get("delivery_count")
        if count is None and link.counts["deliveries"] == 0:
            count, link.promised = link.used, fields["link_credit"]
        if count is not None:
            link.allow(count + fields["link_credit"], said.ts_ns)

    def _window(self, session: Session, side: int) -> None:
        """The room that a sender has for transfers, where it is known."""
        used, limit = session.used[side], session.limit[side]
        if used is not None and limit is not None:
            left = max(_apart(limit, used), 0)
            least = session.least[side]
            session.least[side] = left if least is None else min(left, least)

    def _transfer(self, said: Said, session: Session | None) -> None:
        fields, side = said.fields, said.side
        key = (said.channel, fields["handle"])
        link = None
        if session is not None:
            link = session.handles[side].get(fields["handle"])
            if link is None and (self.lost or self.late or not session.known):
                link = Link(None, side, said, session)
                link.handles[side] = fields["handle"]
                session.links.append(link)
                session.handles[side][fields["handle"]] = link
            self._spend(session, side)
        one = self.under_way[side].get(key)
        if one is not None and one.id not in (None, fields.get("delivery_id", one.id)):
            self._whole(self.under_way[side].pop(key))
            one = None
        if one is None:
            one = Delivery(said, session, link)
            one.holed = one.id is None and side in self.lossy
            self._started(one)
        settled = one.presettled or one.settled_by is not None or one.perhaps_settled
        if fields.get("settled") and not settled:
            one.presettled = True
            self._free(one)
            if link is not None:
                link.counts["presettled"] += 1
            if side == 1 and session is not None and not one.over:
                one.outcome = ("automatic", one.first.packet, 0)
            one.over = True
        one.transfers += 1
        one.last, one.octets = said.packet, one.octets + said.octets
        if fields.get("aborted"):
            one.status = "aborted"
            if link is not None and not (settled or one.presettled):
                link.counts["aborted"] += 1
            self._free(one)
            one.over = True
        elif not fields.get("more"):
            one.status = "truncated" if one.holed else "complete"
        if one.status != "incomplete":
            self.under_way[side].pop(key, None)
            self._whole(one)
        else:
            self.under_way[side][key] = one

    def _spend(self, session: Session, side: int) -> None:
        """A transfer takes one of the window."""
        if session.limit[side] is None and session.used[side] is not None:
            window = session.window[1 - side]
            if window is not None:
                session.limit[side] = (session.used[side] + window) % 2**32
                self._window(session, side)
        if session.used[side] is not None:
            session.used[side] = (session.used[side] + 1) % 2**32
        self._window(session, side)

    def _started(self, one: Delivery) -> None:
        self.deliveries.append(one)
        session, link, side = one.session, one.link, one.first.side
        if session is None:
            return
        if link is not None:
            link.counts["deliveries"] += 1
            link.use(one.first.ts_ns)
        if one.id is None:
            one.over = True
            session.deliveries.append(one)
            return
        settled_to, waits = session.settled_to[side], not one.first.fields.get("settled")
        if waits and settled_to is not None and _apart(settled_to, one.id) >= 0:
            one.over = session.uncertain = True
        elif waits:
            for before in session.deliveries:
                if before.waits and before.first.side == side and before.id == one.id:
                    self._left(before)
                    before.waits = False
            one.waits = True
        session.deliveries.append(one)
        if one.waits:
            self._count(session, side, link)

    def _count(self, session: Session, side: int, link: Link | None) -> None:
        waiting = [each for each in session.deliveries if each.waits and each.first.side == side]
        session.most[side] = max(session.most[side], len(waiting))
        if link is not None:
            mine = sum(each.waits and each.link is link for each in session.deliveries)
            link.counts["unsettled_max"] = max(link.counts["unsettled_max"], mine)

    def _free(self, one: Delivery) -> None:
        one.waits = False

    def _whole(self, one: Delivery) -> None:
        if one.link is not None and not one.holed:
            one.link.counts["message_bytes"] += one.octets

    def _cut(self, side: int, meant: Any) -> None:
        """Deliveries under way that cannot go on any more."""
        for key in [key for key in self.under_way[side] if meant(key)]:
            self._whole(self.under_way[side].pop(key))

    def _disposition(self, said: Said, session: Session) -> None:
        fields = said.fields
        side = 1 - said.side if fields["role"] else said.side
        last = fields.get("last", fields["first"])
        span = (last - fields["first"]) % 2**32
        if fields["role"] and fields.get("settled"):
            before = session.settled_to[side]
            if before is None or _apart(last, before) > 0:
                session.settled_to[side] = last
        for one in session.deliveries:
            if not one.waits or one.first.side != side:
                continue
            if (one.id - fields["first"]) % 2**32 > span:
                continue
            at_an_end = one.id in (fields["first"], fields.get("last", fields["first"]))
            sure = at_an_end or self._sure(one, one.losses)
            if fields.get("settled"):
                one.waits = False
            if not sure:
                if fields.get("settled"):
                    one.over = one.perhaps_settled = True
                    one.said = None
                continue
            if fields.get("state") is not None and fields["state"][0] in OUTCOMES[0]:
                if not (one.taken_back and said.side == 0):
                    one.said = (*fields["state"], said.packet, said.ts_ns)
                    one.said_losses = session.losses
                    one.taken_back = side == said.side == 1 and one.said[0] in TAKEN_BACK
            elif fields.get("settled") and not self._sure(one, one.said_losses):
                one.said = None
            if fields.get("settled"):
                one.settled_by = SIDES[said.side]
                self._decide(one)

    def _sure(self, one: Delivery, losses: int) -> bool:
        """True if nothing is missing since its session had so many losses."""
        return one.session.losses == losses and not self.missing

    def _decide(self, one: Delivery) -> None:
        """The last word counts."""
        one.over = True
        if one.said is None:
            return
        name, _, packet, ts_ns = one.said
        one.outcome = (OUTCOMES[one.first.side][name], packet, ts_ns - one.first.ts_ns)
        if one.link is not None:
            one.link.counts[name] += 1

    def _left(self, one: Delivery) -> None:
        """Nobody settles it any more."""
        if not self._sure(one, one.said_losses):
            one.said = None
        self._decide(one)
        if one.said is None and not self.lost:
            one.outcome = (("unconfirmed", "unsettled")[one.first.side], None, None)

    # ends

    def _link_over(self, link: Link) -> None:
        session = link.session
        waiting = sum(one.waits and one.link is link for one in session.deliveries)
        counted = len(link.answered) == 2 and session.known
        counted = counted and not session.uncertain and not self.missing
        closed = link.detached.side if link.detached else None
        by = SIDES[closed] if closed is not None else self._closed_by(session)
        most = link.counts.pop("unsettled_max")
        link.row = {
            "channel": session.number, "incarnation": session.incarnation,
            "link": link.name, "role": ("sender", "receiver")[link.sender],
            "client_handle": link.handles[0], "server_handle": link.handles[1],
            "attached_packet_number": link.began,
            "detached_packet_number": link.detached.packet if link.detached else None,
            "unsettled_max": most if counted else None,
            "unsettled_end": waiting if counted else None,
            "delivery_count": link.used, "credit_max": link.most,
            "credit_end": link.left_at_the_end(),
            "closed_by": by, "close_condition": link.error[0], "close_text": link.error[1],
            "suspended": not link.detached.fields.get("closed") if link.detached else None,
            **link.counts,
        }  # fmt: skip
        link.counts["unsettled_max"] = most
        for side in range(2):
            for handle in [h for h, one in session.handles[side].items() if one is link]:
                del session.handles[side][handle]
        self.links.append(link.row)

    def _closed_by(self, session: Session) -> str | None:
        if session.closed is not None:
            return SIDES[session.closed.side]
        return SIDES[self.closed.side] if self.closed is not None and self.ending else None

    ending = False

    def _over(self, session: Session) -> None:
        ends = [sum(one.waits and one.first.side == side for one in session.deliveries)
                for side in range(2)]  # fmt: skip
        left = [one for one in session.deliveries if one.waits]
        for one in left:
            self._left(one)
        for link in [one for one in session.links if one.row is None]:
            self._link_over(link)
        for one in left:
            one.waits = False
        session.over = True
        for side in range(2):
            for number in [n for n, one in self.open[side].items() if one is session]:
                del self.open[side][number]
        closed = session.closed or (self.closed if self.ending else None)
        counted = session.known and not session.uncertain and not self.missing
        found = [one.outcome[0] for one in session.deliveries]
        error = session.closed.fields.get("error") if session.closed else None
        session.row = {
            "channel": session.number, "incarnation": session.incarnation,
            "server_channel": session.numbers[1],
            "opened_packet_number": session.began,
            "closed_packet_number": closed.packet if closed else None,
            "closed_by": self._closed_by(session),
            "close_text": f"{error[0]}: {error[1]}" if error else None,
            "published": sum(one.first.side == 0 for one in session.deliveries),
            "delivered": sum(one.first.side == 1 for one in session.deliveries),
            "confirmed": found.count("confirmed"), "returned": found.count("returned"),
            "acknowledged": found.count("acked"),
            "unconfirmed_max": session.most[0] if counted else None,
            "unconfirmed_end": ends[0] if counted else None,
            "unsettled_max": session.most[1] if counted else None,
            "unsettled_end": ends[1] if counted else None,
            "consumers": sum(link.sender == 1 for link in session.links),
            "client_window": session.window[0], "server_window": session.window[1],
            "client_window_min": session.least[1], "server_window_min": session.least[0],
        }  # fmt: skip

    def finish(self) -> dict[str, list[Row]]:
        """The capture is over."""
        for side in range(2):
            self._cut(side, lambda at: True)
        self.ending = True
        for session in self.sessions:
            if session.row is None:
                self._over(session)
        return {
            "messages": [_message(one) for one in self.deliveries],
            "links": self.links,
            "channels": [one.row for one in self.sessions if one.row is not None],
        }


def _message(one: Delivery) -> Row:
    name, packet, ns = one.outcome
    return {
        "packet_number": one.first.packet, "last_packet_number": one.last,
        "sender": SIDES[one.first.side], "channel": one.first.channel,
        "method": ("send", "receive")[one.first.side],
        "consumer_tag": one.link.name if one.link else None,
        "delivery_tag": one.id, "status": one.status, "transfers": one.transfers,
        "message_bytes": None if one.holed else one.octets,
        "outcome": name, "outcome_packet_number": packet, "outcome_ns": ns,
        "state": one.said[0] if one.said and one.over else None,
        "state_error": one.said[1] if one.said and one.over else None,
        "settled_by": one.settled_by,
    }  # fmt: skip


def _apart(limit: int, at: int) -> int:
    """How far a serial number is ahead of another (RFC 1982)."""
    found = (limit - at) % 2**32
    return found - 2**32 if found >= 2**31 else found


def expected(conversation: list[Said]) -> dict[str, list[Row]]:
    """The rows of a conversation."""
    one = Conversation()
    for said in conversation:
        one.feed(said)
    return one.finish()
