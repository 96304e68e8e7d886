"""`amqpsniff live --otlp` sends spans to a collector: a real server on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import amqpsniff
from tests.cli.running import run
from tests.conftest import SAMPLES

PIKA = SAMPLES / "pika_mix.pcap"


class Server:
    """Takes traces; answers with the codes of `answers`, then 200."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.answers: list[int] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                octets = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Type"] == "application/json"
                code = outer.answers.pop(0) if outer.answers else 200
                if code == 200:
                    outer.got.append(json.loads(octets))
                    outer.paths.append(self.path)
                self.send_response(code)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def spans(self) -> set[str]:
        return spans(self.got)


def spans(documents: list[dict[str, Any]]) -> set[str]:
    """Trace, id, parent, name and times of spans."""
    keys = ("traceId", "spanId", "parentSpanId", "name", "startTimeUnixNano", "endTimeUnixNano")
    return {
        json.dumps([span.get(key) for key in keys])
        for one in documents
        for resource in one["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    }


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


def live(server_url: str, *more: str) -> Any:
    return run("live", PIKA, "--count", "568", "--settle", "end", "--otlp", server_url, *more)


def test_spans_are_those_of_the_file(server: Server) -> None:
    result = live(server.url)
    assert (result.code, result.out) == (0, ""), result.err
    expected = spans(list(amqpsniff.open(PIKA).traces()))
    assert server.spans() == expected
    assert set(server.paths) == {"/v1/traces"}
    assert f"{len(expected)} spans sent to {server.url}/v1/traces\n" in result.err


def test_filters_and_another_path(server: Server) -> None:
    assert live(f"{server.url}/other", "--routing-key", "order.*", "-q").code == 0
    assert set(server.paths) == {"/other"}
    expected = spans(list(amqpsniff.open(PIKA).traces(routing_key="order.*")))
    assert server.spans() == expected


def test_a_collector_that_is_busy_is_asked_again(server: Server) -> None:
    server.answers = [503, 429]
    assert live(server.url).code == 0
    assert server.got


def test_what_is_lost_is_said(server: Server) -> None:
    server.answers = [400] * 100
    result = live(server.url)
    assert result.code == 3
    assert "spans lost: it answers 400 Bad Request" in result.err
    server.close()
    result = live(server.url)
    assert result.code == 3
    assert "spans lost: it cannot be reached" in result.err


def test_what_cannot_be() -> None:
    for words in (["--otlp", "nowhere"], ["--otlp", "http://x", "--format", "csv"],
                  ["--otlp", "http://x", "--table", "frames"]):  # fmt: skip
        result = run("live", PIKA, *words)
        assert (result.code, result.err.count("\n")) == (2, 1)
