"""ProduceResponse (key 0), versions 0 to 13, flexible from version 9 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import MadeLate, Message, Struct, UnknownTags


class ProduceResponse(Message):
    """ProduceResponse (key 0), versions 0 to 13, flexible from version 9 on."""

    __slots__ = ("responses", "throttle_time_ms", "node_endpoints")

    NAME = "ProduceResponse"
    API_KEY = 0
    VERSIONS = (0, 13)

    def __init__(
        self,
        *,
        responses: list[TopicProduceResponse] | None = None,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.responses = [] if responses is None else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints = [] if node_endpoints is None else node_endpoints
        self.unknown_tags = unknown_tags


class TopicProduceResponse(Struct):
    """An element of `responses` in ProduceResponse, versions 0 to 13."""

    __slots__ = ("name", "topic_id", "partition_responses")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = bytes(16),
        partition_responses: list[PartitionProduceResponse] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses = [] if partition_responses is None else partition_responses
        self.unknown_tags = unknown_tags


class NodeEndpoint(Struct):
    """An element of `node_endpoints` in ProduceResponse, versions 10 to 13."""

    __slots__ = ("node_id", "host", "port", "rack")

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack
        self.unknown_tags = unknown_tags


class PartitionProduceResponse(Struct):
    """An element of `partition_responses` in TopicProduceResponse (ProduceResponse), versions 0 to 13."""

    __slots__ = (
        "index",
        "error_code",
        "base_offset",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
        "error_message",
        "_current_leader",
    )

    current_leader = MadeLate(lambda: LeaderIdAndEpoch())

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] | None = None,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = [] if record_errors is None else record_errors
        self.error_message = error_message
        self._current_leader = current_leader
        self.unknown_tags = unknown_tags


class BatchIndexAndErrorMessage(Struct):
    """An element of `record_errors` in PartitionProduceResponse (ProduceResponse), versions 8 to 13."""

    __slots__ = ("batch_index", "batch_index_error_message")

    def __init__(
        self,
        *,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message
        self.unknown_tags = unknown_tags


class LeaderIdAndEpoch(Struct):
    """The value of `current_leader` in PartitionProduceResponse (ProduceResponse), versions 10 to 13."""

    __slots__ = ("leader_id", "leader_epoch")

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.unknown_tags = unknown_tags
