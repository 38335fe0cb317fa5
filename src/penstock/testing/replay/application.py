"""Replays the application: sends its recorded requests to a broker, and compares the answers."""

from __future__ import annotations

import socket
import time
from collections import defaultdict
from contextlib import suppress
from typing import Any

from penstock.errors import ConfigError, CorruptRecordError, DecodeError, NetworkError, PenstockError
from penstock.protocol.api import API_TABLE, response_header_version
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.framing import decode_response_header, encode_request_header
from penstock.testing.replay.adaptation import Adaptation
from penstock.testing.replay.differences import Difference, compare
from penstock.testing.replay.exchanges import SASL, RecordedExchange
from penstock.testing.replay.routing import Address, TargetRoutes
from penstock.testing.replay.walking import Names, places, rows_of

FRAME_BYTES_MAX = 100 * 1024 * 1024
PAUSE_MS_MAX = 60_000
"""The longest pause that is replayed, in ms: longer pauses, as in a capture over a night, are shortened."""

ALL = -1
"""The value of `Difference.number` for a difference that concerns all requests, not a single one."""


class Playing:
    """One replay that sends recorded requests to a broker, or to the brokers of a cluster."""

    def __init__(
        self,
        exchanges: list[RecordedExchange],
        bootstrap_servers: str,
        client_ids: set[str] | None,
        with_pauses: bool,
        timeout_s: float,
    ) -> None:
        host, _, port = bootstrap_servers.split(",")[0].strip().rpartition(":")
        if not host or not port.isdecimal():
            raise ConfigError(f"bootstrap_servers is host:port, not {bootstrap_servers!r}")
        self._address = (host.strip("[]"), int(port))
        self._numbered = [
            (number, each)
            for number, each in enumerate(exchanges)
            if each.api_key not in SASL and (client_ids is None or each.client_id in client_ids)
        ]
        if not self._numbered:
            raise ConfigError("the recording has no request of these clients; `client_ids` lists its clients")
        self._with_pauses = with_pauses
        self._timeout_s = timeout_s
        self._adaptation = Adaptation(exchanges)
        self._routes = TargetRoutes()
        self._sockets: dict[tuple[int, Address], socket.socket] = {}
        self._places: dict[int, tuple[int, Address]] = {}
        self._requests: dict[int, Any] = {}
        self._lost: set[int] = set()
        self._fetched: tuple[dict[Any, set[int]], dict[Any, set[int]]] = (defaultdict(set), defaultdict(set))
        self._differences: list[Difference] = []

    def run(self) -> list[Difference]:
        """Send the requests in order, each after the answers that preceded it; return the differences.

        Raises:
            NetworkError: the first broker cannot be reached.
        """
        events = []
        for number, each in self._numbered:
            events.append((each.at_ms, 1, number, each))
            if each.answered_ms is not None:
                events.append((max(each.answered_ms, each.at_ms), 2, number, each))
        events.sort(key=lambda event: event[:3])
        at_ms = events[0][0]
        try:
            for moment_ms, kind, number, exchange in events:
                if kind == 1:
                    if self._with_pauses and moment_ms > at_ms:
                        time.sleep(min(moment_ms - at_ms, PAUSE_MS_MAX) / 1000)
                    self._send(number, exchange)
                else:
                    self._receive(number, exchange)
                at_ms = moment_ms
        finally:
            for connection in self._sockets.values():
                connection.close()
        self._compare_fetched()
        return self._differences

    def _send(self, number: int, exchange: RecordedExchange) -> None:
        request = self._adaptation.adapt(exchange)
        names = self._adaptation.old_names | self._adaptation.new_names
        address = self._routes.address(exchange, request, names) or self._address
        place = self._places[number] = (exchange.connection, address)
        self._requests[number] = request
        frame = encode_request_header(
            exchange.api_key, exchange.version, number, exchange.client_id
        ) + request.encode(exchange.version)
        try:
            self._connection(place).sendall(len(frame).to_bytes(4, "big") + frame)
        except NetworkError:
            raise
        except OSError as error:
            self._lose(number, exchange, error)

    def _connection(self, place: tuple[int, Address]) -> socket.socket:
        """Return the connection to a target broker that stands for a recorded one; open it on first use."""
        connection = self._sockets.get(place)
        if connection is None:
            address = place[1]
            try:
                connection = socket.create_connection(address, self._timeout_s)
            except OSError as error:
                if address != self._address:
                    raise
                raise NetworkError(f"{address[0]}:{address[1]} cannot be reached: {error}") from None
            self._sockets[place] = connection
        return connection

    def _receive(self, number: int, exchange: RecordedExchange) -> None:
        connection = self._sockets.get(self._places[number])
        recorded = exchange.answer()
        request = self._requests.pop(number)
        if connection is None or number in self._lost:
            self._differ(number, exchange, "answer", "there", "none: the connection has ended")
            return
        try:
            answered = self._answer(connection, number, exchange)
        except (OSError, PenstockError) as error:
            self._lose(number, exchange, error)
            return
        self._adaptation.learn(exchange, request, recorded, answered)
        self._routes.learn(request, answered)
        names = self._adaptation.old_names, self._adaptation.new_names
        for path, old, new in compare(recorded, answered, exchange.version, *names):
            self._differ(number, exchange, path, old, new)
        if exchange.api_key == ApiKey.FETCH:
            for message, found, known in zip((recorded, answered), self._fetched, names, strict=True):
                self._note_fetched(message, exchange.version, known, found)

    def _answer(self, connection: socket.socket, number: int, exchange: RecordedExchange) -> Any:
        """Read frames until the answer to request `number` arrives; skip answers that the recording lacks."""
        while True:
            size = int.from_bytes(_read(connection, 4), "big")
            if size > FRAME_BYTES_MAX:
                raise DecodeError(f"an answer of {size} bytes is longer than {FRAME_BYTES_MAX}")
            frame = _read(connection, size)
            if int.from_bytes(frame[:4], "big", signed=True) != number:
                continue
            version = response_header_version(exchange.api_key, exchange.version)
            body = frame[decode_response_header(frame, version)[1] :]
            found = API_TABLE[exchange.api_key].response
            try:
                return found.decode(body, exchange.version)
            except DecodeError:
                if exchange.api_key != ApiKey.API_VERSIONS:  # refused ones are answered in version 0
                    raise
                return found.decode(body, 0)

    def _lose(self, number: int, exchange: RecordedExchange, error: Exception) -> None:
        """Drop a connection that has ended, so that later requests open a new one."""
        place = self._places[number]
        connection = self._sockets.pop(place, None)
        if connection is not None:
            connection.close()
        self._lost |= {each for each in self._requests if self._places[each] == place}
        if number in self._lost and exchange.answered_ms is not None:
            return  # its answer is compared later
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error)
        self._differ(number, exchange, "answer", "there", f"none: {reason}")

    def _differ(
        self, number: int, exchange: RecordedExchange, path: str, recorded: object, answered: object
    ) -> None:
        request = f"{exchange.api} v{exchange.version}"
        self._differences.append(Difference(number, request, path, recorded, answered))

    # --- records -----------------------------------------------------------------------------------------

    def _note_fetched(self, message: Any, version: int, names: Names, found: dict[Any, set[int]]) -> None:
        for place in places(message, version, names):
            records = getattr(place.struct, "records", None)
            if records and place.topic is not None:
                with suppress(CorruptRecordError):
                    found[place.topic, place.partition].update(row.offset for row in rows_of(records))

    def _compare_fetched(self) -> None:
        """Compare the numbers of records fetched from each partition, summed over all answers."""
        old, new = self._fetched
        for place in sorted({*old, *new}):
            if len(old[place]) != len(new[place]):
                path = f"records of {place[0]}-{place[1]}"
                self._differences.append(Difference(ALL, "Fetch", path, len(old[place]), len(new[place])))


def _read(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        some = connection.recv(min(size - len(data), 1 << 20))
        if not some:
            raise ConnectionError("the broker has closed the connection")
        data += some
    return bytes(data)
