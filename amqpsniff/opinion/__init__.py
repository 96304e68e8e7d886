"""A second opinion: what tshark sees in a capture, held against what this package sees."""

from amqpsniff.opinion.compare import Comparison
from amqpsniff.opinion.difference import Difference
from amqpsniff.opinion.known import KNOWN, Known

__all__ = ["KNOWN", "Comparison", "Difference", "Known"]
