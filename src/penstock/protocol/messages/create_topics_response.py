"""CreateTopicsResponse (key 19), versions 0 to 7, flexible from version 5 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class CreateTopicsResponse(Message):
    """CreateTopicsResponse (key 19), versions 0 to 7, flexible from version 5 on."""

    __slots__ = ("throttle_time_ms", "topics")

    NAME = "CreateTopicsResponse"
    API_KEY = 19
    VERSIONS = (0, 7)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class CreatableTopicResult(Struct):
    """An element of `topics` in CreateTopicsResponse, versions 0 to 7."""

    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
        "topic_config_error_code",
        "num_partitions",
        "replication_factor",
        "configs",
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | tuple[()] | None = (),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs: list[CreatableTopicConfigs] | None = [] if isinstance(configs, tuple) else configs
        self.unknown_tags = unknown_tags


class CreatableTopicConfigs(Struct):
    """An element of `configs` in CreatableTopicResult (CreateTopicsResponse), versions 5 to 7."""

    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.unknown_tags = unknown_tags
