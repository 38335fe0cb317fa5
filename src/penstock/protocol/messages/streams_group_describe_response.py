"""StreamsGroupDescribeResponse (key 89), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class StreamsGroupDescribeResponse(Message):
    """StreamsGroupDescribeResponse (key 89), versions 0 to 1, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "groups")

    NAME = "StreamsGroupDescribeResponse"
    API_KEY = 89
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is None else groups
        self.unknown_tags = unknown_tags


class DescribedGroup(Struct):
    """An element of `groups` in StreamsGroupDescribeResponse, versions 0 to 1."""

    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "topology",
        "members",
        "authorized_operations",
        "topology_description",
        "topology_description_status",
        "assignor_name",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        topology: Topology | None = None,
        members: list[Member] | None = None,
        authorized_operations: int = -2147483648,
        topology_description: TopologyDescription | None = None,
        topology_description_status: int = 0,
        assignor_name: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.topology = topology
        self.members = [] if members is None else members
        self.authorized_operations = authorized_operations
        self.topology_description = topology_description
        self.topology_description_status = topology_description_status
        self.assignor_name = assignor_name
        self.unknown_tags = unknown_tags


class Topology(Struct):
    """The value of `topology` in DescribedGroup (StreamsGroupDescribeResponse), versions 0 to 1."""

    __slots__ = ("epoch", "subtopologies")

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = subtopologies
        self.unknown_tags = unknown_tags


class Member(Struct):
    """An element of `members` in DescribedGroup (StreamsGroupDescribeResponse), versions 0 to 1."""

    __slots__ = (
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "assignment",
        "target_assignment",
        "is_classic",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        is_classic: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is None else client_tags
        self.task_offsets = [] if task_offsets is None else task_offsets
        self.task_end_offsets = [] if task_end_offsets is None else task_end_offsets
        self.assignment = Assignment() if assignment is None else assignment
        self.target_assignment = Assignment() if target_assignment is None else target_assignment
        self.is_classic = is_classic
        self.unknown_tags = unknown_tags


class TopologyDescription(Struct):
    """The value of `topology_description` in DescribedGroup (StreamsGroupDescribeResponse), version 1."""

    __slots__ = ("subtopologies", "global_stores")

    def __init__(
        self,
        *,
        subtopologies: list[TopologyDescriptionSubtopology] | None = None,
        global_stores: list[TopologyDescriptionGlobalStore] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.subtopologies = [] if subtopologies is None else subtopologies
        self.global_stores = [] if global_stores is None else global_stores
        self.unknown_tags = unknown_tags


class Subtopology(Struct):
    """An element of `subtopologies` in Topology (StreamsGroupDescribeResponse), versions 0 to 1."""

    __slots__ = (
        "subtopology_id",
        "source_topics",
        "repartition_sink_topics",
        "state_changelog_topics",
        "repartition_source_topics",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] | None = None,
        repartition_sink_topics: list[str] | None = None,
        state_changelog_topics: list[TopicInfo] | None = None,
        repartition_source_topics: list[TopicInfo] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is None else source_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is None else repartition_sink_topics
        self.state_changelog_topics = [] if state_changelog_topics is None else state_changelog_topics
        self.repartition_source_topics = (
            [] if repartition_source_topics is None else repartition_source_topics
        )
        self.unknown_tags = unknown_tags


class Endpoint(Struct):
    """The value of `user_endpoint` in Member (StreamsGroupDescribeResponse), versions 0 to 1."""

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
    """A struct in StreamsGroupDescribeResponse, versions 0 to 1."""

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
    """A struct in StreamsGroupDescribeResponse, versions 0 to 1."""

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


class Assignment(Struct):
    """A struct in StreamsGroupDescribeResponse, versions 0 to 1."""

    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")

    def __init__(
        self,
        *,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.active_tasks = [] if active_tasks is None else active_tasks
        self.standby_tasks = [] if standby_tasks is None else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is None else warmup_tasks
        self.unknown_tags = unknown_tags


class TopologyDescriptionSubtopology(Struct):
    """An element of `subtopologies` in TopologyDescription (StreamsGroupDescribeResponse), version 1."""

    __slots__ = ("subtopology_id", "nodes")

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        nodes: list[TopologyDescriptionNode] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.nodes = [] if nodes is None else nodes
        self.unknown_tags = unknown_tags


class TopologyDescriptionGlobalStore(Struct):
    """An element of `global_stores` in TopologyDescription (StreamsGroupDescribeResponse), version 1."""

    __slots__ = ("source", "processor")

    def __init__(
        self,
        *,
        source: TopologyDescriptionNode | None = None,
        processor: TopologyDescriptionNode | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.source = TopologyDescriptionNode() if source is None else source
        self.processor = TopologyDescriptionNode() if processor is None else processor
        self.unknown_tags = unknown_tags


class TopicInfo(Struct):
    """A struct in StreamsGroupDescribeResponse, versions 0 to 1."""

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


class TaskIds(Struct):
    """A struct in StreamsGroupDescribeResponse, versions 0 to 1."""

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


class TopologyDescriptionNode(Struct):
    """A struct in StreamsGroupDescribeResponse, for the fields `nodes`, `source`, `processor`; version 1."""

    __slots__ = ("name", "node_type", "source_topics", "sink_topic", "stores", "successors")

    def __init__(
        self,
        *,
        name: str = "",
        node_type: int = 0,
        source_topics: list[str] | None = None,
        sink_topic: str | None = None,
        stores: list[str] | None = None,
        successors: list[str] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.node_type = node_type
        self.source_topics = [] if source_topics is None else source_topics
        self.sink_topic = sink_topic
        self.stores = [] if stores is None else stores
        self.successors = [] if successors is None else successors
        self.unknown_tags = unknown_tags
