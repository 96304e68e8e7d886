"""TCP connections that were never established: refused (SYN, RST), or not answered (SYN only).

ICMP's destination unreachable is an answer too: port unreachable and the prohibited codes refuse a
connection; for an unreachable network or host there is no answer.

Attempts of one client host at one server endpoint are one finding. Attempts at ::1 are not reported
if each was followed by a connection to the same port of 127.0.0.1: localhost has two addresses, and
clients try ::1 first. A server that had ended several connections just before it refused others was
stopped, or its process ended.

Attempts for AMQP are selected at the end: those at ports with AMQP in the capture, or at ports of
brokers. In a capture without AMQP, which may have only failed attempts, those at every port are
reported.

All of it is sums, minima, maxima and times, so that readers of some connections each may be added
up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from amqpsniff.units import duration, plural

from .finding import Finding

REFUSED, UNANSWERED = "connect-refused", "connect-unanswered"
STOPPED = "broker-stopped"

REASONS = {
    (4, 0): (UNANSWERED, "network unreachable"),
    (4, 1): (UNANSWERED, "host unreachable"),
    (4, 2): (REFUSED, "protocol unreachable"),
    (4, 3): (REFUSED, "port unreachable"),
    (4, 6): (UNANSWERED, "network unknown"),
    (4, 7): (UNANSWERED, "host unknown"),
    (4, 9): (REFUSED, "network prohibited"),
    (4, 10): (REFUSED, "host prohibited"),
    (4, 13): (REFUSED, "administratively prohibited"),
    (6, 0): (UNANSWERED, "no route"),
    (6, 1): (REFUSED, "administratively prohibited"),
    (6, 3): (UNANSWERED, "address unreachable"),
    (6, 4): (REFUSED, "port unreachable"),
    (6, 5): (REFUSED, "source address prohibited"),
    (6, 6): (REFUSED, "route rejected"),
}
"""Finding and words for the codes of ICMP's destination unreachable, by version of IP (RFC 792,
RFC 1812 §5.2.7.1, RFC 4443 §3.1)."""

STORM = 10
"""Attempts a second of one host at one server from which the finding names their rate: the client
does not wait between them."""

MAX_PAIRS = 10_000
"""Client hosts and server endpoints whose attempts are counted; a scan has more, and those beyond
are not reported."""

MAX_SERVERS = 1_000
"""Server endpoints whose times of established connections are remembered."""

MAX_ESTABLISHED = 1_000
"""Connections to one server, and refused attempts at ::1, whose times are remembered; with more,
findings do not say whether other clients could connect."""

MAX_PORTS = 8
"""Ports of one server host at which a client failed, beyond which it is a scan and one finding."""

FALLBACK_NS = 1_000_000_000
"""Time within which a client that was refused at ::1 connects to 127.0.0.1."""

ENDED_NS = 10_000_000_000
"""Time before the first refusal in which a server whose process ends closes its connections: the
clients wait before they connect again."""

MIN_UNANSWERED_NS = 500_000_000
"""Time between the first and the last SYN without an answer: TCP sends one again after a second."""

SECOND_NS = 1_000_000_000

Key = tuple[str, str, str]
"""Code, client host, server endpoint."""


class Attempts:
    """Counts attempts; `merge` adds those of another reader, `report` makes findings of them.

    Attributes:
        ports: Ports that brokers listen on: the usual ones, those asked for, those with AMQP.
        served: There is AMQP in the capture, or a connection to a port of `ports`.
    """

    def __init__(self) -> None:
        self.ports: set[int] = set()
        self.served = False
        self._pairs: dict[Key, list[Any]] = {}
        self._established: dict[str, list[Any]] = {}
        self._refused: dict[str, list[Any]] = {}
        self._ended: dict[str, list[Any]] = {}
        self._unheard: set[str] = set()

    def failed(self, conversation: Any, capture: str | None) -> Key | None:
        """An attempt that failed; its key if it is one of a finding for certain, for `known`."""
        code, reason = REASONS.get(
            (conversation.version, conversation.unreachable), (UNANSWERED, None)
        )
        if conversation.packets[1]:
            code, reason = REFUSED, None
        client, server = conversation.a, conversation.b
        key = code, client.rpartition(":")[0], server
        first = [conversation.start_ns, capture or "", conversation.first_packet_number]
        last = [conversation.end_ns, conversation.last_packet_number]
        pair = self._pairs.get(key)
        if pair is None or first < pair[2]:  # a name takes time
            first += [conversation.connection_id, client]
        reasons = [] if reason is None else [reason]
        counted = self._add(key, [1, conversation.packets[0], first, last, reasons])
        if code == REFUSED and _other_localhost(server) is not None:
            self._note(self._refused, server, [conversation.start_ns])
            return None
        sure = code == REFUSED and conversation.ports[1] in self.ports
        return key if counted and sure else None

    def known(self, key: Key) -> Finding:
        """The finding of all attempts of a key so far."""
        return self._finding(key, self._pairs[key])

    def established(self, server: str, ts_ns: int) -> None:
        """A connection to a server endpoint."""
        times = self._established.get(server)
        if times is None or len(times) <= MAX_ESTABLISHED:
            self._note(self._established, server, [ts_ns])

    def ended(self, server: str, conversation: Any, capture: str | None) -> None:
        """A server endpoint ended a connection; the latest are remembered."""
        at = [conversation.ended_ns, capture or "", conversation.ended_packet_number]
        self._note(self._ended, server, [at])
        times = self._ended.get(server, [])
        del times[:-MAX_ESTABLISHED]

    def unheard(self, server: str) -> None:
        """A connection to a server endpoint was captured without any packet of the server."""
        if len(self._unheard) < MAX_SERVERS:
            self._unheard.add(server)

    def merge(self, other: Attempts) -> None:
        """Add what another reader counted."""
        self.ports |= other.ports
        self.served |= other.served
        self._unheard |= other._unheard
        for key, pair in other._pairs.items():
            self._add(key, pair)
        for server, times in other._established.items():
            self._note(self._established, server, times)
        for server, times in other._refused.items():
            self._note(self._refused, server, times)
        for server, times in other._ended.items():
            self._note(self._ended, server, times)

    def report(self) -> Iterator[Finding]:
        """The findings, at the end."""
        scanned: dict[tuple[str, str, str], list[Key]] = {}
        for key in sorted(self._pairs):
            code, client, server = key
            if code == UNANSWERED and not self._is_unanswered(key):
                continue
            if code == REFUSED and self._fell_back(server):
                continue
            host, _, port = server.rpartition(":")
            if int(port) in self.ports:
                yield self._finding(key, self._pairs[key])
            elif not self.served:
                scanned.setdefault((code, client, host), []).append(key)
        yield from self._stopped_servers()
        for keys in scanned.values():
            if len(keys) <= MAX_PORTS:
                yield from (self._finding(key, self._pairs[key]) for key in keys)
            else:
                yield self._port_scan(keys)

    def _stopped_servers(self) -> Iterator[Finding]:
        """Servers that ended their connections and refused the next ones."""
        refused: dict[str, list[Any]] = {}
        for (code, _, server), pair in sorted(self._pairs.items()):
            if code == REFUSED and pair[2][0] > 0 and int(server.rpartition(":")[2]) in self.ports:
                refused.setdefault(server, []).append(pair)
        for place, (server, pairs) in enumerate(refused.items()):
            first_ns, last = min(pair[2][0] for pair in pairs), max(pair[3] for pair in pairs)
            ended = self._ended_before(server, first_ns)
            if len(ended) < 2:
                continue
            begin, end_ns, count = min(ended), max(ended)[0], sum(pair[0] for pair in pairs)
            detail = (
                f"{server} ended {plural(len(ended), 'connection')} in "
                f"{duration(end_ns - begin[0])} and refused the next attempts, "
                f"{plural(count, 'time')}, the first {duration(first_ns - begin[0])} after"
            )
            back_ns = self._back_ns(server, last[0])
            if back_ns is None:
                detail += "; it took no other connection in the capture"
            else:
                detail += f"; it took the next connection {duration(back_ns - begin[0])} after"
            ts_ns, capture, number = begin
            yield Finding(
                STOPPED, detail, capture or None, number or None, ts_ns, server=server,
                last_packet_number=last[1] or None, variant=place or None, until_ns=back_ns,
            )  # fmt: skip

    def _ended_before(self, server: str, first_ns: int) -> list[Any]:
        """The connections that a server ended right before it refused others."""
        ended = [end for end in self._ended.get(server, ()) if 0 <= first_ns - end[0] <= ENDED_NS]
        return ended if ended and self._is_unreached(server, min(ended)[0], first_ns) else []

    def _back_ns(self, server: str, last_ns: int) -> int | None:
        """The time at which a server accepted the next connection after it had refused others."""
        times = self._established.get(server, ())
        return min((time for time in times if time > last_ns), default=None)

    def _add(self, key: Key, pair: list[Any]) -> bool:
        """Count attempts; False if there are too many pairs of hosts."""
        total = self._pairs.get(key)
        if total is None:
            if len(self._pairs) >= MAX_PAIRS and int(key[2].rpartition(":")[2]) not in self.ports:
                return False
            if len(self._pairs) >= 2 * MAX_PAIRS:
                return False
            self._pairs[key] = pair
            return True
        total[0] += pair[0]
        total[1] += pair[1]
        if pair[2] < total[2]:
            total[2] = pair[2]
        total[3] = max(total[3], pair[3])
        total[4] = sorted({*total[4], *pair[4]})
        return True

    def _note(self, servers: dict[str, list[Any]], server: str, times: list[Any]) -> None:
        noted = servers.get(server)
        if noted is None:
            if len(servers) >= MAX_SERVERS:
                return
            noted = servers[server] = []
        if len(noted) <= MAX_ESTABLISHED:
            noted += times

    def _is_unanswered(self, key: Key) -> bool:
        """True if SYNs were sent again, or attempts repeated, or ICMP said why.

        TCP sends a SYN without an answer again. Attempts with one SYN each at a server that refused
        others were refused too: the capture has lost the RST. So it may be where the server's
        packets of other connections were not captured.
        """
        count, packets, first, last, reasons = self._pairs[key]
        if packets == count and ((REFUSED, *key[1:]) in self._pairs or key[2] in self._unheard):
            return bool(reasons)
        return bool(reasons or (packets > 1 and last[0] - first[0] >= MIN_UNANSWERED_NS))

    def _finding(self, key: Key, pair: list[Any]) -> Finding:
        code, client, server = key
        count, packets, first, last, reasons = pair
        lasted = last[0] - first[0] if first[0] > 0 else 0
        several = count > 1 or (code == UNANSWERED and packets > 1)
        over = f" in {duration(lasted)}" if several else ""
        if code == REFUSED:
            times = "once" if count == 1 else f"{count:,} times"
            detail = f"{client} was refused by {server} {times}{over}"
        else:
            answer = "and was not connected" if reasons else "without an answer"
            detail = f"{client} sent {plural(packets, 'SYN packet')} to {server}{over}, {answer}"
        before, back = "", ""
        if code == REFUSED and first[0] > 0:
            before, back = self._surrounding_clauses(server, first[0], last[0])
        detail += before
        if reasons:
            detail += f"; ICMP said: {', '.join(reasons)}"
        if over and lasted and self._is_unreached(server, first[0], last[0]):
            detail += "; nobody connected to it in that time"
        detail += back
        if lasted and count * SECOND_NS >= STORM * lasted and count >= STORM:
            detail += f"; {count * SECOND_NS // lasted:,} attempts a second"
        return self._made(code, detail, server, count, first, last)

    def _surrounding_clauses(self, server: str, first_ns: int, last_ns: int) -> tuple[str, str]:
        """Clauses about the connections that the server ended before, and about its return."""
        ended = self._ended_before(server, first_ns)
        if not ended:
            return "", ""
        since = duration(first_ns - min(ended)[0])
        back_ns = self._back_ns(server, last_ns)
        clause = f", {since} after it had ended {plural(len(ended), 'connection')}"
        back = "" if back_ns is None else duration(back_ns - last_ns)
        return clause, f"; it took the next one {back} after" if back else ""

    def _port_scan(self, keys: list[Key]) -> Finding:
        """One finding of many ports of a host."""
        pairs = [self._pairs[key] for key in keys]
        code, client, server = min(keys, key=lambda key: self._pairs[key][2])
        count = sum(pair[0] for pair in pairs)
        first, last = min(pair[2] for pair in pairs), max(pair[3] for pair in pairs)
        host = server.rpartition(":")[0]
        result = "was refused" if code == REFUSED else "got no answer"
        detail = f"{client} {result} at {len(keys):,} ports of {host}, as by a port scan"
        return self._made(code, detail, server, count, first, last)

    def _made(
        self, code: str, detail: str, server: str, count: int, first: list[Any], last: list[Any]
    ) -> Finding:
        ts_ns, capture, number, connection_id, client = first
        return Finding(
            code,
            detail,
            capture or None,
            number or None,
            ts_ns if ts_ns > 0 else None,
            connection_id,
            client,
            server,
            count=count,
            last_packet_number=last[1] or None,
        )

    def _fell_back(self, server: str) -> bool:
        """True if each attempt was followed by a connection to the other address of localhost."""
        refused = self._refused.get(server, [])
        established = sorted(self._established.get(_other_localhost(server) or "", []))
        if not refused or max(len(refused), len(established)) > MAX_ESTABLISHED:
            return False
        places = [bisect_left(established, time_ns) for time_ns in refused]
        return all(
            at < len(established) and established[at] - time_ns <= FALLBACK_NS
            for at, time_ns in zip(places, refused, strict=True)
        )

    def _is_unreached(self, server: str, first_ns: int, last_ns: int) -> bool:
        """True if certainly no connection was established in a time."""
        times = self._established.get(server)
        if times is None:
            return len(self._established) < MAX_SERVERS
        return len(times) <= MAX_ESTABLISHED and not any(
            first_ns <= time <= last_ns for time in times
        )


def _other_localhost(server: str) -> str | None:
    """The endpoint that clients try after an endpoint at ::1; None for any other."""
    host, _, port = server.rpartition(":")
    return f"127.0.0.1:{port}" if host == "[::1]" else None
