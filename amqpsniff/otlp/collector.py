"""Spans sent to a collector while traffic goes on: OTLP over HTTP, as JSON.

A thread of its own sends, so that packets never wait for a collector. What it cannot send soon
enough is dropped and counted.

Source: the OTLP specification of OpenTelemetry, section "OTLP/HTTP".
"""

from __future__ import annotations

import json
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from amqpsniff.errors import UsageError

PATH = "/v1/traces"
"""The path of a collector for traces, if the URL has none."""

MAX_WAITING = 256
"""Batches that wait to be sent: some 60 MB."""
MAX_TRIES = 4
"""Times that a batch is sent, 0.5 s after the first failure, then twice as long each time."""
FIRST_PAUSE_SECONDS = 0.5
TIMEOUT_SECONDS = 10
LAST_SECONDS = 15
"""Seconds that the end of a run waits for spans that were not sent."""

RETRYABLE = frozenset((429, 502, 503, 504))
"""Status codes after which the same spans may be sent again."""


class Sender:
    """Sends `TracesData` to a URL. Raises UsageError if it is no URL of HTTP.

    Attributes:
        sent, lost: Spans sent, and spans dropped.
        trouble: The reason of the last loss of spans; None before the first.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"invalid address of a collector {url!r}; write http://localhost:4318")
        self.url = url if parts.path.strip("/") else url.rstrip("/") + PATH
        self.sent = self.lost = 0
        self.trouble: str | None = None
        self._waiting: queue.Queue[tuple[bytes, int] | None] = queue.Queue(MAX_WAITING)
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="otlp", daemon=True)
        self._thread.start()

    def send(self, traces: dict[str, Any]) -> None:
        """Send traces soon; waits for nothing."""
        number = sum(
            len(scope["spans"])
            for resource in traces["resourceSpans"]
            for scope in resource["scopeSpans"]
        )
        try:
            self._waiting.put_nowait((json.dumps(traces).encode(), number))
        except queue.Full:
            self._lose(number, "it takes spans more slowly than they come")

    def close(self) -> None:
        """Send what waits, but not for ever."""
        end = time.monotonic() + LAST_SECONDS
        self._is_closed.set()
        with suppress(queue.Full):
            self._waiting.put(None, timeout=LAST_SECONDS)
        self._thread.join(max(0.0, end - time.monotonic()))
        while not self._waiting.empty():
            entry = self._waiting.get_nowait()
            if entry is not None:
                self._lose(entry[1], "the run ended before it took them")

    def _run(self) -> None:
        while (entry := self._waiting.get()) is not None:
            octets, number = entry
            reason = self._post(octets)
            if reason is None:
                self.sent += number
            else:
                self._lose(number, reason)

    def _lose(self, number: int, reason: str) -> None:
        self.lost += number
        self.trouble = reason

    def _post(self, octets: bytes) -> str | None:
        """Send a batch; None, or why it could not be sent."""
        pause = FIRST_PAUSE_SECONDS
        for tried in range(1, MAX_TRIES + 1):
            reason, may_retry = self._try(octets)
            if reason is None or not may_retry or tried == MAX_TRIES:
                return reason
            self._is_closed.wait(pause)
            pause *= 2
        return None

    def _try(self, octets: bytes) -> tuple[str | None, bool]:
        request = urllib.request.Request(  # noqa: S310, the scheme was looked at
            self.url, octets, {"Content-Type": "application/json"}
        )
        try:
            with _open(request, timeout=TIMEOUT_SECONDS):
                return None, False
        except urllib.error.HTTPError as error:
            with error:
                return f"it answers {error.code} {error.reason}", error.code in RETRYABLE
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            return f"it cannot be reached: {reason}", True


_open: Callable[..., Any] = urllib.request.build_opener(
    urllib.request.ProxyHandler({}), urllib.request.HTTPRedirectHandler()
).open
"""Opens a URL without the proxies of the environment: a collector is near."""
