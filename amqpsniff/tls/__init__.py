"""TLS between TCP and AMQP: events of conversations in, decrypted events out.

`TlsStage.feed` takes the events of reassembly and returns events with the decrypted bytes, if
`Secrets` opens them; for other conversations it keeps the facts of their handshake.
`WebSocketStage` after it removes WebSocket framing.
"""

from .secrets import Secrets
from .stage import TlsStage, WebSocketStage

__all__ = ["Secrets", "TlsStage", "WebSocketStage"]
