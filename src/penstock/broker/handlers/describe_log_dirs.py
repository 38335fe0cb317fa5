"""DescribeLogDirs (35): the partitions in the data directory, and their sizes.

v3 adds a top-level error; v4 the size of the volume and its free bytes; v5 cordoned directories, which this
broker does not have. A broker that keeps everything in memory describes its memory as one directory without a
limit.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.metadata.replica_manager import Topic
from penstock.broker.requests.repetition import merged
from penstock.errors import StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from penstock.protocol.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.broker.partitions.log_store import LogStore

UNKNOWN = -1
VOLUME_SINCE = 4


def describe_log_dirs(
    request: DescribeLogDirsRequest, context: Context[ServingNode]
) -> DescribeLogDirsResponse:
    """Describe each log directory; a broker without a data directory describes its memory as one."""
    return DescribeLogDirsResponse(
        results=[_describe_directory(path, request, context) for path in context.node.store.log_dirs()]
    )


def _describe_directory(
    path: str, request: DescribeLogDirsRequest, context: Context[ServingNode]
) -> DescribeLogDirsResult:
    node = context.node
    result = DescribeLogDirsResult(log_dir=path)
    asked = request.topics
    topics = node.cluster.topics
    try:
        if asked is None:
            result.topics = [
                _describe(t, range(len(t.partitions)), path, node.store, node.node_id)
                for t in topics.values()
            ]
        else:
            known = [topic for topic in asked if topic.topic in topics]
            result.topics = [
                _describe(topics[topic.topic], topic.partitions, path, node.store, node.node_id)
                for topic in merged(known, lambda topic: topic.topic, "partitions")
            ]
        result.topics = [topic for topic in result.topics if topic.partitions]
    except StorageError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        result.topics = []
    if context.version >= VOLUME_SINCE:
        result.total_bytes, result.usable_bytes = _volume(None if node.config.data_dir is None else path)
    return result


def _describe(
    topic: Topic, indexes: Iterable[int], path: str, store: LogStore, here: int
) -> DescribeLogDirsTopic:
    known = range(len(topic.partitions))
    return DescribeLogDirsTopic(
        name=topic.name,
        partitions=[
            DescribeLogDirsPartition(partition_index=index, partition_size=topic.partitions[index].size_bytes)
            for index in indexes
            if index in known
            and here in topic.partitions[index].replicas
            and store.log_dir_of(topic.name, index) == path
        ],
    )


def _volume(path: str | None) -> tuple[int, int]:
    """Return the total and the free bytes of the volume that contains a path; both `UNKNOWN` on an error."""
    if path is None:
        return UNKNOWN, UNKNOWN
    try:
        volume = shutil.disk_usage(path)
    except OSError:
        return UNKNOWN, UNKNOWN
    return volume.total, volume.free
