"""Troubles of people with AMQP, and the command that names the cause of each.

The first tables are of captures: what the first screen of `diagnose`, 24 lines of 80 columns, says
of them. A row has words that must stand there, and words that would be false. What a capture shows
is told in `tests/captures/incidents/TRUTH.tsv`, `tests/captures/own` and `samples/README.md`.

`STORIES` are questions that people asked in public, each with one command, what it reads, and the
same two kinds of words. Some are played as they look on the wire: 3 with a queue that does not
answer, since RabbitMQ 4.3.6 takes an undefined consumer_timeout; 5 with a proxy that swallows
acknowledgements. 35 and 36 are messages as MassTransit writes them, which needs .NET to run.
Latencies as metrics: tests/live.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

import amqpsniff
from amqpsniff.analysis.diagnosis import Diagnosis
from amqpsniff.analysis.verdict import MAX_SENTENCES
from amqpsniff.cli.diagnose import DiagnosisText
from amqpsniff.cli.render.clock import LineClock
from amqpsniff.cli.render.text import Paint
from amqpsniff.findings import KINDS
from tests.cli.running import on_terminal, run, write_capture
from tests.conftest import OWN, SAMPLES
from tests.findings.cases import packets_of

INCIDENTS = OWN.parent / "incidents"
LINES, COLUMNS = 24, 80

SOUND = "Nothing wrong was found"
LATE = "began before it"

INCIDENT_ROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a_prefetch": (
        (
            "A consumer holds all it may hold", "orders-worker", "'worker-1' of queue 'orders.new'",
            "held 10 deliveries of 10 allowed", "acknowledged nothing for 15.9 s",
        ),
        (SOUND, "blocked", "prefetch limit"),
    ),
    "a_prefetch_midstream": (
        (
            "A consumer gets nothing, though", "consumer 'worker-1'", "none in the 29.2 s after",
            LATE,
        ),
        (SOUND, "error"),
    ),
    "ab_after": (("ab-worker", "queue 'ab.orders'", "delivered after 1.43 s"), ("error",)),
    "ab_before": ((SOUND,), ("error", "failed")),
    "b_block_mid": (
        (
            "blocked publishing because of an alarm", "reason were not captured",
            "for the first 8.97 s", "delivered after 2.75 s", LATE,
        ),
        (SOUND, "low on memory"),
    ),
    "c_maxlen": (
        (
            "The broker refused published messages: sensor-gw", "40 times",
            "queue 'readings' was declared with x-max-length 20, x-overflow reject-publish",
        ),
        (SOUND,),
    ),
    "d_broker": (("TCP segments had to be retransmitted", "38 of 1255 packets"), (SOUND,)),
    "d_client": (("TCP segments had to be retransmitted", "38 of 1255 packets"), (SOUND,)),
    "d_unroutable": (
        (
            "shop-web", "'shop.events'", "'orders.created'", "no queue would take it",
            "with routing key 'ordre.paid': taken by none of the 1 binding",
        ),
        (SOUND,),
    ),
    "f_ack": (
        (
            "ledger-worker", "delivery 1 was settled before",
            "delivery 4711 was not sent on this channel", "unknown delivery tag 1",
        ),
        (),
    ),
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
        (
            "price-server had the request", "'price.rpc'", "request in hand: price-client",
            "left open",
        ),
        (SOUND,),
    ),
    "n_slow_confirms": (
        ("bank-publisher", "Publisher confirms are slow", "the longest 1.40 s"),
        (SOUND, "failed"),
    ),
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
            "tls-app", "'amq.bad'", "the client sent unknown_ca", "plain AMQP to a TLS port",
        ),
        (SOUND, "certificate"),
    ),
    "r_leak": (("churner", "one every 58.5 ms", "leaky-service"), ("error",)),
    "t_excl": (("scheduler-2", "'scheduler.lock'", "queue 'single'", "exclusive use"), (SOUND,)),
    "u_stream_quorum": (
        (
            "audit-reader", "prefetch count is not set", "stream queues", "ledger-poison",
            "'ledger.q' has x-delivery-count 3 of x-delivery-limit 3",
        ),
        (SOUND,),
    ),
    "v_shovel": (("Shovel broken", "Login was refused", "connects again and again"), (SOUND,)),
    "w_formats": ((SOUND,), ("error", "failed")),
    "x_traceparent": ((SOUND,), ("error", "failed")),
    "z_cancel": (
        ("notify-worker", "'notify' (deleted in packet 46 by ops-cli)", "their queue is gone"),
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
    "amqp10.pcap": ((SOUND, "1 AMQP connection"), ("error",)),
    "rabbitmq43_changes.pcap": (
        ("v1-app", "'x-queue-version'", "qos-size", "prefetch_size!=0", "retry-app", "'retry'"),
        (SOUND,),
    ),
    "rabbitmq43_consumer_timeout.pcap": (
        (
            "slow-without-notify",
            "was not acknowledged in time",
            "slow-with-notify",
            "A consumer held deliveries for too long",
        ),
        (SOUND,),
    ),
    "violations.pcap": (("The broker refused a login", "more findings are listed"), (SOUND,)),
}
CASE_ROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "client_killed": (("ended without being closed",), ("open at one end only",)),
    "connect_unreachable": (
        ("ICMP said: host unreachable", "administratively prohibited"),
        (SOUND,),
    ),
    "half_open": (("open at one end only",), (SOUND, "heartbeat")),
    "head_of_line": (("waiting for up to 373 ms",), (SOUND,)),
    "published_after_fin": (("after the broker's FIN",), (SOUND,)),
    "tls_refused": (("ended the TLS handshake with an encrypted alert",), (SOUND,)),
    "tls_ended_early": (
        ("A client ended TLS before it sent anything", "the server's messages of the handshake"),
        (SOUND, "plain AMQP"),
    ),
    "tls_certificate_demanded": (
        ("ended the TLS handshake with an encrypted alert", "all that the server sent after"),
        (SOUND, "before it sent anything"),
    ),
    "tls_certificate_missing": (
        ("the server sent handshake_failure", "asked for the client's certificate", "gave none"),
        (SOUND,),
    ),
    "consume_internal_error": (
        ("541 INTERNAL_ERROR", "basic.consume on channel 1 had no answer in 30.0 s"),
        (SOUND,),
    ),
    "acknowledgements_swallowed": (
        ("batch-runner", "406", "nothing was outstanding", "what the broker says is not so"),
        (SOUND, "not acknowledged in time"),
    ),
    "idle_cut_soon": (
        ("cuts idle connections", "ended after 3.00 s without traffic", "mail-sender",
         "heartbeat of 60 s", "As a result, a client connects again"),
        (SOUND,),
    ),
    "features_denied": (
        ("stock-sync, stock-locator, celery-flower and 2 others", "`transient_nonexcl_queues`",
         "queue.declare of queue 'stock.tmp'", "`queue_master_locator`",
         "queue.declare of queue 'stock.ml'", "unsupported queue version"),
        (SOUND, "stock-lazy", "stock-global"),
    ),
    "shovel_federation": ((SOUND,), ("error", "failed")),
    "shovel_exchange_missing": (
        ("Shovel noex", "no exchange 'no.such.exchange'", "answer to basic.publish"),
        (SOUND,),
    ),
    "headers_unmatched": (
        (
            "match no binding in the capture: erp-export", "15 or more of 25 messages",
            "exchange 'erp.in'", "bindings by headers lead to queue 'erp.eu'",
        ),
        (SOUND, "error"),
    ),
    "headers_matched": ((SOUND,), ("error", "warning publishes-unbound")),
    "deliveries_dropped_after_cancel": (
        ("after the client's basic.cancel", "crm-sync", "'crm.sync'"),
        (SOUND,),
    ),
    "consumer_not_restored": (
        ("billing", "does not consume from its queue", "queue 'invoices' until its connection"),
        (SOUND,),
    ),
    "consumer_restored": (("ended without being closed: billing",), ("error", "does not consume")),
    "consumer_starved_after_timeout": (
        ("sleeper", "A consumer held deliveries for too long", "consumer 'one'"),
        (SOUND,),
    ),
    "delivery_limit": (
        ("ledger-worker", "use up their delivery limit together", "x-delivery-count 3"),
        (SOUND, "poison"),
    ),
    "delivery_limit_far": (("ledger-worker",), ("delivery limit",)),
    "deliveries_after_cancel_settled": (("stopper",), ("after the client's basic.cancel",)),
    "feature_deprecated": (
        (
            "old-app", "feature that is deprecated", "`transient_nonexcl_queues`",
            "queue.declare of queue 'tmp.q' in packet 16",
        ),
        (SOUND, "failed inside"),
    ),
    "traffic_stopped": (
        ("feeder", "Traffic stopped", "broker owes 1 confirm since 40.0 s (packet 551)"),
        (SOUND, "failed"),
    ),
    "channels_in_turn": (
        ("session-service", "opens more and more channels", "90 channels", "none was closed"),
        (SOUND, "error"),
    ),
    "consumer_hangs_soon": (
        ("ruby-hang", "holds all it may hold", "3 deliveries of 3 allowed", "As a result"),
        (SOUND,),
    ),
    "consumer_hangs_midstream": (
        ("no consumer of the capture gets them", "98 messages", "nothing but heartbeats", LATE),
        (SOUND, "error"),
    ),
    "consumer_timed_out": (
        ("pdf-render", "held deliveries for too long", "for 4.00 s", "As a result"),
        (SOUND, "queue is gone", "deleted"),
    ),
    "queue_dropped": (
        ("meter-gateway", "dropped messages at its length limit", "30 or more are gone"),
        (SOUND, "error"),
    ),
    "messages_expired": (
        ("quote-feed", "when they expired", "x-message-ttl 800", "103 or more are gone"),
        (SOUND, "error"),
    ),
    "consumer_left": (
        ("invoice-worker", "left its queue", "cancelled by the client in packet 157", "32 or more"),
        (SOUND, "error"),
    ),
    "transaction_forgotten": (
        ("billing-batch", "never committed", "40 publishes", "the channel, 40.6 s later"),
        (SOUND, "failed"),
    ),
    "acknowledged_twice": (
        ("was acknowledged that is not", "invoice-worker", "As a result", "504 Frame on unknown"),
        (SOUND,),
    ),
    "exception_in_consumer": (
        ("A client closed", "java-throws", "200 Closed due to exception from Consumer"),
        (SOUND,),
    ),
    "job_beyond_timeout": (
        ("held deliveries for too long", "for 60.0 s", "As a result", "541 Error while processing"),
        (SOUND,),
    ),
    "callers_gave_up": (
        ("callers that have gone", "rpc-server", "5 messages for 5 private", "direct reply-to of"),
        (SOUND, "error"),
    ),
    "retries_that_end": ((SOUND,), ("goes round", "nobody reads")),
    "caller_gone": (
        ("tax-server", "callers that have gone", "5 messages for 5 private queues"),
        (SOUND, "error"),
    ),
    "queue_expired": (
        ("alert-mail", "expired before its client came back", "x-expires 4000", "As a result"),
        (SOUND,),
    ),
    "celery_killed": (
        (
            "py-amqp", "left open: 3 channels, 3 consumers, 4 deliveries not acknowledged",
            "4 deliveries from queue 'media-jobs'", "when TCP ended",
        ),
        (SOUND, "pidbox"),
    ),
    "celery_eta": (
        ("py-amqp", "wait for their time fill the prefetch", "nothing else came for 14.4 s"),
        (SOUND, "holds all it may hold"),
    ),
    "heartbeat_missed": (("octane-worker", "nothing from the client for 12.0 s"), (SOUND,)),
    "publish_incomplete": (
        ("uploader", "40.0 kB of the message of 100 kB", "when the client ended TCP (FIN)"),
        (SOUND,),
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
    clock = LineClock("relative", lambda: found.start_ns)
    lines = [
        " " * block.indent + line
        for block in DiagnosisText(found, COLUMNS, clock, narrow=True).sections()
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


class Story(NamedTuple):
    """A question: its number and the thread, the command, what it reads, the two kinds of words.

    The capture is a file beside the tests or among the samples, or a conversation as a script.
    """

    name: str
    command: str
    capture: str
    must: tuple[str, ...]
    must_not: tuple[str, ...] = ()


SHOWN = "tests/findings/captures/shown"
CASES = "tests/captures/cases"
PLAYED = "tests/captures/incidents"

CONSUMER = """
    handshake server='{"product": "RabbitMQ", "version": "4.3.2"}'
    C1: channel.open
    S1: channel.open-ok
    C1: basic.qos prefetch_count=2
    S1: basic.qos-ok
    C1: basic.consume queue=jobs consumer_tag=t
"""
CONSUMING = CONSUMER + "S1: basic.consume-ok consumer_tag=t\n"
TIMED_OUT = (
    CONSUMING
    + """
    S1: basic.deliver consumer_tag=t delivery_tag=1 | body=1
    C1: basic.ack delivery_tag=1
    @+60000ms S1: channel.close reply_code=406 reply_text="PRECONDITION_FAILED - delivery \
acknowledgement on channel 1 timed out. Timeout value used: 30000 ms"
    C1: channel.close-ok
""".replace("\\\n", "")
)
LEFT_OPEN = (
    "".join(
        f"""
    c{n}.handshake client='{{"connection_name": "easynetq-app"}}'
    @+3000ms c{n}.C1: channel.open
    c{n}.S1: channel.open-ok
"""
        for n in range(24)
    )
    + "@+12000ms c0.C2: channel.open\nc0.S2: channel.open-ok\n"
)
MASSTRANSIT = """
    handshake client='{"connection_name": "billing"}'
    C1: channel.open
    S1: channel.open-ok
    C1: basic.publish exchange=submit_skipped | body=2 message_id=m1 headers='{"MT-Reason": \
"dead-letter", "MT-MessageType": "urn:message:Shop:SubmitOrder"}'
    C1: basic.publish exchange=submit_error | body=2 message_id=m2 headers='{"MT-Reason": "fault", \
"MT-Fault-ExceptionType": "System.TimeoutException", "MT-MessageType": "urn:message:Shop:Ship"}'
""".replace("\\\n", "")

TWO_CONSUMERS = (
    CONSUMING
    + """
    b.handshake client='{"connection_name": "second"}'
    b.C1: channel.open
    b.S1: channel.open-ok
    b.C1: basic.consume queue=jobs consumer_tag=u
    b.S1: basic.consume-ok consumer_tag=u
    S1: basic.deliver consumer_tag=t delivery_tag=1 | body=1 correlation_id=k1
    @+3600000ms RST C
    b.S1: basic.deliver consumer_tag=u delivery_tag=1 redelivered=1 | body=1 correlation_id=k1
    b.C1: basic.ack delivery_tag=1
"""
)

STORIES = (
    Story("1 galaxy#22641: all workers fail at start after the upgrade to 4.3", "diagnose",
          f"{CASES}/feature_deprecated.pcap.gz",
          ("`transient_nonexcl_queues`", "queue.declare of queue 'tmp.q'", "declare it durable"),
          ("the broker failed inside",)),
    Story("2 kombu#2237: what will 4.3 refuse?", "diagnose --for rabbitmq-4.3",
          "samples/pika_mix.pcap",
          ("transient-queue", "order-service-1", "queue orders.eu")),
    Story("3 rabbitmq-server#16788: basic.consume gets no answer, then 541", "diagnose",
          f"{CASES}/consume_internal_error.pcap.gz",
          ("541 INTERNAL_ERROR", "mailer", "basic.consume on channel 1 had no answer in 30.0 s")),
    Story("3 rabbitmq-server#16788: 541 at basic.consume", "diagnose",
          CONSUMER + "S: connection.close reply_code=541 reply_text=INTERNAL_ERROR",
          ("the client's last frame before is basic.consume", "consumer_timeout",
           "the client is not at fault")),
    Story("4 rabbitmq-server#17317: a queue is dead after its consumers timed out", "diagnose",
          f"{CASES}/consumer_starved_after_timeout.pcap.gz",
          ("held deliveries for too long", "got nothing for 33.1 s, until what it held was"),
          ("queue is gone",)),
    *(
        Story(f"5 rabbitmq-server#9046: timed out, though all was acknowledged{kind}", "diagnose",
              capture, ("nothing was outstanding", "what the broker says is not so"),
              ("was not acknowledged in time",))
        for kind, capture in (
            ("", f"{CASES}/acknowledgements_swallowed.pcap.gz"), (", a script", TIMED_OUT),
        )
    ),
    Story("6 spring-amqp#3507: unknown delivery tag", "diagnose", f"{PLAYED}/f_ack.pcap",
          ("delivery 1 was settled before", "delivery 4711 was not sent on this channel")),
    Story("7 celery#6067: a worker takes no more tasks", "diagnose", f"{CASES}/celery_eta.pcap.gz",
          ("Tasks that wait for their time fill the prefetch", "queue 'media-q'",
           "nothing else came for 14.4 s"),
          ("holds all it may hold",)),
    Story("8 amqp091-go#182: waiting for a confirm hangs", "connections -v",
          f"{PLAYED}/a_prefetch.pcap",
          ("nothing outstanding; broker confirmed all 100 publishes",)),
    Story("9 streadway#246: confirms are stuck", "channels", f"{PLAYED}/a_prefetch.pcap",
          ("confirm         -        100        100",)),
    Story("10 dotnet-client#1283: a message is lost in confirm mode", "diagnose",
          f"{SHOWN}/publishes-in-doubt.pcap.gz",
          ("publishes that the broker had not confirmed", "numbers 2 to 302")),
    Story("11 rabbitmq-server#1399: channels that end with outstanding confirms",
          "export -t findings --format csv", f"{SHOWN}/publishes-in-doubt.pcap.gz",
          ("publishes-in-doubt",)),
    Story("12 bunny#611: fewer arrive than were published", "diagnose",
          f"{CASES}/publish_incomplete.pcap.gz",
          ("message was not whole when its connection ended", "uploader")),
    Story("13 php-amqplib#787: published after the broker had gone",
          "diagnose --only publishes-discarded", "tests/captures/own/violations.pcap",
          ("sent after the broker's close in packet 1402 (404), and dropped",)),
    Story("14 amqplib#321: publish callbacks are not called", "diagnose", "samples/blocked.pcap",
          ("blocked publishing because of an alarm", "low on memory, for 3.47 s")),
    Story("15 lavinmq#2192: messages that no queue takes", "diagnose",
          f"{PLAYED}/d_unroutable.pcap",
          ("5 messages to exchange 'shop.events' with routing key 'ordre.paid'",
           "taken by none of the 1 binding that the capture shows")),
    Story("16 beer-garden#37: a queue was deleted, its messages vanish", "diagnose",
          f"{SHOWN}/publishes-after-deletion.pcap.gz",
          ("Messages are published for a queue that was deleted", "queue 'work' was deleted in")),
    Story("17 rabbitmq-server#2329: the history of a message", "trace --message-id s0",
          f"{PLAYED}/v_shovel.pcap", ("published", "delivered q=shovel.src", "rk=shovel.dst")),
    Story("18 rabbitmq-server#11228: unacknowledged, and the consumer never got them",
          "messages --outcome unsettled", f"{PLAYED}/a_prefetch.pcap",
          ("orders-worker", "dt=26 q=orders.new")),
    Story("19 aio-pika#540: consumers that hold messages and do nothing", "diagnose",
          f"{PLAYED}/a_prefetch.pcap", ("orders-worker", "held 10 deliveries of 10 allowed")),
    Story("20 aio-pika#231: connected again, and consumes nothing", "diagnose",
          f"{CASES}/consumer_not_restored.pcap.gz",
          ("billing", "came back, and did not consume")),
    Story("21 aio-pika#334: a cancelled consumer is not recovered", "diagnose",
          f"{SHOWN}/consumer-cancelled.pcap.gz",
          ("The broker cancelled a consumer, and it was not started again",
           "deleted in packet 37 by app")),
    Story("22 celery#987: does not consume after a reset", "diagnose",
          f"{CASES}/consumer_not_restored.pcap.gz", ("queue 'invoices' until its connection",)),
    Story("23 ruby-amqp#198: deliveries after basic.cancel stay unacknowledged",
          "diagnose", f"{CASES}/deliveries_dropped_after_cancel.pcap.gz",
          ("25 deliveries came to consumer 'crm-1' of queue 'crm.sync' after its basic.cancel",
           "crm-sync")),
    Story("24 rabbitmq-website#2207: a poison message costs its neighbours", "diagnose",
          f"{CASES}/delivery_limit.pcap.gz",
          ("messages in one prefetch window use up their delivery limit together",)),
    Story("25 rabbitmq-server#11734: long tasks are delivered twice", "diagnose",
          f"{SHOWN}/idle-connection-cut.pcap.gz",
          ("Something between client and broker cuts idle connections", "after 40.0 s")),
    Story("26 laravel-queue-rabbitmq#591: missed server heartbeat", "diagnose",
          f"{CASES}/heartbeat_missed.pcap.gz",
          ("octane-worker", "nothing from the client for 12.0 s, heartbeat 4 s")),
    Story("27 amqp-bunny#4: another consumer starts the same task", "diagnose",
          f"{CASES}/celery_killed.pcap.gz",
          ("4 deliveries from queue 'media-jobs'", "when TCP ended")),
    Story("27 amqp-bunny#4: who consumes from it besides?", "diagnose", TWO_CONSUMERS,
          ("1 delivery from queue 'jobs'", "'second'", "consumed from there too")),
    Story("27 amqp-bunny#4: which one got it when?",
          "trace --correlation-id k1",
          TWO_CONSUMERS,
          ("delivered q=jobs dt=1 ct=t", "unsettled", "delivered again q=jobs dt=1 ct=u", "acked")),
    Story("28 lapin#422: a reply is lost",
          "trace --correlation-id eef8d969-fd36-42e8-b94f-8c51934e5273",
          "samples/aiopika_rpc.pcap", ("reply after", "delivered q=amq.gen")),
    Story("29 py-amqplib#50: one in thousands is late", "diagnose", "samples/late_consumer.pcap",
          ("Messages stay in their queue for a long time", "queue 'reports'", "at most")),
    Story("30 MassTransit#6191: everything stops", "diagnose",
          f"{CASES}/traffic_stopped.pcap.gz",
          ("Traffic stopped", "broker owes 1 confirm since 40.0 s")),
    Story("31 MassTransit#5068: publish hangs", "diagnose", f"{PLAYED}/n_slow_confirms.pcap",
          ("Publisher confirms are slow", "14.0 s of 20.0 s were spent waiting")),
    Story("32 rabbitmq-server#10381: thousands of connections in netstat", "diagnose", LEFT_OPEN,
          ("opens more and more connections", "easynetq-app", "24 connections")),
    Story("33 rabbitmq-server#14385: who deleted it?", "diagnose --only operation-destructive -v",
          f"{PLAYED}/z_cancel.pcap",
          ("user 'app' (ops-cli) from 10.91.12.2 deleted queue 'notify'",)),
    Story("34 rabbitmq-event-exchange#40: who purged, and how much?",
          "inspect --method queue.purge*", "samples/pika_mix.pcap",
          ("order-service-1", "queue.purge q=dlq", "message_count=1")),
    Story("35 MassTransit#1508: why _skipped?", "messages -v --exchange *_skipped", MASSTRANSIT,
          ("billing", 'MT-Reason "dead-letter"', "urn:message:Shop:SubmitOrder"), ("m2",)),
    Story("36 vscode-database-client#1774: the error of a dead letter",
          "messages --by operation --exchange *_error", MASSTRANSIT,
          ("Shop:Ship", "System.TimeoutException"), ("SubmitOrder",)),
    Story("37 oslo 1905965: was the request answered?",
          "trace --key 2a585c92a9474c859324b1e2fd6bd4a4", "tests/captures/packs/oslo.pcap.gz",
          ("delivered q=compute", "delivered q=reply_bc6cddb95e484918afefd510789f1913")),
    Story("38 celery#4671: tasks run twice after a restart", "diagnose",
          f"{PLAYED}/a_prefetch.pcap", ("10 deliveries from queue 'orders.new'", "when TCP ended")),
    Story("39 otel-java#2822: where does the trace end?",
          "trace --trace-id 4bf92f3577b34da6a3ce929d0e0e4732",
          "tests/captures/packs/amqplib.pcap.gz",
          ("delivered q=n", "acked q=n"), ("n.out",)),
    Story("40 coroot#705: latency between producer and consumer", "messages --by operation",
          "tests/captures/packs/celery.pcap.gz", ("in queue p95", "at work p95", "celery")),
    Story("41 OBI#1142: telemetry", "export -t messages --format otlp", f"{PLAYED}/m_rpc.pcap",
          ("resourceSpans",)),
    Story("42 sapcc#7340: ten seconds at every connection", "diagnose",
          f"{CASES}/proxy_detection.pcap.gz",
          ("The broker's first method came late", "connection.start came 9.01 s after"),
          ("Opening a connection took long",)),
    Story("43 open-build-service#6251: idle time of a proxy", "diagnose",
          f"{SHOWN}/idle-connection-cut.pcap.gz", ("cuts idle connections",)),
    Story("44 optscale#770: which consumer times out?", "diagnose",
          "tests/captures/own/rabbitmq43_consumer_timeout.pcap",
          ("slow-without-notify", "slow-with-notify", "held deliveries for too long")),
)  # fmt: skip
"""By the number of the question and its thread."""

ROOT = SAMPLES.parent


def captured(story: Story, folder: Path) -> Path:
    """The capture of a story, made of its script where it has one."""
    if "\n" not in story.capture:
        return ROOT / story.capture
    return write_capture(folder / "a.pcap", packets_of(story.capture))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name.partition(":")[0])
def test_a_command_answers(story: Story, tmp_path: Path) -> None:
    command, *options = story.command.split()
    result = run(command, captured(story, tmp_path), *options)
    shown = " ".join(result.out.split())
    assert not [words for words in story.must if " ".join(words.split()) not in shown], shown
    assert not [words for words in story.must_not if words in shown], shown
