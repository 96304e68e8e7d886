"""Two captures held against each other: of the same application at two times, or of the same
connections at two places.

`before_and_after` compares what two captures show: how much, how fast, what is wrong, what routes
messages. `amqpsniff.compare.same_traffic` follows the same bytes from one host to another.
"""

from amqpsniff.compare.before_after import before_and_after
from amqpsniff.compare.profile import CaptureProfile
from amqpsniff.compare.same_traffic import SameTraffic

__all__ = ["CaptureProfile", "SameTraffic", "before_and_after"]
