"""AlterReplicaLogDirs (34), versions 0-2: move partitions to another directory. There is one."""

from __future__ import annotations

from penstock.broker.dispatch import Context, handler
from penstock.errors import KafkaError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from penstock.protocol.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


@handler(ApiKey.ALTER_REPLICA_LOG_DIRS, 0, 2)
def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, context: Context
) -> AlterReplicaLogDirsResponse:
    """Every partition is where it can be; any other directory is not there (57)."""
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=index, error_code=_code(directory.path, topic.name, index, context)
                    )
                    for index in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def _code(path: str, topic: str, index: int, context: Context) -> int:
    if path != context.node.store.describe():
        return ErrorCode.LOG_DIR_NOT_FOUND
    try:
        context.node.cluster.topic(topic).partition(index)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
