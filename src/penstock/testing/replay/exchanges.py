"""Exchanges, read from a capture of traffic: each is a request, its answer, and the times of both."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.errors import DecodeError
from penstock.explorer.conversation import ConversationEntry, read_capture
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey

SASL = frozenset((int(ApiKey.SASL_HANDSHAKE), int(ApiKey.SASL_AUTHENTICATE)))
"""The APIs of SASL authentication. Their tokens are never stored."""


@dataclass
class RecordedExchange:
    """One request of a recording, with its answer. Request and answer are encoded bodies without headers."""

    connection: int
    """The number of the connection: counted from 1 in the order of the connections' first requests."""
    broker: str
    """The address of the broker to which the client connected, ``host:port``."""
    at_ms: float
    """The time of the request, in milliseconds since the first request of the recording."""
    api_key: int
    version: int
    client_id: str | None
    request: bytes
    response: bytes | None = None
    """The answer; None for Produce with acks=0, or if the capture ended before the answer."""
    response_version: int = -1
    """The version of the answer: the request's, or 0 if the broker refused the version of an ApiVersions
    request."""
    answered_ms: float | None = None

    @property
    def api(self) -> str:
        """The name of the API, such as ``Produce``."""
        return API_TABLE[self.api_key].name

    def asked(self) -> Any:
        """Return the recorded request as a message, which is decoded anew at each call.

        Raises:
            DecodeError: the bytes are not a request of this API and version.
        """
        return API_TABLE[self.api_key].request.decode(self.request, self.version)

    def answer(self) -> Any:
        """Return the recorded answer as a message, decoded anew at each call, or None if there was none.

        Raises:
            DecodeError: the bytes are not an answer of this API and version.
        """
        if self.response is None:
            return None
        return API_TABLE[self.api_key].response.decode(self.response, self.response_version)


def topic_names(exchanges: Iterable[RecordedExchange]) -> dict[bytes, str]:
    """Return a dict from topic id to name, from recorded answers to Metadata and CreateTopics."""
    found: dict[bytes, str] = {}
    for exchange in exchanges:
        if exchange.api_key in (ApiKey.METADATA, ApiKey.CREATE_TOPICS) and exchange.response is not None:
            for topic in exchange.answer().topics:
                if topic.name:
                    found[topic.topic_id] = topic.name
    return found


def read_exchanges(data: bytes, port: int | None = None) -> tuple[list[RecordedExchange], int]:
    """Return the exchanges in a capture, in the order of requests, and the number of unreadable messages.

    Authentication frames of clients before Kafka 1.0, which have no headers, count as unreadable, and are
    never stored.

    Raises:
        DecodeError: the data is not a capture, or has no readable request.
    """
    entries = [*read_capture(data, port)]
    good = [entry for entry in entries if entry.error is None and entry.message is not None]
    requests = [entry for entry in good if entry.is_request]
    if not requests:
        raise DecodeError(
            "the capture has no request of Kafka that can be read: capture the broker's port from the "
            "beginning of connections, without TLS"
        )
    start = requests[0].time or 0.0
    numbers: dict[str, int] = {}
    waiting: dict[tuple[str, int], deque[RecordedExchange]] = defaultdict(deque)
    exchanges = []
    for entry in requests:
        connection = entry.connection or ""
        exchange = _exchange(entry, numbers.setdefault(connection, len(numbers) + 1), start)
        exchanges.append(exchange)
        waiting[connection, _correlation_id(entry)].append(exchange)
    for entry in good:
        asked = waiting[entry.connection or "", _correlation_id(entry)] if not entry.is_request else None
        while asked:
            exchange = asked.popleft()
            if entry.name == API_TABLE[exchange.api_key].response.NAME:
                assert entry.message is not None
                exchange.response, exchange.response_version = (
                    entry.message.encode(entry.version),
                    entry.version,
                )
                exchange.answered_ms = _ms(entry.time, start)
                break
    return exchanges, len(entries) - len(good)


def _exchange(entry: ConversationEntry, number: int, start: float) -> RecordedExchange:
    assert entry.message is not None
    header = entry.header or {}
    return RecordedExchange(
        number,
        (entry.connection or "").rpartition(" -> ")[2],
        _ms(entry.time, start),
        int(entry.message.API_KEY or 0),
        entry.version,
        header.get("clientId"),
        entry.message.encode(entry.version),
    )


def _correlation_id(entry: ConversationEntry) -> int:
    return int((entry.header or {}).get("correlationId", -1))


def _ms(time: float | None, start: float) -> float:
    return round(((time or start) - start) * 1000, 3)
