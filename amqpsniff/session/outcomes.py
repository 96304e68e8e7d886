# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Outcomes of messages: where an entry's is written, and how many there are of each.

An entry's outcome is written into its message's row, at once or when the row is there. A row that
may still change counts in its rows' `pending`, so that whoever gives rows out can wait for them.
"""

from array import array
from collections import deque

import cython

from amqpsniff.columns import NULL
from amqpsniff.session import state

if cython.compiled:
    from cython.cimports.amqpsniff.decode.rows import MessageRows  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.counts import Spread  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.returnable import (  # type: ignore[import-not-found]
        leave,
        mark,
    )
    from cython.cimports.amqpsniff.session.state import Entry  # type: ignore[import-not-found]
else:
    from amqpsniff.decode.rows import MessageRows
    from amqpsniff.session.counts import Spread
    from amqpsniff.session.returnable import leave, mark
    from amqpsniff.session.state import Entry  # noqa: F401 (types of arguments)

_NULL = cython.declare(cython.longlong, NULL)


class Outcomes:
    """Outcomes of the entries of any number of channels.

    `hits` counts, by name of the limit, what was not remembered because of one. `watcher`, when
    there is one, is told of what rules want to know. `ended` counts messages by outcome, `spreads`
    their times, once `measure` was called; `lately`, where it was set, has those of late.
    """

    def __init__(self, limits):
        self.most = limits.outstanding
        self.most_disorder = limits.disorder
        self.most_returnable = limits.returnable
        self.outstanding = 0
        self.unanswered = deque()
        self.hits = {}
        self.watcher = None
        self.spreads = None
        self.lately = None
        self.ended = array("q", bytes(8 * len(state.OUTCOMES)))

    def hit(self, name):
        """A limit was reached."""
        self.hits[name] = self.hits.get(name, 0) + 1
        return 0

    def measure(self):
        """Keep the times of outcomes from now on, as a `counts.Spread` each."""
        self.spreads = [Spread() for _ in state.OUTCOMES]

    def endings(self):
        """How many messages have each of `OUTCOMES`, as a list."""
        return [self.ended[outcome] for outcome in range(len(state.OUTCOMES))]

    def settle(self, entry, outcome, number, ts_ns):
        """An entry has its outcome, by a packet at a time."""
        entry.outcome = outcome
        entry.outcome_number = number
        entry.outcome_ns = ts_ns
        self.ended[outcome] += 1
        if entry.returnable:
            self.outstanding -= leave(entry)
        if self.spreads is not None and ts_ns != _NULL and entry.ts_ns != _NULL:
            spread: Spread = self.spreads[outcome]
            spread.add(ts_ns - entry.ts_ns)
            if self.lately is not None:
                self.lately.add(entry.channel.session, outcome, ts_ns - entry.ts_ns)
        if entry.rows is not None:
            self._write(entry)
            self._shut(entry)
        return 0

    def _write(self, entry):
        rows: MessageRows = entry.rows
        if rows.given:
            return 0
        rows.outcome.values[entry.row] = entry.outcome
        if entry.outcome_number >= 0:
            rows.outcome_packet_number.values[entry.row] = entry.outcome_number
            if entry.outcome_ns != _NULL and entry.ts_ns != _NULL:
                rows.outcome_ns.values[entry.row] = entry.outcome_ns - entry.ts_ns
        return 0

    def _shut(self, entry):
        """An entry's row does not change any more."""
        if entry.open_row:
            entry.open_row = False
            entry.rows.settle(entry.row)
        return 0

    def _close_row(self, entry, outcome):
        """An entry will not be settled: `outcome` says so, -1 for null."""
        if entry.outcome >= 0 or entry.ended:
            return 0
        entry.ended = True
        entry.outcome = outcome
        entry.outcome_number = -1
        if outcome >= 0:
            self.ended[outcome] += 1
        if entry.rows is not None:
            if outcome >= 0:
                self._write(entry)
            self._shut(entry)
        return 0

    def attach(self, entry, rows, row):
        """An entry's row is there."""
        entry.rows = rows
        entry.row = row
        if entry.outcome >= 0:
            return self._write(entry)
        if entry.ended:
            return 0
        entry.open_row = True
        rows.wait(row)
        if entry.returnable:
            mark(entry)
        return 0
