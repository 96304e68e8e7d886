"""Pairs for links, credit, windows and settlement of AMQP 1.0.

A conversation is a list of steps `(side, bytes)` or `(side, bytes, ms before it)`; `said` makes a
script of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.amqp10 import (
    EMPTY,
    HEADER,
    SASL_HEADER,
    Described,
    Symbol,
    composite,
    error,
    frame,
    message,
    source,
    target,
)
from tests.findings.cases import Pair

Step = tuple[Any, ...]

RABBITMQ4 = {Symbol("product"): "RabbitMQ", Symbol("version"): "4.3.6"}


def said(*steps: Step | list[Step]) -> str:
    """A script of steps."""
    lines = []
    for side, octets, *wait in _flat(steps):
        before = wait[0] if wait else 1
        if isinstance(octets, str):
            lines.append(f"@+{before}ms {octets} {side}")
        else:
            lines.append(f"WAIT {before - 1}")
            lines.append(f"BYTES {side} {octets.hex()}")
    return "\n".join(lines)


def _flat(steps: Iterable[Any]) -> Iterable[Step]:
    for step in steps:
        if isinstance(step, list):
            yield from _flat(step)
        else:
            yield step


def opening(server: dict[Any, Any] | None = None, **more: Any) -> list[Step]:
    """Headers, opens and a session: channel 0 on both sides."""
    return [
        ("C", HEADER),
        ("S", HEADER),
        ("C", frame("open", container_id="c", max_frame_size=65536)),
        ("S", frame("open", container_id="s", max_frame_size=65536, properties=server, **more)),
        ("C", frame("begin", next_outgoing_id=0, incoming_window=2048, outgoing_window=2048)),
        ("S", frame("begin", remote_channel=0, next_outgoing_id=0, incoming_window=2048,
                    outgoing_window=2048)),
    ]  # fmt: skip


def sender(address: str = "q", credit: int = 100, **more: Any) -> list[Step]:
    """A link on which the client sends, with credit."""
    return [
        ("C", frame("attach", name="out", handle=0, role=False, source=source(),
                    target=target(address), initial_delivery_count=0)),
        ("S", frame("attach", name="out", handle=0, role=True, source=source(),
                    target=target(address), **more)),
        *([give("S", credit, 0)] if credit else []),
    ]  # fmt: skip


def receiver(
    credit: int = 10,
    address: str = "q",
    filters: Any = None,
    answered: Any = None,
    mode: str | None = None,
    **more: Any,
) -> list[Step]:
    """A link on which the client receives, with credit; `mode`: the source's distribution mode."""
    return [
        ("C", frame("attach", name="in", handle=1, role=True, target=target(),
                    source=source(address, filter=filters), **more)),
        ("S", frame("attach", name="in", handle=1, role=False,
                    source=source(address, filter=answered, distribution_mode=mode),
                    target=target(),
                    initial_delivery_count=0)),
        *([give("C", credit, 0, handle=1)] if credit else []),
    ]  # fmt: skip


def give(
    side: str, credit: int, count: int, handle: int = 0, window: int = 2048, **more: Any
) -> Step:
    """A flow that gives credit; `count` deliveries were there before."""
    fields = {
        "next_incoming_id": count, "incoming_window": window, "next_outgoing_id": 0,
        "outgoing_window": 2048, "handle": handle, "delivery_count": count, "link_credit": credit,
    }  # fmt: skip
    return side, frame("flow", **(fields | more))


def sends(
    side: str, *numbers: int, handle: int = 0, payload: bytes = b"", **more: Any
) -> list[Step]:
    """Deliveries, each in one transfer."""
    return [
        (side, frame("transfer", handle=handle, delivery_id=number, delivery_tag=bytes([number]),
                     message_format=0, payload=payload or message(), **more))
        for number in numbers
    ]  # fmt: skip


def settles(side: str, number: int, state: bytes | None, **more: Any) -> Step:
    """An outcome, settled unless it is said otherwise."""
    role = side == "S" if "role" not in more else more.pop("role")
    return side, frame("disposition", **{"role": role, "first": number, "settled": True,
                                         "state": state} | more)  # fmt: skip


def takes(number: int) -> Step:
    """The client accepts and settles a delivery."""
    return settles("C", number, ACCEPTED, role=True)


def closing() -> list[Step]:
    """Both sides close."""
    return [("C", frame("close")), ("S", frame("close"))]


def detaches(side: str, handle: int, *said_of: str) -> Step:
    """A detach that closes the link, with an error."""
    return side, frame("detach", handle=handle, closed=True,
                       error=error(*said_of) if said_of else None)  # fmt: skip


def ended(condition: str | None, description: str = "why") -> str:
    """A session that the broker ends, with an error or without."""
    wrong = None if condition is None else error(condition, description)
    return said(opening(), sender(), sends("C", 0), settles("S", 0, ACCEPTED),
                ("S", frame("end", error=wrong)))  # fmt: skip


def closed(condition: str | None, description: str = "why") -> str:
    """A connection that the broker closes, with an error or without."""
    wrong = None if condition is None else error(condition, description)
    return said(opening(), sender(), ("S", frame("close", error=wrong)))


def _unanswered_attach(ms: int, then: Step = ("C", EMPTY)) -> str:
    """What a client attaches, and what comes after a time."""
    return said(opening(), sender()[0], (*then, ms))


def _unanswered_last(ms: int, *steps: Step | list[Step]) -> str:
    """A conversation whose last frame has no answer before the end of the capture."""
    return said(*steps, ("C", EMPTY, ms))


_UNANSWERED: dict[str, tuple[Step | list[Step], ...]] = {
    "an open": (opening()[:3],),
    "a begin": (opening()[:-1],),
    "a detach": (opening(), sender(), detaches("C", 0)),
    "an end": (opening(), sender(), ("C", frame("end"))),
    "a close": (opening(), sender(), ("C", frame("close"))),
}


def _left_by_client(what: str, condition: str | None, **more: Any) -> str:
    """A connection, session or link that the client closes, with an error or without."""
    wrong = None if condition is None else error(condition, "why")
    return said(opening(), sender(), ("C", frame(what, **more, error=wrong)))


ACCEPTED = composite("accepted")
RELEASED = composite("released")
REJECTED = composite("rejected", error=error("amqp:precondition-failed"))
IDLE = "The link is force detached. Details: IdleTimerExpired: Idle timeout: 00:10:00."


def detached(condition: str | None, description: str = "why") -> str:
    """A link that the broker detaches, with an error or without."""
    reason = () if condition is None else (condition, description)
    return said(opening(), sender(), sends("C", 0), settles("S", 0, ACCEPTED),
                detaches("S", 0, *reason), detaches("C", 0))  # fmt: skip


def _refused(*reason: str) -> str:
    return said(opening(), sender(credit=0), detaches("S", 0, *reason), detaches("C", 0))


def _loop(times: int, last_ms: int = 1) -> str:
    link = [*sender(credit=0), detaches("S", 0, "amqp:not-found", "no queue"), detaches("C", 0)]
    last = [(*link[0], last_ms), *link[1:]]
    return said(opening(), *[link] * (times - 1), last)


def _attached_again(handle: int, name: str) -> str:
    again = frame("attach", name=name, handle=handle, role=False, source=source(),
                  target=target("q"), initial_delivery_count=0)  # fmt: skip
    return said(opening(), sender(), ("C", again))


def _filtered(answer: Any) -> str:
    asked = {Symbol("selector"): Described("apache.org:selector-filter:string", "a = 1")}
    return said(opening(), receiver(filters=asked, answered=asked if answer else None))


def _addressed(address: str) -> str:
    return said(opening(RABBITMQ4), sender(address))


def _waits(ms: int) -> str:
    """A sender that uses up its credit, gets more after a time, and goes on at once."""
    return said(opening(), sender(credit=2), sends("C", 0, 1), settles("S", 0, ACCEPTED, last=1),
                (*give("S", 2, 2), ms), sends("C", 2))  # fmt: skip


def _starved(ms: int) -> str:
    return said(opening(), sender(credit=0), ("C", EMPTY, ms), ("S", EMPTY))


def _resting(ms: int, available: int = 5) -> str:
    """A consumer that settles all it got and gives no more credit."""
    more = ("S", frame("flow", next_incoming_id=0, incoming_window=2048, next_outgoing_id=2,
                       outgoing_window=2048, handle=1, delivery_count=2, link_credit=0,
                       available=available))  # fmt: skip
    return said(opening(), receiver(credit=2), sends("S", 0, 1, handle=1), takes(0), takes(1), more,
                ("C", EMPTY, ms), ("S", EMPTY))  # fmt: skip


def _never_given(ms: int, **more: Any) -> str:
    """A consumer that is attached for a time and gives no credit."""
    return said(opening(), receiver(credit=0, **more), ("C", EMPTY, ms), ("S", EMPTY))


def _hungry(ms: int) -> str:
    """The same, while another client publishes for the queue, the last message after a time."""
    got = [receiver(credit=2), sends("S", 0, 1, handle=1), takes(0), takes(1)]
    return _published_for(said(opening(), *got), ms)


def _never_hungry(ms: int) -> str:
    """The same of one that gave no credit at all."""
    return _published_for(said(opening(), receiver(credit=0)), ms)


def _left_waiting(accepted: int) -> str:
    """Messages for the queue came over a link, before one that gave no credit was attached."""
    return said(
        opening(), sender("/queues/q"), sends("C", *range(10)),
        [settles("S", at, ACCEPTED if at < accepted else REJECTED) for at in range(10)],
        receiver(credit=0, address="/queues/q"), ("C", EMPTY, 10_000), ("S", EMPTY),
    )  # fmt: skip


def _published_for(got: str, ms: int) -> str:
    publishes = "b.C1: basic.publish routing_key=q | body=1\n"
    other = "b.handshake\nb.C1: channel.open\nb.S1: channel.open-ok\n"
    waits = f"@+1000ms {publishes}" * 9 + f"@+{ms}ms {publishes}"
    return f"{got}\n{other}{waits}{said(('C', EMPTY, 9))}"


def _holding(ms: int) -> str:
    return said(opening(), receiver(credit=2), sends("S", 0, 1, handle=1), ("C", EMPTY, ms),
                ("S", EMPTY))  # fmt: skip


def _holding_before(ms: int) -> str:
    """A consumer whose link was attached before the capture."""
    return "midstream\n" + said(sends("S", *range(10), handle=1), (*give("C", 1, 10, handle=1), ms))


def _holding_on(ms: int) -> str:
    """A consumer that settles nothing and gives more credit."""
    return said(opening(), receiver(credit=100), sends("S", *range(100), handle=1),
                (*give("C", 100, 100, handle=1), ms))  # fmt: skip


def _lowered(ms: int) -> str:
    """Credit that is lowered, and then used as it was before."""
    return said(opening(), receiver(credit=10), sends("S", 0, 1, handle=1),
                give("C", 0, 2, handle=1), (*sends("S", 2, handle=1)[0], ms),
                sends("S", 3, 4, handle=1))  # fmt: skip


def _alarm(window: int, credit: int = 10) -> str:
    """A broker that takes its window back, and gives it again."""
    return said(opening(), sender(credit=credit), sends("C", 0), settles("S", 0, ACCEPTED),
                ("S", frame("flow", next_incoming_id=1, incoming_window=window, next_outgoing_id=0,
                            outgoing_window=2048)),
                (*give("S", 10, 1), 2000), sends("C", 1), settles("S", 1, ACCEPTED))  # fmt: skip


def _too_early(*more: Step) -> str:
    """A link that is refused, and used before the client knows."""
    refuses = detaches("S", 0, "amqp:not-found", "no queue")
    unknown = error("amqp:session:unattached-handle", "Unattached link handle: 0")
    return said(opening(), *more, sender(credit=0), refuses, give("C", 10, 0),
                ("S", frame("end", error=unknown)))  # fmt: skip


def _beyond(count: int) -> str:
    return said(opening(), sender(credit=2), sends("C", *range(count)),
                settles("S", 0, ACCEPTED, last=count - 1))  # fmt: skip


def _siblings(ms: int) -> str:
    """Two senders of a session; while the first has no credit the second one pauses as well, the
    third time for some ms.
    """
    second = [("C", frame("attach", name="more", handle=1, role=False, source=source(),
                          target=target("b"), initial_delivery_count=0)),
              ("S", frame("attach", name="more", handle=1, role=True, source=source(),
                          target=target("b"))),
              give("S", 1000, 0, handle=1)]  # fmt: skip
    steps: list[Any] = [opening(), sender(credit=4), second]
    number = 0
    for turn, pause in enumerate((500, 500, ms)):
        for _ in range(4):
            steps.append(sends("C", number, handle=0) + sends("C", number + 1, handle=1))
            number += 2
        steps.append((*give("S", 4, 4 * turn + 4), pause))
    return said(*steps, sends("C", number), sends("C", number + 1, handle=1))


def _window(ms: int) -> str:
    return said(opening(), sender(credit=0), give("S", 100, 0, window=2), sends("C", 0, 1),
                settles("S", 0, ACCEPTED, last=1), ("C", EMPTY, ms), ("S", EMPTY))  # fmt: skip


def _second(count: int) -> str:
    """Outcomes that are said and never settled."""
    return said(opening(), receiver(credit=100, rcv_settle_mode=1),
                sends("S", *range(count), handle=1),
                settles("C", 0, ACCEPTED, role=True, settled=False, last=count - 1),
                ("C", frame("end")), ("S", frame("end")))  # fmt: skip


def _outcome(state: bytes, server: Any = None) -> str:
    return said(opening(server), sender(), sends("C", 0), settles("S", 0, state))


def _aborted(aborted: bool, sections: bytes = message(b"x" * 40)) -> str:
    first = frame("transfer", handle=0, delivery_id=0, delivery_tag=b"1", message_format=0,
                  more=True, payload=sections[:20])  # fmt: skip
    last = frame("transfer", handle=0, aborted=aborted, payload=sections[20:])
    return said(opening(), sender(), ("C", first), ("C", last), settles("S", 0, ACCEPTED))


def _lock(condition: str) -> str:
    lost = composite("rejected", error=error(condition))
    return said(opening(), receiver(), sends("S", 0, handle=1),
                settles("C", 0, ACCEPTED, role=True, settled=False),
                settles("S", 0, lost, role=False))  # fmt: skip


def _token(status: int) -> str:
    answer = message(b"", application_properties={"status-code": status})
    link = receiver(address="$cbs")
    return said(opening(), link, sends("S", 0, handle=1, payload=answer, settled=True))


def managed(
    status: int,
    method: str = "PUT",
    to: str = "/queues/q",
    then: Iterable[Step] = (),
    server: dict[Any, Any] | None = None,
) -> str:
    """A request to RabbitMQ's management, its answer, and what comes then."""
    asked = composite("properties", message_id="1", to=to, subject=method, reply_to="$me")
    answer = composite("properties", subject=str(status), correlation_id="1")
    return said(
        opening(server), sender("/management"), receiver(address="/management"),
        sends("C", 0, payload=message(b"", properties=asked), settled=True),
        sends("S", 0, handle=1, payload=message(b"", properties=answer), settled=True),
        list(then), closing(),
    )  # fmt: skip


def _deleted(queue: str) -> str:
    """A client deletes a queue while it has a link to /queues/q, which the broker detaches."""
    fields = {"name": "q", "handle": 2, "source": source(), "target": target("/queues/q")}
    link = [
        ("C", frame("attach", role=False, initial_delivery_count=0, **fields)),
        ("S", frame("attach", role=True, **fields)),
        detaches("S", 2, "amqp:resource-deleted", "gone"), detaches("C", 2),
    ]  # fmt: skip
    return managed(204, "DELETE", f"/queues/{queue}", link)


def _discharged(state: bytes) -> str:
    link = [
        ("C", frame("attach", name="tx", handle=0, role=False, source=source(),
                    target=composite("coordinator"), initial_delivery_count=0)),
        ("S", frame("attach", name="tx", handle=0, role=True, source=source(),
                    target=composite("coordinator"))),
        give("S", 10, 0),
    ]  # fmt: skip
    ends = b"\0\x53\x77" + composite("discharge", txn_id=b"1", fail=False)
    return said(opening(), link, sends("C", 0, payload=ends), settles("S", 0, state))


def _answerless(answered: bool) -> str:
    """An attach that the broker answers without the terminus, and a detach with an error."""
    goal = target("q") if answered else None
    wrong = ("amqp:not-found", "no queue") if not answered else ()
    return said(
        opening(),
        ("C", frame("attach", name="out", handle=0, role=False, source=source(),
                    target=target("q"), initial_delivery_count=0)),
        ("S", frame("attach", name="out", handle=0, role=True, source=source(), target=goal)),
        detaches("S", 0, *wrong), detaches("C", 0),
    )  # fmt: skip


def _sized(size: int) -> str:
    """A message of so many bytes on a link that takes 100."""
    payload = message(b"x" * (size - 8))
    assert len(payload) == size
    return said(opening(), sender(max_message_size=100), sends("C", 0, payload=payload),
                settles("S", 0, ACCEPTED))  # fmt: skip


def _framed(size: int) -> str:
    return said(opening(), sender(), sends("C", 0, payload=message(b"x" * size)),
                settles("S", 0, ACCEPTED))  # fmt: skip


def _taken_back(server: Any) -> str:
    """A consumer whose deliveries the broker releases after a minute."""
    released = settles("S", 0, RELEASED, role=False, settled=False, last=1)
    return said(opening(server), receiver(credit=3), sends("S", 0, 1, 2, handle=1),
                (*released, 60_000))  # fmt: skip


def _left(role: str, settled: bool, **answered: Any) -> str:
    link, side = (sender(), "C") if role == "sender" else (receiver(**answered), "S")
    handle = 0 if role == "sender" else 1
    answer = settles("S", 0, ACCEPTED) if role == "sender" else takes(0)
    return said(opening(), link, sends(side, 0, handle=handle), [answer] if settled else [],
                ("C", frame("end")), ("S", frame("end")))  # fmt: skip


def _presettled(side: str, settled: bool) -> str:
    link, handle = (sender(), 0) if side == "C" else (receiver(), 1)
    answer = settles("S", 0, ACCEPTED) if side == "C" else takes(0)
    return said(opening(), link, sends(side, 0, handle=handle, settled=settled), answer)


def _counted(failed: int) -> str:
    again = message(header=composite("header", delivery_count=failed))
    return said(opening(), receiver(), sends("S", 0, handle=1, payload=again), takes(0))


def _silent(ms: int) -> str:
    """A client that is silent, though the broker's idle-time-out is 10 s."""
    return said(opening(idle_time_out=10_000), ("S", EMPTY, 10), ("C", EMPTY, ms - 11))


def _typed(idle: int) -> str:
    return said(opening(idle_time_out=idle))


def _idle(ms: int) -> str:
    return said(opening(idle_time_out=ms))


def _login(code: int) -> str:
    return said(
        ("C", SASL_HEADER), ("S", SASL_HEADER),
        ("S", frame("sasl_mechanisms", sasl_server_mechanisms=Symbol("PLAIN"))),
        ("C", frame("sasl_init", mechanism="PLAIN", initial_response=b"\0u\0secret")),
        ("S", frame("sasl_outcome", code=code)),
    )  # fmt: skip


def _unanswered(host: str) -> str:
    """An open that the broker does not answer before it ends TCP."""
    return said(("C", HEADER), ("S", HEADER),
                ("C", frame("open", container_id="c", hostname=host)),
                ("S", "FIN", 3000))  # fmt: skip


def _offered(*more: Step) -> str:
    """A client that knows the broker's mechanisms, and ends TCP."""
    return said(
        ("C", SASL_HEADER), ("S", SASL_HEADER),
        ("S", frame("sasl_mechanisms", sasl_server_mechanisms=Symbol("PLAIN"))),
        *more, ("C", "FIN"),
    )  # fmt: skip


def _called(ms: int) -> str:
    """A request to which no answer comes, and something later."""
    asked = composite("properties", message_id="m", reply_to="q")
    return said(opening(), sender(), receiver(), sends("C", 0, payload=message(properties=asked)),
                settles("S", 0, ACCEPTED), ("S", EMPTY, ms - 1), ("C", EMPTY),
                ("C", "FIN"))  # fmt: skip


def _greeted_without_login(*more: Step) -> str:
    """A client that asks for AMQP without SASL."""
    return said(("C", HEADER), *more, ("C", "FIN"))


def _rejects(count: int, deliveries: int) -> str:
    """A consumer that rejects the first of its deliveries."""
    numbers = range(deliveries)
    return said(opening(), receiver(deliveries), sends("S", *numbers, handle=1),
                [settles("C", at, REJECTED if at < count else ACCEPTED, role=True)
                 for at in numbers],
                closing())  # fmt: skip


def _renews(count: int) -> str:
    """Requests to renew a lock beside one delivery."""
    asked = message(
        properties=composite("properties", message_id="m", reply_to="r"),
        application_properties={"operation": "com.microsoft:renew-lock"},
    )
    return said(opening(), sender("q/$management"), receiver(), sends("S", 0, handle=1), takes(0),
                sends("C", *range(count), payload=asked),
                [settles("S", at, ACCEPTED) for at in range(count)], closing())  # fmt: skip


def _one_by_one(count: int) -> str:
    """A consumer that gives credit for each delivery."""
    each = [[*sends("S", at, handle=1), takes(at), give("C", 1, at + 1, handle=1)]
            for at in range(count)]  # fmt: skip
    return said(opening(), receiver(1), each, closing())


def _opened(ms: int) -> str:
    steps = opening()
    return said(steps[:3], (*steps[3], ms), steps[4:])


def _decided(ms: int) -> str:
    return said(opening(), sender(), sends("C", 0), (*settles("S", 0, ACCEPTED), ms))


PAIRS: dict[str, Pair] = {
    "link-refused": Pair(_refused("amqp:not-found", "no queue 'q'"), _refused()),
    "link-detached": Pair(detached("amqp:resource-deleted"), detached(None)),
    "link-detached-idle": Pair(
        detached("amqp:link:detach-forced", IDLE), detached("amqp:link:detach-forced", "deleted")
    ),
    "link-reattach-loop": Pair(_loop(5), _loop(5, 60_000)),
    "link-stolen": Pair(_attached_again(0, "out"), _attached_again(1, "out2")),
    "link-limit-reached": Pair(
        ended("amqp:resource-limit-exceeded", "too many links: limit 256 reached"),
        ended("amqp:resource-limit-exceeded", "no memory"),
    ),
    "filter-ignored": Pair(_filtered(answer=False), _filtered(answer=True)),
    "address-deprecated": Pair(_addressed("/queue/orders"), _addressed("/queues/orders"), 2),
    "credit-exhausted": Pair(_waits(1_000), _waits(998)),
    "credit-never-given": Pair(_never_given(10_000), _never_given(9_990)),
    "credit-not-renewed": Pair(_resting(10_000), _resting(9_990)),
    "credit-exceeded": Pair(_beyond(4), _beyond(3), 2),
    "session-links-blocked": Pair(_siblings(199), _siblings(198)),
    "session-window-closed": Pair(_window(5_000), _window(4_990)),
    "session-window-violated": Pair(
        ended("amqp:session:window-violation"), ended("amqp:session:errant-link")
    ),
    "outcome-not-settled": Pair(_second(10), _second(9), 2),
    "publish-released": Pair(_outcome(RELEASED), _outcome(ACCEPTED)),
    "login-not-tried": Pair(_offered(), _offered(("C", frame("sasl_init", mechanism="PLAIN")))),
    "login-demanded": Pair(
        _greeted_without_login(("S", SASL_HEADER)), _greeted_without_login(("S", HEADER))
    ),
    "deliveries-rejected": Pair(_rejects(5, 99), _rejects(4, 99)),
    "lock-renewals-many": Pair(_renews(11), _renews(10), 2),
    "credit-single": Pair(_one_by_one(200), _one_by_one(199), 3),
    "delivery-aborted": Pair(_aborted(True), _aborted(False)),
    "message-lock-lost": Pair(_lock("com.microsoft:message-lock-lost"), _lock("amqp:not-found")),
    "token-refused": Pair(_token(401), _token(202)),
    "management-refused": Pair(managed(409), managed(201)),
    "field-type-wrong": Pair(_typed(1 << 40), _typed(1000)),
    "transaction-failed": Pair(_discharged(REJECTED), _discharged(ACCEPTED)),
}
"""By code."""

CONDITIONS: dict[str, Pair] = {
    "field-table-malformed of what is no section": Pair(
        _aborted(False, b"no section" * 4), _aborted(True, b"no section" * 4)
    ),
    "link-detached of a queue that another deleted": Pair(_deleted("other"), _deleted("q")),
    "management-refused for what is not there": Pair(managed(404), managed(404, "GET")),
    "link-refused by no terminus": Pair(_answerless(False), _answerless(True), 2),
    "credit-not-renewed while it is published": Pair(_hungry(989), _hungry(988)),
    "credit-not-renewed of a link that gave none": Pair(_never_hungry(990), _never_hungry(989)),
    "credit-not-renewed of messages that were there": Pair(_left_waiting(10), _left_waiting(9)),
    "credit-exhausted from the attach": Pair(_starved(5_000), _starved(4_990)),
    "consumer-stuck over a link": Pair(_holding(30_000), _holding(29_990)),
    "consumer-stuck over a link from before": Pair(
        _holding_before(30_000), _holding_before(29_990)
    ),
    "consumer-stuck over a link with credit": Pair(_holding_on(29_901), _holding_on(29_900)),
    "credit-exceeded after it was lowered": Pair(_lowered(501), _lowered(499)),
    "connection-blocked by a window": Pair(_alarm(0), _alarm(1)),
    "channel-closed-by-broker with other links": Pair(_too_early(*receiver()), _too_early(), 3),
    "message-unroutable as released": Pair(
        _outcome(RELEASED, RABBITMQ4), _outcome(ACCEPTED, RABBITMQ4)
    ),
    "reply-missing to an attach": Pair(_unanswered_attach(5_001), _unanswered_attach(5_000)),
    "reply-missing to an attach until its detach": Pair(
        _unanswered_attach(5_001, detaches("C", 0)), _unanswered_attach(5_000, detaches("C", 0))
    ),
    "reply-missing to an attach for long": Pair(
        _unanswered_attach(5_001, sender()[1]), _unanswered_attach(5_000, sender()[1])
    ),
    **{
        f"reply-missing to {what}": Pair(
            _unanswered_last(5_001, *steps), _unanswered_last(5_000, *steps)
        )
        for what, steps in _UNANSWERED.items()
    },
    "publish-rejected by outcome": Pair(_outcome(REJECTED), _outcome(ACCEPTED)),
    "message-too-large for a link": Pair(_sized(101), _sized(100)),
    "frame-too-large for a peer": Pair(_framed(66_000), _framed(60_000)),
    "publishes-in-doubt over a link": Pair(_left("sender", False), _left("sender", True)),
    "deliveries-in-doubt over a link": Pair(_left("receiver", False), _left("receiver", True)),
    "deliveries-in-doubt of what does not stay": Pair(
        _left("receiver", False, mode="move"), _left("receiver", False, mode="copy")
    ),
    "publishes-unprotected over a link": Pair(_presettled("C", True), _presettled("C", False)),
    "automatic-acknowledgement over a link": Pair(_presettled("S", True), _presettled("S", False)),
    "deliveries-rejected by share": Pair(_rejects(5, 99), _rejects(5, 100), 3),
    "consumer-timed-out over a link": Pair(
        _taken_back(RABBITMQ4), _taken_back(RABBITMQ4 | {Symbol("version"): "4.2.1"})
    ),
    "poison-message by delivery-count": Pair(_counted(4), _counted(3)),
    "heartbeat-missed by idle-time-out": Pair(_silent(20_001), _silent(20_000)),
    "heartbeat-too-short as idle-time-out": Pair(_idle(4_999), _idle(5_000)),
    "authentication-failed by sasl-outcome": Pair(_login(1), _login(0)),
    "connection-closed-by-broker with a condition": Pair(
        closed("amqp:internal-error"), closed(None)
    ),
    "closed-by-client with a condition of a close": Pair(
        _left_by_client("close", "amqp:decode-error"), _left_by_client("close", None)
    ),
    "closed-by-client with a condition of an end": Pair(
        _left_by_client("end", "amqp:decode-error"), _left_by_client("end", None)
    ),
    "closed-by-client with a condition of a detach": Pair(
        _left_by_client("detach", "amqp:decode-error", handle=0),
        _left_by_client("detach", None, handle=0),
    ),
    "connection-forced-closed with a condition": Pair(
        closed("amqp:connection:forced"), closed("amqp:internal-error")
    ),
    "vhost-refused without an answer": Pair(_unanswered("vhost:absent"), _unanswered("absent")),
    "connection-forced-closed by RabbitMQ 4": Pair(
        closed("amqp:internal-error", "Connection forced: \"reason 'shutdown'\""),
        closed("amqp:internal-error", "unexpected"),
    ),
    "channel-closed-by-broker with a condition": Pair(ended("amqp:invalid-field"), ended(None)),
    "rpc-unanswered over links": Pair(_called(9_999), _called(9_998)),
    "handshake-slow of AMQP 1.0": Pair(_opened(1_000), _opened(990)),
    "confirms-slow of outcomes": Pair(_decided(5_000), _decided(4_999)),
}
"""Other codes that AMQP 1.0 has too, with what is particular there."""
