"""ElectLeadersResponse (key 43), versions 0 to 2, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ElectLeadersResponse(Message):
    """ElectLeadersResponse (key 43), versions 0 to 2, flexible from version 2 on."""

    __slots__ = ("throttle_time_ms", "error_code", "replica_election_results")

    NAME = "ElectLeadersResponse"
    API_KEY = 43
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = [] if replica_election_results is None else replica_election_results
        self.unknown_tags = unknown_tags


class ReplicaElectionResult(Struct):
    """An element of `replica_election_results` in ElectLeadersResponse, versions 0 to 2."""

    __slots__ = ("topic", "partition_result")

    def __init__(
        self,
        *,
        topic: str = "",
        partition_result: list[PartitionResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.topic = topic
        self.partition_result = [] if partition_result is None else partition_result
        self.unknown_tags = unknown_tags


class PartitionResult(Struct):
    """An element of `partition_result` in ReplicaElectionResult (ElectLeadersResponse), versions 0 to 2."""

    __slots__ = ("partition_id", "error_code", "error_message")

    def __init__(
        self,
        *,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags
