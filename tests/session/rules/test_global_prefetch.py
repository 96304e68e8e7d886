"""Prefetch counts of a whole channel, which RabbitMQ 4.3 gives to each consumer."""

from __future__ import annotations

import pytest

from tests.session.rules.telling import one, told

CODE = "prefetch-global-ignored"
OK = "S1: basic.qos-ok\n"


def asked(version: str = "4.3.6", product: str = "RabbitMQ", count: str = "global=1") -> str:
    server = f'{{"product": "{product}", "version": "{version}"}}'
    begun = f"handshake server='{server}'\nC1: channel.open\nS1: channel.open-ok\n"
    return begun + f"C1: basic.qos prefetch_count=3 {count}\n"


def test_a_count_that_was_accepted() -> None:
    assert one(asked() + OK, CODE)["detail"] == (
        "basic.qos with global in packet 13, accepted by RabbitMQ 4.3, which gives each consumer "
        "of the channel that limit"
    )


@pytest.mark.parametrize(
    "text",
    [
        asked(),
        asked("4.2.1") + OK,
        asked(product="Other") + OK,
        asked(count="") + OK,
        asked() + "S: connection.close reply_code=541\n",
        "midstream\nC1: basic.qos prefetch_count=3 global=1\n" + OK,
    ],
)
def test_others(text: str) -> None:
    assert not told(text, CODE)
