"""StreamsGroupMemberMetadataValue (key 19), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class StreamsGroupMemberMetadataValue(Message):
    """StreamsGroupMemberMetadataValue (key 19), version 0, flexible from version 0 on."""

    __slots__ = (
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "rebalance_timeout_ms",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
    )

    NAME = "StreamsGroupMemberMetadataValue"
    API_KEY = 19
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout_ms: int = -1,
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is None else client_tags
        self.unknown_tags = unknown_tags


class Endpoint(Struct):
    """The value of `user_endpoint` in StreamsGroupMemberMetadataValue, version 0."""

    __slots__ = ("host", "port")

    def __init__(
        self,
        *,
        host: str = "",
        port: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.host = host
        self.port = port
        self.unknown_tags = unknown_tags


class KeyValue(Struct):
    """An element of `client_tags` in StreamsGroupMemberMetadataValue, version 0."""

    __slots__ = ("key", "value")

    def __init__(
        self,
        *,
        key: str = "",
        value: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.key = key
        self.value = value
        self.unknown_tags = unknown_tags
