"""AddPartitionsToTxnResponse (key 24), versions 0 to 5, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AddPartitionsToTxnResponse(Message):
    """AddPartitionsToTxnResponse (key 24), versions 0 to 5, flexible from version 3 on."""

    __slots__ = ("throttle_time_ms", "error_code", "results_by_transaction", "results_by_topic_v3_and_below")

    NAME = "AddPartitionsToTxnResponse"
    API_KEY = 24
    VERSIONS = (0, 5)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] | None = None,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results_by_transaction = [] if results_by_transaction is None else results_by_transaction
        self.results_by_topic_v3_and_below = (
            [] if results_by_topic_v3_and_below is None else results_by_topic_v3_and_below
        )
        self.unknown_tags = unknown_tags


class AddPartitionsToTxnResult(Struct):
    """An element of `results_by_transaction` in AddPartitionsToTxnResponse, versions 4 to 5."""

    __slots__ = ("transactional_id", "topic_results")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        topic_results: list[AddPartitionsToTxnTopicResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results = [] if topic_results is None else topic_results
        self.unknown_tags = unknown_tags


class AddPartitionsToTxnTopicResult(Struct):
    """A struct in AddPartitionsToTxnResponse, versions 0 to 5."""

    __slots__ = ("name", "results_by_partition")

    def __init__(
        self,
        *,
        name: str = "",
        results_by_partition: list[AddPartitionsToTxnPartitionResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.results_by_partition = [] if results_by_partition is None else results_by_partition
        self.unknown_tags = unknown_tags


class AddPartitionsToTxnPartitionResult(Struct):
    """A struct in AddPartitionsToTxnResponse, versions 0 to 5."""

    __slots__ = ("partition_index", "partition_error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_error_code: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code
        self.unknown_tags = unknown_tags
