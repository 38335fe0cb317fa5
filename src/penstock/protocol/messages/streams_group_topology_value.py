"""StreamsGroupTopologyValue (key 23), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class StreamsGroupTopologyValue(Message):
    """StreamsGroupTopologyValue (key 23), version 0, flexible from version 0 on."""

    __slots__ = ("epoch", "subtopologies")

    NAME = "StreamsGroupTopologyValue"
    API_KEY = 23
    VERSIONS = (0, 0)

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


class Subtopology(Struct):
    """An element of `subtopologies` in StreamsGroupTopologyValue, version 0."""

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
    """A struct in StreamsGroupTopologyValue, version 0."""

    __slots__ = ("name", "partitions", "replication_factor", "topic_configs")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[TopicConfig] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.topic_configs = [] if topic_configs is None else topic_configs
        self.unknown_tags = unknown_tags


class CopartitionGroup(Struct):
    """An element of `copartition_groups` in Subtopology (StreamsGroupTopologyValue), version 0."""

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


class TopicConfig(Struct):
    """An element of `topic_configs` in TopicInfo (StreamsGroupTopologyValue), version 0."""

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
