"""The access log: a line of JSON for each request, or for each connection."""

from __future__ import annotations

import datetime
import json
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from penstock.common.logs import logger_named
from penstock.errors import ConfigError, PenstockError
from penstock.gateway.heads import decoded_request
from penstock.gateway.seen.frames import Frames
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.since import API_VERSIONS_SOFTWARE_SINCE

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.clock import Clock

HEAD_BYTES = 1 << 10
"""The number of bytes stored from the beginning of each frame: enough for the header, and for a whole
ApiVersions request.
"""

WAITING_MAX = 2000
"""The most requests of a connection that await responses; beyond that, the oldest request is logged without
its response."""

logger = logger_named("penstock.gateway")


class LoggedRequest(NamedTuple):
    """A request that awaits its response, after which it is written to the access log."""

    time_s: float
    api: str
    version: int
    correlation_id: int
    size: int


class AccessLog:
    """A log file to which lines of JSON are appended, one per request or per connection.

    `of` is ``"requests"`` or ``"connections"``.

    Raises:
        ConfigError: the file cannot be written.
    """

    def __init__(self, path: Path, of: str, clock: Clock) -> None:
        self.of = of
        self.clock = clock
        self._path = path
        try:
            self._file: TextIO | None = path.open("a", encoding="utf-8", buffering=1)
        except OSError as error:
            raise ConfigError(f"the access log {path} cannot be written: {error.strerror}") from None

    def write(self, line: dict[str, Any]) -> None:
        """Write a line. If writing fails, log a warning and write no more lines."""
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError as error:
            logger.warning("the access log %s ends here: %s", self._path, error)
            self._file = None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class LoggedConnection:
    """Records one client connection in the access log: a line per request, or one line at its end."""

    def __init__(self, log: AccessLog, peer: str) -> None:
        self._log = log
        self._requests = Frames(HEAD_BYTES)
        self._responses = Frames(4)
        self._waiting: deque[LoggedRequest] = deque()
        self._address, _, port = peer.rpartition(":")
        self._port = int(port)
        self._began_s = log.clock.monotonic()
        self._software = ("", "")
        self._client_id: str | None = None
        self._count = 0
        self._request_bytes = 0
        self._response_bytes = 0

    def received(self, data: memoryview) -> None:
        """Process bytes that the client has sent."""
        self._request_bytes += len(data)
        for head, size in self._requests.cut(data):
            self._request(head, size)

    def sent(self, data: memoryview) -> None:
        """Process bytes that are sent to the client; write a line for each answered request."""
        self._response_bytes += len(data)
        for head, size in self._responses.cut(data):
            self._response(int.from_bytes(head, "big", signed=True), size)

    def ended(self) -> None:
        """Write the lines that are still missing: for unanswered requests, or for the whole connection."""
        while self._waiting:
            self._write(self._waiting.popleft(), None)
        if self._log.of == "connections":
            seconds = round(self._log.clock.monotonic() - self._began_s, 3)
            self._log.write(
                self._client()
                | {
                    "requests": self._count,
                    "request_bytes": self._request_bytes,
                    "response_bytes": self._response_bytes,
                    "seconds": seconds,
                }
            )

    def _client(self) -> dict[str, Any]:
        return {
            "time": _text(self._log.clock.now_ms()),
            "address": self._address,
            "port": self._port,
            "software": self._software[0],
            "software_version": self._software[1],
            "client_id": self._client_id,
        }

    def _request(self, head: bytes, size: int) -> None:
        key = int.from_bytes(head[:2], "big", signed=True)
        api = API_TABLE.get(key)
        if api is None or len(head) < 8:  # a token of SASL
            return
        self._count += 1
        version = int.from_bytes(head[2:4], "big", signed=True)
        length = int.from_bytes(head[8:10], "big", signed=True)
        self._client_id = str(head[10 : 10 + length], "utf-8", "replace") if length >= 0 else None
        if key == ApiKey.API_VERSIONS and version >= API_VERSIONS_SOFTWARE_SINCE and size <= HEAD_BYTES:
            self._note_software(head)
        if self._log.of == "requests":
            if len(self._waiting) >= WAITING_MAX:
                self._write(self._waiting.popleft(), None)
            correlation_id = int.from_bytes(head[4:8], "big", signed=True)
            self._waiting.append(
                LoggedRequest(self._log.clock.monotonic(), api.name, version, correlation_id, size + 4)
            )

    def _note_software(self, head: bytes) -> None:
        try:
            _, message = decoded_request(memoryview(head))
        except PenstockError:
            return
        self._software = message.client_software_name, message.client_software_version

    def _response(self, correlation_id: int, size: int) -> None:
        if not any(each.correlation_id == correlation_id for each in self._waiting):
            return
        while (asked := self._waiting.popleft()).correlation_id != correlation_id:
            self._write(asked, None)  # it has no response, as acks=0
        self._write(asked, size + 4)

    def _write(self, asked: LoggedRequest, response_bytes: int | None) -> None:
        elapsed_s = self._log.clock.monotonic() - asked.time_s
        self._log.write(
            self._client()
            | {
                "api": asked.api,
                "version": asked.version,
                "correlation_id": asked.correlation_id,
                "request_bytes": asked.size,
                "response_bytes": response_bytes,
                "ms": None if response_bytes is None else round(elapsed_s * 1000, 3),
            }
        )


def _text(time_ms: int) -> str:
    moment = datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
