# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The publishes that a return may mean: lists of entries by route, each in its order.

A list is an entry alone, for most keys have one, or a deque. What is answered is at the head of one
only until it is trimmed, and no key is there without an entry.
"""

from collections import deque

import cython

if cython.compiled:
    from cython.cimports.amqpsniff.session.state import (  # type: ignore[import-not-found]
        Channel,
        Entry,
    )
else:
    from amqpsniff.session.state import Channel, Entry


def enter(entry, unanswered):
    """A publish may come back: enter it into its channel's lists, and into those of all channels;
    gives the number of answered ones that went.
    """
    channel: Channel = entry.channel
    entry.returnable = True
    if channel.uncommitted is not None:
        channel.passed += _drop_answered(channel.uncommitted)
        channel.uncommitted.append(entry)
    _drop_answered(unanswered)
    unanswered.append(entry)
    before = channel.returnable.get(entry.route)
    if before is None:
        channel.returnable[entry.route] = entry
        return 0
    dropped: cython.longlong = _append(channel.returnable, entry.route, entry)
    if type(before) is Entry:
        _mark(before)
    return dropped


def mark(entry):
    """A publish that may come back has its row, and so its mark; it is needed where there are
    several of its route.
    """
    channel: Channel = entry.channel
    if type(channel.returnable.get(entry.route)) is not Entry:
        _mark(entry)
    return 0


def _mark(entry):
    """Enter a publish by its mark, if it has one and still may come back."""
    channel: Channel = entry.channel
    if entry.returnable and entry.rows is not None:
        _append(channel.alike, (entry.route, entry.mark), entry)
    return 0


def leave(entry):
    """A publish does not come back any more; gives the number of answered ones that went."""
    channel: Channel = entry.channel
    entry.returnable = False
    if channel.alike:
        _trim(channel.alike, (entry.route, entry.mark))
    return _trim(channel.returnable, entry.route)


def meant(returned):
    """The publish that a return means: the oldest of its route and its mark, or else of those whose
    mark is not known, of any where its own is not; None for none.
    """
    entry: Entry
    channel: Channel = returned.channel
    if returned.mark == 0:
        return _oldest(channel.returnable, returned.route)
    listed = channel.returnable.get(returned.route)
    if type(listed) is Entry:
        entry = listed
        return entry if entry.mark == returned.mark or entry.mark == 0 else None
    entry = _oldest(channel.alike, (returned.route, returned.mark))
    if entry is None:
        entry = _oldest(channel.alike, (returned.route, 0))
    return entry


def _oldest(lists, key):
    """The oldest entry of a list; None for none."""
    listed = lists.get(key)
    return listed[0] if type(listed) is deque else listed


def every(lists):
    """The entries of all lists, as one list."""
    found: list = []
    for listed in lists.values():
        if type(listed) is Entry:
            found.append(listed)
        else:
            found.extend(listed)
    return found


def _append(lists, key, entry):
    """Append an entry to the list of a key; gives the number of answered ones that went."""
    dropped: cython.longlong = _trim(lists, key)
    listed = lists.get(key)
    if listed is None:
        lists[key] = entry
    elif type(listed) is Entry:
        lists[key] = deque((listed, entry))
    else:
        listed.append(entry)
    return dropped


def _trim(lists, key):
    """Take answered entries from the head of a list; gives their number."""
    listed = lists.get(key)
    if listed is None:
        return 0
    if type(listed) is Entry:
        if cython.cast(Entry, listed).returnable:
            return 0
        del lists[key]
        return 1
    dropped: cython.longlong = _drop_answered(listed)
    if not listed:
        del lists[key]
    return dropped


def _drop_answered(entries):
    """Take what is answered from the head of a deque of entries; gives their number."""
    dropped: cython.longlong = 0
    while entries and not cython.cast(Entry, entries[0]).returnable:
        entries.popleft()
        dropped += 1
    return dropped
