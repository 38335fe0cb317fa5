"""DescribeLogDirsResponse (key 35), versions 0 to 5, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeLogDirsResponse(Message):
    """DescribeLogDirsResponse (key 35), versions 0 to 5, flexible from version 2 on."""

    __slots__ = ("throttle_time_ms", "error_code", "results")

    NAME = "DescribeLogDirsResponse"
    API_KEY = 35
    VERSIONS = (0, 5)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResult] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = [] if results is None else results
        self.unknown_tags = unknown_tags


class DescribeLogDirsResult(Struct):
    """An element of `results` in DescribeLogDirsResponse, versions 0 to 5."""

    __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned")

    def __init__(
        self,
        *,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] | None = None,
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics = [] if topics is None else topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes
        self.is_cordoned = is_cordoned
        self.unknown_tags = unknown_tags


class DescribeLogDirsTopic(Struct):
    """An element of `topics` in DescribeLogDirsResult (DescribeLogDirsResponse), versions 0 to 5."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags


class DescribeLogDirsPartition(Struct):
    """An element of `partitions` in DescribeLogDirsTopic (DescribeLogDirsResponse), versions 0 to 5."""

    __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key
        self.unknown_tags = unknown_tags
