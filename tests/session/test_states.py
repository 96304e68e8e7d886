"""Every transition of the state tables: what client and server say, and where it leads.

A line that ends in `=> state` is a row of its machine's table: from where the marked line before it
led to that state. One that ends in `~> state` is none, and leads there all the same. The tests see
to it that the tracker is in that state after each line, and that no row is without a line.
"""

from __future__ import annotations

import re

import pytest

from amqpsniff.session.state_machine import MACHINES, Machine, Transition
from tests.session.script import Remembering, Script

_HELLO = """
    hello
    S: connection.start                        => started
    C: connection.start-ok                     => answered
"""
_TUNED = _HELLO + "    S: connection.tune => tuned\n"
_AGREED = _TUNED + "    C: connection.tune-ok => agreed\n"
_ASKED = _AGREED + "    C: connection.open => asked\n"
_OPEN = _ASKED + "    S: connection.open-ok => open\n"
_CLOSE = "    {side}: connection.close => {who}-closes\n"

SCRIPTS: dict[str, list[str]] = {
    "connection": [
        _OPEN
        + """
        C: connection.update-secret new_secret=s  => open
        S: connection.update-secret-ok            => open
        C: connection.close                       => client-closes
        S: connection.close-ok                    => over
        """,
        _HELLO
        + """
        S: connection.secure                      => challenged
        C: connection.secure-ok                   => answered
        S: connection.tune                        => tuned
        """,
        _OPEN
        + """
        S: connection.close                       => server-closes
        C: connection.close-ok                    => over
        """,
        _OPEN
        + """
        C: connection.close                       => client-closes
        S: connection.close                       => both-close
        C: connection.close-ok                    => over
        """,
        _OPEN
        + """
        S: connection.close                       => server-closes
        C: connection.close                       => both-close
        S: connection.close-ok                    => over
        """,
        *(
            opened + _CLOSE.format(side=side, who=who)
            for opened in (
                "    hello\n",
                _HELLO,
                _HELLO + "    S: connection.secure => challenged\n",
                _HELLO.rpartition("    C:")[0],
                _TUNED,
                _AGREED,
                _ASKED,
            )
            for side, who in (("C", "client"), ("S", "server"))
        ),
    ],
    "blocking": [
        """
        handshake
        S: connection.blocked                     => blocked
        S: connection.blocked                     => blocked
        S: connection.unblocked                   => freed
        S: connection.blocked                     => blocked
        """,
    ],
    "channel": [
        """
        handshake
        C1: channel.open                          => opening
        S1: channel.open-ok                       => open
        C1: channel.close                         => client-closes
        S1: channel.close-ok                      => closed
        C1: channel.open                          => opening
        S1: channel.close                         => server-closes
        C1: channel.close-ok                      => closed
        """,
        """
        handshake
        C1: channel.open                          => opening
        C1: channel.close                         => client-closes
        S1: channel.close                         => both-close
        S1: channel.close-ok                      => closed
        """,
        """
        handshake
        C1: channel.open                          => opening
        S1: channel.open-ok                       => open
        S1: channel.close                         => server-closes
        C1: channel.close                         => both-close
        C1: channel.close-ok                      => closed
        """,
    ],
    "mode": [
        """
        handshake
        C1: channel.open
        S1: channel.open-ok
        C1: confirm.select                        => confirm
        S1: confirm.select-ok                     => confirm
        C1: confirm.select                        => confirm
        """,
        """
        handshake
        C1: channel.open
        S1: channel.open-ok
        C1: tx.select                             => tx
        S1: tx.select-ok                          => tx
        C1: tx.select                             => tx
        C1: tx.commit                             => tx
        S1: tx.commit-ok                          => tx
        C1: tx.rollback                           => tx
        S1: tx.rollback-ok                        => tx
        """,
        "midstream\nS1: confirm.select-ok => confirm",
        "midstream\nS1: tx.select-ok => tx",
    ],
}

OTHERS: dict[str, list[str]] = {
    "connection": [
        """
        hello
        S: connection.tune                        ~> tuned
        C: connection.close-ok                    ~> tuned
        C: connection.close                       => client-closes
        C: connection.open                        ~> client-closes
        C1: channel.open                          ~> client-closes
        """,
        "midstream\nC: connection.tune-ok ~> agreed",
    ],
    "blocking": ["handshake\nS: connection.unblocked ~> freed"],
    "channel": [
        """
        handshake
        C1: channel.open                          => opening
        C1: channel.close-ok                      ~> opening
        S1: channel.close                         => server-closes
        C1: channel.open                          ~> opening
        C1: queue.purge queue=q                   ~> opening
        """,
        "midstream\nC1: channel.close ~> client-closes",
    ],
    "mode": [
        """
        handshake
        C1: channel.open
        C1: confirm.select                        => confirm
        C1: tx.select                             ~> confirm
        C1: tx.commit                             ~> confirm
        """
    ],
}
"""What no table has: unknown beginnings, and methods out of order."""

_MARK = re.compile(r"^(?P<said>.*?)\s*(?:(?P<kind>[=~])>\s*(?P<state>\S+))?$")


def _read(text: str) -> list[tuple[str, str, str]]:
    """The lines of a script, each with the kind and state of its mark."""
    matches = [_MARK.match(line.strip()) for line in text.strip().splitlines()]
    return [(one["said"], one["kind"] or "", one["state"] or "") for one in matches if one]


def _rows(machine: Machine, text: str) -> set[Transition]:
    """The rows that the marked lines of a script are."""
    rows, state = set(), machine.start
    for said, kind, then in _read(text):
        if kind == "=":
            side, _, rest = said.partition(":")
            rows.add(
                Transition(state, {"C": "client", "S": "server"}[side[0]], rest.split()[0], then)
            )
        state = then or state
    return rows


CASES = [
    pytest.param(machine, text, id=f"{machine.name}-{number}")
    for machine in MACHINES
    for number, text in enumerate(SCRIPTS[machine.name] + OTHERS[machine.name])
]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_every_transition_has_a_script(machine: Machine) -> None:
    told = set().union(*(_rows(machine, text) for text in SCRIPTS[machine.name]))
    assert told == set(machine.rows)


def _state(machine: Machine, script: Script) -> str:
    """The state that a script leads to, of its connection or its channel 1."""
    session = Remembering(script).session
    lane = session.slot(1)
    channel = lane.channel if lane is not None else None
    states = {
        "connection": session.state,
        "blocking": session.blocking,
        "channel": lane.state if lane is not None else machine.start,
        "mode": channel.mode or machine.start if channel is not None else machine.start,
    }
    return str(states[machine.name])


@pytest.mark.parametrize(("machine", "text"), CASES)
def test_what_is_said_leads_to_the_state(machine: Machine, text: str) -> None:
    lines = _read(text)
    for count, (said, kind, state) in enumerate(lines, 1):
        if kind:
            script = Script("\n".join(line for line, _, _ in lines[:count]))
            assert _state(machine, script) == state, said


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_tables_have_no_contradictions(machine: Machine) -> None:
    """One row for a state, side and method; every state can be reached."""
    assert len({row[:3] for row in machine.rows}) == len(machine.rows)
    assert {row.state for row in machine.rows} <= {
        machine.start,
        *(row.then for row in machine.rows),
    }
