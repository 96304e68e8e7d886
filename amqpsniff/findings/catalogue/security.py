"""Findings about access and secrets. No finding shows a password."""

from amqpsniff.findings.finding import Kind

SECURITY = (
    Kind("credentials-in-clear", "warning", "high",
         "A password crossed the network in clear text",
         "start-ok with mechanism PLAIN or AMQPLAIN on a connection without TLS, between addresses "
         "that are not loopback.",
         "Use TLS or client certificates (EXTERNAL), and change the password. The capture file "
         "now is a secret itself.",
         "On an isolated network the risk may be acceptable.",
         category="note"),
    Kind("header-secret", "warning", "high",
         "A secret travels in the headers of messages",
         "A message has the header nameko.auth_token, or a URI with a password in x-shovelled, on "
         "a connection without TLS between two hosts.",
         "Use TLS, and keep tokens short-lived: who can read the queue, or a trace of the broker, "
         "has them too.",
         category="note"),
    Kind("account-default", "warning", "high",
         "A client logs in as guest",
         "start-ok has the user name guest, whose password is the same in every new broker.",
         "Give each application a user of its own, and delete guest.",
         "Test brokers.",
         category="note"),
    Kind("account-shared", "warning", "high",
         "Different applications share one user",
         "The same user name is used by different client products, or from ten addresses or "
         "more.",
         "Give each application a user of its own, so that permissions and logs tell them apart.",
         "Several copies of one application.",
         category="note"),
    Kind("connection-unencrypted", "warning", "high",
         "AMQP crosses a network without encryption",
         "AMQP without TLS between two addresses that are not loopback.",
         "Use TLS, by default on port 5671.",
         "Encryption below TCP (IPsec, a service mesh) cannot be seen here.",
         category="note"),
    Kind("tls-outdated", "warning", "high",
         "A version of TLS that is no longer safe",
         "The server chose SSL 3.0, TLS 1.0 or TLS 1.1 (RFC 8996 forbids them).",
         "Enable TLS 1.2 and 1.3 on both sides; the older side, which offered no more, has to be "
         "updated or configured.",
         category="note"),
    Kind("tls-certificate-expired", "warning", "high",
         "The server's certificate had expired",
         "Its notAfter lies before the capture.",
         "Renew the certificate; clients that verify it refuse the connection.",
         "A wrong clock of the capturing host. Visible before TLS 1.3, or with keys."),
    Kind("password-guessing", "warning", "low",
         "Logins fail at a high rate",
         "Five refused logins a minute or more from one address, by clients that give their "
         "connections no name, or five user names refused. Users who logged in from there before "
         "do not count.",
         "Find out which program it is. If it is none of yours, block its address and look for "
         "logins that succeeded; change passwords if one did.",
         "A deployment with a wrong password tries again and again: see reconnect-loop.",
         ("authentication-failed",)),
    Kind("operation-destructive", "info", "high",
         "Queues, exchanges, bindings or messages were deleted",
         "queue.delete, queue.purge, exchange.delete, queue.unbind or exchange.unbind, which the "
         "broker did not refuse; or DELETE to RabbitMQ's /management, which it answered.",
         "Check that this user was meant to do so; if not, take the permission away.",
         "Migrations and tests; a client's own temporary queues.",
         category="note"),
    Kind("resource-bomb", "error", "high",
         "Arguments, headers, a body or channels exceed any ordinary size",
         "Arguments or headers with more than 10000 entries or more than 16 tables inside each "
         "other, a body-size above 512 MiB, or 1000 channels opened within a second.",
         "Disconnect the client that sends it and find out what it is; for a delivery, find who "
         "published it.",
         "",
         ("field-table-too-deep", "field-table-malformed")),
    Kind("user-id-refused", "warning", "high",
         "A message claimed to be from another user",
         "channel.close 406 whose text says that the user_id property differs from the user who "
         "is logged in.",
         "Set user-id to the user who logs in, or leave it out; the tag impersonator allows "
         "others.",
         "Federation and shovels that log in as the wrong user."),
    Kind("login-anonymous", "warning", "high",
         "A client logs in without a name",
         "start-ok with mechanism ANONYMOUS.",
         "Remove ANONYMOUS from the broker's mechanisms; RabbitMQ 4 offers it by default.",
         "Test environments.",
         category="note"),
    Kind("software-outdated", "info", "high",
         "The broker or a client is an old version",
         "The version in server-properties is of a series without support (RabbitMQ before 4.0), "
         "or the client's is one with known faults on the wire (pika before 1.4).",
         "Update the broker or the client library.",
         "Distributions backport fixes without changing the version number.",
         category="note"),
)  # fmt: skip
