"""Findings about the safety of publishes."""

from amqpsniff.findings.finding import Kind

from .closings import CHANNEL_ENDS, CONNECTION_ENDS

PUBLISHING = (
    Kind("publishes-unprotected", "warning", "medium",
         "Messages are published without confirms or transactions",
         "basic.publish on a channel that was seen to open and has neither confirm.select nor "
         "tx.select. In AMQP 1.0: a link whose messages were all sent settled.",
         "Use publisher confirms, in AMQP 1.0 unsettled transfers, for what must not be lost; "
         "without them a message that the broker never stored looks sent.",
         "Some data may be lost by design: metrics, for instance. Requests and answers of RPC: who "
         "asks sees that nothing comes.",
         category="note"),
    Kind("message-unroutable", "error", "high",
         "A message was returned because no queue would take it",
         "basic.return 312 NO_ROUTE. In confirm mode a basic.ack follows, so the confirm alone "
         "looks like success. In AMQP 1.0: RabbitMQ 4 released the message.",
         "Bind a queue for that routing key or set an alternate exchange; in the publisher treat "
         "return and ack, or the outcome released, as failure.",
         "Answers to callers whose reply queue is gone are returned too; answers by direct "
         "reply-to are not counted, because RabbitMQ returns those that it delivers.",
         ("delayed-mandatory",)),
    Kind("delayed-mandatory", "warning", "high",
         "Messages are published to a delayed message exchange with mandatory set",
         "The exchange is declared with the type x-delayed-message, and a publish to it has the "
         "flag mandatory.",
         "Do without the flag: the exchange routes a message with a delay later, so the broker "
         "returns each of them as NO_ROUTE, and delivers it all the same.",
         category="note"),
    Kind("publish-number-wrong", "error", "medium",
         "A client counts its publishes otherwise than the broker",
         "The header x-dotnet-pub-seq-no differs from the number of the publish on its channel, by "
         "the same in three publishes that were looked at.",
         "Confirms are taken for those of other messages: update RabbitMQ's client for .NET, and "
         "use a channel in one thread at a time.",
         "An application that copies headers of messages that it received."),
    Kind("headers-near-frame-limit", "warning", "high",
         "Headers of messages come near what a frame can hold",
         "The headers of a message have more than half of frame-max, or more than 20,000 bytes "
         "with a stack trace of Spring in x-exception-stacktrace.",
         "A content header is never split, so a message whose headers do not fit is refused and "
         "closes the connection (501). Cut stack traces, and remove what each retry adds, before "
         "it is published again.",
         causes=("dead-letter-cycle",)),
    Kind("fanout-by-header", "info", "high",
         "A message names many more routing keys in its headers",
         "The header CC or BCC of a publish has more than ten entries.",
         "Bind the queues to an exchange of type fanout or topic: the publisher need not know "
         "them then.",
         category="note"),
    Kind("publishes-unbound", "warning", "low",
         "Messages are published that match no binding in the capture",
         "An exchange whose bindings are made in the capture gets messages, not mandatory, with a "
         "routing key that none of them takes, and nobody gets such a message. Or only bindings by "
         "headers lead on, and consumers that wait behind them get fewer than were published. "
         "Everything of the broker's connections was captured from their beginning. Or a type of "
         "MassTransit has an exchange that is declared in the capture and bound to nothing. Or the "
         "default exchange gets messages for a queue that nobody declares or reads, while the name "
         "of one that has a consumer, and gets nothing, differs by a letter.",
         "Compare routing keys, or headers, with the bindings (rabbitmqctl list_bindings): "
         "without one the broker drops such messages and confirms them all the same. Publish with "
         "mandatory, or give the exchange an alternate exchange.",
         "A binding from before the capture may take them, or an alternate exchange that a policy "
         "sets. Events that nobody listens to may be meant to be dropped."),
    Kind("publishes-after-deletion", "error", "medium",
         "Messages are published for a queue that was deleted",
         "queue.delete-ok in the capture, no declaration of that queue afterwards, and publishes "
         "later that it would have got: to the default exchange with its name as routing key, or "
         "with a routing key that only bindings to it take. Nobody got them.",
         "The broker drops them. Find out who deleted the queue, declare and bind it again, and "
         "publish with mandatory, so that the publisher learns of it.",
         "Answers to callers that have gone. A declaration, or another binding, that was not "
         "captured.",
         ("operation-destructive",)),
    Kind("publish-rejected", "error", "high",
         "The broker refused published messages",
         "basic.nack from the broker: a queue is full and rejects (x-overflow), or could not "
         "store the message. The detail has the limits of the queue if its publisher declares it. "
         "In AMQP 1.0: the outcome rejected, with the broker's error.",
         "Publish them again after a pause. A queue that is full needs more consumers, or a higher "
         "limit (x-max-length, or a policy); a quorum queue that cannot store needs its majority. "
         "A router of AMQP 1.0 hands on what the consumer said: ask the consumer then.",
         "RabbitMQ 4 also refuses what is on its way to an exclusive or auto-delete queue that is "
         "gone by then. Other queues of the exchange got it, and would get it twice."),
    Kind("transaction-uncommitted", "error", "high",
         "A transaction was never committed",
         "After tx.select, tx.commit or tx.rollback the client published or acknowledged messages "
         "on the channel, and sent no tx.commit before the channel ended. Or it is still open, a "
         "minute and ten publishes later or more.",
         "The broker drops such publishes, and delivers such messages again: call tx.commit after "
         "each unit of work, in the path of errors tx.rollback. Publisher confirms are the simpler "
         "and faster choice where one message at a time has to be safe.",
         "A program that gives up work by closing its channel. A commit after the capture."),
    Kind("publishes-in-doubt", "error", "medium",
         "A channel ended with publishes that the broker had not confirmed",
         "In confirm mode, publishes had neither ack nor nack when the channel or connection "
         "ended. In AMQP 1.0: messages sent on a link had no outcome when the session ended.",
         "Whether they were stored is unknown: publish them again, and let consumers recognise "
         "duplicates by message-id.",
         "Confirms may lie in a hole of the capture: see tcp-gap.",
         (*CHANNEL_ENDS, *CONNECTION_ENDS, "heartbeat-missed")),
    Kind("publish-incomplete", "error", "medium",
         "A message was not whole when its connection ended",
         "TCP ended after the method of a publish and before the end of its body, and no side had "
         "closed the connection.",
         "The broker drops what it got of it: publish it again. Let programs close their "
         "connections before they end, and wait for confirms.",
         "The broker may have ended TCP for a reason of its own, which its log names.",
         ("broker-not-reading", "connection-blocked", "path-interrupted", "connection-half-open",
          "disconnect-unclean")),
    Kind("publish-repeated", "warning", "low",
         "The same message was published more than once",
         "Two publishes within five minutes have the same message-id, properties, size and route, "
         "and the first was neither returned nor refused. A message that passes a proxy is one "
         "(proxy-on-both-sides).",
         "Usual after publishes in doubt: let consumers recognise duplicates.",
         "A program that gives all its messages one id.",
         ("publishes-in-doubt", "proxy-on-both-sides")),
    Kind("message-oversized", "warning", "high",
         "A message is very large",
         "A body of more than 1 MiB, by the content header or the sections of AMQP 1.0.",
         "While it is on its way, it holds up the other channels and heartbeats of its "
         "connection: store large payloads elsewhere and send their address, or use a connection "
         "of their own.",
         "File transfer may be meant.",
         category="cost"),
    Kind("fanout-amplified", "info", "low",
         "An exchange multiplies what is published to it",
         "More than ten messages and ten bytes are delivered for each that is published to it, "
         "and 1 MiB in all; redeliveries are not counted.",
         "Check that all its bindings are meant; a stream or smaller payloads make broadcasting "
         "cheaper.",
         "Broadcast may be meant. A long queue from before the capture that is worked off looks "
         "the same.",
         category="cost"),
)  # fmt: skip
