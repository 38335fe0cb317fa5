"""FindCoordinatorResponse (key 10), versions 0 to 6, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class FindCoordinatorResponse(Message):
    """FindCoordinatorResponse (key 10), versions 0 to 6, flexible from version 3 on."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "node_id", "host", "port", "coordinators")

    NAME = "FindCoordinatorResponse"
    API_KEY = 10
    VERSIONS = (0, 6)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[Coordinator] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = [] if coordinators is None else coordinators
        self.unknown_tags = unknown_tags


class Coordinator(Struct):
    """An element of `coordinators` in FindCoordinatorResponse, versions 4 to 6."""

    __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message")

    def __init__(
        self,
        *,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags
