"""Findings about habits of frameworks that use AMQP."""

from amqpsniff.findings.kind import Kind

FRAMEWORKS = (
    Kind("operation-failed", "warning", "high",
         "An operation fails with an exception",
         "A published message names an exception where its framework puts it: a result, a reply, a "
         "message that is tried again. The count is that of the messages.",
         "Look for the exception in the logs of the service that published it; `messages "
         "--by operation` has the other operations beside it."),
    Kind("retries-exhausted", "error", "high",
         "A framework gave up on messages and put them aside",
         "A message is published the way its framework does when no retry is left: to an error "
         "exchange, or with the headers of a failed message.",
         "Remove the cause, then move the messages back from the error queue: nobody else will."),
    Kind("operation-retried", "warning", "high",
         "An operation is tried again and again",
         "A message is published that its framework has tried five times or more.",
         "Find out why it fails, and let retries wait longer each time.",
         "Polling that is written as a retry."),
    Kind("message-skipped", "error", "high",
         "MassTransit received messages that no consumer of the queue handles",
         "A message is published to the exchange of a queue named after it with `_skipped`.",
         "Compare the message type with the consumers of the queue: namespace and assembly have to "
         "be the same on both sides. Remove bindings that are not used any more."),
    Kind("delay-missed", "warning", "medium",
         "A delayed message came later than asked for",
         "Its publish says when it is due; it was delivered more than a second and more than a "
         "tenth of the delay after that.",
         "Look at the backlog of its queue, and at the load of the broker: levels of delay are "
         "queues too.",
         "A worker that was stopped for a while."),
    Kind("delay-too-long", "info", "high",
         "A message is to wait for more than a day in the delayed message exchange",
         "Its header x-delay has more than 86,400,000 ms.",
         "Keep such messages in a database: the plugin holds them in memory of one node.",
         category="note"),
    Kind("message-expired", "info", "high",
         "A task was delivered after it had expired",
         "The header `expires` of a task lies before its delivery: the worker drops it.",
         "Look at the backlog of the queue. A time to live of the message would end the wait in "
         "the broker.",
         category="cost"),
    Kind("message-loops", "error", "high",
         "A message goes round between brokers",
         "The header x-shovelled names a shovel twice, or x-received-from counts two visits or "
         "more to a federated queue.",
         "Remove one of the shovels that feed each other; let consumers of a federated queue be "
         "on one side only.",
         "A message that was moved back by hand."),
    Kind("workers-controlled", "info", "high",
         "Celery workers were told to stop or to drop work",
         "A command to workers is published: revoke, terminate, shutdown, pool_restart, "
         "pool_shrink, rate_limit or cancel_consumer.",
         "See who sent it, where tasks or workers are missing.",
         category="note"),
    Kind("trace-context-lost", "warning", "medium",
         "A client does not hand on the context of traces",
         "It received three messages or more with the headers of a trace, and published three or "
         "more without them and none with them. Replies and messages of frameworks about "
         "themselves do not count.",
         "Let its instrumentation inject headers into what it publishes: traces end here.",
         "What it publishes has nothing to do with what it received.",
         category="note"),
    Kind("trace-context-mixed", "info", "medium",
         "Clients write the context of traces in different formats",
         "Clients of one virtual host publish messages with the context of a trace, and no format "
         "of it is common to both: W3C Trace Context here, B3 there.",
         "Let both write W3C Trace Context, or let propagators write and read both formats: a "
         "trace ends where the format changes.",
         "They never receive messages of each other.",
         category="note"),
    Kind("delay-queues-many", "warning", "medium",
         "There is a queue for each delay",
         "40 queues or more that dead-letter what they keep are declared, whose names differ in a "
         "number and whose x-message-ttl differs.",
         "Round delays to a few steps: with jitter or exponential delays each message makes a "
         "queue (Symfony Messenger, Laravel).",
         category="cost"),
    Kind("stream-start-next", "warning", "medium",
         "A consumer of a stream skipped what came while it was away",
         "A client comes back to a stream without an x-stream-offset that says where to begin, and "
         "its first offset is later than the one after its last.",
         "Keep the offset of what was done, and consume with x-stream-offset set to the next one: "
         "the default begins at the end of the stream.",
         "Only new messages are of interest; or several processes of the name share the work."),
    Kind("stream-reread", "info", "medium",
         "A consumer of a stream reads again what it had",
         "A client comes back to a stream, and its first offset lies more than 100 before its "
         "last.",
         "Keep the offset of what was done, and begin after it.",
         "It is meant to read the stream from the beginning.",
         category="cost"),
    Kind("stream-offset-gap", "warning", "medium",
         "Messages of a stream are gone before its consumer got them",
         "Offsets of two deliveries to a consumer without a filter, one after the other, are more "
         "than 100 apart.",
         "Let the stream keep more (x-max-age, x-max-length-bytes), or consume faster: what "
         "retention removes is not delivered."),
    Kind("serialized-code", "warning", "high",
         "Messages carry serialized objects that can run code",
         "The content type of a message is that of Python's pickle or of Java's serialization.",
         "Change the serializer to JSON or another format of data: who can publish such a message "
         "can run code in its consumers.",
         category="note"),
    Kind("firehose-on", "warning", "high",
         "The firehose tracer copies every message",
         "A message is delivered from the exchange amq.rabbitmq.trace.",
         "Turn it off with `rabbitmqctl trace_off` when it is not needed: each message costs the "
         "broker another one or more.",
         category="cost"),
    Kind("celery-event-noise", "warning", "high",
         "Celery workers spend much traffic on events about themselves",
         "More than 30 % of the messages go through the exchange celeryev and are worker "
         "heartbeats and gossip; each worker receives those of all others.",
         "Start workers with --without-gossip --without-mingle --without-heartbeat.",
         "Monitors such as Flower need the events.",
         category="cost"),
    Kind("celery-eta-prefetch", "warning", "medium",
         "Tasks that wait for their time fill the prefetch",
         "basic.qos raises the count by one, three times or more, on a channel with deliveries "
         "that have an eta header; or all that the prefetch count allows are tasks whose eta lies "
         "ahead, and nothing else came for ten seconds. Rebus has the ETA in the header "
         "rbs2-deferred-until.",
         "Use native delayed delivery, or keep tasks with an ETA out of the queues of workers. On "
         "quorum queues Celery cannot raise the count: the worker takes no more tasks until the "
         "first of them is due.",
         "Workers that scale themselves change the prefetch count too.",
         category="cost"),
    Kind("celery-result-queues", "warning", "medium",
         "Celery creates a queue for each result",
         "A queue named by a UUID and with x-expires is declared for each task.",
         "Use the rpc:// result backend or another one, or ignore_result where results are not "
         "read.",
         category="cost"),
    Kind("php-short-connections", "info", "high",
         "PHP opens a connection for each request",
         "Five connections or more of one address that live less than a second and publish at most "
         "three messages, and whose client product is AMQPLib.",
         "Put amqproxy between, which keeps connections open, or publish in batches.",
         "Command-line workers.",
         ("connection-churn",),
         category="cost"),
    Kind("spring-channel-cache", "info", "low",
         "Spring's channel cache is too small",
         "A Java client opens and closes 25 channels a second or more with an operation or two "
         "each.",
         "Raise channelCacheSize to the number of threads that publish.",
         "Other Java programs look the same.",
         ("channel-churn",),
         category="cost"),
)  # fmt: skip
