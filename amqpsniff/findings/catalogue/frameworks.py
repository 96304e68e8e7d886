"""Findings about habits of frameworks that use AMQP."""

from amqpsniff.findings.finding import Kind

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
         "`expires` of a task, in headers or body, lies before its delivery: the worker drops it.",
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
    Kind("federation-hops", "info", "medium",
         "Messages come over more than one federation link",
         "The header x-received-from of a delivery has two entries or more. An upstream takes "
         "messages that came over another link only where its max-hops is above 1.",
         "See that max-hops of the upstreams is no more than the brokers on the way: with more, "
         "brokers that federate in a ring hand messages round.",
         "Brokers in a line, where messages are to go on to the next.",
         category="note"),
    Kind("workers-controlled", "info", "high",
         "Celery workers were told to stop or to drop work",
         "A command to workers is published: revoke, terminate, shutdown, pool_restart, "
         "pool_shrink, rate_limit or cancel_consumer.",
         "See who sent it, where tasks or workers are missing.",
         category="note"),
    Kind("attempts-exceeded", "warning", "high",
         "A job of Laravel comes back after its last attempt",
         "A job is published with as many attempts in the header `laravel` as its body allows "
         "(maxTries), or more.",
         "It fails without being run (MaxAttemptsExceededException): look for what made the "
         "attempts before fail, a timeout for instance."),
    Kind("task-result-unread", "info", "low",
         "Results of Celery tasks are not read",
         "Results are published to the queue of a caller; nobody reads it in ten seconds or more, "
         "and all connections to the broker were captured from their beginning.",
         "Set ignore_result where nobody asks for results, or use another result backend.",
         "A caller that asks later.",
         category="cost"),
    Kind("notifications-unread", "warning", "low",
         "Notifications of OpenStack are not read",
         "Notifications are published to a queue that the capture shows and nobody reads in ten "
         "seconds or more; all connections to the broker were captured from their beginning.",
         "Set driver = noop in the section oslo_messaging_notifications, or start what reads them "
         "(Ceilometer): the queue grows until the broker has no memory left.",
         "A reader that is stopped for a while.",
         category="cost"),
    Kind("message-id-missing", "error", "high",
         "NServiceBus gets messages without an id",
         "A message without the property message-id is delivered to a client of NServiceBus.",
         "Let its publisher set message-id: the endpoint cannot process a message without one, and "
         "moves it to the error queue."),
    Kind("delay-levels-old", "info", "high",
         "NServiceBus delays messages in classic queues of an old transport",
         "A message is published to an exchange nsb.delay-level-NN, without v2 in its name.",
         "Update NServiceBus.RabbitMQ: levels since version 7 are quorum queues. Move what still "
         "waits with its tool (`rabbitmq-transport delays migrate`).",
         category="note"),
    Kind("clocks-differ", "info", "high",
         "The broker's clock is ahead of the capture's",
         "A message is delivered whose timestamp_in_ms, which the broker gave it when it came, is "
         "a second or more later than the delivery.",
         "Let NTP set the clocks of both; until then compare times in the capture with each other "
         "only, and not with logs.",
         "A shovel or federation hands on the header of another broker.",
         category="note"),
    Kind("celery-protocol-mixed", "warning", "high",
         "Tasks of Celery come in two protocols",
         "Messages of task protocol 1, which has all of the task in the body, and of protocol 2 "
         "have the same exchange and routing key.",
         "Update the senders of protocol 1, or set task_protocol alike: tools that look at headers "
         "do not see those tasks.",
         category="note"),
    Kind("celery-delay-direct-exchange", "warning", "medium",
         "Native delayed delivery of Celery does not reach a queue of tasks",
         "celery_delayed_delivery is declared, and a queue to which tasks are published is bound "
         "to a direct exchange.",
         "Let the queue use a topic exchange. Through a direct one tasks with an ETA do not wait "
         "in the broker: they block the worker until they are due.",
         "No task of the queue has an ETA."),
    Kind("eta-beyond-consumer-timeout", "warning", "medium",
         "A task is due after the broker's delivery acknowledgement timeout",
         "A delivery that the worker has to acknowledge is due later than the queue allows: 30 "
         "minutes, or x-consumer-timeout. Since RabbitMQ 4.3 only quorum queues have that limit.",
         "The broker closes the channel (406), since 4.3 cancels the consumer, and delivers the "
         "task again. Use native delayed delivery, shorter ETAs, or a higher consumer_timeout.",
         "The broker has a higher consumer_timeout, which the wire does not show."),
    Kind("trace-context-never", "info", "medium",
         "A tracer is there, and no message has the context of a trace",
         "Messages have tracestate, baggage or a decision about sampling, and none in the capture "
         "has the id of a trace.",
         "Let the instrumentation of the publisher inject W3C Trace Context too.",
         "Sampling that is turned off with B3 writes only that.",
         category="note"),
    Kind("trace-unsampled", "info", "low",
         "No trace that a client begins or hands on is kept",
         "30 different traces or more were looked at in what a client publishes, and all are "
         "marked as not sampled.",
         "Raise the rate of sampling if no trace comes to the backend.",
         "A low rate of sampling, at few messages.",
         category="note"),
    Kind("trace-id-reused", "warning", "low",
         "A client gives most of its messages one trace id",
         "For five minutes or more, most publishes that were looked at, 64 or more, have the same "
         "trace id. Rules look at the first 32 publishes of a connection, then at one in 128.",
         "Look for a span that is never ended: around the loop of a worker, or around connecting.",
         "A long batch that is one trace.",
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
         ("celery-delay-direct-exchange",),
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
