"""Consumers that acknowledge by themselves, and consumers that the broker took away."""

from amqpsniff.session.rules.consuming import MAX_CANCELLED, MAX_QUEUES
from amqpsniff.session.rules.context import MAX_SUBJECTS
from tests.session.rules.saying import said
from tests.session.script import Remembering, Script

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
"""
CANCELLED = (
    OPEN
    + """
    C1: basic.consume queue=q consumer_tag=t
    S1: basic.consume-ok consumer_tag=t
    [cancel] S1: basic.cancel consumer_tag=t no_wait=1
"""
)
ALIVE = "\n@+9000ms S: connection.blocked\nC: connection.unblocked"
MISSED = (
    "consumer-cancelled cancel 1: consumer 't' of queue 'q', and nothing was consumed from it since"
)


def test_acknowledged_by_being_sent() -> None:
    script = (
        OPEN
        + """
        [consume] C1: basic.consume queue=work consumer_tag=t no_ack=1
        S1: basic.consume-ok consumer_tag=t
        C1: basic.get queue=work no_ack=1
        S1: basic.get-empty
        C1: basic.get queue=work no_ack=1
        S1: basic.get-ok delivery_tag=1
    """
    )
    assert said(script, "automatic-acknowledgement") == [
        "automatic-acknowledgement consume 1 x2: basic.consume of queue 'work', consumer 't'"
    ]


def test_a_client_that_left_when_its_consumer_was_cancelled() -> None:
    left = CANCELLED + "C: connection.close reply_code=200\nS: connection.close-ok\n"
    later = "b.handshake\nb.C1: channel.open\nb.S1: channel.open-ok\n"
    back = "b.C1: basic.consume queue=q consumer_tag=t\n"
    ended = "@+{}ms b.C1: basic.qos prefetch_count=1\n"
    stays = MISSED.replace("'q', and", "'q', whose client left, and")
    assert said(left + later + ended.format(5000), "consumer-cancelled") == [stays]
    both = "consumer-cancelled", "consumer-interrupted"
    again = stays.replace("cancelled cancel", "interrupted cancel")
    again = again.replace("nothing was consumed from it since", "the queue was consumed from again")
    assert said(left + later + back + ended.format(5000), *both) == [again]
    assert said(left + later + ended.format(4000), "consumer-cancelled") == []


def test_private_queues_and_acknowledgements() -> None:
    script = (
        OPEN
        + """
        C1: queue.declare
        S1: queue.declare-ok queue=amq.gen-1
        C1: basic.consume no_ack=1
        S1: basic.consume-ok consumer_tag=1
        C1: basic.consume queue=amq.rabbitmq.reply-to no_ack=1
        S1: basic.consume-ok consumer_tag=2
        C1: queue.declare queue=mine exclusive=1
        C1: basic.consume queue=mine no_ack=1
        S1: basic.consume-ok consumer_tag=3
        C1: basic.get queue=work
    """
    )
    assert said(script, "automatic-acknowledgement") == []


def test_a_queue_that_may_be_private() -> None:
    """Its declaration may be missing."""
    consume = "C1: basic.consume queue=work consumer_tag=t no_ack=1\n"
    assert said(OPEN + consume, "automatic-acknowledgement")
    assert said(OPEN + "GAP S 100\n" + consume, "automatic-acknowledgement")
    assert said(OPEN + "GAP C 100\n" + consume, "automatic-acknowledgement") == []
    late = OPEN.replace("handshake", "midstream") + consume
    assert said(late, "automatic-acknowledgement") == []


def test_cancelled_because_another_client_deleted_the_queue() -> None:
    ops = OPEN.replace("handshake", "b.handshake").replace("C1:", "b.C1:").replace("S1:", "b.S1:")
    deleted = "\nb.C1: queue.delete queue=q\n[gone] b.S1: queue.delete-ok\n"
    named = MISSED.replace("queue 'q'", "queue 'q' (deleted in packet gone by 10.0.0.1)")
    assert said(CANCELLED + ops + deleted + ALIVE, "consumer-cancelled") == [named]
    late = deleted.replace("b.C1", "@+1100ms b.C1")
    assert said(CANCELLED + ops + late + ALIVE, "consumer-cancelled") == [MISSED]


def test_cancelled_and_not_started_again() -> None:
    assert said(CANCELLED + ALIVE, "consumer-cancelled") == [MISSED]


def test_several_queues_without_acknowledgements() -> None:
    script = OPEN + "".join(f"C1: basic.consume queue={name} no_ack=1\n" for name in "xyx")
    lines = said(script, "automatic-acknowledgement")
    assert [line.partition(": ")[2] for line in lines] == [
        "basic.consume of queue 'x'",
        "basic.consume of queue 'y'",
    ]
    assert " x2: " in lines[0]


def test_another_queue_is_no_substitute() -> None:
    script = CANCELLED + "C1: basic.consume queue=other consumer_tag=u" + ALIVE
    assert said(script, "consumer-cancelled") == [MISSED]


def test_started_again() -> None:
    opened = CANCELLED + "C2: channel.open\nS2: channel.open-ok\n"
    script = opened + "[back] @+60ms C2: basic.consume queue=q" + ALIVE
    again = "consumer 't' of queue 'q', and the queue was consumed from again 62.0 ms later"
    found = said(script, "consumer-cancelled", "consumer-interrupted")
    assert found == [f"consumer-interrupted cancel 1: {again}, in packet back"]


def test_started_again_on_another_connection() -> None:
    script = CANCELLED + "b.C1: channel.open\nb.S1: channel.open-ok\nb.C1: basic.consume queue=q"
    assert said(script + ALIVE, "consumer-cancelled") == []


def test_started_again_where_frames_are_missing() -> None:
    """On another connection of the same host, or with a name that was cut."""
    other = CANCELLED + "b.C1: channel.open\nb.S1: channel.open-ok\n"
    hidden = "b.GAP C 60\nb.C1: basic.publish exchange=e | body=5"
    assert said(other + hidden + ALIVE, "consumer-cancelled") == []
    unrelated = "b.GAP S 60\nb.S1: basic.cancel consumer_tag=u no_wait=1"
    assert said(other + unrelated + ALIVE, "consumer-cancelled") == [MISSED]


def test_a_client_that_leaves_or_wanted_it() -> None:
    for script in (
        CANCELLED + "@+1000ms C: connection.close\nS: connection.close-ok",
        CANCELLED.replace("[cancel]", "C1: queue.delete queue=q\n[cancel]") + ALIVE,
        CANCELLED.replace("S1: basic.cancel", "C1: basic.cancel") + ALIVE,
        CANCELLED + "GAP C 100" + ALIVE,
    ):
        assert said(script, "consumer-cancelled") == []


def test_what_is_remembered_is_limited() -> None:
    """What was forgotten, the client may have consumed from again."""
    script, forgotten = Script(OPEN), 9
    for number in range(MAX_QUEUES + forgotten):
        script.add(f"C1: basic.consume queue=q{number} consumer_tag=t{number} no_wait=1")
        if number <= MAX_CANCELLED:
            script.add(f"S1: basic.cancel consumer_tag=t{number} no_wait=1")
    memory = Remembering(script.add(ALIVE))
    assert len(memory.pipeline.tracker.shared["consumed"]) == MAX_QUEUES
    counts = [one.count for one in memory.findings("consumer-cancelled")]
    assert counts == [1] * MAX_SUBJECTS + [MAX_CANCELLED - forgotten - MAX_SUBJECTS]


def test_what_a_client_may_have_consumed_again() -> None:
    """A queue by its name, or the last that was declared; any, where it is not known which."""
    named = CANCELLED + "C1: queue.declare queue=q\nS1: queue.declare-ok queue=q\n"
    assert said(named + "C1: basic.consume consumer_tag=u" + ALIVE, "consumer-cancelled") == []
    unknown = (
        "midstream\nC1: basic.qos\nS1: basic.qos-ok\n[cancel] S1: basic.cancel consumer_tag=x\n"
    )
    assert said(unknown + ALIVE, "consumer-cancelled") == [
        MISSED.replace("'t'", "'x'").replace("queue 'q'", "a queue not known")
    ]
    again = "C1: basic.consume queue=other consumer_tag=u\n"
    assert said(unknown + again + ALIVE, "consumer-cancelled") == []


def test_who_goes_away_in_time() -> None:
    for ms, missed in ((4999, []), (5000, [MISSED])):
        alive = f"@+{ms}ms S: connection.unblocked"
        assert said(CANCELLED + alive, "consumer-cancelled") == missed


def test_who_did_it() -> None:
    """What a broker sends of these methods says nothing of the client."""
    by_broker = CANCELLED.replace("[cancel]", "S1: queue.delete queue=q\n[cancel]")
    assert said(by_broker + ALIVE, "consumer-cancelled") == [MISSED]
    assert said(CANCELLED + "S1: basic.consume queue=q" + ALIVE, "consumer-cancelled") == [MISSED]
    shared = OPEN + "C1: queue.declare queue=mine\n[consume] C1: basic.consume queue=mine no_ack=1"
    automatic = ["automatic-acknowledgement consume 1: basic.consume of queue 'mine'"]
    assert said(shared, "automatic-acknowledgement") == automatic
    broker = shared.replace(
        "C1: queue.declare queue=mine", "S1: queue.declare queue=mine exclusive=1"
    )
    assert said(broker, "automatic-acknowledgement") == automatic
    assert said(OPEN + "S1: basic.consume queue=q no_ack=1", "automatic-acknowledgement") == []


def test_a_queue_declared_before_it_is_consumed_from() -> None:
    declared = OPEN + "C1: queue.declare queue=w\nS1: queue.declare-ok queue=w\n"
    script = declared + "[consume] C1: basic.consume no_ack=1"
    assert said(script, "automatic-acknowledgement") == [
        "automatic-acknowledgement consume 1: basic.consume of queue 'w'"
    ]
    assert said(OPEN + "C1: basic.consume no_ack=1", "automatic-acknowledgement") == []
    closed = OPEN + "S1: channel.close reply_code=404\nC1: basic.consume queue=w no_ack=1"
    assert said(closed, "automatic-acknowledgement") == []
