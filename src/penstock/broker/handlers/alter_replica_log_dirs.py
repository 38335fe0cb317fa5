"""AlterReplicaLogDirs (34): move partitions to another directory. This broker never moves partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from penstock.protocol.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

MOVED_NAME_LENGTH_MAX = 255 - len(f".{0:032x}-future")
"""The maximum length of the text TOPIC-PARTITION for a replica that is to be moved to another
directory.

Kafka names the directory of a moving replica TOPIC-PARTITION.ID-future, and file names have at most 255
bytes.
"""


def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, context: Context[ServingNode]
) -> AlterReplicaLogDirsResponse:
    """Accept a move to a partition's present directory; answer LOG_DIR_NOT_FOUND (57) for any other.

    If a request names a partition more than once, the last directory counts, as in Apache Kafka.
    """
    paths: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            paths.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, directory.path))
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=index, error_code=_code(path, name, index, context)
                    )
                    for index, path in partitions.items()
                ],
            )
            for name, partitions in paths.items()
        ]
    )


def _code(path: str, topic: str, index: int, context: Context[ServingNode]) -> int:
    store = context.node.store
    if len(f"{topic}-{index}") > MOVED_NAME_LENGTH_MAX:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path not in store.log_dirs():
        return ErrorCode.LOG_DIR_NOT_FOUND
    try:
        context.node.cluster.topic(topic).partition(index)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE if path == store.log_dir_of(topic, index) else ErrorCode.LOG_DIR_NOT_FOUND
