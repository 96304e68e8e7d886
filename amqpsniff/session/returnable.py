# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Lists of entries by key, each in its order: the publishes that a return may mean.

A list is an entry alone, for most keys have one, or a deque. What is answered is at the head of one
only until it is trimmed, and no key is there without an entry.
"""

from collections import deque

import cython

if cython.compiled:
    from cython.cimports.amqpsniff.session.state import Entry  # type: ignore[import-not-found]
else:
    from amqpsniff.session.state import Entry


def append(lists, key, entry):
    """Append an entry to the list of a key; gives the number of answered ones that went."""
    dropped: cython.longlong = trim(lists, key)
    listed = lists.get(key)
    if listed is None:
        lists[key] = entry
    elif type(listed) is Entry:
        lists[key] = deque((listed, entry))
    else:
        listed.append(entry)
    return dropped


def trim(lists, key):
    """Take answered entries from the head of a list; gives their number."""
    listed = lists.get(key)
    dropped: cython.longlong = 0
    if listed is None:
        return 0
    if type(listed) is Entry:
        if not _is_answered(listed):
            return 0
        del lists[key]
        return 1
    while listed and _is_answered(listed[0]):
        listed.popleft()
        dropped += 1
    if not listed:
        del lists[key]
    return dropped


def oldest(lists, key):
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


@cython.cfunc
def _is_answered(entry: Entry) -> cython.bint:
    return entry.outcome >= 0 or entry.ended
