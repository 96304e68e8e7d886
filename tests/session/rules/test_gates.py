"""Rules are asked where something happened, and of what connections have in common once."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from amqpsniff.session.rules.gates import GatedRule
from amqpsniff.session.rules.occasions import ANYTHING, SHORT
from amqpsniff.session.rules.registry import AMQP10_RULES, RULES
from amqpsniff.session.rules.shared_state import Alike
from tests.conftest import SAMPLES
from tests.session.rules.found import of_capture

TABLES = (RULES, AMQP10_RULES)

CAPTURES = (
    "aiopika_rpc.pcap",
    "blocked.pcap",
    "late_consumer.pcap",
    "lost.pcap",
    "midstream.pcap",
    "node.pcap",
    "php_churn.pcap",
    "pika_mix.pcap",
    "snapped.pcap",
    "v08_v09.pcap",
    "zerowindow.pcap",
)
"""Small ones, of which each has rules that are asked where something happened."""


@pytest.mark.parametrize("name", CAPTURES)
def test_rules_that_are_asked_everywhere_say_no_more(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gate says where a rule has nothing to judge, not what it says: but for `SHORT`, and for
    what is judged once, which look at nothing else."""
    path = Path(SAMPLES / name)
    expected = of_capture(path)
    for table in TABLES:
        for event, rules in list(table.items()):
            everywhere = tuple(
                one
                if one.bits == SHORT or isinstance(one.rule, Alike)
                else GatedRule(one.rule, one.names, ANYTHING)
                for one in rules
            )
            monkeypatch.setitem(table, event, everywhere)
    assert of_capture(path) == expected


def test_what_is_judged_once_is_given_what_connections_have_in_common() -> None:
    """The client or the server, and arguments of the handshake: nothing of one connection."""
    judged = {one.rule for table in TABLES for rules in table.values() for one in rules}
    alike = [rule for rule in judged if isinstance(rule, Alike)]
    assert alike
    for rule in alike:
        subject, *arguments = inspect.signature(rule.judge).parameters.values()
        assert subject.annotation == ("str" if rule.of_server else "Client"), rule.judge
        assert [one.annotation for one in arguments] == ["bytes | None"] * (
            rule.method is not None
        ), rule.judge
