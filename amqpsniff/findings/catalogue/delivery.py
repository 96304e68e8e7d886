"""Findings about whether what was delivered is worked on."""

from amqpsniff.findings.kind import Kind

from .ends import CHANNEL_ENDS, CONNECTION_ENDS

DELIVERY = (
    Kind("automatic-acknowledgement", "warning", "high",
         "Deliveries count as acknowledged when they are sent",
         "basic.consume or basic.get with no-ack on a queue that is no private reply queue.",
         "Acknowledge by hand what must not be lost: with no-ack a consumer that dies loses all "
         "it has received, and prefetch has no effect.",
         "Intended for metrics and events; direct reply-to requires it.",
         category="note"),
    Kind("deliveries-in-doubt", "warning", "medium",
         "A channel ended with deliveries that were not acknowledged",
         "Deliveries had neither ack, nack nor reject when the channel or connection ended; the "
         "broker delivers them again.",
         "Expect them twice: make handlers recognise work that is done, and look at the "
         "redelivered flag.",
         "Deliveries do not come again if their queue is deleted before they do: by a client, or "
         "by itself (auto-delete, x-expires). Messages may expire in it too.",
         (*CHANNEL_ENDS, *CONNECTION_ENDS)),
    Kind("deliveries-deleted", "warning", "medium",
         "Deliveries were not acknowledged, and their queue is gone",
         "Deliveries had neither ack, nack nor reject when the channel or connection ended, and "
         "their queue had been deleted, or was exclusive to the connection that ended.",
         "They do not come again, and are not dead-lettered: publish again what was not done. "
         "Stop consumers and wait for their acknowledgements before a queue is deleted.",
         "Replies and temporary queues, whose messages nobody needs any more.",
         ("operation-destructive", *CHANNEL_ENDS, *CONNECTION_ENDS)),
    Kind("poison-message", "error", "medium",
         "A message is delivered and put back again and again",
         "The same message is delivered from a queue five times or more: by message-id, by "
         "x-delivery-count, or by properties and size where consumers put it back each time.",
         "Stop putting it back: dead-letter it after some attempts (delivery-limit on quorum "
         "queues), and find out why its handler fails.",
         "Different messages with one message-id, or with the same properties and size and no id, "
         "look like one."),
    Kind("requeue-storm", "warning", "low",
         "Many deliveries are put back into the queue",
         "More than a fifth of the deliveries of ten seconds, and twenty at least, were put back, "
         "and came again.",
         "Put failed work into a queue that waits (a dead-letter exchange and a TTL) instead of "
         "back at once: requeueing occupies consumers and broker with work that fails again.",
         "A consumer that shuts down gives back what it holds.",
         ("poison-message",)),
    Kind("dead-letter-cycle", "warning", "high",
         "A message goes round through dead-letter exchanges",
         "Its x-death header counts three rounds or more through a queue.",
         "Limit the rounds by the count in x-death; the header grows with each queue, until the "
         "content header no longer fits a frame.",
         "Retry queues are built like this on purpose."),
    Kind("consumer-stuck", "error", "medium",
         "A consumer holds all it may hold and acknowledges nothing",
         "When its client cancels it, or its channel or the capture ends, unacknowledged "
         "deliveries have reached the prefetch count (1000 without one), and for 30 s and ten "
         "times longer than usual there was no acknowledgement.",
         "Find the handler that hangs (a lock, a call without timeout). A higher prefetch helps "
         "only where tasks that wait for their time fill it.",
         "Jobs may really take that long."),
    Kind("consumer-timed-out", "error", "medium",
         "The broker cancelled a consumer that held deliveries for too long",
         "basic.cancel from a RabbitMQ 4.3 or later for a consumer whose oldest delivery was held "
         "for x-consumer-timeout of the declared queue (30 minutes by default), or to which "
         "deliveries came again after the cancel without a new basic.consume.",
         "Settle deliveries earlier or split long jobs; or raise x-consumer-timeout of the queue. "
         "The deliveries are back in the queue and come again: handlers must recognise work that "
         "is done. The client must handle the cancellation.",
         "A queue that another connection deletes at that very moment.",
         ("celery-eta-prefetch",)),
    Kind("consumer-starved-after-timeout", "warning", "medium",
         "A cancelled consumer got nothing until it settled what it held",
         "After the broker cancelled a consumer for its timeout, nothing was delivered to it for a "
         "second or more; then deliveries came to it again, without a new basic.consume.",
         "Settle the deliveries that a cancelled consumer holds, or close its channel: until then "
         "RabbitMQ 4.3 delivers nothing to it, though the consumer is still there.",
         "The queue may have been empty meanwhile.",
         ("consumer-timed-out",)),
    Kind("prefetch-global-ignored", "warning", "high",
         "A prefetch limit for the whole channel limits each consumer instead",
         "basic.qos with global=true, and basic.qos-ok from a RabbitMQ 4.3 or later.",
         "Call basic.qos with global=false, and divide the limit among the channel's consumers: "
         "together they may hold as many times the count as there are consumers.",
         "A channel with one consumer is limited as before.",
         category="note"),
    Kind("prefetch-unlimited", "warning", "medium",
         "A consumer receives without a prefetch limit",
         "basic.consume with acknowledgements and no basic.qos before it on the channel, or with "
         "a count of 0.",
         "Set a prefetch count: 100 to 300 is a good beginning. Without it one consumer can be "
         "sent the whole queue.",
         "The broker may have a default limit; quorum queues have one of 2000.",
         category="note"),
    Kind("prefetch-too-small", "warning", "low",
         "A consumer waits for the network between deliveries",
         "With a small prefetch count, the next delivery comes a round trip after each "
         "acknowledgement, and those waits are a large share of the time.",
         "Raise the prefetch count so that work is there while acknowledgements travel; keep 1 "
         "for long jobs of uneven length.",
         "An empty queue makes consumers wait as well.",
         category="cost"),
    Kind("backlog-in-client", "warning", "medium",
         "A large backlog lies in a client",
         "Unacknowledged deliveries of a channel amount to more than 100 MB, or are 100 or more "
         "and work for ten seconds.",
         "Lower the prefetch count, so that other consumers can take part.",
         "Consumers that work in batches collect on purpose.",
         ("prefetch-unlimited",)),
)  # fmt: skip
