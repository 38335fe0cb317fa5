"""CreateTopicsRequest (key 19), versions 0 to 7, flexible from version 5 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class CreateTopicsRequest(Message):
    """CreateTopicsRequest (key 19), versions 0 to 7, flexible from version 5 on."""

    __slots__ = ("topics", "timeout_ms", "validate_only")

    NAME = "CreateTopicsRequest"
    API_KEY = 19
    VERSIONS = (0, 7)

    def __init__(
        self,
        *,
        topics: list[CreatableTopic] | None = None,
        timeout_ms: int = 60000,
        validate_only: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
        self.unknown_tags = unknown_tags


class CreatableTopic(Struct):
    """An element of `topics` in CreateTopicsRequest, versions 0 to 7."""

    __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs")

    def __init__(
        self,
        *,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] | None = None,
        configs: list[CreatableTopicConfig] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments = [] if assignments is None else assignments
        self.configs = [] if configs is None else configs
        self.unknown_tags = unknown_tags


class CreatableReplicaAssignment(Struct):
    """An element of `assignments` in CreatableTopic (CreateTopicsRequest), versions 0 to 7."""

    __slots__ = ("partition_index", "broker_ids")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        broker_ids: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.broker_ids = [] if broker_ids is None else broker_ids
        self.unknown_tags = unknown_tags


class CreatableTopicConfig(Struct):
    """An element of `configs` in CreatableTopic (CreateTopicsRequest), versions 0 to 7."""

    __slots__ = ("name", "value")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.value = value
        self.unknown_tags = unknown_tags
