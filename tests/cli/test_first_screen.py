"""The first screen of `diagnose`, 24 lines of 80 columns, names the cause where it is known.

A row is a capture, words that must stand there, and words that would be false. What a capture shows
is told in `tests/captures/incidents/TRUTH.tsv`, `tests/captures/own` and `samples/README.md`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.analysis.diagnosis import Diagnosis
from amqpsniff.analysis.verdict import MAX_SENTENCES
from amqpsniff.cli.render.clock import Clock
from amqpsniff.cli.render.diagnosis import Layout, sections
from amqpsniff.cli.render.theme import Paint
from amqpsniff.findings import KINDS
from tests.cli.running import on_terminal
from tests.conftest import OWN, SAMPLES

INCIDENTS = OWN.parent / "incidents"
LINES, COLUMNS = 24, 80

SOUND = "Nothing wrong was found"
LATE = "began before it"

INCIDENT_ROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a_prefetch": (
        ("orders-worker", "10 deliveries from queue 'orders.new'", "not acknowledged"),
        (SOUND, "blocked", "prefetch limit"),
    ),
    "a_prefetch_midstream": ((LATE,), ("error", "failed")),
    "ab_after": (("ab-worker", "queue 'ab.orders'", "delivered after 1.43 s"), ("error",)),
    "ab_before": ((SOUND,), ("error", "failed")),
    "b_block_mid": (("stay in their queue", "delivered after 2.75 s", LATE), ("error",)),
    "c_maxlen": (("The broker refused published messages: sensor-gw", "40 times"), (SOUND,)),
    "d_broker": (("TCP had to send again", "ab-publisher", "38 of 1255 packets"), (SOUND,)),
    "d_client": (("TCP had to send again", "ab-publisher", "38 of 1255 packets"), (SOUND,)),
    "d_unroutable": (
        ("shop-web", "'shop.events'", "'orders.created'", "no queue would take it"),
        (SOUND,),
    ),
    "f_ack": (("ledger-worker", "delivery 1 was settled before", "unknown delivery tag 1"), ()),
    "i_blocked_cut": (
        ("gps-tracker", "low on memory", "Nothing got through between client and broker"),
        (SOUND, "heartbeat-missed"),
    ),
    "i_dead": (
        ("gps-tracker", "Nothing got through", "no packet from the client for 21.0 s"),
        (SOUND, "low on memory", "heartbeat-missed"),
    ),
    "i_dead_path": (
        ("gps-tracker", "Nothing got through", "no packet from the broker for 26.6 s"),
        (SOUND, "low on memory", "heartbeat-missed"),
    ),
    "i_router_down": (("orders", "Nothing got through", "for 45.2 s"), (SOUND, "low on memory")),
    "k_poison_mid": (("delivered and put back again and again", "'d-broken'", LATE), (SOUND,)),
    "m_rpc": (
        ("price-server", "'price.rpc'", "A request got no answer: price-client", "left open"),
        (SOUND,),
    ),
    "n_slow_confirms": (("1 AMQP connection", "notes"), ("failed",)),
    "o_refused": (
        ("10.91.15.2 was refused by 10.91.15.1:5673 5 times", "No AMQP was found"),
        (SOUND, "nothing found"),
    ),
    "o_restart": (
        ("reason 'shutdown'", "connections were refused", "6,481 times in 22.4 s", "12 others"),
        (SOUND,),
    ),
    "p_tls": (
        (
            "tls-app", "'amq.bad'", "plain AMQP to a TLS port", "first bytes are those of TLS",
            "1 TLS connection may be AMQP and could not be read",
        ),
        (SOUND, "certificate"),
    ),
    "r_leak": (("churner", "opens a connection every 58.8 ms", "leaky-service"), ("error",)),
    "t_excl": (("scheduler-2", "'scheduler.lock'", "queue 'single'", "exclusive use"), (SOUND,)),
    "u_stream_quorum": (
        ("audit-reader (", "prefetch count is not set", "audit-reader-2 (", "stream queues"),
        (SOUND,),
    ),
    "v_shovel": (("Shovel broken", "Login was refused", "connects again and again"), (SOUND,)),
    "w_formats": ((SOUND,), ("error", "failed")),
    "x_traceparent": ((SOUND,), ("error", "failed")),
    "z_cancel": (
        ("notify-worker", "queue 'notify' (deleted in packet 46)", "their queue is gone"),
        (SOUND, "heartbeat"),
    ),
}  # fmt: skip

SAMPLE_ROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "aiopika_rpc.pcap": ((SOUND,), ("error",)),
    "amqplib08.pcap": (("no queue 'nope' in vhost 'shop'", "Python amqplib"), (SOUND,)),
    "blocked.pcap": (("low on memory, for 3.47 s", "blocked-pub"), (SOUND,)),
    "bunny.pcapng": (("no queue would take it: Bunny", "'hx'", "9 times"), (SOUND,)),
    "delayed_ack.pcap": (("waits for a delayed acknowledgement of TCP", "43.7 ms"), (SOUND,)),
    "kombu.pcap.gz": ((SOUND,), ("error",)),
    "late_consumer.pcap": (("stay in their queue", "'reports'", "late-sample"), ("error",)),
    "lost.pcap": (("5.79 kB missing in 3 holes",), ("error",)),
    "midstream.pcap": ((SOUND, LATE), ("error",)),
    "node.pcap": (("no queue 'nothere' in vhost 'shop'", "node-billing"), (SOUND,)),
    "php_churn.pcap": (("AMQPLib", "opened for a few messages each"), ("error",)),
    "pika_mix.pcap": (
        (
            "404 NOT_FOUND", "403 ACCESS_REFUSED", "406 PRECONDITION_FAILED", "order-service-1",
            "vhost nope not found", "authentication-failed",
        ),
        (SOUND,),
    ),
    "snapped.pcap": (
        ("239 packets were cut", "The broker closed a channel", "refused a login"),
        (SOUND,),
    ),
    "tls12.pcapng": ((SOUND,), ("error",)),
    "tls12_rsa.pcap": (("2 TLS connections may be AMQP", "No AMQP was found"), (SOUND,)),
    "tls13.pcap": (("2 TLS connections may be AMQP", "No AMQP was found"), (SOUND,)),
    "v08_v09.pcap": (("class 85, method 10", "version that is not decoded"), (SOUND,)),
    "zerowindow.pcap": (
        (
            "low on memory, for 4.51 s", "the client's window was closed for 29.8 s",
            "without a prefetch limit", "cut by the snap length",
        ),
        (SOUND,),
    ),
}  # fmt: skip

OWN_ROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "aiopika_multi.pcap": ((SOUND,), ("error",)),
    "amqp10.pcap": (("a protocol version that is not decoded",), (SOUND,)),
    "rabbitmq43_changes.pcap": (
        ("v1-app", "'x-queue-version'", "qos-size", "prefetch_size!=0", "retry-app", "'retry'"),
        (SOUND,),
    ),
    "rabbitmq43_consumer_timeout.pcap": (
        (
            "slow-without-notify",
            "was not acknowledged in time",
            "slow-with-notify",
            "cancelled a consumer that held deliveries for too long",
        ),
        (SOUND,),
    ),
    "violations.pcap": (("The broker refused a login", "more findings are listed"), (SOUND,)),
}
CASE_ROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "consumer_not_restored": (
        ("billing", "does not consume from its queue", "queue 'invoices' until its connection"),
        (SOUND,),
    ),
    "consumer_restored": (("ended without being closed: billing",), ("error", "does not consume")),
    "consumer_starved_after_timeout": (
        ("sleeper", "cancelled a consumer that held deliveries for too long", "consumer 'one'"),
        (SOUND,),
    ),
    "feature_deprecated": (
        (
            "old-app", "feature that is deprecated", "`transient_nonexcl_queues`",
            "queue.declare of queue 'tmp.q' in packet 16",
        ),
        (SOUND, "failed inside"),
    ),
}  # fmt: skip
ROWS = {
    **{INCIDENTS / f"{name}.pcap": row for name, row in INCIDENT_ROWS.items()},
    **{SAMPLES / name: row for name, row in SAMPLE_ROWS.items()},
    **{OWN / name: row for name, row in OWN_ROWS.items()},
    **{OWN.parent / "cases" / f"{name}.pcap.gz": row for name, row in CASE_ROWS.items()},
}


def diagnosis(path: Path) -> Diagnosis:
    """The diagnosis of an incident, with its keys; samples of TLS are read without theirs."""
    keys = path.with_suffix(".keys")
    used = keys if keys.exists() and path.parent != SAMPLES else None
    return amqpsniff.open(path, tls_keylog=used).diagnose()


def screen(found: Diagnosis) -> list[str]:
    """The lines of a first screen."""
    layout = Layout(COLUMNS, Clock("relative", found.start_ns), narrow=True)
    lines = [
        " " * block.indent + line
        for block in sections(found, layout)
        for line in block.lines(COLUMNS - block.indent, Paint(False))
    ]
    assert max(map(len, lines)) <= COLUMNS
    return [line.rstrip() for line in lines[:LINES]]


@pytest.mark.parametrize("path", ROWS, ids=lambda path: path.name)
def test_the_first_screen_names_the_cause(path: Path) -> None:
    found = diagnosis(path)
    lines = screen(found)
    shown = " ".join(" ".join(lines).split())
    must, must_not = ROWS[path]
    assert not [words for words in must if words not in shown], shown
    assert not [words for words in must_not if words in shown], shown
    assert 1 <= len(found.verdict.sentences) <= MAX_SENTENCES
    assert {KINDS[one["code"]].category for one in found.verdict.evidence} <= {"problem", "cost"}


def test_every_incident_and_sample_has_its_row() -> None:
    held = {*INCIDENTS.glob("*.pcap"), *SAMPLES.glob("*.pcap*")}
    assert held <= ROWS.keys()


def test_a_terminal_shows_the_same() -> None:
    path = INCIDENTS / "m_rpc.pcap"
    written = on_terminal("diagnose", path, columns=COLUMNS).out.splitlines()
    assert written[:LINES] == screen(diagnosis(path))
