# ruff: noqa: E501 (one packet, one line)
"""Who logs in and how, what is deleted, what is sent to exhaust a reader, which versions are old."""

from __future__ import annotations

import json
from itertools import islice, product
from pathlib import Path
from string import ascii_lowercase

import pytest

import amqpsniff
from tests.findings.cases import packets_of
from tests.session.rules.telling import one, several, told, told_of
from tests.session.script import Script

OPEN = "handshake user=joe\nC1: channel.open\nS1: channel.open-ok\n"


def test_passwords_in_clear() -> None:
    row = one(several("c{n}.handshake user=joe", 3), "credentials-in-clear")
    assert row["detail"] == "user 'joe' from 10.0.0.1 to 10.0.0.2:5672, mechanism PLAIN without TLS"
    assert row["count"] == 3
    assert len(told(several("c{n}.handshake user=joe{n}", 3), "credentials-in-clear")) == 3


@pytest.mark.parametrize("mechanism", ["EXTERNAL", "RABBIT-CR-DEMO", "ANONYMOUS"])
def test_logins_without_a_password(mechanism: str) -> None:
    text = (
        f"hello\nS: connection.start version_minor=9\nC: connection.start-ok mechanism={mechanism}"
    )
    codes = ("credentials-in-clear", "account-default", "login-anonymous")
    wanted = ["login-anonymous"] * (mechanism == "ANONYMOUS")
    assert [row["code"] for row in told(text, *codes)] == wanted


def test_on_one_host_nobody_listens(samples: Path) -> None:
    codes = {row.code for row in amqpsniff.open(samples / "zerowindow.pcap").findings()}
    assert "account-default" in codes
    assert not codes & {"credentials-in-clear", "connection-unencrypted"}


def test_a_network_without_encryption() -> None:
    row = one(several("c{n}.midstream\nc{n}.C1: basic.qos", 2), "connection-unencrypted")
    assert row["detail"] == "10.0.0.1 speaks AMQP without TLS to 10.0.0.2:5672"
    assert (row["packet_number"], row["count"]) == (1, 2)
    first = "a.handshake\nb.handshake\nb.FIN C\nb.FIN S\na.C1: channel.open\n"
    row = one(first, "connection-unencrypted")
    assert (row["packet_number"], row["count"]) == (1, 2)


def test_the_account_of_everybody() -> None:
    assert one("handshake user=guest", "account-default")["packet_number"] == 3
    assert not told("handshake user=joe", "account-default")


def test_each_product_of_an_address_is_named() -> None:
    text = several('c{n}.handshake user=guest client=\'{"product": "p{n}"}\'', 3)
    codes = "credentials-in-clear", "account-default"
    assert sorted((row["code"], row["count"]) for row in told(text, *codes)) == [
        (code, 1) for code in sorted(codes) for _ in range(3)
    ]


def test_an_account_of_several_applications() -> None:
    text = several('c{n}.handshake user=joe client=\'{"product": "p{n}"}\'', 3)
    row = one(text, "account-shared")
    assert row["detail"] == "user 'joe' is used by p0 and p1"
    assert not told(
        several('c{n}.handshake user=joe client=\'{"product": "p"}\'', 3), "account-shared"
    )
    assert not told(
        several('c{n}.handshake user=u{n} client=\'{"product": "p{n}"}\'', 3), "account-shared"
    )


REFUSED = """
    c{n}.hello
    c{n}.S: connection.start version_minor=9
    c{n}.C: connection.start-ok mechanism=PLAIN response='\\0%s\\0x'
    @+%sms c{n}.S: connection.close reply_code=403 reply_text=ACCESS_REFUSED
"""


def test_logins_that_are_tried() -> None:
    for wait_ms, within in ((1000, "4.01 s"), (20, "92.0 ms")):
        row = one(several(REFUSED % ("joe", wait_ms), 6), "password-guessing")
        assert row["detail"] == f"10.0.0.1: logins refused, 5 of them in {within}"
        assert row["count"] == 6
    row = one(several(REFUSED % ("joe{n}", 90_000), 6), "password-guessing")
    assert row["detail"] == "10.0.0.1: logins refused under 5 user names or more"


ACCEPTED = """
    a.hello
    a.S: connection.start version_minor=9
    a.C: connection.start-ok mechanism=PLAIN response='\\0joe\\0x'
    a.S: connection.tune
"""


def test_a_password_that_was_changed() -> None:
    """Who logged in from there before does not guess."""
    text = ACCEPTED + several(REFUSED % ("joe", 1000), 6)
    rows = told(text, "authentication-failed")
    assert len(rows) == 6
    assert rows[0]["detail"] == (
        "user 'joe' from 10.0.0.1 in packet 13, accepted from there until 1.00 s before:"
        " 403 ACCESS_REFUSED"
    )
    assert not told(text, "password-guessing")
    assert told(ACCEPTED + several(REFUSED % ("jim", 1000), 6), "password-guessing")
    everyone = "".join(ACCEPTED.replace("a.", f"a{n}.").replace("joe", f"joe{n}") for n in range(6))
    assert not told(everyone + several(REFUSED % ("joe{n}", 1000), 6), "password-guessing")


def test_a_program_that_has_a_wrong_password() -> None:
    """A shovel, or whoever names its connections, is no guesser of one user's password."""
    properties = 'client_properties=\'{"connection_name": "Shovel s"}\''
    named = REFUSED.replace("mechanism=PLAIN", f"mechanism=PLAIN {properties}")
    text = several(named % ("joe", 1000), 6)
    assert len(told(text, "authentication-failed")) == 6
    assert not told(text, "password-guessing")
    assert told(several(named % ("joe{n}", 1000), 6), "password-guessing")


def test_logins_that_fail_now_and_then() -> None:
    assert not told(several(REFUSED % ("joe", 20_000), 6), "password-guessing")
    assert not told(several(REFUSED % ("joe{n}", 1000), 4), "password-guessing")


@pytest.mark.parametrize(("line", "said"), [
    ("queue.delete queue=q", "deleted queue 'q'"),
    ("queue.purge queue=q", "emptied queue 'q'"),
    ("exchange.delete exchange=e", "deleted exchange 'e'"),
    ("queue.unbind queue=q exchange=e", "unbound queue 'q'"),
    ("exchange.unbind destination=d source=s", "unbound exchange 'd'"),
    ("queue.declare queue=last\nS1: queue.declare-ok queue=last\nC1: queue.purge", "emptied queue 'last'"),
    ("queue.purge", "emptied queue (its name is not known)"),
])  # fmt: skip
def test_what_is_deleted(line: str, said: str) -> None:
    method = line.rpartition("C1: ")[2].split()[0]
    row = one(OPEN + f"C1: {line}\nS1: {method}-ok\n", "operation-destructive")
    assert row["detail"] == f"user 'joe' from 10.0.0.1 {said}"


def test_what_the_broker_refuses_to_delete() -> None:
    """The broker refuses it; what comes after that on the channel it does not read."""
    asked = (
        OPEN
        + "C1: queue.delete queue=a\nS1: queue.delete-ok\nC1: queue.delete queue=b if_unused=1\n"
    )
    refused = "S1: channel.close reply_code=406 class_id=50 method_id=40\nC1: channel.close-ok\n"
    said = "user 'joe' from 10.0.0.1 deleted queue '{}'{}"
    rows = told(asked + "C1: queue.purge queue=c\n" + refused, "operation-destructive")
    assert [row["detail"] for row in rows] == [said.format("a", "")]
    rows = told(asked, "operation-destructive")
    assert rows[1]["detail"] == said.format("b", "; no answer was captured")


def test_a_deletion_that_wants_no_answer() -> None:
    row = one(OPEN + "C1: queue.delete queue=a no_wait=1\n", "operation-destructive")
    assert row["detail"] == "user 'joe' from 10.0.0.1 deleted queue 'a'"


def test_everything_that_is_deleted() -> None:
    """Each by its name, up to a number of names; the same again is counted."""
    names = [*range(22), 0]
    each = "C1: queue.delete queue=q{}\nS1: queue.delete-ok\n"
    text = OPEN + "".join(map(each.format, names))
    rows = told(text, "operation-destructive")
    assert [row["count"] for row in rows] == [2, *[1] * 19, 2]
    assert [row["detail"].rpartition(" ")[2] for row in rows] == [f"'q{n}'" for n in range(21)]


@pytest.mark.parametrize(
    "line",
    [
        "C1: queue.delete queue=amq.gen-abc",
        "S1: channel.close reply_code=404\nC1: queue.delete queue=q",
    ],
)
def test_what_is_not_deleted(line: str) -> None:
    assert not told(OPEN + line, "operation-destructive")


def test_a_table_to_exhaust_a_reader() -> None:
    def declared(entries: int) -> str:
        names = map("".join, islice(product(ascii_lowercase, repeat=3), entries))
        table = json.dumps(dict.fromkeys(names, True))
        return OPEN + f"C1: queue.declare queue=q arguments='{table}'"

    assert "queue.declare with 10001 entries" in one(declared(10_001), "resource-bomb")["detail"]
    assert not told(declared(9_999), "resource-bomb")


def headers(table: object, way: str = "C1: basic.publish exchange=e routing_key=k") -> str:
    """A message with these headers."""
    return f"{OPEN}{way} | body=1 headers='{json.dumps(table)}'"


def deep(levels: int) -> object:
    """Tables inside each other, so many, those of arrays counted."""
    table: object = {}
    for level in range(levels - 1):
        table = {"a": table} if level % 2 or level == levels - 2 else [table]
    return table


def test_headers_to_exhaust_a_reader() -> None:
    row = one(headers({"h": [1] * 10_000}), "resource-bomb")
    assert row["detail"] == (
        "a publish with 10001 entries in its headers (exchange 'e', routing key 'k')"
    )
    assert not told(headers({"h": [1] * 9_999}), "resource-bomb")


def test_a_delivery_to_exhaust_its_consumer() -> None:
    way = "S1: basic.deliver consumer_tag=t delivery_tag=1 routing_key=k"
    row = one(headers(deep(17), way), "resource-bomb")
    assert row["detail"] == (
        "a delivery with 17 tables inside each other (the default exchange, routing key 'k')"
    )
    assert not told(headers(deep(16), way), "resource-bomb")


@pytest.mark.parametrize("name", [
    "queue.declare queue=q", "queue.bind queue=q", "queue.unbind", "basic.consume queue=q",
    "exchange.declare exchange=e", "exchange.bind source=e", "exchange.unbind source=e",
])  # fmt: skip
def test_arguments_inside_each_other(name: str) -> None:
    def sent(levels: int) -> str:
        return f"{OPEN}C1: {name} arguments='{json.dumps(deep(levels))}'"

    detail = one(sent(17), "resource-bomb")["detail"]
    assert detail == f"{name.partition(' ')[0]} with 17 tables inside each other"
    assert not told(sent(16), "resource-bomb")


@pytest.mark.parametrize(("side", "method"), [("server", "start"), ("client", "start-ok")])
def test_properties_inside_each_other(side: str, method: str) -> None:
    detail = one(f"handshake {side}='{json.dumps(deep(17))}'", "resource-bomb")["detail"]
    assert detail == f"connection.{method} with 17 tables inside each other"
    assert not told(f"handshake {side}='{json.dumps(deep(16))}'", "resource-bomb")


def test_tables_beside_each_other() -> None:
    table = {"first": {}, "second": deep(16), "third": {}}
    text = headers(table).replace(
        "C1: basic", "C1: confirm.select\nS1: confirm.select-ok\nC1: basic"
    )
    assert one(text, "resource-bomb")["detail"].startswith("a publish with 17 tables inside")


def test_arguments_that_are_cut_short() -> None:
    packets = packets_of(f"{OPEN}C1: queue.declare queue=q arguments='{json.dumps(deep(17))}'")
    assert told_of(packets, "resource-bomb")
    last = packets[-1]
    packets[-1] = last._replace(octets=last.octets[:70], original=len(last.octets))
    assert not told_of(packets, "resource-bomb")


@pytest.mark.parametrize(("before", "times", "ms", "exhausts"), [
    ("", 999, 999, True), ("", 999, 1000, False), ("", 998, 999, False),
    ("C2000: channel.open\n@+1000ms ", 999, 1, True), ("C2000: channel.open\n@+1000ms ", 998, 1, False),
])  # fmt: skip
def test_channels_to_exhaust_a_broker(before: str, times: int, ms: int, exhausts: bool) -> None:
    many = "\n& ".join(f"C{n}: channel.open" for n in range(1, times + 1))
    text = f"handshake\n{before}{many}\n@+{ms}ms C1000: channel.open"
    found = [row["detail"] for row in told(text, "resource-bomb")]
    said = "1000 channels opened within a second; the negotiated channel-max allows 2047"
    assert found == [said] * exhausts


PIKA = "Pika Python Client Library {} reads and writes signed and unsigned bytes swapped, until 1.4"


@pytest.mark.parametrize(("server", "client", "said"), [
    ('{"product": "RabbitMQ", "version": "3.10.8"}', "{}", "RabbitMQ 3.10.8 at 10.0.0.2:5672; supported from 4.0 on"),
    ("{}", '{"product": "Pika Python Client Library", "version": "1.3.2"}', PIKA.format("1.3.2")),
    ('{"product": "RabbitMQ", "version": "4.1.0"}', '{"product": "Pika Python Client Library", "version": "1.4.0"}', None),
    ('{"product": "RabbitMQ", "version": "x.y"}', '{"product": "RabbitMQ", "version": "3.2"}', None),
    ('{"product": "RabbitMQ", "version": "1.0.0"}', "{}", "RabbitMQ 1.0.0 at 10.0.0.2:5672; supported from 4.0 on"),
    ('{"product": "RabbitMQ", "version": "0.1"}', "{}", "RabbitMQ 0.1 at 10.0.0.2:5672; supported from 4.0 on"),
    ('{"product": "RabbitMQ", "version": "0.0.0"}', '{"product": "Pika Python Client Library", "version": "0.0.0"}', None),
    ('{"product": "RabbitMQ", "version": "3.\u00b2"}', "{}", None),
    ('{"product": "RabbitMQ", "version": "3.\u0661"}', "{}", None),
    ('{"product": "RabbitMQ", "version": "%s.1"}' % ("3" * 5000), "{}", None),
    ('{"product": "LavinMQ", "version": "2.0.0"}', '{"version": "0.13"}', None),
    ('{"product": {"a": "b"}, "version": "2.0.0"}', '{"product": ["a"], "version": "0.13"}', None),
    ("{}", '{"product": "Pika Python Client Library", "version": "1.0.0"}', PIKA.format("1.0.0")),
    ("{}", '{"product": "Pika Python Client Library", "version": "0.1"}', PIKA.format("0.1")),
])  # fmt: skip
def test_old_software(server: str, client: str, said: str | None) -> None:
    rows = told(f"handshake server='{server}' client='{client}'", "software-outdated")
    assert [row["detail"] for row in rows] == [said] * (said is not None)


@pytest.mark.parametrize(("hosts", "client", "shares"), [
    (9, "", False), (10, "", True), (11, '{"product": "p"}', True), (1, "", False),
])  # fmt: skip
def test_an_account_of_many_addresses(hosts: int, client: str, shares: bool) -> None:
    engine = amqpsniff.Engine()
    script = Script(f"handshake user=joe client='{client or '{}'}'")
    for host in range(12):
        key = (f"10.0.1.{min(host, hosts - 1)}:{1000 + host}", "10.0.0.2:5672")
        for packet in script.packets:
            engine.feed_bytes(key, packet.sender, packet.octets, packet.ts_ns)
    engine.finish()
    found = [one.detail for one in engine.findings() if one.code == "account-shared"]
    assert found == ["user 'joe' is used by 10 addresses"] * shares


def test_refused_logins_without_a_name() -> None:
    """They count by time alone."""
    named = several(REFUSED % ("joe{n}", 90_000), 4)
    nobody = (REFUSED % ("", 90_000)).replace(
        "mechanism=PLAIN response='\\0\\0x'", "mechanism=EXTERNAL"
    )
    text = named + several(nobody.replace("c{n}", "x{n}"), 3)
    assert told(text, "authentication-failed")
    assert not told(text, "password-guessing")
    for ms, quick in ((14_997, True), (14_998, False)):  # and three packets before
        text = several(nobody.replace("90000ms", f"{ms}ms"), 5)
        assert bool(told(text, "password-guessing")) is quick


def test_logins_refused_without_a_word_are_guesses_too() -> None:
    login = "c{n}.hello\nc{n}.S: connection.start\n"
    login += "c{n}.C: connection.start-ok mechanism=PLAIN response='\\0joe\\0a'\n"
    assert told(several(login + "@+900ms c{n}.FIN S", 5), "password-guessing")
    assert not told(several(login + "@+900ms c{n}.FIN C", 5), "password-guessing")
