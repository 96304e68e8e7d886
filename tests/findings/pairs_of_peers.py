"""Pairs for what peers say and when: a method, a value or a millisecond more or less."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from amqpsniff.session.rules.opening import CAPABILITIES
from tests.conftest import CAPTURES
from tests.findings.cases import Case, Pair, packets_of, sent
from tests.findings.pairs_of_bytes import OPEN
from tests.session.rules.damage import packets_in
from tests.tcp import wire

END = "C: connection.close reply_code=200\nS: connection.close-ok\n"
CLOSED = "FIN C\nFIN S\n"
CONSUMER = OPEN + "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
DELIVER = "S1: basic.deliver consumer_tag=t routing_key=q delivery_tag={n} | body=5\n"
CONFIRM = OPEN + "C1: confirm.select\nS1: confirm.select-ok\n"
PUBLISH = "C1: basic.publish routing_key=q | body=5\n"
SELECTED = OPEN + "C1: tx.select\nS1: tx.select-ok\n"
CHANNEL_END = "C1: channel.close reply_code=200\nS1: channel.close-ok\n"
CALLER = OPEN + (
    "b.handshake\nb.C1: channel.open\nb.S1: channel.open-ok\n"
    "b.C1: queue.declare queue=r exclusive=1\nb.S1: queue.declare-ok queue=r\n"
    "b.C: connection.close reply_code=200\nb.S: connection.close-ok\n"
)
ROUTED = OPEN + (
    "C1: exchange.declare exchange=e type=topic\nS1: exchange.declare-ok\n"
    "C1: queue.bind queue=q exchange=e routing_key=orders.*\nS1: queue.bind-ok\n"
    "C1: basic.publish exchange=e routing_key=~ | body=1\n"
)


def table(**fields: Any) -> str:
    """A field table as scripts have it."""
    return json.dumps(fields)


def each(count: int, *lines: str, first: int = 1) -> str:
    """Lines again and again: `{n}` counts."""
    return "".join("".join(lines).replace("{n}", str(n)) for n in range(first, first + count))


def opening(
    *,
    start: str = "",
    wait: int = 1,
    mechanism: str = "PLAIN",
    response: str = "\\0user\\0secret",
    client: str = "{}",
    tuned: str = "channel_max=2047 frame_max=131072 heartbeat=60",
    name: str = "",
    steps: int = 6,
) -> str:
    """A handshake step by step, up to one of them."""
    login = f"mechanism={mechanism} response={response}"
    lines = [
        f"{name}S: connection.start version_minor=9 mechanisms=PLAIN {start}",
        f"@+{wait}ms {name}C: connection.start-ok {login} client_properties='{client}'",
        f"{name}S: connection.tune channel_max=2047 frame_max=131072 heartbeat=60",
        f"{name}C: connection.tune-ok {tuned}",
        f"{name}C: connection.open virtual_host=/",
        f"{name}S: connection.open-ok",
    ]
    return f"{name}hello\n" + "\n".join(lines[:steps]) + "\n"


def _left(ms: int) -> str:
    """A consumer is cancelled, and its queue gets ten messages, the last after a time."""
    cancel = "C1: basic.cancel consumer_tag=t\nS1: basic.cancel-ok consumer_tag=t\n"
    publishes = ("@+1000ms " + PUBLISH) * 9 + f"@+{ms}ms " + PUBLISH
    return CONSUMER + DELIVER.format(n=1) + "C1: basic.ack delivery_tag=1\n" + cancel + publishes


def _expired(ms: int) -> str:
    """A queue with x-expires is not there any more after a time."""
    return (
        OPEN
        + "C1: queue.declare queue=q arguments='{\"x-expires\": 1000}'\n"
        + f"S1: queue.declare-ok queue=q\n@+{ms}ms C1: basic.consume queue=q\n"
        + refused(404, "NOT_FOUND - no queue 'q' in vhost '/'")
    )


def _start_after(ms: int) -> str:
    """A handshake whose first method comes so long after the protocol header."""
    return opening().replace("S: connection.start ", f"@+{ms}ms S: connection.start ")


def refused(code: int, text: str, at: str = "S1: channel.close", ids: str = "") -> str:
    """The broker closes something, and says why."""
    return f'{at} reply_code={code} reply_text="{text}" {ids}\n'


def _refusal(code: int, text: str, near_code: int | None = None, near_text: str = "") -> Pair:
    """A channel that the broker closes with a code and text, and with another."""
    near = refused(near_code or code, near_text or text)
    return Pair(OPEN + PUBLISH + refused(code, text), OPEN + PUBLISH + near)


def _connection_closed(code: int, text: str = "GONE", ids: str = "") -> str:
    return OPEN + refused(code, text, "S: connection.close", ids) + "C: connection.close-ok\n"


def _closed_by_client(code: int) -> str:
    return OPEN + f"C: connection.close reply_code={code} reply_text=BAD\nS: connection.close-ok\n"


def _before_open(code: int, steps: int = 2, ids: str = "", text: str = "NO") -> str:
    """The broker closes a connection that is not open yet."""
    return opening(steps=steps) + refused(code, text, "S: connection.close", ids)


def _version(version: str) -> str:
    return opening(start=f"server_properties='{table(product='RabbitMQ', version=version)}'")


def _product(second: str) -> str:
    one, other = table(product="one"), table(product=second)
    return opening(name="a.", client=one) + opening(name="b.", client=other)


def _again(ms: int) -> str:
    """Three connections with the same fault, ending 19 ms and a time from first to last."""
    one = opening(name="{n}.") + "@+{wait}ms {n}.S: connection.close reply_code=501\n"
    one += "{n}.C: connection.close-ok\n{n}.RST C\n"
    texts = [one.replace("{n}", f"c{n}").replace("{wait}", str(wait)) for n, wait in
             enumerate((1, 1, ms))]  # fmt: skip
    return "".join(texts)


def _guesses(ms: int) -> str:
    """Five refused logins, 19 ms and a time from first to last."""
    one = opening(name="{n}.", steps=2)
    texts = [
        one.replace("{n}", f"c{n}")
        + f"@+{wait}ms c{n}.S: connection.close reply_code=403 reply_text=ACCESS_REFUSED\n"
        + f"c{n}.RST C\n"
        for n, wait in enumerate((1, 1, 1, 1, ms))
    ]
    return "".join(texts)


def _proxied(locale: str) -> Callable[[], Case]:
    """Two connections of one proxy; the one behind it logs in with a locale."""

    def case() -> Case:
        packets = packets_in(CAPTURES / "hostile" / "proxy.pcap")
        logins = [at for at, one in enumerate(packets) if b"\0guest\0" in one.octets]
        last = packets[logins[-1]]
        packets[logins[-1]] = last._replace(octets=last.octets.replace(b"en_US", locale.encode()))
        return sent(packets)

    return case


def _limited(most: int) -> str:
    """Two messages for a queue with a length limit."""
    declared = "C1: queue.declare queue=q arguments='" + table(**{"x-max-length": most}) + "'\n"
    return OPEN + declared + "S1: queue.declare-ok queue=q\n" + PUBLISH * 2


def _resting(ms: int) -> str:
    """Publishes for a second and a time, beside a connection that sends heartbeats alone."""
    beats = "BYTES b.C 08000000000000ce\nBYTES b.S 08000000000000ce\n"
    return (
        "midstream\nb.midstream\nBYTES S 08000000000000ce\n" + beats + PUBLISH * 9
        + f"@+1000ms {PUBLISH}@+{ms}ms {PUBLISH}WAIT 900\n" + beats
    )  # fmt: skip


def _stale(more: str) -> str:
    return (
        CONSUMER + DELIVER.format(n=1) + more
        + "C1: channel.close reply_code=200\nS1: channel.close-ok\n"
        + "C1: channel.open\nS1: channel.open-ok\nC1: basic.ack delivery_tag=1\n" + END
    )  # fmt: skip


def _stranger(ms: int) -> Callable[[], Case]:
    """A host that has no such connection answers a frame, so long after its own last one."""

    def make() -> Case:
        packets = packets_of(OPEN + f"@+{ms - 2}ms S1: basic.qos-ok\nRST C\n")
        octets = bytearray(packets[-1].octets)
        octets[28:34] = bytes(4) + octets[32:33] + bytes([wire.RST])
        return sent([*packets[:-1], packets[-1]._replace(octets=bytes(octets))])

    return make


def _cancelled(ms: int) -> str:
    return CONSUMER + f"S1: basic.cancel consumer_tag=t\n@+{ms}ms C2: channel.open\n"


def _started_again(queue: str) -> str:
    cancelled = CONSUMER + "S1: basic.cancel consumer_tag=t\n"
    return cancelled + f"C1: basic.consume queue={queue} consumer_tag=u\n"


def _restored(ms: int) -> str:
    """A consumer's connection is reset; the client's next one lasts so long."""
    named = table(connection_name="app")
    consumes = "C1: channel.open\nS1: channel.open-ok\nC1: basic.consume queue=q\n"
    lost = opening(client=named) + consumes + "S1: basic.consume-ok consumer_tag=t\nRST C\n"
    return lost + opening(name="b.", client=named) + f"@+{ms - 6}ms b.RST C\n"


def _counted(*counts: int) -> str:
    """Deliveries of a queue with a delivery limit of 3, which came back so often."""
    limit = table(**{"x-delivery-limit": 3})
    text = OPEN + f"C1: queue.declare queue=q arguments='{limit}'\n" + CONSUMER.removeprefix(OPEN)
    for number, count in enumerate(counts, 1):
        headers = table(**{"x-delivery-count": count})
        again = DELIVER.replace(" | ", f" redelivered=1 | headers='{headers}' ")
        text += again.replace("{n}", str(number))
    return text


def _after_cancel(wait_ms: int) -> str:
    """A delivery that was under way when its consumer was cancelled."""
    cancel = "C1: basic.cancel consumer_tag=t\n"
    answer = "S1: basic.cancel-ok consumer_tag=t\n"
    return CONSUMER + cancel + DELIVER.format(n=1) + answer + f"@+{wait_ms}ms " + END


def _timed_out(ms: int) -> str:
    """RabbitMQ 4.3 cancels a consumer of a queue with a timeout of 12 s after another time."""
    server = table(product="RabbitMQ", version="4.3.6")
    return (
        opening(start=f"server_properties='{server}'")
        + "C1: channel.open\nS1: channel.open-ok\n"
        + "C1: queue.declare queue=q arguments='{\"x-consumer-timeout\": 12000}'\n"
        + "S1: queue.declare-ok queue=q\nC1: basic.consume queue=q consumer_tag=t\n"
        + "S1: basic.consume-ok consumer_tag=t\n"
        + DELIVER.replace("{n}", "1")
        + f"@+{ms}ms S1: basic.cancel consumer_tag=t no_wait=1\n"
    )


def _global(version: str) -> str:
    """A prefetch count of a channel, accepted by a version of RabbitMQ."""
    server = table(product="RabbitMQ", version=version)
    qos = "C1: basic.qos prefetch_count=3 global=1\nS1: basic.qos-ok\n"
    begun = opening(start=f"server_properties='{server}'")
    return begun + "C1: channel.open\nS1: channel.open-ok\n" + qos


def _again_after(ms: int) -> str:
    """A cancelled consumer gets a delivery again, so long after the cancel."""
    again = "S1: basic.deliver consumer_tag=t routing_key=q delivery_tag=2 redelivered=1 | body=5\n"
    return f"@+{ms - 1}ms C1: basic.ack delivery_tag=1\n{again}"


def _idle(ms: int) -> str:
    """Three idle connections that the client's side cuts, the last after another time."""
    tuned = "channel_max=2047 frame_max=131072 heartbeat=0"
    one = opening(name="{n}.", tuned=tuned) + "{n}.C1: channel.open\n@+{ms}ms {n}.RST C\n"
    return "".join(
        one.replace("{n}", name).replace("{ms}", str(time))
        for name, time in (("a", 40_000), ("b", 40_000), ("c", 40_000 + ms))
    )


def _dead(count: int) -> str:
    death = {"count": count, "queue": "q", "exchange": ""}
    headers = table(**{"x-death": [death]})
    return CONSUMER + f"S1: basic.deliver delivery_tag=1 | body=5 headers='{headers}'\n"


def _nested(depth: int) -> str:
    table = '{"a": ' * depth + '"x"' + "}" * depth
    return OPEN + f"C1: basic.publish routing_key=q | body=1 headers='{table}'\n"


def _given_back(last: int) -> str:
    """Twenty-two deliveries in ten seconds and a bit, put back one by one; all come again."""
    texts = [
        f"S1: basic.deliver consumer_tag=t delivery_tag={n} redelivered=1 | body=5\n"
        f"@+500ms C1: basic.reject delivery_tag={n} requeue={last if n == 20 else 1}\n"
        for n in range(1, 22)
    ]
    return CONSUMER + "".join(texts)


_LIMIT = "NOT_ALLOWED - access to vhost '/' refused: connection limit (3) is {}reached"
_OPEN_IDS = "class_id=10 method_id=40"


def _client(name: str = "connection_name", nack: bool = True) -> str:
    """A handshake of a client that says everything, but perhaps one thing."""
    able = dict.fromkeys(CAPABILITIES, True) | {"basic.nack": nack}
    return opening(client=table(**{"product": "p", name: "app", "capabilities": able}))


PAIRS: dict[str, Pair] = {
    # handshakes
    "handshake-slow": Pair(opening(wait=1001), opening(wait=1000)),
    "connection-start-delayed": Pair(_start_after(1001), _start_after(1000)),
    "authentication-failed": Pair(
        opening(steps=2) + "@+5000ms FIN S\n", opening(steps=2) + "@+5001ms FIN S\n"
    ),
    "vhost-refused": Pair(
        _before_open(530, 5, _OPEN_IDS), _before_open(530, 5, "class_id=10 method_id=31")
    ),
    "tuning-rejected": Pair(
        opening(steps=4, tuned="channel_max=2047 frame_max=4095") + "FIN S\n",
        opening(steps=4, tuned="channel_max=2047 frame_max=4096") + "FIN S\n",
    ),
    "limit-reached": Pair(
        _before_open(530, 5, _OPEN_IDS, _LIMIT.format("")),
        _before_open(530, 5, _OPEN_IDS, _LIMIT.format("un").replace("unreached", "far")),
    ),
    "capabilities-missing": Pair(_client(nack=False), _client()),
    "connection-unnamed": Pair(_client("connection-name"), _client()),
    "handshake-out-of-order": Pair(
        opening(steps=3) + "C: connection.open virtual_host=/\nFIN S\n",
        opening(steps=3) + "C: connection.tune-ok frame_max=131072\nFIN S\n",
    ),
    # methods
    "method-wrong-direction": Pair(
        OPEN + "S1: queue.declare queue=q", OPEN + "C1: queue.declare queue=q"
    ),
    "feature-not-implemented": Pair(_connection_closed(540), _connection_closed(541)),
    "channel-zero-misused": Pair(
        OPEN + "C0: queue.declare queue=q", OPEN + "C1: queue.declare queue=q"
    ),
    "channel-not-open": Pair(OPEN + "C2: basic.qos\n", OPEN + "C1: basic.qos\n"),
    "channel-opened-twice": Pair(
        OPEN + "C1: channel.open\n" + END, OPEN + "C2: channel.open\n" + END
    ),
    "channel-mode-mixed": Pair(CONFIRM + "C1: tx.select\n", CONFIRM + "C1: confirm.select\n"),
    "acknowledgement-invalid": Pair(
        CONSUMER + DELIVER.format(n=1) + "C1: basic.ack delivery_tag=2\n" + END,
        CONSUMER + DELIVER.format(n=1) + "C1: basic.ack delivery_tag=1\n" + END,
    ),
    "acknowledgement-stale": Pair(_stale(""), _stale("C1: basic.ack delivery_tag=1\n")),
    "traffic-after-close": Pair(
        OPEN + "C: connection.close reply_code=200\nC1: basic.qos\n",
        OPEN + "C: connection.close reply_code=200\nS1: basic.qos-ok\n",
    ),
    "publish-while-blocked": Pair(
        OPEN + "S: connection.blocked reason=low\n@+501ms " + PUBLISH,
        OPEN + "S: connection.blocked reason=low\n@+500ms " + PUBLISH,
    ),
    "channel-stopped": Pair(
        OPEN + "S1: channel.flow active=0\nC1: channel.flow-ok active=0\n@+900ms " + PUBLISH,
        OPEN + "S1: channel.flow active=0\nC1: channel.flow-ok active=1\n@+900ms " + PUBLISH,
    ),
    "prefetch-exceeded": Pair(
        CONSUMER.replace("C1: basic.consume", "C1: basic.qos prefetch_count=2\nC1: basic.consume")
        + each(3, DELIVER),
        CONSUMER.replace("C1: basic.consume", "C1: basic.qos prefetch_count=2\nC1: basic.consume")
        + each(2, DELIVER),
    ),
    # ends
    "channel-closed-by-broker": _refusal(404, "NOT_FOUND", 200),
    "connection-closed-by-broker": Pair(_connection_closed(501), _connection_closed(200)),
    "closed-by-client": Pair(_closed_by_client(501), _closed_by_client(200)),
    "feature-deprecated": Pair(
        _connection_closed(541, "INTERNAL_ERROR - Feature `ram_node_type` is deprecated."),
        _connection_closed(541, "INTERNAL_ERROR - Feature `ram_node_type` is disabled."),
    ),
    "declaration-mismatch": _refusal(406, "PRECONDITION_FAILED - inequivalent arg 'x'", 405),
    "publishes-discarded": Pair(
        OPEN + "C2: channel.open\nS2: channel.open-ok\n" + refused(404, "NO") + PUBLISH,
        OPEN
        + "C2: channel.open\nS2: channel.open-ok\n"
        + refused(404, "NO")
        + PUBLISH.replace("C1", "C2"),
    ),
    "connection-forced-closed": Pair(_connection_closed(320), _connection_closed(321)),
    "disconnect-unclean": Pair(OPEN + CLOSED, OPEN + "C: connection.close\n" + CLOSED),
    "connection-half-open": Pair(_stranger(1000), _stranger(999)),
    "consumer-cancelled": Pair(_cancelled(5000), _cancelled(4999)),
    "consumer-interrupted": Pair(_started_again("q"), _started_again("r")),
    "consumer-not-restored": Pair(_restored(30_001), _restored(30_000)),
    "delivery-limit-near": Pair(_counted(2), _counted(1)),
    "delivery-limit-bystander": Pair(
        _counted(2, 2) + "RST C\n",
        _counted(2, 2) + "C1: basic.ack delivery_tag=1\nRST C\n",
    ),
    "deliveries-after-cancel": Pair(_after_cancel(5000), _after_cancel(4990)),
    "prefetch-global-ignored": Pair(_global("4.3.0"), _global("4.2.9")),
    "consumer-timed-out": Pair(_timed_out(11_000), _timed_out(10_999)),
    "consumer-starved-after-timeout": Pair(
        _timed_out(12_000) + _again_after(1000), _timed_out(12_000) + _again_after(999)
    ),
    "acknowledgement-timeout": _refusal(
        406, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out", 404
    ),
    "message-too-large": _refusal(
        406,
        "PRECONDITION_FAILED - message size 9 is larger than 8",
        near_text="PRECONDITION_FAILED - message size 9 is smaller than 8",
    ),
    "reconnect-loop": Pair(_again(59_981), _again(59_984)),
    "exclusive-queue-locked": _refusal(405, "RESOURCE_LOCKED", 404),
    "user-id-refused": _refusal(
        406,
        "PRECONDITION_FAILED - user_id property set to 'a'",
        near_text="PRECONDITION_FAILED - user_id property not 'a'",
    ),
    # publishes
    "publishes-unprotected": Pair(
        OPEN + PUBLISH + END, OPEN + "C1: confirm.select\n" + PUBLISH + END
    ),
    "message-unroutable": Pair(
        OPEN + "S1: basic.return reply_code=312 routing_key=q | body=5\n",
        OPEN + "S1: basic.return reply_code=313 routing_key=q | body=5\n",
    ),
    "publish-rejected": Pair(
        CONFIRM + PUBLISH + "S1: basic.nack delivery_tag=1\n",
        CONFIRM + PUBLISH + "S1: basic.ack delivery_tag=1\n",
    ),
    "publishes-in-doubt": Pair(
        CONFIRM + PUBLISH + END, CONFIRM + PUBLISH + "S1: basic.ack delivery_tag=1\n" + END
    ),
    "publish-repeated": Pair(
        *(
            OPEN
            + PUBLISH.replace("body=5", "body=5 message_id=m")
            + f"@+{ms}ms C1: basic.publish routing_key=q | body=5 message_id=m\n"
            for ms in (300_000, 300_001)
        )
    ),
    # deliveries
    "automatic-acknowledgement": Pair(CONSUMER.replace("=t\nS1", "=t no_ack=1\nS1"), CONSUMER),
    "publishes-unbound": Pair(*(ROUTED.replace("~", key) for key in ("ordre.paid", "orders.paid"))),
    "publishes-after-deletion": Pair(
        *(
            OPEN + f"C1: queue.delete queue={queue}\nS1: queue.delete-ok\n" + PUBLISH
            for queue in "qp"
        )
    ),
    "queue-abandoned": Pair(*(_left(ms) for ms in (999, 998))),
    "queue-expired": Pair(*(_expired(ms) for ms in (998, 997))),
    "transaction-uncommitted": Pair(
        SELECTED + PUBLISH + CHANNEL_END,
        SELECTED + PUBLISH + "C1: tx.commit\nS1: tx.commit-ok\n" + CHANNEL_END,
        2,
    ),
    "rpc-caller-gone": Pair(
        *(CALLER + PUBLISH.replace("routing_key=q", f"routing_key={key}") for key in ("r", "s"))
    ),
    "proxy-on-both-sides": Pair(_proxied("en_US"), _proxied("en_GB")),
    "messages-dropped": Pair(*(_limited(most) for most in (1, 2))),
    "publishes-unreceived": Pair(*(_resting(ms) for ms in (9_000, 8_000))),
    "deliveries-stopped": Pair(
        *(
            CONSUMER + each(3, DELIVER) + PUBLISH * 10 + f"@+{ms}ms S1: channel.flow active=1\n"
            for ms in (9_990, 9_989)
        )
    ),
    "deliveries-in-doubt": Pair(
        CONSUMER + DELIVER.format(n=1) + END,
        CONSUMER + DELIVER.format(n=1) + "C1: basic.ack delivery_tag=1\n" + END,
    ),
    "deliveries-deleted": Pair(
        *(
            CONSUMER
            + DELIVER.format(n=1)
            + "C1: queue.delete queue="
            + queue
            + "\nS1: queue.delete-ok\n"
            + END
            for queue in "qp"
        )
    ),
    "poison-message": Pair(
        *(
            CONSUMER
            + each(
                times,
                "S1: basic.deliver consumer_tag=t routing_key=q redelivered=1 delivery_tag={n} "
                "| body=5 message_id=m\n",
            )
            for times in (4, 3)
        )
    ),
    "requeue-storm": Pair(_given_back(1), _given_back(0)),
    "dead-letter-cycle": Pair(_dead(3), _dead(2)),
    "prefetch-unlimited": Pair(
        CONSUMER,
        CONSUMER.replace("C1: basic.consume", "C1: basic.qos prefetch_count=1\nC1: basic.consume"),
    ),
    # heartbeats and blocks
    "heartbeat-missed": Pair(
        OPEN + "@+120000ms C1: basic.qos\n", OPEN + "@+119999ms C1: basic.qos\n"
    ),
    "path-interrupted": Pair(OPEN + "@+60002ms RST S\n", OPEN + "@+60000ms RST S\n"),
    "heartbeat-disabled": Pair(
        opening(tuned="channel_max=9 frame_max=131072 heartbeat=0"),
        opening(tuned="channel_max=9 frame_max=131072 heartbeat=1"),
    ),
    "heartbeat-too-short": Pair(
        opening(tuned="channel_max=9 frame_max=131072 heartbeat=4"),
        opening(tuned="channel_max=9 frame_max=131072 heartbeat=5"),
    ),
    "idle-connection-cut": Pair(_idle(2000), _idle(2001)),
    "connection-blocked": Pair(
        OPEN + "S: connection.blocked reason=low\n", OPEN + "S1: basic.cancel-ok\n"
    ),
    # security
    "credentials-in-clear": Pair(opening(), opening(mechanism="EXTERNAL")),
    "account-default": Pair(
        opening(response="\\0guest\\0secret"), opening(response="\\0guess\\0secret")
    ),
    "account-shared": Pair(_product("two"), _product("one")),
    "connection-unencrypted": Pair(
        "HOSTS 127.0.0.1 10.0.0.2\n" + OPEN, "HOSTS 127.0.0.1 127.0.0.1\n" + OPEN
    ),
    "password-guessing": Pair(_guesses(59_981), _guesses(59_982)),
    "operation-destructive": Pair(
        OPEN + "C1: queue.delete queue=amq.gem", OPEN + "C1: queue.delete queue=amq.gen"
    ),
    "resource-bomb": Pair(_nested(17), _nested(16)),
    "login-anonymous": Pair(
        opening(mechanism="ANONYMOUS", response="x"), opening(mechanism="EXTERNAL", response="x")
    ),
    "software-outdated": Pair(_version("3.13.7"), _version("4.0.1")),
}
"""By code: scripts that differ in one packet."""
