"""Remedies for the errors with which RabbitMQ closes channels and connections, by reply text.

One reply code stands for errors of different kinds: 403 for a missing permission and for a queue
that another consumer has to itself. The texts are those of `rabbit_misc:protocol_error` in the
source of RabbitMQ v3.10.8 and v4.3 (rabbit_channel, rabbit_amqqueue, rabbit_exchange,
rabbit_access_control). A text that no row has gets no remedy.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from amqpsniff.session.method_frame import ALIKE

LOCKED = 405
"""RESOURCE_LOCKED"""

VARIANTS = 1_000
"""Variants of findings of one code: the reply code times this, plus the number of the row."""


class Remedy(NamedTuple):
    """A remedy of an error: its code, words of its text without the names in it, what to do."""

    code: int
    words: str
    what: str


REMEDIES = (
    Remedy(320, "vhost  is deleted", "the virtual host was deleted, and its queues and messages "
           "with it: declare it and all that was in it again, or take clients elsewhere"),
    Remedy(320, "user  is deleted", "queues and messages are not deleted with it: create the "
           "account again with its permissions, or let clients log in as another"),
    Remedy(403, "in exclusive use", "queues have one exclusive consumer or several that are not: "
           "end the other consumer or consume without the flag exclusive; x-single-active-consumer "
           "lets consumers take turns"),
    Remedy(403, "cannot publish to internal", "internal exchanges take messages of exchanges "
           "only: publish to one that is bound to it"),
    Remedy(403, "on the default exchange", "it cannot be declared, deleted or bound"),
    Remedy(403, "deletion of system", "exchanges named amq. belong to the broker"),
    Remedy(403, "reserved prefix", "choose a name that does not begin with amq."),
    Remedy(403, "direct reply-to", "direct reply-to cannot be bound"),
    Remedy(403, "access to topic", "grant the topic permission, or correct the "
           "routing key"),
    Remedy(403, "refused for user", "grant the permission, or correct the name"),
    Remedy(404, "no previously declared queue", "name the queue: an empty name means the one that "
           "the channel declared last"),
    Remedy(404, "no queue", "declare it first, or correct its name"),
    Remedy(404, "no exchange", "declare it first, or correct its name"),
    Remedy(404, "no binding", "bind it first, or correct the names"),
    Remedy(404, "home node", "the queue's node is down: start it, or use a replicated queue"),
    Remedy(404, "process is stopped", "it is there but not running: see the broker's log"),
    Remedy(404, "has crashed", "it is there but not running: see the broker's log"),
    Remedy(404, "failed to perform operation", "it is there but did not answer: try again, "
           "and see the broker's log"),
    Remedy(405, "cannot delete protected", "it belongs to the broker, or to the entity that "
           "the text names: delete that"),
    Remedy(405, "single active consumer", "consume from it instead of basic.get"),
    Remedy(406, "unknown delivery tag", "settle each delivery once, on the channel that delivered "
           "it"),
    Remedy(406, "invalid arg", "correct the argument"),
    Remedy(406, "exchange type", "choose a type that the broker has; a plugin "
           "may add it"),
    Remedy(406, " is reached", "a limit of the virtual host or the broker: delete what is "
           "not needed, or raise it"),
    Remedy(406, "prefetch count is not set", "call basic.qos before consuming from a stream"),
    Remedy(406, "not empty", "empty it first, or delete it without if-empty"),
    Remedy(406, "in use", "end what uses it (consumers of a queue, bindings of an exchange) first, "
           "or delete it without if-unused"),
    Remedy(406, "invalid expiration", "expiration is a text of digits: milliseconds"),
    Remedy(406, "fast reply consumer does not exist", "consume from amq.rabbitmq.reply-to on this "
           "channel before the request is published"),
    Remedy(406, "reply consumer", "consume from amq.rabbitmq.reply-to once on a channel, with "
           "no-ack"),
    Remedy(406, "cannot switch from", "use transactions or confirms on a channel, not both"),
    Remedy(406, "not transactional", "call tx.select first"),
    Remedy(530, "reuse consumer tag", "a consumer tag names one consumer of a channel: let the "
           "broker choose it"),
    Remedy(530, "of consumers per channel", "end consumers or open more channels"),
    Remedy(540, "immediate=true", "publish without the flag immediate"),
    Remedy(540, "prefetch_size", "call basic.qos with a prefetch size of 0"),
    Remedy(540, "does not support global qos", "call basic.qos with global=false; in Celery set "
           "worker_detect_quorum_queues, or global_qos to False in broker_transport_options"),
    Remedy(540, "automatic acknowledgement not supported", "consume from streams with "
           "acknowledgements"),
    Remedy(540, "active=false", "a client cannot stop the broker: set a prefetch count"),
    Remedy(540, "queue.purge", "a stream cannot be emptied: set its retention"),
    Remedy(541, "metadata store operation timed out", "most often the cluster has no majority of "
           "its nodes: see rabbitmqctl cluster_status, and start those that are down"),
    Remedy(541, "`transient_nonexcl_queues`", "declare it durable, or exclusive to its "
           "connection; x-expires deletes it when it is not used"),
    Remedy(541, "`queue_master_locator`", "leave out x-queue-master-locator: its successor is "
           "x-queue-leader-locator"),
    Remedy(541, "`global_qos`", "call basic.qos with global=false: a prefetch count for each "
           "consumer"),
)  # fmt: skip


class Fault(NamedTuple):
    """A fault of one release of RabbitMQ, which answers a method with 541, and its description."""

    method: str
    release: tuple[int, int]
    what: str


INTERNAL_ERROR = 541

FAULTS = (
    # rabbitmq-server issues 16788 (a setting that older releases took) and 16555
    Fault("basic.consume", (4, 3), "RabbitMQ 4.3 fails there if consumer_timeout in its "
          "configuration, or x-consumer-timeout of the queue, is not a number it can use: correct "
          "that and update the broker; the client is not at fault"),
)  # fmt: skip


_NAMES = re.compile(r"'[^']*'")
"""Names in a text: a queue may be called `not empty`."""


@lru_cache(ALIKE)
def remedy(code: int | None, text: str | None) -> tuple[str, int | None]:
    """The remedy of an error, to follow its text, and the variant of its finding.

    An empty text and the code itself for an unknown error text.
    """
    reply = _NAMES.sub("", (text or "").lower())
    for number, row in enumerate(REMEDIES, 1):
        if row.code == code and row.words in reply:
            return f"; {row.what}", row.code * VARIANTS + number
    return "", code


def fault(code: int | None, method: str | None, release: tuple[int, int]) -> str:
    """A known fault of a broker of that release that answers a method so, in words."""
    known = (fault for fault in FAULTS if (fault.method, fault.release) == (method, release))
    return "".join(f"; {fault.what}" for fault in known if code == INTERNAL_ERROR)


def is_exclusive(code: int | None, text: str | None) -> bool:
    """True if a channel is closed because another connection has a queue to itself.

    RESOURCE_LOCKED means just that (0-9-1 §1.2); RabbitMQ has given it other meanings since.
    """
    return code == LOCKED and not remedy(code, text)[0]
