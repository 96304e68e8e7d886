# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Rows for a topology: sums of messages by client and route, and frames as dicts.

Rows of batches are read without Arrow.

To import Arrow takes as long as to decode 50 MB, and a summary of rows needs few of them.
"""

from __future__ import annotations

from bisect import bisect_right

import cython
from cython.cimports.amqpsniff.columns import Vocabulary
from cython.cimports.amqpsniff.decode.method_layout import NO_WAIT
from cython.cimports.amqpsniff.decode.rows import FrameRows, MessageRows
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.counts import RouteCounter

from amqpsniff.decode.method_layout import NAMES, WAYS
from amqpsniff.session.counts import MAX_NAMES
from amqpsniff.spec import SIDES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_ways = cython.declare(bytes, WAYS)
_FRAME = cython.declare(
    dict,
    dict.fromkeys(
        ("packet_number", "connection_id", "client", "sender", "channel", "method", "arguments",
         "response_packet_number")
    ),
)  # fmt: skip
_MAX_KEPT = cython.declare(cython.longlong, 3 * MAX_NAMES // 2)
_MAX_SUMS = cython.declare(cython.longlong, 4 * MAX_NAMES)


@cython.cclass
class RouteSums:
    """Messages and bytes by client, exchange, and routing key (published) or queue (delivered).

    With very many names the rarer ones are forgotten, as in `TopCounts`, and counted without a
    name; `forgotten`: some messages were not counted at all.
    """

    numbers: dict[Any, Any]
    sums: dict[Any, Any]
    forgotten = cython.declare(cython.bint, visibility="public")

    def __init__(self) -> None:
        self.numbers = {}
        self.sums = {}
        self.forgotten = False

    @cython.ccall
    def add(self, messages: MessageRows, clients: list[Any]) -> cython.int:
        """Count rows of messages; `clients` are numbers, by the code of a connection."""
        row: cython.longlong
        way: cython.int
        name: cython.int
        connection: cython.int = -1
        last_way: cython.int = -1
        exchange: cython.int = -1
        last_name: cython.int = -1
        known: RouteCounter = None
        words = messages.vocabularies
        exchanges: list = self._numbers_of(words.exchange)
        names: tuple = (self._numbers_of(words.routing_key), self._numbers_of(words.queue))
        for row in range(messages.rows):
            way = _ways[messages.method.values[row]]
            if way == 2:
                continue
            name = (messages.queue if way else messages.routing_key).values[row]
            if not (
                way == last_way
                and name == last_name
                and messages.connection.values[row] == connection
                and messages.exchange.values[row] == exchange
            ):
                last_way, last_name = way, name
                connection = messages.connection.values[row]
                exchange = messages.exchange.values[row]
                listed: list = names[way]
                key = (way, clients[connection], exchanges[exchange + 1], listed[name + 1])
                known = self.sums.get(key)
                if known is None:
                    known = self.sums[key] = RouteCounter()
            known.add(way, messages.sent(row))
        if len(self.sums) + len(self.numbers) > _MAX_SUMS:
            self._forget_rare()
        return 0

    def drain(self) -> Iterator[tuple[Any, ...]]:
        """Give all away: (way, client, exchange, name, counts in the form of `TopCounts`); the name
        is an ellipsis for those that were forgotten, which come last.
        """
        texts: list = [None, *self.numbers]
        counted: RouteCounter
        sums: dict = self.sums
        self.numbers, self.sums = {}, {}
        for is_last in (False, True):
            for (way, client, exchange, name), counted in sums.items():
                if (name is None) == is_last:
                    named = ... if is_last else texts[name]
                    yield way, client, texts[exchange], named, counted.facts()

    @cython.cfunc
    def _forget_rare(self) -> cython.int:
        """Keep the more frequent names; `numbers` are only those of texts that are needed."""
        counted: RouteCounter
        known: RouteCounter
        exchange: cython.int
        texts: list = [None, *self.numbers]
        renumbered: list = [0] * len(texts)
        self.numbers = {}
        kept: dict = {}
        rare: list = []
        totals: list = sorted([_total(counted) for counted in self.sums.values()])
        least: cython.longlong = totals[max(0, len(totals) - MAX_NAMES)]
        room: cython.longlong = MAX_NAMES - (len(totals) - bisect_right(totals, least))
        for item in self.sums.items():
            (way, client, exchange, name), counted = item
            total: cython.longlong = _total(counted)
            if name is None or total < least or (total == least and room <= 0):
                rare.append(item)
                continue
            room -= total == least
            exchange = self._renumber(exchange, texts, renumbered)
            kept[way, client, exchange, self._renumber(name, texts, renumbered)] = counted
        for (way, client, exchange, _), counted in rare:
            key = way, client, self._renumber(exchange, texts, renumbered), None
            known = kept.get(key)
            if known is not None:
                known.merge(counted)
            elif len(kept) < _MAX_KEPT:
                kept[key] = counted
            else:
                self.forgotten = True
        self.sums = kept
        return 0

    @cython.cfunc
    def _renumber(self, number: cython.int, texts: list[Any], renumbered: list[Any]) -> Any:
        """The new number of a text that is needed; `renumbered` has them by their old ones."""
        found = renumbered[number]
        if not found and number:
            found = renumbered[number] = len(self.numbers) + 1
            self.numbers[texts[number]] = found
        return found

    @cython.cfunc
    def _numbers_of(self, words: Vocabulary) -> list[Any]:
        """The numbers from 1 of the texts of a vocabulary, by their codes and 1: null is 0."""
        numbers: dict = self.numbers
        code: cython.int
        found: list = [0]
        for code in range(words.count):
            found.append(numbers.setdefault(words.text(code), len(numbers) + 1))
        return found


@cython.cfunc
@cython.exceptval(check=False)
def _total(counted: RouteCounter) -> cython.longlong:
    """Messages of both ways."""
    return counted.published + counted.delivered


@cython.ccall
def frames_of(frames: FrameRows, methods: bytes, connections: list[Any]) -> list[Any]:
    """Rows of frames as dicts with the columns that a topology needs. `methods` selects them by
    method: 1 for all, 2 for those that were answered or need no answer, 3 for all without
    successive repetitions, 4 for those that were answered or have a status. `connections` has (id,
    client, server) by the code of a connection.
    """
    kind: cython.int
    last: cython.longlong = -1
    last_arguments: bytes = None
    row: cython.longlong
    method: cython.int
    side: cython.int
    found: list = []
    for row in range(frames.rows):
        method = frames.method.values[row]
        kind = methods[method] if 0 <= method < len(methods) else 0
        if kind == 0:
            continue
        side = frames.sender.values[row]
        reply: cython.longlong = frames.response_packet_number.values[row]
        if kind == 2 and reply == NULL and not frames.flags.values[row] & NO_WAIT:
            continue
        if kind == 4 and reply == NULL and frames.reply_code.values[row] < 0:
            continue
        octets: bytes = frames.arguments.bytes_of(row)
        if (
            kind == 3
            and last >= 0
            and frames.method.values[last] == method
            and frames.connection.values[last] == frames.connection.values[row]
            and frames.channel.values[last] == frames.channel.values[row]
            and octets == last_arguments
        ):
            continue
        last, last_arguments = row, octets
        ends: tuple = connections[frames.connection.values[row]]
        frame: dict = _FRAME.copy()
        frame["packet_number"] = frames.packet_number.values[row]
        frame["connection_id"] = ends[0]
        frame["client"] = ends[1]
        frame["sender"] = SIDES[side] if side >= 0 else None
        frame["channel"] = frames.channel.values[row]
        frame["method"] = NAMES[method]
        frame["arguments"] = None if octets is None else octets.decode("utf-8")
        frame["response_packet_number"] = None if reply == NULL else reply
        found.append(frame)
    return found
