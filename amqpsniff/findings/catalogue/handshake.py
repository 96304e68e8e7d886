"""Findings about how connections are opened: protocol, login, tuning, virtual host."""

from amqpsniff.findings.finding import Kind

HANDSHAKE = (
    Kind("connect-refused", "error", "high",
         "Connections were refused",
         "SYN, and RST or ICMP (port unreachable, prohibited) instead of an answer, at a port that "
         "has AMQP in the capture or is usual for brokers. In a capture without AMQP any port "
         "counts. At ::1 only if no connection to 127.0.0.1 follows within a second.",
         "Nothing listens at that address and port: see whether the broker runs, and whether host "
         "and port of the client's configuration are right. Where it had ended connections right "
         "before, the broker's process ended. Where ICMP says that it is prohibited, a firewall or "
         "a route rejects it. Let clients wait longer after each attempt.",
         "A client that tries several addresses in turn; port scans.",
         ("broker-stopped", "connection-forced-closed", "disconnect-unclean")),
    Kind("broker-stopped", "error", "high",
         "A broker was stopped, or died",
         "A server ends two or more connections, and refuses the next attempts within ten seconds, "
         "while none is established.",
         "See the log of the broker and of its host at that time. A broker that is told to stop "
         "closes connections first (connection-forced-closed); one that is killed or crashes does "
         "not. Publishes without confirms right before it may be lost.",
         "A proxy in front of a broker that is restarted looks the same."),
    Kind("connect-unanswered", "error", "high",
         "Connections were not answered",
         "Repeated SYN without an answer, or ICMP that says that the network or host cannot be "
         "reached, at a port that has AMQP in the capture or is usual for brokers. In a capture "
         "without AMQP any port counts.",
         "Look for a firewall or security group that drops packets, for a wrong address, and for "
         "a host that is down; where ICMP says that it cannot be reached, for a missing route.",
         "A capture that does not show the answers: of one direction, or of one of several paths.",
         ("connection-forced-closed", "disconnect-unclean")),
    Kind("not-amqp", "error", "high",
         "A client did not speak AMQP to an AMQP server",
         "The client's first bytes are those of another protocol (TLS, HTTP, MQTT, a proxy's "
         "header), and the server answers with an AMQP protocol header. Or the server answers so "
         "to a client that sent the same header, or before the client has sent a byte: a proxy "
         "between them sent something before it.",
         "Point the client at the right listener: TLS 5671, HTTP 15672, MQTT 1883, streams 5552; "
         "or correct the scheme of its URI. If it is a proxy: switch off the PROXY protocol there "
         "(HAProxy: send-proxy), or let the broker's listener expect it (RabbitMQ: "
         "proxy_protocol)."),
    Kind("server-not-amqp", "error", "high",
         "A client spoke AMQP to a server that does not",
         "The client's first bytes are an AMQP protocol header, and the server answers with those "
         "of another protocol: a TLS alert, HTTP, SSH.",
         "Point the client at the right port (5672, with TLS 5671), or correct the scheme of its "
         "URI: amqps:// where the port is one of TLS, amqp:// where it is not."),
    Kind("protocol-header-unanswered", "warning", "high",
         "A client's protocol header was not answered",
         "The client sends an AMQP protocol header, the server nothing, and the connection ends.",
         "See whether the port expects TLS or the PROXY protocol, whether a load balancer in front "
         "of it reaches a broker, and what the broker's log says at that time.",
         "A client that gives up at once."),
    Kind("tls-alert", "error", "high",
         "TLS failed with an alert",
         "One side sent an alert that ends the connection, such as handshake_failure, unknown_ca, "
         "certificate_expired, protocol_version.",
         "The sender of the alert refused what the other side sent. For bad_certificate, "
         "unknown_ca and certificate_unknown, check the other side's certificate chain and the "
         "sender's list of authorities; for certificate_expired, renew the other side's "
         "certificate, or set the sender's clock; for protocol_version and handshake_failure, "
         "compare versions and ciphers; where the server had asked for the client's certificate, "
         "and for certificate_required, give the client one that the server's authorities signed."),
    Kind("tls-alert-encrypted", "error", "medium",
         "A side ended the TLS handshake with an encrypted alert",
         "In TLS 1.3, all that a client sends encrypted after the server's certificate, or all "
         "that a server sends after the end of the client's handshake, is one record that is too "
         "small for anything else (53 bytes), and then TCP ends.",
         "So ends a client that does not accept the server's certificate: compare the "
         "certificate's names and dates with the name that the client connects to, and its issuer "
         "with the client's list of authorities. So ends a server that demands a client's "
         "certificate and gets none, or one that it does not accept. The side's own log has the "
         "reason; with a key log the alert is read here.",
         "A client that gives up in the handshake closes TLS with an alert too."),
    Kind("tls-ended-early", "warning", "medium",
         "A client ended TLS before it sent anything",
         "The server answered the ClientHello, and the client ended TCP without the end of its own "
         "handshake, and without an alert.",
         "So end clients that check the server's certificate last, as Node.js does: look at its "
         "name, its dates and its issuer, and at the client's own log.",
         "Health checks and port scans."),
    Kind("tls-handshake-unanswered", "warning", "high",
         "A TLS handshake was begun and not answered",
         "A ClientHello, nothing from the server, and the end of the connection.",
         "See whether the listener on that port speaks TLS, and what a load balancer in front of "
         "it does; the broker's log names handshakes that failed.",
         "Health checks and port scans."),
    Kind("protocol-version-refused", "error", "high",
         "The broker refused the client's protocol version",
         "Both sides sent a protocol header, and the broker's names another version: its answer "
         "when it refuses the client's.",
         "Use a client that speaks the version in the broker's header, or enable the plugin for "
         "the client's: RabbitMQ before 4.0 needs one for AMQP 1.0, RabbitMQ since 4.0 has no 0-8. "
         "A broker that answers SASL with AMQP 1.0 takes no login: let the client begin without, "
         "or turn SASL on. RabbitMQ 4 answers 0-9-1 with AMQP 1.0 SASL where a proxy sends the "
         "PROXY protocol to a listener that does not expect it: switch that off, or set "
         "proxy_protocol.",
         "",
         ("protocol-header-unknown", "not-amqp")),
    Kind("login-demanded", "error", "high",
         "The broker demands a login, and the client began without one",
         "The client's only protocol header is that of AMQP 1.0, the broker answers with that of "
         "SASL (AMQP 1.0 §5.3.2), and the client has sent no sasl-init.",
         "Let the client log in: give it a user and password, or a mechanism such as ANONYMOUS or "
         "EXTERNAL. Otherwise allow connections without SASL at the broker."),
    Kind("login-not-tried", "error", "medium",
         "A client ended the connection when it saw how it may log in",
         "In AMQP 1.0 the broker named its login mechanisms in sasl-mechanisms, and the client "
         "ended TCP without a sasl-init.",
         "So end clients that have none of these mechanisms: compare them with the mechanism that "
         "the client is set to, such as EXTERNAL without TLS, ANONYMOUS or XOAUTH2, and with its "
         "libraries for SASL. PLAIN is often not used without TLS unless it is allowed. Or enable "
         "the client's mechanism at the broker.",
         "A health check, or a client that was stopped at that moment."),
    Kind("protocol-header-unknown", "error", "high",
         "A protocol header names an unknown version",
         "`AMQP` is followed by four bytes that no version of the protocol uses.",
         "Compare with the versions the broker offers; it answers with its own header."),
    Kind("protocol-not-decoded", "warning", "high",
         "The connection speaks a protocol not decoded here",
         "Its protocol header is that of AMQP 0-10, of TLS begun inside AMQP 1.0, or of a relative "
         "of AMQP.",
         "AMQP 0-8, 0-9, 0-9-1 and 1.0 are decoded. Of 0-10 the frames are named and counted; "
         "Wireshark decodes them.",
         category="capture"),
    Kind("connection-silent", "info", "high",
         "A connection was opened and closed without a login",
         "A connection to the broker's port carried less than a protocol header from the client, "
         "and nothing from the broker. With TLS: the client finished the handshake, and sent "
         "nothing behind it. Or the client sent its protocol header, and ended TCP when the broker "
         "had answered connection.start, in less than a second.",
         "Health checks of load balancers do this, and each leaves a line in the broker's log: "
         "filter their address out. A client that is no health check, and leaves after "
         "connection.start, has none of the login mechanisms that the broker offers.",
         "A snap length or lost packets can hide what the client sent.",
         category="note"),
    Kind("handshake-slow", "warning", "high",
         "Opening a connection took long, or was given up",
         "A step between connecting and open-ok took a second longer than the fastest of the same "
         "side. Or TCP took a second to connect, because a SYN or its answer was sent again. Or "
         "the broker ended TCP without open-ok at its handshake timeout (10 s).",
         "The detail says which step took the time. TCP: the network loses packets, or the "
         "broker's queue of new connections is full (tcp_listen_options.backlog). Login: the "
         "backend that checks passwords (LDAP, HTTP, OAuth). Tuning: the client was busy. Raise "
         "handshake_timeout only once that is mended.",
         "On a slow path every step takes a round trip of its own."),
    Kind("connection-start-delayed", "warning", "high",
         "The broker's first method came late",
         "connection.start came a second or more after the client's protocol header, and that "
         "much later than the quickest answer of the handshake. A broker sends it at once.",
         "Where each connection waits for the same round time, such as 5 or 10 s, something waits "
         "for a timeout: a proxy or service mesh that detects the protocol (in Linkerd and Istio "
         "exempt AMQP ports from it, as opaque or TCP ports), or the broker's reverse_dns_lookups "
         "with a name server that does not answer. Where the times differ, the broker is busy or "
         "its machine is."),
    Kind("authentication-failed", "error", "high",
         "The broker refused a login",
         "After start-ok the broker closed the connection with 403. Or it closed TCP within a few "
         "seconds without tune, as it does if the client has not announced "
         "authentication_failure_close. In AMQP 1.0: sasl-outcome with another code than 0, or a "
         "close with amqp:unauthorized-access before open.",
         "Check user, password and mechanism; by default the account guest works from the "
         "broker's own host only. The broker's log has the exact reason. Where the user had "
         "logged in from there before: the password or the account was changed since then, or one "
         "of the programs there has a wrong one.",
         "Without the close method or a sasl-outcome, a crash of the client or broker during login "
         "looks the same.",
         ("connection-forced-closed", "connection-closed-by-broker")),
    Kind("vhost-refused", "error", "high",
         "The virtual host does not exist or the user may not use it",
         "The broker answered connection.open with connection.close 530 that names the virtual "
         "host. In AMQP 1.0: it ended TCP and did not answer an open whose hostname begins with "
         "vhost:, as RabbitMQ does.",
         "Correct the name (in a URI the default virtual host `/` is written %2F), or give the "
         "user permissions on it. In AMQP 1.0 the broker's log has the reason.",
         "Without an answer, a broker that dies at that moment looks the same.",
         ("connection-forced-closed",)),
    Kind("tuning-rejected", "error", "high",
         "The broker refused the client's channel or frame limits",
         "tune-ok asks for more channels or larger frames than tune offered (0 means no limit), "
         "or for frames below 4096 bytes (8192 since RabbitMQ 4.1). Then TCP closes without a "
         "close method.",
         "Let the client take over the broker's numbers; update clients that always send 0 or "
         "65535. RabbitMQ 4.1 and later need amqplib 0.10.7 (Node.js) or later."),
    Kind("limit-reached", "error", "high",
         "A limit on connections or channels is reached",
         "connection.close 530 whose text names the limit of the node, virtual host or user, or "
         "the negotiated channel_max.",
         "Find who keeps them open before raising the limit: see connections-leaking and "
         "channels-leaking.",
         "",
         ("connections-leaking", "channels-leaking")),
    Kind("capabilities-missing", "info", "high",
         "The client does not announce every capability",
         "The client's properties in start-ok do not announce one or more of connection.blocked, "
         "consumer_cancel_notify, authentication_failure_close, basic.nack, publisher_confirms.",
         "The detail says what each of them costs. Update or configure the client if that matters "
         "to it.",
         "A capability that is announced may still have no handler in the application.",
         category="note"),
    Kind("connection-unnamed", "info", "high",
         "The connection has no name",
         "The client's properties in start-ok have no connection_name.",
         "Set a connection name in the client, so that the management UI and captures tell "
         "applications apart.",
         category="note"),
)  # fmt: skip
