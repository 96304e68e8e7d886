"""Findings about time: latencies, stalls, heartbeats and the network."""

from amqpsniff.findings.finding import Kind

TIMING = (
    Kind("confirms-slow", "warning", "medium",
         "Publisher confirms are slow, or do not come",
         "The time from a publish to its confirm is half a second on average, or five seconds "
         "once. Or three confirms or more of half a second took a fifth of the time, and two "
         "seconds in all. Or the broker sent other frames for five seconds after a publish, but no "
         "confirm. On a channel from before the capture, or behind missing frames: the same of "
         "lower bounds, since numbers of publishes are not known.",
         "Look at disks and quorum queues of the broker, at alarms and flow control, and at the "
         "size of messages. A quorum queue without its majority confirms nothing.",
         "Captured at the client, the network's round trip is included; the detail says it where "
         "the connection's beginning was captured.",
         ("connection-blocked", "broker-not-reading", "transfer-slow", "message-oversized",
          "path-interrupted")),
    Kind("consumer-slow", "info", "medium",
         "Deliveries are acknowledged late, or not at all",
         "The time from a delivery to its acknowledgement is a second on average, or 30 once. Of a "
         "delivery from before the capture: since its connection's first packet. Or a consumer "
         "that else is quick acknowledged nothing for half a second or longer while it held all "
         "that its prefetch count allows, twice or more, for a fifth of the time and two seconds "
         "in all.",
         "Make the handler faster or start more consumers. Where it pauses, look for what blocks "
         "it: garbage collection, a lock, a call that is slow now and then.",
         "Consumers that acknowledge in batches wait on purpose.",
         ("consumer-stuck", "consumer-overloaded", "transfer-slow")),
    Kind("consumer-overloaded", "warning", "medium",
         "A consumer cannot keep up with its queue",
         "On average a consumer held 80 % or more of what its prefetch count allows, and the "
         "network took less than half of that time. Messages were published for five seconds or "
         "more while it worked, and the time that they were in the queue grew by five seconds or "
         "more, up to the last ones.",
         "Start more consumers, or make the handler faster: the time for each message says how "
         "many are needed. Let it do several messages at a time, or write its results in batches. "
         "A higher prefetch count does not help.",
         "A large job that is published slowly and worked off later, on purpose. Only messages "
         "whose publish was captured count.",
         ("transfer-slow",)),
    Kind("queue-residence-long", "info", "medium",
         "Messages stay in their queue for a long time",
         "The time from a publish to the delivery of the same message (message-id or "
         "correlation-id, properties, size and route) is a second on average, or ten once.",
         "Start more consumers or make them faster; where nothing is backed up, see how the "
         "message was routed. Consumers that wait for the network need a higher prefetch count.",
         "Delayed exchanges, and consumers that come now and then, make messages wait on purpose. "
         "Only messages whose publish was captured count.",
         ("consumer-overloaded", "prefetch-too-small", "transfer-slow")),
    Kind("rpc-unanswered", "warning", "medium",
         "A request got no answer",
         "A message with reply-to and correlation-id was published, and no message with that "
         "correlation-id came back on its connection within 10 s, though it consumes there.",
         "Check that the answering consumer runs; give requests an expiration and callers a "
         "timeout.",
         "The answer may have come on a connection that was not captured.",
         ("rpc-server-lost",)),
    Kind("rpc-server-lost", "warning", "medium",
         "A server lost its connection with a request in hand",
         "A request was delivered, neither acknowledged nor answered, when the connection of the "
         "consumer that had it ended without a close; no answer to it came afterwards.",
         "The broker puts the request back into its queue: see whether another server takes it, "
         "and why this one ended. Give requests an expiration, or a server that comes back answers "
         "callers that gave up; make the work safe to repeat.",
         "The answer may have come on a connection that was not captured."),
    Kind("rpc-caller-gone", "warning", "high",
         "Answers are published for callers that have gone",
         "Messages, not mandatory, to the default exchange with a routing key that is an exclusive "
         "queue which was gone: its connection had ended, its client had deleted it, or its last "
         "consumer had left and it was auto-delete. Or a direct reply, where a caller that sent "
         "its request to the same server had closed its channel. Nobody got them.",
         "The broker drops them, and tells nobody. Most often the caller gave up and closed its "
         "channel or connection: compare its timeout with the time that requests wait and work "
         "takes. Start more servers, and give requests an expiration of the caller's timeout, so "
         "that nobody works for callers that have gone.",
         "A caller that ended on purpose before its last answer."),
    Kind("rpc-slow", "warning", "medium",
         "Requests are answered late",
         "The time from a request to the message with its correlation-id is a second on average, "
         "or ten once. The detail names the consumer of the request's queue where that holds what "
         "its prefetch count allows 80 % of the time or more.",
         "See whether the request waited in its queue or the answering consumer took the time; "
         "start more of them in the first case, and where the detail names one.",
         "Requests that get several answers, or reuse their ids."),
    Kind("rpc-answered-twice", "warning", "medium",
         "Requests are answered more than once",
         "Two replies were published that name the same request, of a framework whose requests "
         "have one reply. Most requests of the operation have one.",
         "Look for two consumers that both do the work, and for a reply that is published again "
         "after an error.",
         "A reply that was published again since its first connection broke."),
    Kind("traffic-stopped", "warning", "medium",
         "Traffic stopped while a side had something to send",
         "A side owed a confirm, a reply or the rest of a message, and sent no frame for ten "
         "seconds, up to the connection's last packet. Nobody had closed or blocked the "
         "connection, and the other side was reading.",
         "Look at the side that owes. Where its packets of TCP went on, its program hangs: the "
         "broker at a disk that does not answer, at a quorum queue without its majority or in a "
         "pause of its machine, a client in its own code. Where they ended too, look at its host "
         "and at the network.",
         "A capture that was stopped soon after may have missed the answer.",
         ("broker-not-reading", "client-not-reading")),
    Kind("heartbeat-missed", "error", "medium",
         "A side was silent for longer than the heartbeat allows",
         "Nothing came from it for two heartbeat intervals of tune-ok, or for one and then the "
         "other side ended TCP without a close method. In AMQP 1.0 the interval is the other "
         "side's idle-time-out, and a close that names it shows the same.",
         "Where the client was silent, let it send heartbeats while it works: do not block its I/O "
         "thread in a handler. Where the broker was, look between the two hosts (a proxy or load "
         "balancer, which may also end TCP in its name), then at the broker's load. An interval of "
         "5 to 20 s suits most networks.",
         "Any frame counts as a heartbeat.",
         ("broker-not-reading", "client-not-reading", "path-interrupted")),
    Kind("path-interrupted", "error", "medium",
         "Nothing got through between client and broker",
         "A side sent the same bytes again for more than five seconds, three times or more: no "
         "acknowledgement reached it. Or, at the end of the connection or of the capture, neither "
         "side sent a frame for longer than the heartbeat interval, and no packet at all came from "
         "one of them. Or small packets of a side show that it sent more, which did not arrive for "
         "more than five seconds.",
         "Look between the two hosts: a firewall, a link that is down, an address that moved, a "
         "host that was stopped. Neither the client's program nor its heartbeats are at fault. See "
         "whether other connections of the same hosts stopped at that time. Where one direction "
         "alone was cut, look at the rules and routes for it. Where only large packets vanish, "
         "lower the MTU of the hosts (tunnels, VPNs and overlays take 50 bytes or more of 1,500), "
         "clamp TCP's MSS, or let ICMP's \"fragmentation needed\" pass.",
         "The capturing host may have stopped seeing the packets while the connection went on."),
    Kind("transfer-slow", "warning", "medium",
         "Messages are long on their way through the network",
         "Three messages or more of 16 KiB, published or delivered on one channel, took a tenth of "
         "a second or longer from their first byte to the last: two seconds in all, a fifth of the "
         "time from the first to the last of them, and half of the time to their confirms or "
         "acknowledgements.",
         "Compare the bytes a second with what the path should carry. As many bytes in a round "
         "trip as a TCP window holds mean that the window of the receiver, or of the sender, is "
         "too small for the distance. Send less: compress, or store large payloads elsewhere.",
         "A sender that pauses within a message, or that the broker slows down, looks the same.",
         ("client-not-reading", "broker-not-reading", "connection-blocked", "path-interrupted",
          "message-oversized")),
    Kind("heartbeat-disabled", "warning", "high",
         "The connection has no heartbeats",
         "tune-ok sets heartbeat to 0.",
         "Enable heartbeats: otherwise a peer that is gone is noticed after minutes or hours, and "
         "firewalls forget idle connections.",
         "TCP keepalive may be set to do the same work.",
         category="note"),
    Kind("heartbeat-too-short", "warning", "high",
         "The heartbeat interval is very short",
         "tune-ok sets heartbeat, or an open of AMQP 1.0 idle-time-out, below 5 seconds.",
         "Use 5 to 20 s: a short pause of the network or of the client's process now ends the "
         "connection.",
         category="note"),
    Kind("idle-connection-cut", "error", "low",
         "Something between client and broker cuts idle connections",
         "Three connections to a broker or more end without a close after the same idle time of "
         "30 s or more, or of 2 s or more where the broker's side ends them one after another; the "
         "heartbeat is off or longer than that.",
         "Set a heartbeat below half the idle time of the firewall or load balancer, or raise that "
         "time: 10 to 30 s are usual for heartbeats.",
         "Timeouts of the application may have the same length by chance.",
         ("heartbeat-disabled",)),
    Kind("broker-not-reading", "error", "medium",
         "The broker does not read what a client sends",
         "The broker's TCP window is closed for a second or more while the client has data to "
         "send.",
         "With connection.blocked it is an alarm: free memory or disk. Without, it is flow "
         "control: slow down publishers, and see that consumers keep up.",
         "Small windows of short duration are ordinary.",
         ("connection-blocked",)),
    Kind("client-not-reading", "error", "medium",
         "A client does not read what the broker sends",
         "The client's TCP window is closed for a second or more while the broker has data to "
         "send; the broker gives up after some 30 s.",
         "Set a prefetch count, and do not block the thread that reads the connection.",
         "",
         ("prefetch-unlimited", "automatic-acknowledgement")),
    Kind("connection-blocked", "error", "high",
         "The broker blocked publishing because of an alarm",
         "connection.blocked with the reason; publishing goes on after connection.unblocked. "
         "connection.unblocked alone is the end of a block from before the capture. In AMQP 1.0: a "
         "flow of the broker that sets its incoming window to 0 while it had room, for a client "
         "that sends.",
         "Free memory or disk space on the broker. Let consumers use connections of their own: a "
         "blocked one also holds up their acknowledgements.",
         "A client that does not publish is told nothing, so more of them may be affected. In AMQP "
         "1.0 a broker may stop a client for another reason."),
    Kind("reply-missing", "error", "medium",
         "The broker does not answer a synchronous method",
         "A method that waits for its answer (declare, qos, open, consume) had none for more than "
         "5 s, while the connection was alive. In AMQP 1.0: open, begin, attach, detach, end "
         "and close of a client.",
         "Most often an alarm; otherwise the broker waits for a queue's leader or for its disk.",
         "The capture may end before the answer.",
         ("connection-blocked", "broker-not-reading", "traffic-stopped", "path-interrupted")),
    Kind("tcp-retransmissions", "warning", "medium",
         "Many TCP segments had to be retransmitted",
         "Of one side's packets, ten or more and one in a hundred or more were sent again. What "
         "was lost before the place of the capture comes a round trip after what follows it.",
         "Look at the network's path, not at AMQP; each loss holds up all channels of the "
         "connection.",
         "Capturing on two interfaces shows each packet twice.",
         ("connection-half-open", "path-interrupted")),
    Kind("message-stalled", "error", "medium",
         "A message was begun but not finished for a long time",
         "The method or header of a message was sent and its body did not follow for more than a "
         "second, although the receiver's window was open.",
         "The client keeps the rest in a buffer that it does not flush: update its library.",
         "A large body on a slow network takes its time.",
         ("broker-not-reading",)),
    Kind("delayed-ack-stall", "warning", "medium",
         "Each message waits for a delayed acknowledgement of TCP",
         "The method of a publish is sent, and the rest of it as soon as a bare acknowledgement "
         "comes 35 to 50 ms later; five times or more on a connection.",
         "Set TCP_NODELAY on the client, or let it write method, header and body at once.",
         "A program that pauses for as long by chance."),
    Kind("broker-slow", "info", "medium",
         "The broker takes long to answer",
         "An answer to a declaration, a binding, a consumer or a channel took a second or more.",
         "Look at the cluster's metadata store, and at DNS or the login backend for connections.",
         "A request or an answer that the network lost comes late too.",
         ("connection-blocked", "path-interrupted", "tcp-retransmissions")),
)  # fmt: skip
