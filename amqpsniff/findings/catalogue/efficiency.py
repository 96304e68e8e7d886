"""Findings about work that could be saved."""

from amqpsniff.findings.finding import Kind

EFFICIENCY = (
    Kind("connection-churn", "warning", "low",
         "Connections are opened for a few messages each",
         "Five or more connections of a client within ten seconds live less than a second and "
         "carry at most three messages each.",
         "Keep connections open and share them; where the language does not allow it (PHP), put a "
         "proxy that keeps them (amqproxy) between. Opening one takes seven round trips.",
         "Command-line tools, cron jobs and health checks do this with good reason.",
         category="cost"),
    Kind("channel-churn", "warning", "low",
         "Channels are opened for an operation or two each",
         "Ten or more channels, and half of those of a connection, are opened and closed with at "
         "most two messages between.",
         "Keep channels open and reuse them (Spring: channelCacheSize).",
         "Health checks that open a channel and close it.",
         category="cost"),
    Kind("declaration-repeated", "warning", "low",
         "The same things are declared again and again",
         "Declarations and bindings with the same arguments are repeated on a connection, ten "
         "times or more, and more than once for every two publishes.",
         "Declare once for each connection; each declaration waits a round trip.",
         "Programs that publish once and end; consumers that declare a queue on each channel.",
         category="cost"),
    Kind("queue-length-polling", "info", "low",
         "A queue's length is polled with passive declarations",
         "queue.declare with passive on the same queue more than once a second, for 3 s or longer.",
         "Read lengths from the broker's metrics instead.",
         "Monitoring agents.",
         category="cost"),
    Kind("get-polling", "warning", "low",
         "Messages are fetched one by one by polling",
         "basic.get five times a second or more on one queue, most of them answered get-empty.",
         "Use basic.consume: the broker then sends messages as they come.",
         "Programs that drain a queue in batches.",
         category="cost"),
    Kind("acknowledgements-single", "info", "low",
         "Each delivery is acknowledged by a frame of its own at a high rate",
         "More than 1000 acknowledgements a second, none of them for multiple deliveries.",
         "Acknowledge several at once with multiple, where deliveries are settled in order.",
         "Work that ends out of order needs single acknowledgements.",
         category="cost"),
    Kind("confirm-per-message", "warning", "low",
         "A publisher waits for each confirm before it publishes again",
         "Over 50 messages or more, each publish follows the confirm of the one before at once.",
         "Let many publishes be unconfirmed at a time, or confirm batches: now the time to a "
         "confirm limits the rate. Where that is many round trips of the network, see why the "
         "broker is slow to confirm: disks, quorum queues, flow control.",
         "A publisher with little to send.",
         category="cost"),
    Kind("transaction-per-message", "warning", "high",
         "Each message has a transaction of its own",
         "Ten commits or more on a channel, with fewer than two publishes or acknowledgements for "
         "each.",
         "Use publisher confirms, which do not stop the channel for each message.",
         "Publishing and acknowledging may have to succeed together.",
         category="cost"),
    Kind("overhead-high", "info", "low",
         "Frames and headers are larger than what they carry",
         "At 100 messages a second or more, the bytes around the bodies of a connection are more "
         "than four times the bodies. Or the headers of a message exceed 4 KiB.",
         "Put several small payloads in a message; shorten the headers.",
         "Control messages are small by nature.",
         category="cost"),
    Kind("connection-shared", "info", "medium",
         "One connection both publishes and consumes",
         "Publishes and deliveries with acknowledgements on the same connection.",
         "Use two connections: when the broker holds back publishers, acknowledgements behind "
         "them wait too.",
         "Small applications get along with one.",
         category="note"),
    Kind("head-of-line-wait", "warning", "medium",
         "Messages wait behind large ones of another channel",
         "Three deliveries or more whose first byte came within 1 ms behind the last one of a body "
         "of 64 KiB or more on another channel of their connection, which was on its way for "
         "100 ms or longer; or within 1 ms behind another of these deliveries, but no later after "
         "the body than that took.",
         "Channels share the bytes of one TCP connection: give large messages a connection of "
         "their own, or store them elsewhere and send their address. If the client's window was "
         "closed, it reads slowly; else the path is slow.",
         "Messages that were published just then have not waited.",
         ("client-not-reading", "transfer-slow"),
         category="cost"),
    Kind("reply-queue-per-call", "warning", "medium",
         "Each request has a reply queue of its own",
         "Requests name more than two queues in reply-to that their connection consumes from, "
         "hardly any of them twice.",
         "Use direct reply-to (amq.rabbitmq.reply-to), or one reply queue for each client.",
         category="cost"),
    Kind("channels-leaking", "warning", "medium",
         "A connection opens more and more channels",
         "More than 100 channels are open on a connection, or their number only grows for half a "
         "minute, and nine of ten are idle. Or 20 or more are opened one after another, each is "
         "used before the next is opened and not again, and none is closed.",
         "Close channels or keep them in a pool; at channel-max (2047 by default) the library "
         "opens no more, or the broker closes the connection with 530.",
         "Servers that give each thread a channel."),
    Kind("connections-leaking", "warning", "low",
         "A client opens more and more connections",
         "It opened twenty connections or more over half a minute or longer. They are open at the "
         "end of the capture, or the client ended them together without a close; they have no "
         "consumers, and carried no message for ten seconds.",
         "Close connections that are not needed; name them, to see which part of the program "
         "opens them.",
         "An application that is being scaled out."),
    Kind("frame-max-small", "info", "high",
         "Bodies are cut into many small frames",
         "tune-ok sets frame-max to 8192 bytes or less, and the bodies of a channel are larger on "
         "average.",
         "Use the default of 131072 bytes.",
         "Devices with little memory.",
         category="note"),
    Kind("topology-churn", "warning", "low",
         "Queues or bindings are created and deleted at a high rate",
         "More than five declarations and deletions, or bindings and unbindings, a second.",
         "Reuse queues: in a cluster each change is agreed on by all nodes.",
         "Test suites.",
         category="cost"),
    Kind("synchronous-waiting", "info", "low",
         "A connection spends much of its time waiting for answers",
         "Of five seconds or more, a fifth lies between synchronous methods and their answers.",
         "Declare once and not before each publish; use no-wait where an error may go unnoticed.",
         "Applications that are starting.",
         category="cost"),
)  # fmt: skip
