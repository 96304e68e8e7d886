"""Every bound of the TCP stage, with its reason.

A capture decides how much is put into each of these stores, so each has an end, and reaching it is
counted or a finding, never an error. Times are capture time.
"""

from __future__ import annotations

from typing import NamedTuple

MILLISECOND = 1_000_000
SECOND = 1_000_000_000


class Limits(NamedTuple):
    """The bounds of one `Reassembler`; the defaults are for captures of any size in 300 MB."""

    # Conversations followed at once. One costs 1 kB here, and 4 kB in all where it is AMQP and
    # judged (measured): with 45,000 the dashboard took 403 MB, and should not take 400, also where
    # a newly installed Arrow counts 30 MB more, which are shared. Of 43,691 on, each dict of them
    # takes twice as much. A SYN flood would open them without end. A broker with more clients is
    # rare; quiet ones are forgotten first.
    conversations: int = 35_000

    # Conversations remembered after their end, so that the last acknowledgements and
    # retransmissions of one do not open another. They follow within seconds; a record costs about
    # 350 bytes.
    closed_conversations: int = 16_384

    # Bytes held back behind a hole, per half-stream: more than the largest window in use
    # (tcp_rmem: 6 MiB on Linux) twice over, since a receiver cannot have taken more than its window
    # beyond a hole. Each held segment counts `HELD_SEGMENT_BYTES` more, for what its record costs,
    # so that segments of one byte do not cost a hundred times the limit.
    held_bytes: int = 16 * 1024 * 1024

    # The same for all half-streams together: a capture that lost packets everywhere.
    held_bytes_total: int = 64 * 1024 * 1024

    # Segments held back, per half-stream: each is put into its place among the others. Linux counts
    # 768 bytes at least for a segment that waits, so as many fit into its largest buffer twice.
    held_segments: int = 16 * 1024

    # How long to wait for a hole if the receiver has acknowledged bytes beyond it: it got
    # the segment, so if the capture has it, it is a matter of two queues or two interfaces being
    # read out of step. Segments of the same conversation, or time, whichever comes first: busy
    # connections were seen to send 350 segments in 3 ms. What answers it is held as well, so
    # patience never puts an answer before its question.
    acked_hole_segments: int = 512
    acked_hole_ns: int = 10 * MILLISECOND

    # Beginnings that wait for their handshake (`handshake`), for `acked_hole_ns` at most:
    # conversations at once, and segments and bytes of each. AMQP's greetings are some ten
    # segments; a certificate takes 8 kB.
    joining_conversations: int = 256
    joining_segments: int = 64
    joining_bytes: int = 64 * 1024

    # And when the other direction was not captured, so that nothing says what arrived: longer than
    # a retransmission timeout after a few losses in a row, and about a window of segments.
    unacked_hole_segments: int = 512
    unacked_hole_ns: int = 2 * SECOND

    # How long a conversation stays open for the acknowledgement of its last FIN, and after a RST
    # for what the other side had sent before it got that, where no handshake shows how long a round
    # trip takes: then two of them, and `acked_hole_ns` at least.
    linger_ns: int = SECOND

    # How long it stays open after a RST beyond the next octet: either what was sent before it is
    # missing from the capture, or TCP answered with a challenge ACK (RFC 5961 §3.2) and the
    # connection goes on. With the usual heartbeat of 60 s each side then sends something.
    doubtful_reset_ns: int = 60 * SECOND

    # Segments kept that may begin another conversation of the same endpoints: a SYN is sent again
    # some six times (tcp_syn_retries of Linux).
    doubtful_segments: int = 16

    # The last segments delivered to compare retransmissions with: two captures of a busy connection
    # on one host whose clocks are 3 ms apart were more than 128 segments apart. Blocks of packets
    # are kept alive for it, so it also ends `history_bytes` of captured packets ago.
    history_segments: int = 256
    history_bytes: int = 8 * 1024 * 1024

    # Two copies of one segment within this time are one packet captured at two places, where their
    # IP packets have no identification to tell: TCP does not retransmit so soon (its shortest timer
    # is two clock ticks of several milliseconds).
    duplicate_ns: int = MILLISECOND

    # Farther than this from the expected sequence number nothing can be: ahead, the largest window
    # TCP can offer (RFC 7323 §2.3); behind, several times the largest window in use.
    impossible_ahead_bytes: int = 1 << 30
    impossible_behind_bytes: int = 64 * 1024 * 1024

    # Impossible segments in a row that follow each other before they are believed: then so much of
    # the conversation is missing from the capture that it is taken for a new one.
    impossible_in_a_row: int = 3

    # After the end of a conversation data this near to its last byte belongs to it.
    closed_near_bytes: int = 16 * 1024 * 1024

    # Findings about overlaps per conversation; a hostile one could make one for every packet.
    conflict_findings: int = 16

    # IP fragments waiting for the rest of their packet (RFC 791 gives 15 s, Linux 30 s).
    fragment_ns: int = 30 * SECOND
    fragmented_packets: int = 1024
    fragment_bytes: int = 4 * 1024 * 1024

    # Different fragments of one packet, however often each comes: 64 KiB at the smallest MTU of
    # IPv4 hosts is 120.
    fragments_per_packet: int = 256


MIN_JUMP = 2048
"""Bytes by which sequence numbers jump at least where endpoints are used again, beyond what was
sent: initial ones grow by 1 in 4 us or less (RFC 6528), so by 2,500 in 10 ms; Linux's in 64 ns."""

MIN_DELAY_NS = 35 * MILLISECOND
MAX_DELAY_NS = 50 * MILLISECOND
"""A bare acknowledgement this long after what it acknowledges was delayed: Linux waits 40 ms
(measured: 40.2 to 46.4 ms)."""

PROMPT_NS = MILLISECOND
"""What is sent within this time after an acknowledgement had waited for it (RFC 896; measured:
0.02 ms, and a round trip more where the capture was made at the other side)."""

HELD_SEGMENT_BYTES = 256
"""What the record of a held segment costs, measured with `sys.getsizeof` and rounded up."""

NO_TIME = -(2**63)
"""`ts_ns` of a packet whose record carries no time."""

NEVER = 2**63 - 1
"""A deadline that no capture time reaches."""

MIN_RESENT_NS = 3 * MILLISECOND
"""Bytes that come this long after those that follow them count as sent again, not as out of order;
same limit as in Wireshark: paths that change the order of packets do so by less."""
