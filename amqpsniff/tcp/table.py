"""Which conversations there are: open ones by slot, ended ones for a while, and who goes first.

A slot is the place of an open conversation in the lists that the hot loop indexes. It is free
again in the batch after the conversation's end, so that within a batch it means one conversation.
Keys are a segment's addresses and ports as octets, in the order of one direction; bytes, so that
Python's keyed hash stands between a capture and the table.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from .conversation import Conversation
from .half_stream import HalfStream
from .limits import Limits

MASK = 0xFFFFFFFF


class Closed(NamedTuple):
    """What is remembered of a conversation after its end; pairs by direction, -1 for unknown."""

    next_seq: tuple[int, int]
    isn: tuple[int, int]
    incarnation: int
    over: bool  # it ended; otherwise it was given up and may go on


class ConversationTable:
    """Open and recently closed conversations, bounded by `Limits`."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.halves: list[HalfStream | None] = []
        self.conversations: list[Conversation | None] = []
        self.keys: dict[bytes, int] = {}
        self.open = 0
        self.opened = 0
        self._free: list[int] = []
        self._free_next_batch: list[int] = []
        self._closed: OrderedDict[bytes, tuple[Closed, int]] = OrderedDict()
        self._quiet: list[tuple[int, int, Conversation]] = []

    def begin_batch(self) -> None:
        """Slots of conversations that ended in the last batch may be used again."""
        for slot in self._free_next_batch:
            self.conversations[slot] = None
        self._free.extend(self._free_next_batch)
        self._free_next_batch.clear()

    def free_slot(self) -> int:
        """A slot that no conversation has in this batch."""
        if self._free:
            return self._free.pop()
        self.conversations.append(None)
        self.halves.extend((None, None))
        return len(self.conversations) - 1

    def add(self, slot: int, conversation: Conversation, keys: tuple[bytes, bytes]) -> None:
        """Enter a conversation; `keys` are those of its directions."""
        self.conversations[slot] = conversation
        self.halves[slot * 2], self.halves[slot * 2 + 1] = conversation.halves
        conversation.keys = keys
        conversation.serial = self.opened
        self.keys[keys[0]] = slot * 2
        self.keys[keys[1]] = slot * 2 + 1
        self.open += 1
        self.opened += 1

    def remove(self, conversation: Conversation, over: bool) -> None:
        """Take a conversation out and remember what is needed to know its stragglers."""
        first, second = conversation.halves
        for key in conversation.keys:
            self.keys.pop(key, None)
            self._closed.pop(key, None)
        record = Closed(
            (first.next_seq, second.next_seq),
            (first.isn, second.isn),
            conversation.incarnation,
            over,
        )
        for direction, key in enumerate(conversation.keys):
            self._closed[key] = (record, direction)
        while len(self._closed) > 2 * self.limits.closed_conversations:
            self._closed.popitem(last=False)
        self._free_next_batch.append(first.index >> 1)
        self.open -= 1

    def incarnation(self, key: bytes) -> int:
        """How many conversations of these endpoints are known to have been before."""
        closed = self._closed.get(key)
        return closed[0].incarnation + 1 if closed else 0

    def straggler(self, key: bytes, seq: int, syn: bool) -> bool:
        """Whether a segment without a conversation is a late one of a conversation that ended."""
        closed = self._closed.get(key)
        if closed is None or not closed[0].over:
            return False
        record, direction = closed
        if syn:
            return seq == record.isn[direction]
        expected = record.next_seq[direction]
        near = self.limits.closed_near_octets
        return expected >= 0 and (seq - expected + near) & MASK <= 2 * near

    def least_active(self) -> Conversation:
        """The open conversation that has been quiet for the longest time.

        Sorted once and used until nobody on the list has stayed quiet since: everybody else has
        been active since it was made, so the first one left on it is the answer.
        """
        while True:
            while self._quiet:
                activity, _, conversation = self._quiet.pop()
                if conversation.halves[0].open and conversation.last_half.activity == activity:
                    return conversation
            self._quiet = sorted(
                (
                    (conversation.last_half.activity, conversation.serial, conversation)
                    for conversation in self.conversations
                    if conversation is not None and conversation.halves[0].open
                ),
                reverse=True,
            )

    def all_open(self) -> list[Conversation]:
        """Open conversations in the order in which they were opened."""
        found = [c for c in self.conversations if c is not None and c.halves[0].open]
        return sorted(found, key=lambda conversation: conversation.serial)
