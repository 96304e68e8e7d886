"""Findings about how channels, connections and consumers end."""

from amqpsniff.findings.finding import Kind

_FRAMING = (
    "frame-end-wrong", "frame-type-unknown", "frame-type-unusual", "frame-too-large",
    "heartbeat-malformed", "method-unknown", "method-wrong-direction",
    "handshake-out-of-order", "arguments-truncated",
    "arguments-trailing", "field-tag-unknown", "field-tag-unusual", "field-table-malformed",
    "text-not-utf8", "content-unexpected-frame", "content-interrupted", "content-body-longer",
    "content-body-shorter", "content-class-wrong", "content-weight", "properties-malformed",
    "property-flags-undefined", "channel-zero-misused", "channel-not-open",
    "channel-opened-twice", "feature-not-implemented", "tuning-rejected", "channels-leaking",
)  # fmt: skip
"""What makes a broker close a connection."""

CHANNEL_ENDS = (
    "channel-closed-by-broker", "declaration-mismatch", "acknowledgement-timeout",
    "message-too-large", "exclusive-queue-locked", "user-id-refused",
)  # fmt: skip

BROKER_CLOSES = (
    "connection-closed-by-broker", "connection-forced-closed", "limit-reached",
    "feature-not-implemented", "feature-deprecated",
)  # fmt: skip

CONNECTION_ENDS = (*BROKER_CLOSES, "closed-by-client", "disconnect-unclean")
"""Codes of findings that end a channel or a connection, for those that follow from it."""

CLOSINGS = (
    Kind("channel-closed-by-broker", "error", "high",
         "The broker closed a channel with an error",
         "channel.close from the broker with a reply code, a text, and the method it objects to; "
         "in AMQP 1.0 an end with an error, which takes all links of the session along.",
         "The detail has the broker's reason and, where it is known, what to do about it. "
         "Deliveries that were not acknowledged go back to their queues; the client must open a "
         "new channel, or begin a new session.",
         "Passive declarations ask whether something exists, and 404 is then an ordinary answer: "
         "it is not reported where the client declares the same successfully within 10 s. Else "
         "the detail says that the declaration only looked; a summary calls it a failed look-up.",
         ("channel-mode-mixed", "acknowledgement-invalid", "acknowledgement-stale",
          "queue-expired")),
    Kind("queue-expired", "error", "medium",
         "A queue expired before its client came back",
         "The broker says that a queue does not exist (404), which the capture shows to be "
         "declared with x-expires, longer ago than that. Nobody deleted it.",
         "The broker deletes such a queue with its messages and bindings once it had no consumer "
         "for that time. Raise x-expires above the longest time that clients are away, or leave "
         "it out; let clients declare the queue, not passively, and bind it whenever they "
         "connect.",
         "It was deleted where the capture does not show it, by a person for instance."),
    Kind("connection-closed-by-broker", "error", "high",
         "The broker closed a connection with an error",
         "connection.close from the broker with a reply code, a text, and the method it objects "
         "to; in AMQP 1.0 a close with an error.",
         "Of AMQP 1.0 the condition says it: framing-error and decode-error are faults of the "
         "client's library. Else by code: 501 to 505 the client broke the protocol, look at what "
         "it sent last; 506 the broker lacked something it needs, memory for instance; 530 not "
         "allowed; 540 not implemented; 541 the broker failed inside: see its log, and update it. "
         "All channels of the connection are gone.",
         "",
         _FRAMING),
    Kind("closed-by-client", "error", "high",
         "A client closed a connection, channel or link with an error",
         "channel.close or connection.close from the client with a reply code of 300 or above, "
         "other than 320, or with \"Closed due to exception from\"; in AMQP 1.0 a close, end or "
         "detach of the client with an error, other than amqp:connection:forced and "
         "amqp:link:detach-forced. The other side had not closed it before.",
         "The detail has the client's reason: 501 to 505, decode-error and framing-error say that "
         "it could not read what the broker sent, or did not expect it. Look at the broker's last "
         "frames before, and at the client's log. If the program gave code and text itself, the "
         "reason is its own. An exception of a consumer, as RabbitMQ's client for Java says it, "
         "closes its channel for good: catch exceptions in the handler, and reject the delivery.",
         "A program that closes with a code of its own choice when it has done its work. A proxy "
         "that says to the broker that its client is gone.",
         (*_FRAMING, "link-stolen", "credit-exceeded", "session-window-closed", *CHANNEL_ENDS,
          "consumer-cancelled", "consumer-interrupted", "consumer-timed-out",
          "consumer-starved-after-timeout")),
    Kind("feature-deprecated", "error", "high",
         "The broker refused a feature that is deprecated",
         "connection.close 541 whose text says that a feature is deprecated: one that this "
         "version of RabbitMQ, or its configuration, no longer permits.",
         "Change what the client asks for: it fails again at each attempt. To gain time, permit "
         "the feature in rabbitmq.conf (deprecated_features.permit.NAME = true); a later version "
         "refuses that too."),
    Kind("declaration-mismatch", "error", "high",
         "A queue or exchange was declared with other properties than it has",
         "channel.close 406 \"inequivalent arg\" on queue.declare or exchange.declare; the text "
         "has both values.",
         "Make the declarations of all applications agree, or move to a new name; set length and "
         "time limits by policy instead of by argument."),
    Kind("publishes-discarded", "error", "medium",
         "Messages were published after the broker had closed the channel or connection",
         "basic.publish after the broker's channel.close or connection.close and before the "
         "client's close-ok, or after the broker's FIN: the broker drops such messages without a "
         "word.",
         "They are lost unless published again. Use publisher confirms, and publish again "
         "whatever was not confirmed.",
         "Far from the broker the order in the capture is that of the capturing point.",
         (*CHANNEL_ENDS, *BROKER_CLOSES)),
    Kind("connection-forced-closed", "warning", "high",
         "The broker closed a connection because it shuts down or was told to",
         "connection.close 320 CONNECTION_FORCED; in AMQP 1.0 amqp:connection:forced, or "
         "amqp:internal-error that says Connection forced, as RabbitMQ 4 sends it. The text has "
         "the reason: an operator's, a shutdown, credentials that expired.",
         "Expected during maintenance: check that the client connects again, and waits longer "
         "after each attempt. Where the text says that a virtual host or a user was deleted, "
         "clients are refused until it is created again.",
         "",
         ("broker-stopped",)),
    Kind("disconnect-unclean", "warning", "high",
         "A connection ended without being closed",
         "TCP was ended with FIN or RST, and no connection.close and close-ok went before. The "
         "detail counts deliveries with automatic acknowledgement that were still coming when a "
         "client ended with RST, as it does that has not read everything.",
         "The detail says which side ended it and what was left open. Most often that side's "
         "process ended. Otherwise heartbeats failed, a side stopped reading, or something between "
         "them cut an idle connection.",
         "After a legal close some stacks still send RST.",
         ("heartbeat-missed", "path-interrupted", "client-not-reading", "idle-connection-cut",
          "tuning-rejected", "authentication-failed", "method-unknown", "handshake-slow",
          "field-tag-unknown", "field-tag-unusual", "connection-blocked", "broker-not-reading",
          "traffic-stopped", "connection-half-open", "broker-stopped")),
    Kind("connection-half-open", "error", "medium",
         "A connection was open at one end only",
         "A side that had been silent answers packets of the other with a RST that acknowledges "
         "nothing, as a host does that knows no such connection (RFC 9293 §3.10.7.1); no FIN went "
         "before. A program that ends its own connection sends another RST.",
         "The silent host was restarted or lost its network while its process ended, or a load "
         "balancer, NAT or firewall between forgot the connection. Set heartbeats, so that the "
         "other end notices within two intervals; until then the broker keeps consumers, "
         "exclusive queues and deliveries for a client that is gone.",
         "A firewall that begins to reject packets with RST answers in the same way.",
         ("path-interrupted",)),
    Kind("consumer-cancelled", "error", "medium",
         "The broker cancelled a consumer, and it was not started again",
         "basic.cancel from the broker, as after its queue was deleted or moved, or, since "
         "RabbitMQ 4.3, when it held deliveries for longer than the queue allows, and no "
         "basic.consume of that queue from that client in the five seconds or more that it stayed "
         "connected, or, where it closed the connection, until the capture ended.",
         "Handle the cancellation in the client: declare the queue and consume again. Until then "
         "the application is connected and receives nothing.",
         "The client may consume again on another connection. A queue that is no longer needed."),
    Kind("consumer-interrupted", "info", "medium",
         "The broker cancelled a consumer, which came back",
         "basic.cancel from the broker, as after its queue was deleted or moved, or a node was "
         "stopped, and basic.consume of that queue from that client later.",
         "Find out who deleted the queue, or why it moved: the messages that were in a queue that "
         "is deleted are gone.",
         "Maintenance: a quorum queue keeps its messages."),
    Kind("consumer-not-restored", "error", "medium",
         "A client is connected again and does not consume from its queue",
         "A client's connection ended without basic.cancel while it consumed from a queue; the "
         "client is connected again for more than 30 s, and nobody consumes from that queue since. "
         "A client is known by the name of its connections, else by its host and product.",
         "Restore consumers after a reconnect: declare the queue, call basic.qos and "
         "basic.consume again on the new channel. Libraries with topology recovery do that if it "
         "is enabled. Until then restart the application: messages pile up in the queue.",
         "A consumer that was taken out of service. Programs of one name that do different work; "
         "a consumer on a connection that is encrypted or goes another way.",
         ("disconnect-unclean", *BROKER_CLOSES)),
    Kind("acknowledgement-timeout", "error", "high",
         "A delivery was not acknowledged in time, and the broker closed the channel",
         "channel.close 406 whose text says that delivery acknowledgement timed out.",
         "Acknowledge earlier, split long jobs, or raise consumer_timeout. In Celery, tasks with "
         "an ETA beyond the timeout and acks_late do this.",
         "Where the capture shows that nothing was outstanding for so long, "
         "channel-closed-by-broker says so instead.",
         ("consumer-stuck", "celery-eta-prefetch")),
    Kind("message-too-large", "error", "high",
         "A message is larger than the broker accepts",
         "channel.close 406 whose text gives the message's size and the configured maximum (16 "
         "MiB by default since RabbitMQ 4.0, 128 MiB before). In AMQP 1.0: a message larger than "
         "the max-message-size of its link, or amqp:link:message-size-exceeded.",
         "Store the payload elsewhere and send its address, split it, or compress it; raising "
         "max_message_size costs the broker memory."),
    Kind("reconnect-loop", "error", "low",
         "A client connects again and again, and each time fails the same way",
         "Three or more connections of one client in a minute end with the same reason: an error "
         "of the broker or of the client, a refused login, or TCP ended by the broker.",
         "Correct the first error of the series; let the client wait longer after each attempt.",
         "Many clients behind one address look like one unless their connections have names.",
         ("authentication-failed", "vhost-refused", "tuning-rejected", "limit-reached",
          "connection-closed-by-broker", "channel-closed-by-broker", "declaration-mismatch",
          "closed-by-client", "idle-connection-cut")),
    Kind("exclusive-queue-locked", "warning", "high",
         "An exclusive queue belongs to another connection",
         "The broker refused access to the queue with 405 RESOURCE_LOCKED. The detail names the "
         "connection that declared it exclusive, if that is in the capture. Otherwise it says "
         "whether the same client has another connection open.",
         "If two programs claim one name, use names given by the broker or queues that are not "
         "exclusive. If it is the client's own old connection, that has not ended for the broker "
         "yet: a shorter heartbeat ends it sooner.",
         "RabbitMQ answers the same when a queue that is not exclusive is declared as exclusive."),
)  # fmt: skip
