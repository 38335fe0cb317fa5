"""ConsumerGroupMemberMetadataValue (key 5), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ConsumerGroupMemberMetadataValue(Message):
    """ConsumerGroupMemberMetadataValue (key 5), version 0, flexible from version 0 on."""

    __slots__ = (
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "rebalance_timeout_ms",
        "server_assignor",
        "classic_member_metadata",
    )

    NAME = "ConsumerGroupMemberMetadataValue"
    API_KEY = 5
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = "",
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = "",
        classic_member_metadata: ClassicMemberMetadata | tuple[()] | None = (),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is None else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata: ClassicMemberMetadata | None = (
            ClassicMemberMetadata() if isinstance(classic_member_metadata, tuple) else classic_member_metadata
        )
        self.unknown_tags = unknown_tags


class ClassicMemberMetadata(Struct):
    """The value of `classic_member_metadata` in ConsumerGroupMemberMetadataValue, version 0."""

    __slots__ = ("session_timeout_ms", "supported_protocols")

    def __init__(
        self,
        *,
        session_timeout_ms: int = 0,
        supported_protocols: list[ClassicProtocol] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols = [] if supported_protocols is None else supported_protocols
        self.unknown_tags = unknown_tags


class ClassicProtocol(Struct):
    """A struct in ConsumerGroupMemberMetadataValue, version 0."""

    __slots__ = ("name", "metadata")

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b"",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.metadata = metadata
        self.unknown_tags = unknown_tags
