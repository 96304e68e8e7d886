"""TLS between TCP and AMQP: events of conversations in, the same with TLS taken off out.

`TlsStage.feed` takes the events of reassembly and gives events with the bytes that were encrypted,
where `Secrets` opens them; of conversations that nothing opens it keeps what their handshake tells.
`WebSocketStage` behind it takes WebSocket off.
"""

from .secrets import Secrets
from .stage import TlsStage, WebSocketStage

__all__ = ["Secrets", "TlsStage", "WebSocketStage"]
