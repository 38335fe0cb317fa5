"""StreamsGroupHeartbeatRequest (key 88), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class StreamsGroupHeartbeatRequest(Message):
    """StreamsGroupHeartbeatRequest (key 88), versions 0 to 1, flexible from version 0 on."""

    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "endpoint_information_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "topology",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "shutdown_application",
    )

    NAME = "StreamsGroupHeartbeatRequest"
    API_KEY = 88
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: Topology | None = None,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        shutdown_application: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.endpoint_information_epoch = endpoint_information_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology = topology
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = client_tags
        self.task_offsets = task_offsets
        self.task_end_offsets = task_end_offsets
        self.shutdown_application = shutdown_application
        self.unknown_tags = unknown_tags


class Topology(Struct):
    """The value of `topology` in StreamsGroupHeartbeatRequest, versions 0 to 1."""

    __slots__ = ("epoch", "subtopologies")

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = [] if subtopologies is None else subtopologies
        self.unknown_tags = unknown_tags


class TaskIds(Struct):
    """A struct in StreamsGroupHeartbeatRequest, versions 0 to 1."""

    __slots__ = ("subtopology_id", "partitions")

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class Endpoint(Struct):
    """The value of `user_endpoint` in StreamsGroupHeartbeatRequest, versions 0 to 1."""

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
    """A struct in StreamsGroupHeartbeatRequest, versions 0 to 1."""

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


class TaskOffset(Struct):
    """A struct in StreamsGroupHeartbeatRequest, versions 0 to 1."""

    __slots__ = ("subtopology_id", "partition", "offset")

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partition: int = 0,
        offset: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partition = partition
        self.offset = offset
        self.unknown_tags = unknown_tags


class Subtopology(Struct):
    """An element of `subtopologies` in Topology (StreamsGroupHeartbeatRequest), versions 0 to 1."""

    __slots__ = (
        "subtopology_id",
        "source_topics",
        "source_topic_regex",
        "state_changelog_topics",
        "repartition_sink_topics",
        "repartition_source_topics",
        "copartition_groups",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] | None = None,
        source_topic_regex: list[str] | None = None,
        state_changelog_topics: list[TopicInfo] | None = None,
        repartition_sink_topics: list[str] | None = None,
        repartition_source_topics: list[TopicInfo] | None = None,
        copartition_groups: list[CopartitionGroup] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is None else source_topics
        self.source_topic_regex = [] if source_topic_regex is None else source_topic_regex
        self.state_changelog_topics = [] if state_changelog_topics is None else state_changelog_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is None else repartition_sink_topics
        self.repartition_source_topics = (
            [] if repartition_source_topics is None else repartition_source_topics
        )
        self.copartition_groups = [] if copartition_groups is None else copartition_groups
        self.unknown_tags = unknown_tags


class TopicInfo(Struct):
    """A struct in StreamsGroupHeartbeatRequest, versions 0 to 1."""

    __slots__ = ("name", "partitions", "replication_factor", "topic_configs")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[KeyValue] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.topic_configs = [] if topic_configs is None else topic_configs
        self.unknown_tags = unknown_tags


class CopartitionGroup(Struct):
    """An element of `copartition_groups` in Subtopology (StreamsGroupHeartbeatRequest), versions 0 to 1."""

    __slots__ = ("source_topics", "source_topic_regex", "repartition_source_topics")

    def __init__(
        self,
        *,
        source_topics: list[int] | None = None,
        source_topic_regex: list[int] | None = None,
        repartition_source_topics: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.source_topics = [] if source_topics is None else source_topics
        self.source_topic_regex = [] if source_topic_regex is None else source_topic_regex
        self.repartition_source_topics = (
            [] if repartition_source_topics is None else repartition_source_topics
        )
        self.unknown_tags = unknown_tags
