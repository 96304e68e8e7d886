"""The state machines of connections and channels, as tables of transitions.

A row is one legal step. A tracker only watches, so a method without a row for the current state
does not stop it: the method leads to the state after its first row, because it *proves* that state.
There are three exceptions: only the answer to a close leads out of a close, a close-ok without a
captured close changes nothing, and the first mode of a channel stays. A method without any row
changes no state.

`CONNECTION`: from the protocol header to the last close-ok. `BLOCKING`: whether the broker accepts
publishes on a connection. `CHANNEL`: one channel number. `MODE`: how publishes of a channel
incarnation are answered, as in the column `mode`, where `plain` is null; a select-ok also proves
its select.
"""

from __future__ import annotations

from collections.abc import Iterable
from sys import intern
from typing import NamedTuple

from amqpsniff.spec import METHODS, SIDES, Method

UNKNOWN = "unknown"
"""The state of what began before the capture, until a method proves another."""


class Transition(NamedTuple):
    """In `state`, `side` sends `method`: then it is in state `then`."""

    state: str
    side: str
    method: str
    then: str


class Machine:
    """A table of transitions that can be looked up.

    Args:
        name: The object that has these states.
        table: One transition a line: state, side, method, state after it. Several states before a
            method are separated by `|`.
        closed: States that only their own rows leave.

    Attributes:
        start: The initial state; that of the first row.
        states: All states by code, a byte: `start` is the first, `UNKNOWN` the last.
        closing: By code, the sides that have closed, one bit a side.
        after: The codes of the states after each method, the same if it changes nothing; see
            `place`.
        allowed: By the same index, 1 if the table allows the side to send the method.
    """

    def __init__(self, name: str, table: str, closed: Iterable[str] = ()) -> None:
        self.name = name
        self.rows = tuple(_read(table))
        self.start = self.rows[0].state
        self.closed = frozenset(closed)
        self.methods = frozenset(row.method for row in self.rows)
        named = [row.state for row in self.rows] + [row.then for row in self.rows] + [UNKNOWN]
        self.states = list(dict.fromkeys(named))
        self.closing = bytes(_closing(state) for state in self.states)
        self._next = {row[:3]: row.then for row in self.rows}
        self._proved: dict[tuple[str, str], str] = {}
        for row in [row for row in self.rows if row.state not in self.closed]:
            self._proved.setdefault((row.side, row.method), row.then)
        steps = [method for method in METHODS if method.name in self.methods]
        self.after = b"".join(self._after(state, steps) for state in self.states)
        self.allowed = b"".join(self._allowed(state) for state in self.states)

    def allows(self, state: str, side: int, method: str) -> bool:
        """True if a side (0: the client) may send a method in a state, as far as the table goes."""
        return method not in self.methods or (state, SIDES[side], method) in self._next

    def code(self, state: str) -> int:
        """The code of a state."""
        return self.states.index(state)

    def then(self, state: str, method: int, side: int) -> str:
        """The state after a method, by its place in `spec.METHODS`."""
        return self.states[self.after[place(self.code(state), method, side)]]

    def _after(self, state: str, steps: Iterable[Method]) -> bytes:
        after = bytearray([self.code(state)]) * (2 * len(METHODS))
        for method in steps:
            for side, name in enumerate(SIDES):
                then = self._step(state, name, method.name)
                after[place(0, method.index, side)] = self.code(then)
        return bytes(after)

    def _allowed(self, state: str) -> bytes:
        """For each method, by the client and by the server."""
        return bytes(self.allows(state, side, method.name) for method in METHODS for side in (0, 1))

    def _step(self, state: str, side: str, method: str) -> str:
        then = self._next.get((state, side, method))
        if then is None and state not in self.closed:
            then = self._proved.get((side, method))
        return state if then is None else then


def place(state: int, method: int, side: int) -> int:
    """The place in `Machine.after` of a state, method and side, by codes."""
    return 2 * (state * len(METHODS) + method) + side


def _closing(state: str) -> int:
    return sum(
        (state in (f"{name}-closes", "both-close")) << side for side, name in enumerate(SIDES)
    )


def _read(table: str) -> Iterable[Transition]:
    for line in table.strip().splitlines():
        states, side, method, then = line.split()
        for state in states.split("|"):
            yield Transition(*map(intern, (state, side, method, then)))


CONNECTION = Machine(
    "connection",
    """
    begun                server  connection.start             started
    started              client  connection.start-ok          answered
    answered             server  connection.secure            challenged
    challenged           client  connection.secure-ok         answered
    answered             server  connection.tune              tuned
    tuned                client  connection.tune-ok           agreed
    agreed               client  connection.open              asked
    asked                server  connection.open-ok           open
    open                 client  connection.update-secret     open
    open                 server  connection.update-secret-ok  open
    begun|started|answered|challenged   client  connection.close  client-closes
    tuned|agreed|asked|open  client  connection.close  client-closes
    begun|started|answered|challenged   server  connection.close  server-closes
    tuned|agreed|asked|open  server  connection.close  server-closes
    client-closes        server  connection.close             both-close
    server-closes        client  connection.close             both-close
    client-closes        server  connection.close-ok          over
    server-closes        client  connection.close-ok          over
    both-close           client  connection.close-ok          over
    both-close           server  connection.close-ok          over
    """,
    closed=("client-closes", "server-closes", "both-close", "over"),
)

BLOCKING = Machine(
    "blocking",
    """
    free                 server  connection.blocked           blocked
    blocked              server  connection.blocked           blocked
    blocked              server  connection.unblocked         freed
    freed                server  connection.blocked           blocked
    """,
)

CHANNEL = Machine(
    "channel",
    """
    closed               client  channel.open                 opening
    opening              server  channel.open-ok              open
    opening|open         client  channel.close                client-closes
    opening|open         server  channel.close                server-closes
    client-closes        server  channel.close                both-close
    server-closes        client  channel.close                both-close
    client-closes        server  channel.close-ok             closed
    server-closes        client  channel.close-ok             closed
    both-close           client  channel.close-ok             closed
    both-close           server  channel.close-ok             closed
    """,
    closed=("client-closes", "server-closes", "both-close"),
)

MODE = Machine(
    "mode",
    """
    plain                client  confirm.select               confirm
    confirm              client  confirm.select               confirm
    plain                client  tx.select                    tx
    tx                   client  tx.select                    tx
    tx                   client  tx.commit                    tx
    tx                   client  tx.rollback                  tx
    plain                server  confirm.select-ok            confirm
    plain                server  tx.select-ok                 tx
    confirm              server  confirm.select-ok            confirm
    tx                   server  tx.select-ok                 tx
    tx                   server  tx.commit-ok                 tx
    tx                   server  tx.rollback-ok               tx
    """,
    closed=("confirm", "tx"),
)

MACHINES = (CONNECTION, BLOCKING, CHANNEL, MODE)
