"""Bytes of TCP conversations in, rows of AMQP frames and messages out."""
