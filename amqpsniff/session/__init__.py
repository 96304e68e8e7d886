"""Connections, channels, and the life of each message.

`Tracker` reads the decoder's rows before they are returned, fills their columns of replies and
outcomes, and produces the rows of `connections`, `channels` and `links`.
`LinkRecorder` links messages across connections: deliveries with publishes, replies with requests.
"""

from amqpsniff.session.limits import Limits, Memory
from amqpsniff.session.link_recorder import LinkRecorder
from amqpsniff.session.tracker import Tracker

__all__ = ["Limits", "LinkRecorder", "Memory", "Tracker"]
