"""Captures that are safe to share: what gives something away is replaced in place."""

from amqpsniff.sanitize.policy import SanitizeOptions
from amqpsniff.sanitize.run import Sanitized, sanitize

__all__ = ["SanitizeOptions", "Sanitized", "sanitize"]
