"""Findings about frames: what stands around methods and contents."""

from amqpsniff.findings.kind import Kind

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
