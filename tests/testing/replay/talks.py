"""A proxy that records the traffic between clients and a broker as a capture with timestamps."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count

from explorer.captures import ACK, SYN, Packet, pcap, stream, timed
from penstock.broker.security.throwaway import Security
from penstock.protocol.framing import encode_request, encode_response
from penstock.protocol.message import Message
from penstock.testing import KafkaBroker

CLIENT, BROKER_PLACE = ("10.0.0.1", 39_999), ("10.0.0.2", 9092)


class Tap:
    """A proxy between clients and a broker that records each piece of data as a packet with its time."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.target = 0
        self._packets: list[Packet] = []
        self._lock = threading.Lock()
        self._client_ports = count(40_000)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(("127.0.0.1", self.target))
                place = ("10.0.0.1", next(self._client_ports))
                self._keep(Packet(place, BROKER_PLACE, 999, flags=SYN))
                self._keep(Packet(BROKER_PLACE, place, 999, flags=SYN | ACK))
                for source, sink, ends in (
                    (client, broker, (place, BROKER_PLACE)),
                    (broker, client, (BROKER_PLACE, place)),
                ):
                    threading.Thread(target=self._pass_on, args=(source, sink, *ends), daemon=True).start()

    def _keep(self, packet: Packet) -> None:
        with self._lock:
            packet.time = max(time.time(), self._packets[-1].time + 1e-5 if self._packets else 0)
            self._packets.append(packet)

    def _pass_on(
        self, source: socket.socket, sink: socket.socket, here: tuple[str, int], there: tuple[str, int]
    ) -> None:
        sequence = 1000
        with suppress(OSError), closing(source), closing(sink):
            while data := source.recv(1 << 16):
                for start in range(0, len(data), 1000):
                    piece = data[start : start + 1000]
                    self._keep(Packet(here, there, sequence, piece))
                    sequence += len(piece)
                sink.sendall(data)

    def close(self) -> None:
        self._listener.close()

    def capture(self) -> bytes:
        with self._lock:
            return pcap(self._packets)


def captured(*talks: tuple[Message, Message, int], client_id: str = "desk") -> bytes:
    """Return a capture of the given requests and responses, each encoded at a version."""
    asked, answered = b"", b""
    for number, (request, response, version) in enumerate(talks):
        asked += b"".join(encode_request(request, version, number, client_id))
        answered += b"".join(encode_response(response, version, number))
    packets = [*stream(CLIENT, BROKER_PLACE, asked)]
    opening, *rest = stream(BROKER_PLACE, CLIENT, answered)
    return pcap(timed([*packets, Packet(opening.source, opening.destination, 999, flags=SYN | ACK), *rest]))


@contextmanager
def tapped(security: Security | None = None, **settings: object) -> Iterator[tuple[Tap, str]]:
    """Start a broker behind a proxy; yield the proxy and its address."""
    tap = Tap()
    with closing(tap):
        protocol = "PLAINTEXT" if security is None else security.protocol
        listeners = f"{protocol}://127.0.0.1:{tap.port}"
        config = {"advertised.listeners": listeners, **settings}
        with KafkaBroker(config=config, security=security) as broker:
            tap.target = broker.port
            yield tap, f"127.0.0.1:{tap.port}"
