"""An HTTP proxy that makes requests fail, before or after the server behind it carried them out."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Fault = Callable[[str, str], str | None]
"""A function from a request's method and path to its fault: None, ``before``, ``after`` or ``lost``."""


class Faults:
    """The settings and counters of the proxy; `url` is the address on which it listens."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = ""
        self.fault: Fault = lambda method, path: None
        self.failed = 0
        self.authorizations: set[str] = set()
        """The values of the Authorization header that the requests had."""


class Handler(BaseHTTPRequestHandler):
    """The handler of one client connection to the proxy."""

    protocol_version = "HTTP/1.1"
    faults: Faults

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: this replaces the log lines that `http.server` prints for each request."""

    def handle(self) -> None:
        with suppress(ConnectionError, TimeoutError):
            super().handle()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._passed
        raise AttributeError(name)

    def _passed(self) -> None:
        body = self._body()
        fault = self.faults.fault(self.command, self.path)
        self.faults.failed += fault is not None
        if (authorization := self.headers.get("Authorization")) is not None:
            self.faults.authorizations.add(authorization)
        status, headers, answer = 503, [], b""
        if fault != "before":
            with suppress(OSError, http.client.HTTPException):
                status, headers, answer = self._asked(body)
        if fault == "lost":
            self.close_connection = True
            return
        if fault is not None:
            status, headers, answer = 503, [], b""
        head = [f"HTTP/1.1 {status} -"]
        head += [
            f"{name}: {value}"
            for name, value in headers
            if name.lower() not in ("transfer-encoding", "connection")
        ]
        if not any(name.lower() == "content-length" for name, _ in headers):
            head.append(f"Content-Length: {len(answer)}")
        self.wfile.write("\r\n".join([*head, "", ""]).encode("latin-1") + answer)

    def _asked(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.faults.port, timeout=20)
        try:
            # Names as they came: the address is a part of what is signed.
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "transfer-encoding", "expect"):
                    connection.putheader(name, value)
            connection.endheaders(body or None)
            found = connection.getresponse()
            return found.status, found.getheaders(), found.read()
        finally:
            connection.close()

    def _body(self) -> bytes:
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))


@contextmanager
def faulty_proxy(port: int) -> Iterator[Faults]:
    """Run a proxy in front of a local port; yield its settings."""
    faults = Faults(port)
    handler = type("Bound", (Handler,), {"faults": faults})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    faults.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield faults
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
