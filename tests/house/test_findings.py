"""Every finding of the catalogue is raised somewhere, and none that it does not have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amqpsniff.findings import KINDS
from tests.house import packaging

NOT_YET_RAISED = frozenset(
    """
    capture-inconclusive undecoded resynchronized protocol-version-refused connection-silent
    handshake-slow authentication-failed vhost-refused tuning-rejected limit-reached
    capabilities-missing connection-unnamed method-wrong-direction feature-not-implemented
    channel-zero-misused channel-mode-mixed acknowledgement-invalid acknowledgement-stale
    traffic-after-close publish-while-blocked prefetch-exceeded channel-closed-by-broker
    connection-closed-by-broker declaration-mismatch publishes-discarded
    connection-forced-closed disconnect-unclean consumer-cancelled acknowledgement-timeout
    message-too-large reconnect-loop exclusive-queue-locked publishes-unprotected
    message-unroutable publish-rejected publishes-in-doubt publish-repeated
    automatic-acknowledgement deliveries-in-doubt poison-message requeue-storm dead-letter-cycle
    consumer-stuck queue-residence-long heartbeat-missed heartbeat-disabled heartbeat-too-short
    idle-connection-cut connection-blocked tcp-retransmissions delayed-ack-stall
    connections-leaking frame-max-small credentials-in-clear account-default account-shared
    connection-unencrypted password-guessing operation-destructive resource-bomb user-id-refused
    login-anonymous software-outdated php-short-connections
    """.split()
)
"""Rows whose rules are being written; a rule takes its code out of here."""


def _quoted() -> str:
    """The sources of what looks at traffic."""
    return "\n".join(
        path.read_text(encoding="utf-8")
        for name, path in packaging.sources().items()
        if not name.startswith(("amqpsniff.findings.catalogue", "amqpsniff.cli"))
    )


def test_every_finding_is_raised() -> None:
    text = _quoted()
    silent = {code for code in KINDS if f'"{code}"' not in text}
    assert silent == NOT_YET_RAISED


def _raised() -> Iterator[tuple[str, str]]:
    """(module, code) of every finding that is raised by a code in quotes."""
    for name, path in packaging.sources().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and _raises(node.func):
                code = node.args[0]
                if isinstance(code, ast.Constant) and isinstance(code.value, str):
                    yield name, code.value


def _raises(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("Finding", "report", "_report")


def test_every_finding_that_is_raised_is_in_the_catalogue() -> None:
    raised = list(_raised())
    assert len(raised) > 20
    assert [one for one in raised if one[1] not in KINDS] == []
