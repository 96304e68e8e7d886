"""Codes of findings that end a channel or a connection, for those that follow from it."""

CHANNEL_ENDS = (
    "channel-closed-by-broker", "declaration-mismatch", "acknowledgement-timeout",
    "message-too-large", "exclusive-queue-locked", "user-id-refused",
)  # fmt: skip

BROKER_CLOSES = (
    "connection-closed-by-broker", "connection-forced-closed", "limit-reached",
    "feature-not-implemented", "feature-deprecated",
)  # fmt: skip

CONNECTION_ENDS = (*BROKER_CLOSES, "closed-by-client", "disconnect-unclean")
