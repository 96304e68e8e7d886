"""Codes of findings that end a channel or a connection, for those that follow from it."""

CHANNEL_ENDS = (
    "channel-closed-by-broker", "declaration-mismatch", "acknowledgement-timeout",
    "message-too-large", "exclusive-queue-locked", "user-id-refused",
)  # fmt: skip

CONNECTION_ENDS = (
    "connection-closed-by-broker", "connection-forced-closed", "disconnect-unclean",
    "limit-reached", "feature-not-implemented",
)  # fmt: skip
