"""Clients and servers that do not speak the same protocol: what is said is true of each."""

from __future__ import annotations

import pytest

from amqpsniff.findings import KINDS
from tests.conftest import REPO
from tests.findings.cases import packets_of
from tests.session.rules.found import of_capture
from tests.session.rules.telling import told_of

AMQP = b"AMQP\0\0\x09\x01"
ALERT = bytes.fromhex("1503030002020a")
HELLO = bytes.fromhex("160301000501000001ff")
PROXY_1 = b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n"
PROXY_2 = b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x7f\0\0\1\x7f\0\0\1\0\1\0\2"
SOCKS = b"\x05\x01\x00"
PLAIN = "plain AMQP to a TLS port: the server answered with a TLS alert, unexpected_message"
ENDS = ("FIN S\nFIN C\n", "RST S\n", "")


def found(client: bytes, server: bytes, end: str) -> list[tuple[str, str]]:
    """Codes and details of a conversation with these first bytes."""
    text = f"BYTES C {client.hex()}\n"
    text += f"BYTES S {server.hex()}\n" if server else ""
    return [(row["code"], row["detail"]) for row in told_of(packets_of(text + end), *KINDS)]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    ("client", "server", "told"),
    [
        (AMQP, ALERT, [("server-not-amqp", PLAIN)]),
        (AMQP, b"HTTP/1.1 400 Bad Request\r\n\r\n",
         [("server-not-amqp", "the server's first bytes are those of HTTP")]),
        (AMQP, b"SSH-2.0-OpenSSH_9\r\n",
         [("server-not-amqp", "the server's first bytes are those of SSH")]),
        (HELLO, AMQP, [("not-amqp", "the client's first bytes are those of TLS")]),
        (b"GET / HTTP/1.1\r\n\r\n", AMQP,
         [("not-amqp", "the client's first bytes are those of HTTP")]),
        (PROXY_1 + AMQP, AMQP,
         [("not-amqp", "the client's first bytes are those of the PROXY protocol")]),
        (PROXY_2 + AMQP, AMQP,
         [("not-amqp", "the client's first bytes are those of the PROXY protocol")]),
        (PROXY_1, AMQP,
         [("not-amqp", "the client's first bytes are those of the PROXY protocol")]),
        (PROXY_2, AMQP,
         [("not-amqp", "the client's first bytes are those of the PROXY protocol")]),
        (b"AMQP\0\1\0\0", AMQP, [
            ("protocol-version-refused",
             "the client asked for AMQP 1.0, the broker offers AMQP 0-9-1"),
        ]),
    ],
)  # fmt: skip
def test_both_directions_of_each_mistake(
    client: bytes, server: bytes, told: list[tuple[str, str]], end: str
) -> None:
    assert found(client, server, end) == told


def test_what_a_proxy_sends_before_the_client() -> None:
    """Seen at the client: the broker refuses what is not captured, before or after its header."""
    said = "the broker answers the client's protocol header with the same, and so refuses bytes"
    header = AMQP.hex()
    late = f"BYTES S {header}\nFIN S\nBYTES C {header}\nRST S\n"
    assert [row["code"] for row in told_of(packets_of(late), *KINDS)] == ["not-amqp"]
    for end in ENDS[:2]:
        ((code, detail),) = found(AMQP, AMQP, end)
        assert (code, detail[: len(said)]) == ("not-amqp", said)
    assert found(AMQP, AMQP, "") == []  # more may come
    assert found(b"AMQP\0\1\0\0", b"AMQP\0\1\0\0", "RST S\n") == []  # AMQP 1.0 answers so


def test_an_answer_before_the_question() -> None:
    """Seen at the client: the broker refuses what came before the client's header."""
    said = "the broker sent a protocol header before the client's first byte"
    rows = of_capture(REPO / "tests" / "captures" / "cases" / "haproxy_unexpected.pcap.gz")
    assert [(row["code"], row["packet_number"]) for row in rows] == [
        ("not-amqp", 4),
        ("not-amqp", 12),
    ]
    assert all(row["detail"].startswith(said) for row in rows)
    sasl = b"AMQP\3\1\0\0"
    early = f"BYTES S {sasl.hex()}\n"
    assert told_of(packets_of(early + "FIN S\n"), "not-amqp")
    assert not told_of(packets_of(early), "not-amqp")  # more may come
    ((code, detail),) = found(AMQP, sasl, "FIN S\n")
    assert code == "protocol-version-refused"
    assert detail.endswith("sends such with the PROXY protocol")


def test_headers_of_a_proxy_that_a_broker_does_not_expect() -> None:
    rows = of_capture(REPO / "tests" / "captures" / "cases" / "haproxy_backend.pcap.gz")
    told = [(row["packet_number"], row["detail"]) for row in rows if row["code"] == "not-amqp"]
    said = "the client's first bytes are those of the PROXY protocol"
    assert told == [(16, said), (24, said)]


def test_no_answer() -> None:
    for end, how in (("FIN S\nFIN C\n", "FIN"), ("RST S\n", "RST")):
        told = [("protocol-header-unanswered", f"the server ended TCP after 1.00 ms ({how})")]
        assert found(AMQP, b"", end) == told
    assert found(AMQP, b"", "") == []  # the answer may come


def test_who_answers_is_known() -> None:
    """Behind a proxy it may be that; and what was not captured may be AMQP."""
    assert found(SOCKS + AMQP, b"\x05\x00", "RST S\n") == []
    assert found(PROXY_1 + AMQP, AMQP[:4], "RST S\n") == []


def test_plain_amqp_to_a_tls_port_of_a_broker() -> None:
    rows = of_capture(REPO / "tests" / "captures" / "incidents" / "p_tls.pcap")
    (plain,) = (row for row in rows if row["code"] == "server-not-amqp")
    assert plain["detail"] == PLAIN
    assert [row["code"] for row in rows if row["client"] == plain["client"]] == ["server-not-amqp"]
