"""`Seen`: settings for what the gateway records about clients; and taps, which get connections' bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from penstock.clock import SystemClock
from penstock.errors import ConfigError
from penstock.gateway.seen.access_log import AccessLog, LoggedConnection
from penstock.gateway.seen.capture import CapturedConnection, CaptureFile

if TYPE_CHECKING:
    from penstock.clock import Clock
    from penstock.gateway.contracts import Tap

LOGGED = ("requests", "connections")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The settings for the gateway's records about clients: metrics, access log, decoded traffic, captures.

    Args:
        metrics_port: the port of a page with metrics for Prometheus, ``/metrics``; 0 is a free one.
        access_log: the file to which lines of JSON are appended.
        access_log_of: ``"requests"`` writes a line for each request, ``"connections"`` for each connection.
        explain: IP addresses of clients whose requests and responses are decoded.
        explain_to: is called with a line of JSON for each decoded message; required with `explain`.
        capture: the file to which requests and responses are written as packets (pcap); it is replaced.
        capture_of: IP addresses of clients that are captured; empty means all.

    Raises:
        ConfigError: an argument is invalid.
    """

    metrics_port: int | None = None
    access_log: Path | str | None = None
    access_log_of: Literal["requests", "connections"] = "requests"
    explain: Sequence[str] = ()
    explain_to: Callable[[str], object] | None = None
    capture: Path | str | None = None
    capture_of: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.access_log_of not in LOGGED:
            raise ConfigError(f"access_log_of is {self.access_log_of!r}: requests or connections is needed")
        if isinstance(self.explain, str) or (self.explain and self.explain_to is None):
            raise ConfigError("explain is a list of addresses, and explain_to the function that gets lines")
        if isinstance(self.capture_of, str) or (self.capture_of and self.capture is None):
            raise ConfigError("capture_of is a list of addresses, and capture the file for their packets")
        port = self.metrics_port
        if port is not None and not (type(port) is int and 0 <= port < 1 << 16):
            raise ConfigError(f"metrics_port is {port!r}: a number from 0 to 65535 is needed")


class Taps:
    """Makes a tap for each connection: an object that gets all its bytes, for the access log and captures.

    If a tap raises an exception, `caught` is called, and the tap gets no more bytes.
    """

    def __init__(self, seen: Seen, caught: Callable[[str], None], clock: Clock | None = None) -> None:
        self._seen = seen
        self._caught = caught
        self._clock = clock or SystemClock()
        path = seen.access_log
        self._log = None if path is None else AccessLog(Path(path), seen.access_log_of, self._clock)
        self._capture = None if seen.capture is None else CaptureFile(Path(seen.capture), self._clock)

    def of(self, peer: str, local: str) -> Tap | None:
        """Return the tap for a client's connection, or None if nothing is recorded about the client.

        `peer` is the client's ``host:port``; `local` is the gateway's ``host:port`` of the connection.
        """
        host = peer.rpartition(":")[0]
        taps: list[Tap] = []
        if self._log is not None:
            taps.append(LoggedConnection(self._log, peer))
        write = self._seen.explain_to
        if write is not None and host in self._seen.explain:
            from penstock.gateway.seen.explained import ExplainedConnection

            taps.append(ExplainedConnection(peer, self._clock, write))
        if self._capture is not None and host in (self._seen.capture_of or (host,)):
            taps.append(CapturedConnection(self._capture, peer, local))
        return GuardedTaps(taps, self._caught, peer) if taps else None

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
        if self._capture is not None:
            self._capture.close()


class GuardedTaps:
    """Passes the bytes of one connection to several taps. A tap that raises an exception is dropped."""

    def __init__(self, taps: list[Tap], caught: Callable[[str], None], peer: str) -> None:
        self._taps = taps
        self._caught = caught
        self._peer = peer

    def received(self, data: memoryview) -> None:
        self._each(lambda tap: tap.received(data))

    def sent(self, data: memoryview) -> None:
        self._each(lambda tap: tap.sent(data))

    def ended(self) -> None:
        self._each(lambda tap: tap.ended())

    def _each(self, work: Callable[[Tap], None]) -> None:
        for tap in list(self._taps):
            try:
                work(tap)
            except Exception:
                self._taps.remove(tap)
                self._caught(f"what is written about {self._peer}")
