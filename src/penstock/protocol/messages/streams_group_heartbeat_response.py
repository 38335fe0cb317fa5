"""StreamsGroupHeartbeatResponse (key 88), versions 0 to 1, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class StreamsGroupHeartbeatResponse(Message):
    """StreamsGroupHeartbeatResponse (key 88), versions 0 to 1, flexible from version 0 on."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "acceptable_recovery_lag_legacy",
        "task_offset_interval_ms",
        "acceptable_recovery_lag",
        "status",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "topology_description_required",
        "endpoint_information_epoch",
        "partitions_by_user_endpoint",
    )

    NAME = "StreamsGroupHeartbeatResponse"
    API_KEY = 88
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag_legacy: int = 0,
        task_offset_interval_ms: int = 0,
        acceptable_recovery_lag: int = -1,
        status: list[Status] | tuple[()] | None = (),
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        topology_description_required: bool = False,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.acceptable_recovery_lag_legacy = acceptable_recovery_lag_legacy
        self.task_offset_interval_ms = task_offset_interval_ms
        self.acceptable_recovery_lag = acceptable_recovery_lag
        self.status: list[Status] | None = [] if isinstance(status, tuple) else status
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.topology_description_required = topology_description_required
        self.endpoint_information_epoch = endpoint_information_epoch
        self.partitions_by_user_endpoint = partitions_by_user_endpoint
        self.unknown_tags = unknown_tags


class Status(Struct):
    """An element of `status` in StreamsGroupHeartbeatResponse, versions 0 to 1."""

    __slots__ = ("status_code", "status_detail")

    def __init__(
        self,
        *,
        status_code: int = 0,
        status_detail: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.status_code = status_code
        self.status_detail = status_detail
        self.unknown_tags = unknown_tags


class TaskIds(Struct):
    """A struct in StreamsGroupHeartbeatResponse, versions 0 to 1."""

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


class EndpointToPartitions(Struct):
    """An element of `partitions_by_user_endpoint` in StreamsGroupHeartbeatResponse, versions 0 to 1."""

    __slots__ = ("user_endpoint", "active_partitions", "standby_partitions")

    def __init__(
        self,
        *,
        user_endpoint: Endpoint | None = None,
        active_partitions: list[TopicPartition] | None = None,
        standby_partitions: list[TopicPartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.user_endpoint = Endpoint() if user_endpoint is None else user_endpoint
        self.active_partitions = [] if active_partitions is None else active_partitions
        self.standby_partitions = [] if standby_partitions is None else standby_partitions
        self.unknown_tags = unknown_tags


class Endpoint(Struct):
    """A struct in StreamsGroupHeartbeatResponse, versions 0 to 1."""

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


class TopicPartition(Struct):
    """A struct in StreamsGroupHeartbeatResponse, versions 0 to 1."""

    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags
