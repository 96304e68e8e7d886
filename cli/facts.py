"""What methods teach about their connection: who is there, what was agreed on, how it ended."""

from __future__ import annotations

from typing import Any

_VERSIONS = {(8, 0): "0-8", (0, 8): "0-8", (0, 9): "0-9"}
"""What `connection.start` says; 0-9-1 says the same as 0-9."""

FACTS = (
    "connection_id client server version vhost mechanism client_product client_version "
    "client_platform connection_name server_product server_version channel_max frame_max heartbeat "
    "channels frames client_octets server_octets closed_by close_code close_text"
).split()
"""What may be known of a connection, in this order; null while it is not."""


def _start(connection: dict[str, Any], arguments: dict[str, Any], _: Any) -> None:
    version = arguments.get("version_major"), arguments.get("version_minor")
    connection["version"] = _VERSIONS.get(version)  # type: ignore[arg-type]
    properties = arguments.get("server_properties", {})
    connection["server_product"] = _text(properties, "product")
    connection["server_version"] = _text(properties, "version")


def _start_ok(connection: dict[str, Any], arguments: dict[str, Any], _: Any) -> None:
    properties = arguments.get("client_properties", {})
    for name in ("product", "version", "platform"):
        connection[f"client_{name}"] = _text(properties, name)
    connection["connection_name"] = _text(properties, "connection_name")
    connection["mechanism"] = arguments.get("mechanism")


def _tune_ok(connection: dict[str, Any], arguments: dict[str, Any], _: Any) -> None:
    for name in ("channel_max", "frame_max", "heartbeat"):
        connection[name] = arguments.get(name)


def _open(connection: dict[str, Any], arguments: dict[str, Any], _: Any) -> None:
    connection["vhost"] = arguments.get("virtual_host")


def _close(connection: dict[str, Any], arguments: dict[str, Any], sender: str | None) -> None:
    connection["closed_by"] = sender
    connection["close_code"] = arguments.get("reply_code")
    connection["close_text"] = arguments.get("reply_text")


LESSONS = {
    "connection.start": _start,
    "connection.start-ok": _start_ok,
    "connection.tune-ok": _tune_ok,
    "connection.open": _open,
    "connection.close": _close,
}
"""What a method teaches about its connection, called with what is known, its arguments, sender."""


def _text(properties: Any, name: str) -> str | None:
    value = properties.get(name) if isinstance(properties, dict) else None
    return value if isinstance(value, str) else None
