"""`Request`: a client's request, decoded for faults before the broker handles it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.broker.faults.entities import Entity, Guide, TopicNames
from penstock.printable import printable
from penstock.protocol.api import API_TABLE
from penstock.protocol.error_response import definition_of

if TYPE_CHECKING:
    from penstock.protocol.framing import RequestHeader


class Request:
    """One request of a client, against which faults check their conditions.

    `api` is the API's name (``Produce``), `key` the API key, `version` the API version. `connection` is the
    number of the connection, from 1. `message` is the decoded body, a copy that is never changed.
    """

    __slots__ = (
        "api",
        "client_id",
        "connection",
        "correlation_id",
        "entities",
        "guide",
        "key",
        "message",
        "version",
    )  # fmt: skip

    api: str
    key: int
    version: int
    client_id: str | None
    correlation_id: int
    connection: int
    message: Any
    entities: list[Entity]
    guide: Guide

    def __init__(self, header: RequestHeader, message: Any, connection: int, topic_name: TopicNames) -> None:
        self.key = header.api_key
        self.api = API_TABLE[self.key].name
        self.version = header.api_version
        self.client_id = header.client_id
        self.correlation_id = header.correlation_id
        self.connection = connection
        self.message = message
        self.guide = Guide(definition_of(self.api + "Request"), self.version, topic_name)
        self.entities = self.guide.entities(message)

    @property
    def topics(self) -> list[str]:
        """The names of the topics in the request, each once, in the request's order."""
        return list(dict.fromkeys(entity.topic for entity in self.entities if entity.topic is not None))

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """The partitions in the request, in the request's order."""
        return [
            (entity.topic, entity.partition)
            for entity in self.entities
            if entity.topic is not None and entity.partition is not None
        ]

    @property
    def groups(self) -> list[str]:
        """The ids of the groups in the request, each once, in the request's order."""
        return list(dict.fromkeys(entity.group for entity in self.entities if entity.group is not None))

    def __repr__(self) -> str:
        about = [*(f"{topic}-{partition}" for topic, partition in self.partitions)] or self.topics
        about += [f"group {group}" for group in self.groups]
        where = f" of {', '.join(about)}" if about else ""
        sender = f"{self.client_id!r}, connection {self.connection}"
        return printable(f"<{self.api} v{self.version}{where} from {sender}>")
