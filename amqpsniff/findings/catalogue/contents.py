"""Findings about contents: the header and body frames that follow a method."""

from amqpsniff.findings.kind import Kind

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
