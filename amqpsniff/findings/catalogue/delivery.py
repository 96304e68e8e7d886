"""Findings about the processing of deliveries."""

from amqpsniff.findings.finding import Kind

from .closings import CHANNEL_ENDS, CONNECTION_ENDS

DELIVERY = (
    Kind("automatic-acknowledgement", "warning", "high",
         "Deliveries are acknowledged as they are sent, by auto-ack",
         "basic.consume or basic.get with no-ack on a queue that is no private reply queue. In "
         "AMQP 1.0: a link whose deliveries were all sent settled.",
         "Acknowledge by hand what must not be lost; in AMQP 1.0 ask for snd-settle-mode "
         "unsettled. With no-ack a consumer that dies loses all it has received, and prefetch has "
         "no effect.",
         "Intended for metrics and events; direct reply-to requires it.",
         category="note"),
    Kind("deliveries-in-doubt", "warning", "medium",
         "A channel ended with deliveries that were not acknowledged",
         "Deliveries had neither ack, nack nor reject, or in AMQP 1.0 no outcome, when the "
         "channel, session or connection ended; the broker delivers them again. Deliveries of "
         "streams are left out: a stream keeps them.",
         "Expect them twice: make handlers recognise work that is done, and look at the "
         "redelivered flag.",
         "Deliveries do not come again if their queue is deleted before they do: by a client, or "
         "by itself (auto-delete, x-expires). Messages may expire in it too.",
         ("consumer-stuck", "consumer-timed-out", *CHANNEL_ENDS, *CONNECTION_ENDS,
          "heartbeat-missed")),
    Kind("deliveries-deleted", "warning", "medium",
         "Deliveries were not acknowledged, and their queue is gone",
         "Deliveries had neither ack, nack nor reject when the channel or connection ended, and "
         "their queue had been deleted, or was exclusive to the connection that ended. In AMQP "
         "1.0: the broker had detached the link with amqp:resource-deleted.",
         "They do not come again, and are not dead-lettered: publish again what was not done. "
         "Stop consumers and wait for their acknowledgements before a queue is deleted.",
         "Replies and temporary queues, whose messages nobody needs any more.",
         ("operation-destructive", "link-detached", *CHANNEL_ENDS, *CONNECTION_ENDS)),
    Kind("poison-message", "error", "medium",
         "A message is delivered and put back again and again",
         "The same message is delivered from a queue five times or more: by message-id, by "
         "x-delivery-count or the delivery-count of AMQP 1.0, or by properties and size where "
         "consumers put it back each time.",
         "Stop putting it back: reject it without requeue after some attempts, into a dead-letter "
         "exchange, and find out why its handler fails. In AMQP 1.0 the outcomes rejected, and "
         "modified with undeliverable-here, do that. The delivery limit of quorum queues stops it "
         "too, but since RabbitMQ 4.3 that does not count what consumers put back themselves.",
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
    Kind("dead-lettered", "info", "high",
         "Messages were dead-lettered",
         "A delivery has an x-death header, whose newest entry names the queue and the reason. "
         "Each of these has a row, whose count is that of the deliveries.",
         "Look at the reason: `rejected` is a decision of a consumer, `expired` a consumer that is "
         "too slow, `maxlen` an overflow, `delivery_limit` a message that fails each time.",
         "Queues that delay messages by letting them expire.",
         category="note"),
    Kind("dead-letter-unread", "warning", "low",
         "Dead letters go to a queue that nobody reads",
         "Clients reject deliveries of a queue whose declaration names the exchange of its dead "
         "letters, or a framework puts messages aside. All connections to the broker were captured "
         "from their beginning, and none reads the queue that gets them, in ten seconds or more.",
         "Look into the queue: it says what fails. Move the messages back once the cause is "
         "removed, and watch its length; with x-message-ttl or a limit they are gone some day "
         "(Dramatiq drops them after a week).",
         "Error queues that a person looks into now and then."),
    Kind("dead-letter-target-missing", "error", "medium",
         "Dead letters of a queue vanish: their exchange does not exist",
         "A queue is declared with an x-dead-letter-exchange that the broker says it has not "
         "(404), and that nobody declares in the capture.",
         "Declare the exchange, and bind a queue to it: the broker drops dead letters without one, "
         "and tells nobody.",
         "It was declared after the capture, or where the capture does not show it."),
    Kind("dead-letter-cycle", "warning", "high",
         "A message goes round through dead-letter exchanges",
         "Its x-death header counts three rounds or more through a queue. Up to nine are left out "
         "where no message goes round once more in three times as long as a round takes: there a "
         "program gives up after some attempts.",
         "Limit the rounds by the count in x-death; the header grows with each queue, until the "
         "content header no longer fits a frame.",
         "A program that tries ten times or more, or a capture that is too short to show that it "
         "gives up."),
    Kind("consumer-stuck", "error", "medium",
         "A consumer holds all it may hold and acknowledges nothing",
         "At its cancel, or at the end of its channel or the capture, unacknowledged deliveries "
         "have reached the prefetch count (1000 without one, 100 if the channel acknowledged "
         "nothing at all). There was no acknowledgement for 30 s and ten times longer than usual, "
         "or for 10 s and a hundred times longer (a thousand times where few were acknowledged). "
         "Tasks with an eta header that lies ahead do not count. In AMQP 1.0: the link's credit is "
         "used up and all of it is held; or, though it is renewed, 100 deliveries or more came and "
         "none was settled for 30 s, ten or more on a link from before the capture.",
         "Find the handler that hangs (a lock, a call without timeout). A higher prefetch count, "
         "or more credit, only puts it off.",
         "Jobs may really take that long."),
    Kind("deliveries-stopped", "warning", "low",
         "A consumer gets nothing, though messages for it are published",
         "Three messages or more came to a consumer, then none for ten seconds and ten times "
         "longer than usual, though ten or more were published with the same exchange and routing "
         "key; or a consumer of which everything was captured got none at all, though the "
         "bindings in the capture take ten or more to its queue. The consumer was not cancelled, "
         "the broker's host was there, and nobody else got them.",
         "If it holds deliveries, it has reached its prefetch count: find the handler that hangs. "
         "Otherwise look at the queue (rabbitmqctl list_queues name messages_ready consumers): "
         "whether it is still bound, and who else consumes from it.",
         "A consumer that was not captured may get them. Where the capture begins late, the "
         "consumer's prefetch count is not known, and a long job looks the same.",
         ("consumer-stuck", "client-not-reading", "traffic-stopped")),
    Kind("queue-abandoned", "warning", "medium",
         "A consumer left its queue, and nobody gets what is published for it since",
         "The client cancelled a consumer that got messages, or a side closed its channel, and the "
         "connection went on for ten seconds or more. Ten messages or more were published for the "
         "queue over ten seconds, and none was delivered. No connection of the capture has another "
         "consumer of it.",
         "Let the consumer start again: an exception in a handler often closes its channel while "
         "the program and its connection live on, so health checks see nothing. Consume again "
         "wherever a channel is opened again, and watch the queue's consumers (rabbitmqctl "
         "list_queues name messages_ready consumers).",
         "A consumer that rests on purpose, or another one that was not captured.",
         ("channel-closed-by-broker", "acknowledgement-timeout", "acknowledgement-invalid")),
    Kind("publishes-unreceived", "warning", "low",
         "Messages are published, and no consumer of the capture gets them",
         "Ten messages or more with one exchange and routing key, published over ten seconds, of "
         "which none was delivered, while connections to that broker from before the capture had "
         "nothing but heartbeats.",
         "Look at the consumers of the queue (rabbitmqctl list_queues name messages_ready "
         "messages_unacknowledged consumers): one that has reached its prefetch count and hangs in "
         "a handler looks like this. Find the connections' programs by their ports.",
         "The consumers are elsewhere, and were not captured; nobody is meant to consume now; the "
         "resting connections only publish.",
         ("consumer-stuck",)),
    Kind("messages-dropped", "warning", "medium",
         "A queue dropped messages at its length limit, or when they expired",
         "A queue was declared with x-max-length and neither x-overflow=reject-publish nor a "
         "dead-letter exchange or a TTL; more was published for it than its consumers got and its "
         "limit holds. Or it was declared with x-message-ttl alone, and of what had to expire by "
         "the end of the capture its consumers got less than was published. All of the broker's "
         "connections were captured from their beginning.",
         "The broker drops the oldest messages without a word, confirmed ones too. Consume faster "
         "or raise the limit; set x-overflow=reject-publish where publishers must learn of it, or "
         "a dead-letter exchange that keeps what is dropped or expires.",
         "Queues that are to hold the latest values only."),
    Kind("consumer-timed-out", "error", "medium",
         "A consumer held deliveries for too long, and the broker took them back",
         "basic.cancel from RabbitMQ 4.3 or later, for a consumer that held its oldest delivery "
         "for x-consumer-timeout of the queue (30 minutes by default). Or deliveries came to it "
         "again after the cancel, without a new basic.consume. In AMQP 1.0: a disposition in which "
         "the broker releases deliveries that the link still holds.",
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
    Kind("delivery-limit-near", "warning", "high",
         "A message is about to reach the delivery limit of its queue",
         "A delivery's x-delivery-count is the x-delivery-limit of the queue's declaration in the "
         "capture, or one below; without such a declaration that of RabbitMQ 4.0 and later, 20.",
         "Find out why its handler fails or its consumer dies: with the next failure the queue "
         "drops the message, or dead-letters it where a dead-letter exchange is set. Set one.",
         "A policy may set another limit; the smaller one applies."),
    Kind("delivery-limit-bystander", "warning", "medium",
         "Messages in one prefetch window use up their delivery limit together",
         "Deliveries whose x-delivery-count is the queue's limit, or one below (3 or more where "
         "the limit was not captured), were held together by a channel that the client did not "
         "close.",
         "One message that kills its consumer costs the others in the window an attempt each "
         "time. Lower the prefetch count (1 until the message is found), settle the others early, "
         "and set a dead-letter exchange, so that nothing is dropped.",
         "The consumer may have been killed from outside, again and again.",
         ("disconnect-unclean",)),
    Kind("deliveries-after-cancel", "warning", "medium",
         "Deliveries that came after the client's basic.cancel were never settled",
         "Deliveries to a consumer after its client sent basic.cancel had neither ack, nack nor "
         "reject when the channel or the capture ended, five seconds later or more.",
         "The broker keeps them for this channel, and gives them to nobody else: acknowledge or "
         "reject what comes until basic.cancel-ok, or close the channel. Set a prefetch count, so "
         "that little is under way.",
         "A client that works off its local queue after a cancel settles them later.",
         ("prefetch-unlimited",)),
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
         "acknowledgement, and those waits are a large share of the time. The count was reached, "
         "and the waits were no longer than the broker's answers to basic.qos. Captured at the "
         "broker: all that the count allows was under way nine tenths of the time, and "
         "acknowledged a round trip of TCP later, with so little work that the consumer had none "
         "for half of the time.",
         "Raise the prefetch count so that work is there while acknowledgements travel; keep 1 "
         "for long jobs of uneven length.",
         "A queue that fills at just this pace makes its consumers wait as well.",
         category="cost"),
    Kind("backlog-in-client", "warning", "medium",
         "A large backlog lies in a client",
         "Unacknowledged deliveries of a channel amount to more than 100 MB, or are 100 or more "
         "and work for ten seconds.",
         "Lower the prefetch count, so that other consumers can take part.",
         "Consumers that work in batches collect on purpose.",
         ("prefetch-unlimited",)),
)  # fmt: skip
