"""What the two peers meant: connections, channels, and the life of each message.

`Tracker` reads the decoder's rows before they are given out, fills their columns that tell what
became of a request or a message, and makes the rows of `connections` and `channels`.
"""

from amqpsniff.session.census import Census
from amqpsniff.session.limits import Limits
from amqpsniff.session.tracker import Tracker

__all__ = ["Census", "Limits", "Tracker"]
