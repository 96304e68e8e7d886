"""Findings about frames: what stands around methods, and the content of a method in header and body
frames.
"""

from amqpsniff.findings.finding import Kind

FRAMES = (
    Kind("frame-end-wrong", "error", "high",
         "A frame does not end in the frame-end byte",
         "The byte after the payload is not 0xCE. RabbitMQ answers 501 with "
         "invalid_frame_end_marker.",
         "Framing was lost there; look for a client that writes from two threads to one "
         "connection, or that writes a wrong length.",
         "Bytes missing from the capture do the same: see tcp-gap and packets-cut."),
    Kind("frame-type-unknown", "error", "high",
         "A frame has a type that no version defines",
         "The first byte of the frame is none of the known types.",
         "RabbitMQ answers 501 FRAME_ERROR, in AMQP 1.0 amqp:connection:framing-error; look for a "
         "client that writes from two threads.",
         "Bytes missing from the capture do the same: see tcp-gap.",
         ("frame-end-wrong",)),
    Kind("frame-type-unusual", "warning", "high",
         "A frame has a type that no broker accepts today",
         "Its type is 4 to 7, 9 or 10, which were defined for 0-8 and 0-9 only. A client that "
         "sends heartbeats as type 4 follows a misprint of the 0-9-1 text.",
         "RabbitMQ answers 501 unknown_frame; update the client."),
    Kind("frame-too-large", "error", "high",
         "A frame is larger than the negotiated frame-max",
         "Its payload is larger than frame-max of tune-ok; RabbitMQ closes with 501 "
         "frame_too_large. In AMQP 1.0: larger than the other side's max-frame-size. A method or "
         "content header of more than 1 MiB is reported whatever frame-max is.",
         "The client must split bodies at frame-max minus 8 bytes. A content header is never "
         "split: if it is the one, make the headers smaller (long exception texts, x-death), or "
         "raise frame-max on both sides. In AMQP 1.0 the sender must split a message over frames "
         "of the other side's max-frame-size.",
         "",
         ("dead-letter-cycle",)),
    Kind("heartbeat-malformed", "error", "high",
         "A heartbeat has a payload or a channel",
         "A frame of type 8 is not empty or not on channel 0; RabbitMQ answers 501 or 505.",
         "A heartbeat is an empty frame on channel 0; update the client."),
)  # fmt: skip

CONTENTS = (
    Kind("content-unexpected-frame", "error", "high",
         "A content frame came where none was expected",
         "A header or body frame has no method before it on its channel.",
         "RabbitMQ answers 505; look for two threads publishing on one channel, and give each "
         "thread a channel of its own.",
         "",
         ("content-interrupted",)),
    Kind("content-interrupted", "error", "high",
         "A frame came before the previous content was complete",
         "A frame came between a method with content and the end of its body, on the same channel: "
         "another method or header, or a body without its header.",
         "RabbitMQ answers 505; look for two threads publishing on one channel, and give each "
         "thread a channel of its own or take a lock around publish.",
         "Contents of two channels may alternate; those are not reported."),
    Kind("content-body-longer", "error", "high",
         "A body is longer than its content header declares",
         "The body frames add up to more than body-size. RabbitMQ before 4.3 blames the method "
         "after it.",
         "The client's body size is wrong, often characters counted instead of bytes; the "
         "bytes past it were not counted."),
    Kind("content-body-shorter", "error", "high",
         "A body is shorter than its content header declares",
         "Another frame came on the channel before the body frames added up to body-size.",
         "The client's body size is wrong, or two threads publish on one channel."),
    Kind("content-class-wrong", "error", "high",
         "A content header has another class than its method",
         "The class number in the content header differs from that of the method before it.",
         "RabbitMQ answers 505; update the client's library, which builds the content header "
         "wrongly."),
    Kind("content-weight", "error", "high",
         "A content header has a weight other than zero",
         "The second field of the content header is not zero. RabbitMQ answers 505 with a text "
         "that speaks of a non content header frame.",
         "RabbitMQ answers 505; update the client's library, which builds the content header "
         "wrongly."),
    Kind("properties-malformed", "error", "high",
         "Content properties do not decode exactly",
         "The property list is shorter or longer than its flags say.",
         "RabbitMQ answers 501 or 541 when it reads them; update the client's library, which "
         "encodes properties wrongly."),
    Kind("property-flags-undefined", "warning", "high",
         "A content header sets undefined property flags",
         "A flag is set for which the class has no property, or the flag that announces more "
         "flags.",
         "RabbitMQ answers 541 to the announcement of more flags and ignores the others; correct "
         "the client."),
)  # fmt: skip
