"""Links and sessions of AMQP 1.0: attaching and detaching, credit, windows, settlement."""

from __future__ import annotations

from amqpsniff.findings.finding import Kind

_DETACHES = ("link-refused", "link-detached", "link-detached-idle", "link-stolen")

LINKS = (
    Kind("link-refused", "error", "high",
         "The broker refused to attach a link",
         "The broker answers an attach with a detach that has an error, or with an attach without "
         "the address that was asked for.",
         "Create the node, correct the address (RabbitMQ 4: /queues/NAME or /exchanges/NAME/KEY, "
         "percent-encoded), or give the permission that the condition names. With "
         "amqp:not-implemented the broker lacks what the link asks for, such as transactions or "
         "dynamic nodes: do without it.",
         "Some clients probe whether a node exists."),
    Kind("link-detached", "error", "high",
         "The broker detached a link with an error",
         "A detach of the broker with an error, on a link that was attached.",
         "Read condition and description; the broker's log knows more. Deliveries that were not "
         "settled on the link are in doubt: send or expect them again.",
         "A queue that an operator deletes on purpose."),
    Kind("link-detached-idle", "warning", "high",
         "The broker detached a link because it was idle",
         "A detach of the broker with amqp:link:detach-forced whose description names an idle "
         "timer: Service Bus and Event Hubs do so after ten minutes.",
         "Attach again before the next message, or send often enough. Clients that do not recover "
         "fail with the first message after the pause.",
         "A link that was for one use."),
    Kind("link-reattach-loop", "error", "low",
         "A client attaches a link again and again",
         "The broker detached or refused links of one client to one address with the same "
         "condition, 5 times or more within 60 s.",
         "Wait longer after each attempt, and mend the cause that the condition names.",
         "Rolling restarts of a broker.",
         _DETACHES),
    Kind("link-stolen", "error", "high",
         "A link was taken over by another one",
         "A detach or end with amqp:link:stolen; or an attach of a name that the same side has "
         "attached on the session, and does not detach within a second.",
         "Give each link a name of its own; with Event Hubs each consumer its own consumer group, "
         "or a higher epoch. Two that retry at the same epoch throw each other out for ever. Where "
         "both links are of one client, its program attaches two of one name, or its library does "
         "not detach the first.",
         "A hand-over that is meant, by epoch or after a failover."),
    Kind("link-limit-reached", "error", "high",
         "A client has more links or sessions than the broker allows",
         "A detach, end or close with amqp:resource-limit-exceeded or amqp:not-allowed that names "
         "links, handles, sessions or channels.",
         "Detach links that are done with, and look for code that attaches one for each message; "
         "else spread them over sessions and connections, or raise the limit "
         "(link_max_per_session, session_max_per_connection)."),
    Kind("filter-ignored", "warning", "high",
         "The broker does not apply a filter that a consumer asked for",
         "A filter of the client's attach is missing in the source that the broker answered with.",
         "The consumer gets every message: check the name and the descriptor of the filter, and "
         "what the broker supports (RabbitMQ 4: streams only).",
         "RabbitMQ 3 with its plugin, and some others, never repeat filters."),
    Kind("address-deprecated", "warning", "high",
         "A client uses addresses of version 1 with RabbitMQ 4",
         "An attach to RabbitMQ 4 with an address of the form /queue/, /exchange/, /topic/ or "
         "/amq/queue/.",
         "Use the addresses of version 2: /queues/NAME, /exchanges/NAME/KEY, with special "
         "characters percent-encoded. Version 1 is refused unless amqp_address_v1 is permitted.",
         category="note"),
    Kind("credit-exhausted", "warning", "medium",
         "A sender waits for credit",
         "A link's sender used up its credit and went on as soon as there was more: it waited "
         "for 1 s or longer in all, and for a fifth of the time; or a client that wants to send "
         "got no credit for 5 s after the attach.",
         "The receiver does not keep up. Of a broker: look at the queue's length limit, alarms of "
         "memory and disk, and slow confirms of replicated queues (RabbitMQ 4 stops giving credit "
         "at 170 unconfirmed). Of a consumer: give more credit, ahead of time."),
    Kind("credit-not-renewed", "error", "medium",
         "A consumer stopped giving credit, or never gave any",
         "A consumer's credit was used up, all deliveries were settled, and for 10 s and ten times "
         "longer than usual came no flow with more, though the broker had more messages: it said "
         "so, or it had gone on at once each time before, or ten or more were published for the "
         "queue since over ten seconds, and nobody got one. Or it gave none since its attach, "
         "while as many were published, or had come over links before and nobody got any.",
         "Find out why the client does not top up: a handler that hangs, a receive loop that "
         "ended, a library that counts credit wrongly, or one that gives none by itself (Qpid "
         "Proton with prefetch 0).",
         "A consumer that takes a certain number of messages and then rests."),
    Kind("credit-never-given", "warning", "medium",
         "A consumer attached a link and gave no credit",
         "Both sides attached a link on which the client receives, and in 10 s or longer no flow "
         "of the client gave credit. Links for tokens, management and replies, and of other "
         "dynamic nodes, do not count.",
         "Without credit the broker sends nothing, however many messages wait. Give credit: Qpid "
         "Proton does by itself unless prefetch is 0, then the program has to call flow.",
         "A program that asks for a message when it needs one, and did not yet.",
         category="note"),
    Kind("credit-exceeded", "error", "high",
         "A sender sent more than its credit allows",
         "A delivery began when the receiver's last flow left no credit for it. Where that flow "
         "lowered the credit, what it was before counts for half a second.",
         "A fault of the sender's library: upgrade it. RabbitMQ's Erlang client of 3.x does so in "
         "shovels. The receiver may detach the link with amqp:link:transfer-limit-exceeded.",
         "Deliveries that were on their way for longer when a flow lowered the credit."),
    Kind("session-links-blocked", "warning", "low",
         "A link without credit blocks the others of its session",
         "Three times a client's link waited for credit while another link of the session, which "
         "had credit and had sent much faster, sent nothing, and both went on together.",
         "The client library queues what a session sends in one order, as rhea does: give the "
         "links of slow queues a session of their own.",
         "A program that sends to several addresses in turn, and waits for each."),
    Kind("session-window-closed", "error", "medium",
         "A session's window stays closed",
         "The receiver's incoming window was used up while the link still had credit, and for 5 s "
         "came no flow that opens it.",
         "The receiver must send a flow before its window is used up: upgrade a client whose "
         "window stays as it began, or begin the session with a larger one.",
         "A receiver that stops its sender by the window on purpose."),
    Kind("session-window-violated", "error", "high",
         "A session was ended because its window was violated",
         "An end with amqp:session:window-violation, or a close, as Qpid Proton sends it.",
         "A library counts transfers wrongly, often where the numbers wrap around: RabbitMQ 4 "
         "begins at 4,294,967,292. Upgrade it; rhea before September 2024 and older AMQP.Net "
         "Lite do so."),
    Kind("outcome-not-settled", "warning", "medium",
         "Deliveries got an outcome and were never settled",
         "When the session was over, 10 or more deliveries of a link had an outcome that nobody "
         "had settled.",
         "Each of them takes memory on both sides for as long as the session lasts. Use the "
         "receiver settle mode first, unless both libraries support second."),
    Kind("publish-released", "warning", "high",
         "A message was not taken and may be sent again",
         "The broker's outcome of a message that was sent is released or modified.",
         "Send it again, later or elsewhere. RabbitMQ 4 releases messages that no queue is bound "
         "for (message-unroutable); Artemis and routers those that they cannot deliver now."),
    Kind("deliveries-rejected", "warning", "low",
         "A consumer rejects many of its deliveries",
         "Consumers rejected 5 deliveries of a queue or more (basic.reject or basic.nack without "
         "requeue), and the capture, which has all connections to the broker from their beginning, "
         "declares no dead-letter exchange for it. In AMQP 1.0: 5 of a link or more, and more than "
         "a twentieth of them.",
         "Find out why the handler rejects them: a message that an older program does not know, an "
         "exception. In AMQP 1.0 read the condition it gives (`state_error` of `messages`). "
         "Without a dead-letter exchange of the queue (x-dead-letter-exchange, or a policy) they "
         "are gone; with one, look into the dead-letter queue.",
         "A consumer that sorts failures."),
    Kind("delivery-aborted", "warning", "high",
         "A sender gave up a message in the middle",
         "A transfer with aborted, or a message whose last transfer has more set when its link or "
         "connection ends.",
         "The message was not sent: send it again. Look for a timeout or an exception in the "
         "sender.",
         "A client that cancels on purpose."),
    Kind("message-lock-lost", "error", "high",
         "A message was settled after its lock had run out",
         "The broker settles a delivery, or answers an attempt to settle it, with "
         "com.microsoft:message-lock-lost or com.microsoft:session-lock-lost.",
         "The message comes again, and its work is done twice: renew the lock in time, shorten "
         "the work, or lower the prefetch count. A link that was detached loses all its locks."),
    Kind("lock-renewals-many", "info", "low",
         "A client renews locks more often than it gets messages",
         "More than 10 requests of com.microsoft:renew-lock for each delivery that the connection "
         "received.",
         "Give the entity a longer lock duration, and renew shortly before a lock ends.",
         "Jobs that take long.",
         category="cost"),
    Kind("credit-single", "info", "low",
         "A consumer gives credit for each delivery at a high rate",
         "A link with 200 deliveries or more, more than 200 a second, and nearly as many flows of "
         "the consumer.",
         "Give credit for many deliveries at once, and settle ranges (first to last): each message "
         "costs a frame less.",
         "A consumer that wants one message at a time.",
         category="cost"),
    Kind("token-refused", "error", "high",
         "A token was refused",
         "The answer on $cbs has a status of 400 or above, or a link was detached with "
         "amqp:unauthorized-access because its token ran out.",
         "Check the token's claims (Listen, Send), its audience, and the clocks; renew it at four "
         "fifths of its life."),
    Kind("management-refused", "error", "high",
         "The broker refused a management request",
         "An answer of RabbitMQ's node /management has a status of 400 or above, other than 404 "
         "for GET.",
         "Clients of RabbitMQ 4 declare, bind and delete so. 409: declare it with the properties "
         "that it has, or delete it first. 400 and 404: declare what the request names first, or "
         "correct its name. 403: the user lacks a permission, or the name is reserved.",
         "A program that handles the error."),
    Kind("transaction-failed", "error", "high",
         "A transaction was refused",
         "The coordinator rejected a declare or a discharge.",
         "Nothing in the transaction took effect: do it again. Shorter transactions time out "
         "less often."),
)  # fmt: skip
