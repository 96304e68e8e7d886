"""Traffic that stops while a side has something to send."""

from __future__ import annotations

import pytest

from tests.conftest import CAPTURES
from tests.encoder import HEARTBEAT_FRAME
from tests.session.rules.found import found, of_capture
from tests.session.script import MS, Script

OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
PUBLISH = "C1: confirm.select\nS1: confirm.select-ok\n[publish] C1: basic.publish | body=5\n"
CONSUME = "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
DELIVER = "S1: basic.deliver consumer_tag=t delivery_tag=1 | body=5\n"
END = "@+10000ms FIN C\n"


def beaten(text: str, *senders: str) -> Script:
    """A script, then heartbeats of these senders, 6 s after each other."""
    script = Script(OPEN + text)
    for sender in senders:
        last = script.packets[-1]
        beat = last._replace(
            ts_ns=last.ts_ns + 6_000 * MS, sender=sender, octets=HEARTBEAT_FRAME, end=""
        )
        script.packets.append(beat)
    return script


def test_a_broker_that_is_stopped() -> None:
    rows = of_capture(CAPTURES / "cases" / "traffic_stopped.pcap.gz")
    (row,) = [one for one in rows if one["code"] == "traffic-stopped"]
    assert row["packet_number"] == 551
    assert row["detail"] == (
        "broker owes 1 confirm since 40.0 s (packet 551); nothing else outstanding; the broker's "
        "last frame came 40.0 s before the end, its last packet of TCP 13.0 s before it"
    )


@pytest.mark.parametrize("name", ["i_dead_path", "i_router_down"])
def test_where_nothing_got_through(name: str) -> None:
    codes = [row["code"] for row in of_capture(CAPTURES / "incidents" / f"{name}.pcap")]
    assert "path-interrupted" in codes
    assert "traffic-stopped" not in codes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PUBLISH + END, "broker owes 1 confirm since 10.0 s"),
        (PUBLISH + "@+5000ms " + PUBLISH.splitlines()[2][10:] + "\n" + END, "broker owes 2 confir"),
        ("C1: queue.declare queue=q\n" + END, "broker owes the reply to queue.declare"),
        (CONSUME + DELIVER + PUBLISH + END, "client owes acknowledgements of 1 delivery"),
    ],
    ids=["a confirm", "two confirms", "a reply", "what may wait too"],
)
def test_the_side_that_owes_the_next_frame(text: str, words: str) -> None:
    row = found(OPEN + text, "traffic-stopped")
    assert row is not None
    assert words in row["detail"]


@pytest.mark.parametrize(
    "text",
    [
        END,
        PUBLISH + "S1: basic.ack delivery_tag=1\n" + END,
        CONSUME + DELIVER + END,
        "S: connection.blocked reason=low\n" + PUBLISH + END,
        PUBLISH + "GAP S 100\n@+10000ms C2: channel.open\nS2: channel.open-ok\n",
        PUBLISH + "@+1000ms C: connection.close\n" + END,
        PUBLISH + "@+1000ms FIN C\n@+10000ms RST S\n",
    ],
    ids=[
        "owes nothing",
        "confirmed",
        "a consumer at work",
        "blocked",
        "a hole",
        "closed",
        "TCP was ended before",
    ],
)
def test_nobody_who_owes_is_silent(text: str) -> None:
    assert not found(OPEN + text, "traffic-stopped")


@pytest.mark.parametrize(
    ("text", "senders", "shown"),
    [
        (PUBLISH, ("client",) * 3, True),
        (PUBLISH, ("client", "server"), False),
        ("", ("client",) * 3, False),
        ("", ("client", "server") * 3, False),
    ],
    ids=["of the client", "of both", "a broker that owes nothing", "nothing else"],
)
def test_heartbeats(text: str, senders: tuple[str, ...], shown: bool) -> None:
    assert bool(found(beaten(text, *senders), "traffic-stopped")) is shown


def test_where_the_capture_begins_late() -> None:
    text = OPEN.replace("handshake\n", "midstream\n") + PUBLISH + END
    assert not found(text, "traffic-stopped")
