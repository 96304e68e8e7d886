"""Findings about the use of connections and channels against the protocol's order."""

from amqpsniff.findings.finding import Kind

from .closings import BROKER_CLOSES, CHANNEL_ENDS

CHANNELS = (
    Kind("channel-zero-misused", "error", "high",
         "Channel 0 and other channels were mixed up",
         "A method of a class other than connection, or a content, on channel 0; or a connection "
         "method on another channel. RabbitMQ answers 503, 504 or 505.",
         "Update the client's library: the broker closes the whole connection over it, with all "
         "its channels."),
    Kind("channel-not-open", "error", "medium",
         "A method was sent on a channel that is not open",
         "No channel.open came before it on this channel, or the channel was closed. RabbitMQ "
         "answers 504 \"expected 'channel.open'\".",
         "Do not go on using a channel after an error closed it; open a new one in the recovery "
         "code.",
         "What a client sent before it learned of the broker's close is legal: see "
         "publishes-discarded.",
         CHANNEL_ENDS),
    Kind("channel-opened-twice", "error", "medium",
         "A channel that is open was opened again",
         "A second channel.open on the same channel number without a close between them. RabbitMQ "
         "answers 504 \"second 'channel.open' seen\".",
         "Two parts of the client hand out the same channel number: give each connection one "
         "owner."),
    Kind("channel-mode-mixed", "error", "high",
         "Transactions and publisher confirms were mixed on a channel",
         "tx.select on a channel in confirm mode, confirm.select on a transactional one, or a "
         "commit without tx.select. RabbitMQ closes the channel with 406.",
         "Use one mode per channel."),
    Kind("acknowledgement-invalid", "error", "medium",
         "A delivery was acknowledged that is not outstanding on the channel",
         "An ack, nack or reject names a delivery tag that was settled already, was delivered on "
         "another channel, needs no acknowledgement, or was never delivered. RabbitMQ closes the "
         "channel with 406 \"unknown delivery tag\".",
         "Settle each delivery once, on the channel that delivered it, and not at all with "
         "no-ack; look for a framework that acknowledges by itself besides the handler. Tags "
         "begin again at 1 on each channel: keep them with their channel.",
         "",
         ("acknowledgement-stale", "automatic-acknowledgement")),
    Kind("acknowledgement-stale", "error", "medium",
         "A delivery was acknowledged on a channel opened after it",
         "The tag is higher than any delivered since the channel was opened, and the channel or "
         "connection before it had that tag outstanding.",
         "Throw work in progress away when its channel is lost: the broker delivers it again, "
         "marked redelivered."),
    Kind("traffic-after-close", "warning", "medium",
         "A side went on sending after a close, or did not answer it",
         "After connection.close a side may send nothing but close-ok; this one did, or TCP was "
         "closed without close-ok.",
         "A flaw in the client's shutdown; harmless by itself, but the errors it logs may hide "
         "the reason for the close.",
         "The other side may still send what it sent before it saw the close.",
         (*BROKER_CLOSES, "closed-by-client")),
    Kind("publish-while-blocked", "warning", "medium",
         "A client went on publishing on a blocked connection",
         "basic.publish between connection.blocked and connection.unblocked, more than half a "
         "second after the first.",
         "Stop or fail publishing in the client's handler of connection.blocked (pika: "
         "blocked_connection_timeout); what is sent now waits in buffers.",
         "Publishes of the first half second may have been under way already and are not counted.",
         ("connection-blocked",)),
    Kind("channel-stopped", "warning", "high",
         "One side stopped the messages of the other on a channel",
         "channel.flow with active=0; the detail says for how long, and how many messages came "
         "after the channel.flow-ok all the same.",
         "The other side waits meanwhile: a publisher hangs, or a consumer gets nothing. A broker "
         "that stops publishers is short of memory or disk: look at its alarms. A sender that "
         "goes on regardless has a bug.",
         "Some clients pause their consumers this way."),
    Kind("prefetch-exceeded", "warning", "low",
         "The broker delivered more than the prefetch count allows",
         "At its end a consumer had more unacknowledged deliveries than the prefetch count set "
         "before it was started, or more than twice as many at any time.",
         "Check where basic.qos is called and with which `global`: in RabbitMQ the count holds "
         "for each consumer that is started afterwards.",
         "A basic.qos after basic.consume does not change consumers that run; a queue of the type "
         "stream gives whole chunks, whatever the count."),
)  # fmt: skip
