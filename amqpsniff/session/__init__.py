"""What the two peers meant: connections, channels, and the life of each message.

`Tracker` reads the decoder's rows before they are given out, fills their columns that tell what
became of a request or a message, and makes the rows of `connections` and `channels`. `Journeys`
links messages across connections: deliveries with publishes, replies with requests.
"""

from amqpsniff.session.journeys import Journeys
from amqpsniff.session.limits import Limits, Memory
from amqpsniff.session.tracker import Tracker

__all__ = ["Journeys", "Limits", "Memory", "Tracker"]
