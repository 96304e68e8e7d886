# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The publishes that a return may mean: lists of entries by route, each in its order.

Where a route has several, `Channel.by_fingerprint` has further lists of them: by route and mark
(the same for the same properties and size), and by route, mark and body mark (the same for the
same bytes of the body). A mark of 0 or a body mark of `NULL` is unknown: then the publish may be
any.

A list is an entry alone, for most keys have one, or a deque. What is answered is at the head of one
only until it is trimmed, and no key is there without an entry.
"""

from __future__ import annotations

from collections import deque

import cython
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.entities import (
    Channel,
    PendingMessage,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def add_returnable(entry: PendingMessage, unanswered: Any) -> cython.longlong:
    """Enter a publish that may come back; gives the number of answered ones that went."""
    channel: Channel = entry.channel
    entry.may_return = True
    if channel.uncommitted is not None:
        channel.uncommitted_start += _drop_answered(channel.uncommitted)
        channel.uncommitted.append(entry)
    _drop_answered(unanswered)
    unanswered.append(entry)
    before = channel.awaiting_return.get(entry.route)
    if before is None:
        if not channel.awaiting_return:
            channel.awaiting_return = {}  # the one before may be shared
        channel.awaiting_return[entry.route] = entry
        return 0
    dropped: cython.longlong = _append(channel.awaiting_return, entry.route, entry)
    if type(before) is PendingMessage:
        _index_by_mark(before)
    return dropped


def index_by_mark(entry: PendingMessage) -> cython.int:
    """A publish that may come back has its row; its mark tells it from others of its route."""
    channel: Channel = entry.channel
    if type(channel.awaiting_return.get(entry.route)) is not PendingMessage:
        _index_by_mark(entry)
    return 0


@cython.cfunc
def _index_by_mark(entry: PendingMessage) -> cython.int:
    """Enter a publish by its mark, if it has one and still may come back."""
    channel: Channel = entry.channel
    if entry.may_return and entry.rows is not None:
        if not channel.by_fingerprint:
            channel.by_fingerprint = {}
        _append(channel.by_fingerprint, (entry.route, entry.mark), entry)
        _append(channel.by_fingerprint, (entry.route, entry.mark, entry.body_mark), entry)
    return 0


def discard_returnable(entry: PendingMessage) -> cython.longlong:
    """A publish no longer comes back; gives the number of answered ones that went."""
    channel: Channel = entry.channel
    entry.may_return = False
    if channel.by_fingerprint:
        _trim(channel.by_fingerprint, (entry.route, entry.mark))
        _trim(channel.by_fingerprint, (entry.route, entry.mark, entry.body_mark))
    return _trim(channel.awaiting_return, entry.route)


@cython.cfunc
def find_returned(returned: PendingMessage) -> list[Any]:
    """The publishes that a return may mean, as a list: the only one, or the oldest of several
    that are the same in all. Others that may differ are as many candidates; so are all that are
    the same where the oldest may have been answered by what is missing, or by a confirm that may be
    of any of them.
    """
    found: list[Any]
    entry: PendingMessage
    channel: Channel = returned.channel
    route: tuple[Any, ...] = returned.route
    listed = channel.awaiting_return.get(route)
    if listed is None:
        return []
    if type(listed) is PendingMessage:
        entry = listed
        return [entry] if _may_be(entry, returned) else []
    if returned.mark == 0:
        return _open(listed)
    found = _open(channel.by_fingerprint.get((route, 0)))
    if returned.body_mark == NULL:
        return found + _open(channel.by_fingerprint.get((route, returned.mark)))
    found += _open(channel.by_fingerprint.get((route, returned.mark, NULL)))
    same = channel.by_fingerprint.get((route, returned.mark, returned.body_mark))
    if found:
        return found + _open(same)
    if same is None:
        return []
    if type(same) is not PendingMessage:
        entry = same[0]
        if entry.losses != channel.losses or _maybe_confirmed(entry):
            return _open(same)
        return [entry]
    return [same]


@cython.cfunc
def _maybe_confirmed(entry: PendingMessage) -> cython.bint:
    """True if a confirm may be of a publish, for its number is not known."""
    last: cython.longlong = entry.channel.times.unknown_confirm_number
    return entry.number < 0 and entry.packet_number < last


@cython.cfunc
def _may_be(entry: PendingMessage, returned: PendingMessage) -> cython.bint:
    """True if no known value of a publish and of a return differs."""
    if entry.mark != returned.mark and entry.mark != 0 and returned.mark != 0:
        return False
    if entry.body_mark == NULL or returned.body_mark == NULL:
        return True
    return entry.body_mark == returned.body_mark


@cython.cfunc
def _open(listed: Any) -> list[Any]:
    """The entries of a list that may come back, as a new list."""
    if listed is None:
        return []
    if type(listed) is PendingMessage:
        return [listed] if cython.cast(PendingMessage, listed).may_return else []
    return [one for one in listed if cython.cast(PendingMessage, one).may_return]


@cython.cfunc
def all_returnable(lists: dict[Any, Any]) -> list[Any]:
    """The entries of all lists, as one list."""
    found: list[Any] = []
    for listed in lists.values():
        if type(listed) is PendingMessage:
            found.append(listed)
        else:
            found.extend(listed)
    return found


@cython.cfunc
def _append(lists: dict[Any, Any], key: Any, entry: PendingMessage) -> cython.longlong:
    """Append an entry to the list of a key; gives the number of answered ones that went."""
    dropped: cython.longlong = _trim(lists, key)
    listed = lists.get(key)
    if listed is None:
        lists[key] = entry
    elif type(listed) is PendingMessage:
        lists[key] = deque((listed, entry))
    else:
        listed.append(entry)
    return dropped


@cython.cfunc
def _trim(lists: dict[Any, Any], key: Any) -> cython.longlong:
    """Take answered entries from the head of a list; gives their number."""
    listed = lists.get(key)
    if listed is None:
        return 0
    if type(listed) is PendingMessage:
        if cython.cast(PendingMessage, listed).may_return:
            return 0
        del lists[key]
        return 1
    dropped: cython.longlong = _drop_answered(listed)
    if not listed:
        del lists[key]
    return dropped


@cython.cfunc
def _drop_answered(entries: Any) -> cython.longlong:
    """Take what is answered from the head of a deque of entries; gives their number."""
    dropped: cython.longlong = 0
    while entries and not cython.cast(PendingMessage, entries[0]).may_return:
        entries.popleft()
        dropped += 1
    return dropped
