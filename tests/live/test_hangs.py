"""What hangs is said while it hangs, and its last row is the one that a file gives."""

from __future__ import annotations

from pathlib import Path

from amqpsniff.findings import Finding
from amqpsniff.findings.log import FindingLog
from amqpsniff.live.finding_updates import FindingUpdates
from tests.capture.build import pcap_header, pcap_record
from tests.cli.running import run
from tests.live.sniffing import Sniffer, rows_of
from tests.live.test_rows import alike, last_of_each
from tests.session.script import Script
from tests.tcp import wire
from tests.waiting import wait_for

HANGS = """
    handshake
    C2: channel.open
    S2: channel.open-ok
    C2: basic.qos prefetch_count=1
    S2: basic.qos-ok
    C2: basic.consume queue=w consumer_tag=t
    S2: basic.consume-ok consumer_tag=t
    S2: basic.deliver consumer_tag=t delivery_tag=1 | body=5
    C2: basic.publish routing_key=work | body=1 reply_to=w correlation_id=a
    @+31000ms C1: channel.open
    S1: channel.open-ok
    C1: confirm.select
    S1: confirm.select-ok
    C1: basic.publish exchange=e | body=5
    C1: queue.declare queue=q
    S: connection.blocked reason=disk
    @+9000ms S: connection.unblocked
"""
ENDS = """
    C2: basic.ack delivery_tag=1
    @+9000ms S1: basic.ack delivery_tag=1
    @+1ms S1: queue.declare-ok queue=q
"""
CODES = {
    "confirms-slow",
    "reply-missing",
    "connection-blocked",
    "consumer-slow",
    "consumer-stuck",
    "rpc-unanswered",
}


def records(text: str) -> list[bytes]:
    """Packets of a script as records of a pcap file."""
    talk = wire.Talk().hands()
    packets = Script(text).packets
    for packet in packets:
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    shaken = len(talk.packets) - len(packets)
    begin = packets[0].ts_ns - shaken
    times = [begin + n for n in range(shaken)] + [packet.ts_ns for packet in packets]
    return [
        pcap_record("<", ns // 10**9, ns % 10**9 // 1000, one.octets)
        for one, ns in zip(talk.packets, times, strict=True)
    ]


def test_it_is_said_before_it_is_over(tmp_path: Path) -> None:
    whole = pcap_header(link=wire.IPV4_LINK), *records(HANGS + ENDS)
    capture = tmp_path / "whole.pcap"
    capture.write_bytes(b"".join(whole))
    sniffer = Sniffer("growing.pcap", "-t", "findings", folder=_begun(tmp_path, whole[:-3]))
    wait_for(lambda: {row["code"] for row in sniffer.rows()} >= CODES)
    early = {row["code"]: row["detail"] for row in sniffer.rows()}
    assert early["confirms-slow"] == "publish number 1 was without a confirm for 9.00 s"
    with (tmp_path / "growing.pcap").open("ab") as file:
        file.write(b"".join(whole[-3:]))
    wait_for(lambda: (tmp_path / "growing.pcap").stat().st_size == capture.stat().st_size)
    assert sniffer.stop() == 0, sniffer.err
    expected = rows_of(run("export", capture, "-t", "findings").out)
    assert alike(last_of_each(sniffer.rows())) == alike(expected)
    gone = {row["code"] for row in sniffer.rows() if not row["count"]}
    assert gone == {"consumer-stuck"}  # it acknowledged after all
    late = {row["code"]: row["detail"] for row in expected}
    assert late["confirms-slow"] == "1 confirm, after 18.0 s"
    assert (
        late["reply-missing"]
        == "queue.declare was answered after 18.0 s; publishing was blocked meanwhile or before"
    )


def _begun(folder: Path, parts: tuple[bytes, ...]) -> Path:
    (folder / "growing.pcap").write_bytes(b"".join(parts))
    return folder


def test_it_is_one_row_of_the_table() -> None:
    log, news = FindingLog(), FindingUpdates()
    log.watch()
    early = Finding("confirms-slow", "early", "x.pcap", 3, 3, "a", "c:1", "s:2", 1)
    late = Finding("confirms-slow", "late", "x.pcap", 3, 3, "a", "c:1", "s:2", 1)
    assert log.foresee(early)
    (given,) = news.add(log.news(), 0)
    assert given.detail == "early"
    log.withdraw(early.key)
    log.add(late)
    assert news.add(log.news(), 1) == []
    assert (news.counts, news.rows) == ({"confirms-slow": 1}, {"confirms-slow": 1})
    assert news.rest(log.take()) == [late]
