"""Findings about habits of frameworks that use AMQP."""

from amqpsniff.findings.kind import Kind

FRAMEWORKS = (
    Kind("celery-event-noise", "warning", "high",
         "Celery workers spend much traffic on events about themselves",
         "More than 30 % of the messages go through the exchange celeryev and are worker "
         "heartbeats and gossip; each worker receives those of all others.",
         "Start workers with --without-gossip --without-mingle --without-heartbeat.",
         "Monitors such as Flower need the events.",
         category="cost"),
    Kind("celery-eta-prefetch", "warning", "medium",
         "Celery tasks that wait for their time fill the prefetch",
         "basic.qos raises the count by one, three times or more, on a channel with deliveries "
         "that have an eta header; or all that the prefetch count allows are tasks whose eta lies "
         "ahead, and nothing else came for ten seconds.",
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
