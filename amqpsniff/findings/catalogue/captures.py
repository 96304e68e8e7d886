"""Findings about the capture: files, packets and TCP, and their missing data."""

from amqpsniff.findings.finding import Kind

CAPTURES = (
    Kind("capture-truncated", "warning", "high",
         "The capture file is cut in the middle of a packet",
         "The file ends before the length that its last record gives.",
         "Everything before the cut was read; copy the file again if more was expected.",
         "A capture that is still being written ends like this at any moment.",
         category="capture"),
    Kind("capture-damaged", "warning", "high",
         "The capture file is damaged",
         "A record's length or type is impossible, or the compressed data does not unpack.",
         "Everything before the damage was read; in a capture that is not compressed, reading "
         "went on where packets begin again. If that is not enough, try pcapfix; copy the file "
         "again if only the copy is damaged.",
         "Captures that were joined with cat are read as one, and reported here too.",
         category="capture"),
    Kind("capture-unreadable", "error", "high",
         "A capture could not be read",
         "The file is not there, may not be opened, or is no capture in a known format.",
         "Check the path and the format; editcap -F pcapng converts what tshark can read.",
         category="capture"),
    Kind("capture-through-tshark", "info", "high",
         "The capture was read through tshark",
         "Its format or its link type is not one that is read here, or --reader tshark asks for "
         "it.",
         "Nothing, if what was expected is there. editcap -F pcapng makes a file that is read "
         "faster; --reader own does without tshark.",
         category="capture"),
    Kind("clock-set-back", "warning", "high",
         "The clock of the capturing host was set back",
         "A packet's time is a second or more before that of the packet in front of it.",
         "Packets stay in the order of the file. A time from one side of this place to the other "
         "is null, and findings about waiting may be wrong. Let the clock be slewed, not set, "
         "while you capture; editcap -t shifts the times of a part.",
         "Files that were joined in another order than that of time (cat, mergecap -a), or one "
         "packet with a wrong time.",
         category="capture"),
    Kind("packets-out-of-order", "warning", "high",
         "Packets of a file are not in the order of their times",
         "Three packets or more have a time that is a millisecond or more, and less than a second, "
         "before that of the packet in front of them.",
         "Packets are read in the order of the file, so a time from one to another may be wrong by "
         "as much, and segments seem to be out of order. Sort the file: reordercap IN OUT, of "
         "Wireshark.",
         "None are known.",
         category="capture"),
    Kind("interface-dropped", "warning", "high",
         "The capturing host dropped packets",
         "The capture's own statistics count packets that it did not get to write.",
         "Capture again with a larger buffer (tcpdump -B 65536), a shorter snap length (-s 256) "
         "or a narrower filter.",
         "The counter covers all packets of the interface; AMQP may not be among those dropped.",
         category="capture"),
    Kind("packets-cut", "info", "high",
         "Packets were cut by the snap length",
         "Packets were longer on the wire than they are in the capture.",
         "Where only bodies were cut, methods and sizes are right; capture with -s 0 to keep "
         "everything.",
         category="capture"),
    Kind("tunnel-unreadable", "warning", "high",
         "Packets are in a tunnel that is not read",
         "IPsec, L2TP, Teredo, LISP, IPComp or GRE version 1 by protocol or port, or another "
         "tunnel with an unknown version or content. The detail counts packets by tunnel.",
         "What is in them is not shown. Capture where the tunnel ends; --reader tshark knows more "
         "tunnels.",
         "Nothing says that there is AMQP in them.",
         category="capture"),
    Kind("capture-inconclusive", "warning", "high",
         "The capture does not show enough of a connection to judge it",
         "Only one direction was captured, or frames or acknowledgements are missing in holes or "
         "cut packets.",
         "Capture on the broker's host with tcpdump -s 0 -B 65536.",
         "",
         ("tcp-gap", "packets-cut", "interface-dropped"),
         category="capture"),
    Kind("tcp-gap", "warning", "high",
         "Bytes of a connection are missing from the capture",
         "TCP sequence numbers jump, and the other side acknowledged what was never captured.",
         "Frames that lie in a hole are lost; look at the drop counters of the interface and of "
         "the capturing program.",
         "",
         ("interface-dropped",),
         category="capture"),
    Kind("tcp-overlap-conflict", "warning", "high",
         "A retransmission carries different bytes",
         "The same sequence numbers were captured twice with different payload.",
         "The bytes captured first were used; look for a broken middlebox or an injected "
         "packet."),
    Kind("tcp-buffer-limit", "warning", "high",
         "Too many bytes were waiting for a missing segment",
         "More was captured behind a hole than this program keeps while it waits.",
         "The hole was given up; frames in it are lost. Packets that old are not merely out of "
         "order: the capture lost them.",
         category="capture"),
    Kind("tcp-conversation-limit", "warning", "high",
         "Too many conversations at once",
         "More TCP conversations were open at once than this program follows.",
         "The least recently active ones were forgotten; narrow the capture with --port.",
         category="capture"),
    Kind("tcp-impossible-sequence", "warning", "high",
         "A segment lies far outside the connection's window",
         "Its sequence number is further from the expected one than any window reaches.",
         "It was ignored; look for spoofed packets or a reused address and port."),
    Kind("tcp-reset-ignored", "warning", "high",
         "A TCP reset did not end the connection",
         "A RST was captured, and the side that it claims to come from went on. TCP ignores a RST "
         "outside the receive window, and answers one that is not exactly at the next byte with "
         "a challenge ACK (RFC 9293, RFC 5961).",
         "The connection was followed further. Look for a firewall or another device on the path "
         "that sends resets, for forged packets, or for a late packet of an earlier connection."),
    Kind("tcp-syn-ignored", "warning", "high",
         "A SYN did not begin another connection",
         "A SYN with another sequence number was captured on an open connection, and the side that "
         "it claims to come from went on with the old numbers. TCP answers such a SYN with a "
         "challenge ACK (RFC 5961).",
         "The connection was followed further. Look for forged packets, for address translation "
         "that gives one port to two clients, or for a late packet of another connection."),
    Kind("midstream", "info", "high",
         "The connection began before the capture",
         "Neither the SYN nor the protocol header was captured.",
         "What was agreed before the first packet (names, limits, channel states) is unknown; if "
         "it matters, start the capture before the client.",
         category="capture"),
    Kind("proxy-on-both-sides", "info", "medium",
         "A connection was captured on both sides of a proxy or of address translation",
         "Two connections begin within a second and log in with the same bytes, and the server of "
         "one is the client of the other, or client's port and first TCP sequence number are the "
         "same while addresses differ. Or, where the proxy has an address on each side, each of "
         "the six steps of the login is seen in front of the proxy and behind it within 20 ms, in "
         "the order in which it passes.",
         "Everything on it is counted twice, and a delivery may be linked to the publish on the "
         "other side. Read one side alone: amqpsniff cut CAPTURE --client ADDRESS -o one.pcapng "
         "with the client's or the proxy's address, and then one.pcapng. With address translation "
         "(published ports of containers, services of Kubernetes) capture on one interface, not on "
         "any.",
         "A client on the proxy's own host that logs in as the same program.",
         category="capture"),
    Kind("delivery-tag-gap", "info", "high",
         "A delivery's tag does not follow the one before",
         "The broker counts deliveries of a channel one by one, and a number is missing.",
         "The delivery between is not in the capture: in packets that are missing (tcp-gap), or in "
         "what the snap length cut off (packets-cut; capture with -s 0). Some rules cannot judge "
         "this connection from here on.",
         "",
         ("tcp-gap", "packets-cut"),
         category="capture"),
    Kind("body-limit", "warning", "high",
         "A body is larger than this program keeps",
         "The bodies held at once would exceed the limit of this program.",
         "Its size is right, its bytes are not kept. Read fewer messages at once: choose a "
         "connection's port with --port.",
         category="capture"),
    Kind("channel-limit", "warning", "high",
         "Too many contents were open at once",
         "One side began contents on more channels than this program follows without ending them.",
         "The oldest was given up and is shown as incomplete; look for holes in the capture.",
         category="capture"),
    Kind("number-out-of-range", "warning", "high",
         "A number does not fit its column",
         "A 64-bit field of the wire has its highest bit set, or the property `timestamp` lies "
         "after the year 9999.",
         "The column is null; of an argument, the column `arguments` has the number.",
         category="capture"),
    Kind("session-limit", "warning", "high",
         "More channels or messages were open at once than are followed",
         "There are bounds on open channels, consumers, requests without reply, messages without "
         "outcome, and bytes of frames, content headers and handshakes. The detail says which one "
         "was reached.",
         "What came beyond the bound has no outcome, reply, properties or arguments in the tables. "
         "Read fewer connections at once (--connection, --port), or a shorter capture.",
         "A capture in which state is opened and never ended: scans, attacks, a damaged file.",
         category="capture"),
    Kind("rules-limit", "info", "high",
         "More was seen than the rules remember",
         "What rules remember of clients, names, requests, channels and publishes is bounded; the "
         "detail says what was forgotten, and how often.",
         "What a finding needs to have been seen before may have been forgotten, so others may be "
         "missing. Read fewer connections at once (--connection, --port), or a shorter capture.",
         "Long captures of busy brokers.",
         category="capture"),
    Kind("tls-unreadable", "warning", "high",
         "An encrypted connection cannot be read",
         "TLS records on a connection that is AMQP by its ALPN, or may be: by its port, or because "
         "neither names another protocol. The detail says which, and why they do not open.",
         "Let the client or the broker write its keys while you capture (the environment variable "
         "SSLKEYLOGFILE for Python and many others, node --tls-keylog), then use --tls-keylog "
         "FILE. Or capture behind the TLS terminator.",
         "Another protocol on that port: what is inside cannot be seen. --port chooses the ports "
         "that are read.",
         ("tcp-gap", "packets-cut", "interface-dropped"),
         category="capture"),
    Kind("tls-keys-wrong", "warning", "high",
         "The keys that were given do not open a connection",
         "There are keys for the client's random, but no record opens with them.",
         "Take the key log that was written while this capture was made, by the same process.",
         "Bytes that were changed on the way, or captured wrongly.",
         category="capture"),
    Kind("tls-record-damaged", "warning", "high",
         "A TLS record does not open among others that do",
         "The check of a record fails, of those before and after it succeeds.",
         "What it carried is lost; look for a broken middlebox, or bytes that the capture has "
         "wrong. The receiver would have ended the connection."),
    Kind("findings-limit", "warning", "high",
         "There are more places of findings than are kept",
         "More connections and channels showed findings than this program lists one by one.",
         "Their number is right, their places are not all listed; read a part of the capture.",
         category="capture"),
)  # fmt: skip
