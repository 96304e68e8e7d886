"""Findings about methods, their arguments and field tables."""

from amqpsniff.findings.finding import Kind

METHODS = (
    Kind("method-unknown", "error", "high",
         "A method is of no known version of AMQP",
         "No known dialect defines these numbers. RabbitMQ closes TCP without a word.",
         "Check for a client of another broker or of another version of the protocol; numbers "
         "from 61440 on are private extensions.",
         "A connection read in the wrong dialect: see --dialect."),
    Kind("handshake-out-of-order", "error", "medium",
         "A method of the handshake came before its turn",
         "start, start-ok, tune, tune-ok, open and open-ok have one order; one came in the place "
         "of another, and the broker closed the connection, RabbitMQ with 503.",
         "Update the client's library, or see that no two of its threads open one connection."),
    Kind("method-wrong-direction", "error", "high",
         "A method was sent by the side that only receives it",
         "A client sent a method that only brokers send, or the reverse; RabbitMQ answers 503.",
         "Update the client's library, or look for two programs that share one socket.",
         "When the connection began before the capture, client and server may have been "
         "mistaken."),
    Kind("arguments-truncated", "error", "high",
         "A method's arguments end before its last argument",
         "The frame is whole and too short for the arguments of its method.",
         "RabbitMQ answers 501; update the client's library, which encodes the method wrongly.",
         "Another dialect: 0-8 has methods with fewer arguments, see --dialect."),
    Kind("arguments-trailing", "warning", "high",
         "Bytes are left over after a method's last argument",
         "The frame is longer than the arguments of its method.",
         "Often another dialect of AMQP; the arguments before them were read. RabbitMQ answers "
         "501.",
         "OpenAMQ's queue.unbind and Qpid's 0-8 basic.consume have an argument more."),
    Kind("field-type-wrong", "error", "high",
         "A field of a performative has the wrong type",
         "A field of an AMQP 1.0 performative has another type than the standard gives it, such as "
         "a ulong for a uint.",
         "A fault of the sender's library: most peers close the connection with "
         "amqp:decode-error. Here the field counts as not sent."),
    Kind("arguments-cut", "info", "high",
         "Arguments of methods were not captured whole",
         "A snap length or a hole fell into a method frame.",
         "Only what was captured is shown; capture with a larger snap length.",
         "",
         ("packets-cut", "tcp-gap"),
         category="capture"),
    Kind("field-tag-unknown", "warning", "high",
         "A field table uses an unknown tag",
         "The byte before a value is no tag of any dialect.",
         "The rest of that table is kept as bytes; brokers drop the connection on such tags. "
         "Correct the client's encoder.",
         "Libraries read some tags differently: see --table-dialect."),
    Kind("field-tag-unusual", "info", "high",
         "A field table uses a tag that brokers do not accept",
         "The tag is one that some clients write and RabbitMQ or other clients cannot read.",
         "RabbitMQ answers 541 or drops the connection, and consumers in other languages fail on "
         "it; keep integers within 32 bits or send them as text.",
         "Producer and consumers of one library understand each other.",
         category="note"),
    Kind("field-table-malformed", "error", "high",
         "A field table does not decode exactly",
         "The length of a table, or of a value in it, does not fit what is around it.",
         "RabbitMQ answers 501 or 541; update the client's library, which encodes the table "
         "wrongly.",
         "Libraries read some tags with other lengths: see --table-dialect."),
    Kind("field-table-too-deep", "error", "high",
         "A field table is nested too deeply",
         "Tables stand in tables beyond the depth that this program and most clients read.",
         "The inner tables are kept as bytes. No ordinary client nests so deeply: find out who "
         "sends it before consumers fail on it."),
    Kind("field-name-duplicate", "warning", "high",
         "A field table names a field twice",
         "Two fields of one table have the same name.",
         "Clients differ in which of the values they use; set each header once."),
    Kind("text-not-utf8", "warning", "high",
         "A short string is not valid UTF-8",
         "A name, key or property has bytes that are not UTF-8.",
         "RabbitMQ answers 501; let the client encode names as UTF-8."),
    Kind("timestamp-milliseconds", "info", "high",
         "A timestamp looks like milliseconds, not seconds",
         "Read as seconds, the timestamp lies tens of thousands of years ahead.",
         "AMQP timestamps are seconds since 1970; it was read as milliseconds. Consumers that "
         "take it for seconds see a date far in the future.",
         category="note"),
    Kind("feature-not-implemented", "error", "high",
         "A client used a feature that the broker does not implement",
         "The broker closes the connection with 540. In RabbitMQ: immediate on basic.publish, a "
         "prefetch size, recover without requeue, channel.flow that stops, global prefetch on "
         "quorum queues and streams.",
         "Switch the option off in the client; Celery on quorum queues needs global prefetch off.",
         "Other brokers implement some of these."),
)  # fmt: skip
