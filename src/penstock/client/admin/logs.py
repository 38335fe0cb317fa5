"""Administration of partitions' logs for asyncio: delete records, describe data directories."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.admin.refusals import refusal
from penstock.client.cluster.retry import check_complete
from penstock.model import TopicPartition
from penstock.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.protocol.messages.delete_records_response import DeleteRecordsResponse
    from penstock.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse

HIGH_WATERMARK = -1
"""The offset for `delete_records` that deletes all records of a partition."""


class LogDirectory(NamedTuple):
    """A data directory of a broker. Sizes are in bytes, or -1 if the broker does not report them."""

    broker: int
    path: str
    partitions: Mapping[TopicPartition, int]
    """The size of each partition in this directory, in bytes."""
    total_bytes: int = -1
    usable_bytes: int = -1


class LogAdministration:
    """Deletes records and describes data directories, through the connections of a started client.

    Each call raises KafkaError if a broker refuses, and NetworkError or RequestTimeoutError if no broker
    answers in time.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def delete_records(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete each partition's records below an offset; return the new first offset of each partition."""
        return await self._client.retrying("deleting records", lambda: self._delete_records(offsets))

    async def _delete_records(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        by_leader: dict[int, dict[str, DeleteRecordsTopic]] = {}
        for tp, offset in wanted.items():
            topics = by_leader.setdefault(await self._client.leader(tp), {})
            topic = topics.setdefault(tp.topic, DeleteRecordsTopic(name=tp.topic, partitions=[]))
            topic.partitions.append(DeleteRecordsPartition(partition_index=tp.partition, offset=offset))
        answers: list[DeleteRecordsResponse] = await asyncio.gather(
            *(
                self._client.request(
                    DeleteRecordsRequest(
                        topics=list(topics.values()), timeout_ms=int(self._client.config.request_timeout_ms)
                    ),
                    leader,
                )
                for leader, topics in by_leader.items()
            )
        )
        found: dict[TopicPartition, int] = {}
        for answer in answers:
            for answered in answer.topics:
                for result in answered.partitions:
                    tp = TopicPartition(answered.name, result.partition_index)
                    if result.error_code:
                        raise refusal(result.error_code, str(tp))
                    found[tp] = result.low_watermark
        for tp in wanted:
            if tp not in found:
                broker = self._client.address_of(await self._client.leader(tp))
                check_complete([tp], found, broker, "DeleteRecords")
        return found

    async def directories(self, broker: int | None) -> list[LogDirectory]:
        """Return the data directories of one broker, or of all, with the size of every partition."""
        await self._client.retrying("describing directories", self._client.refresh)
        if broker is not None:
            await self._client.check_node(broker)
        brokers = sorted(self._client.cluster.nodes) if broker is None else [broker]
        found: list[LogDirectory] = []
        for node in brokers:
            answer: DescribeLogDirsResponse = await self._client.request(
                DescribeLogDirsRequest(topics=None), node
            )
            if answer.error_code:
                raise refusal(answer.error_code, f"broker {node}")
            for result in answer.results:
                if result.error_code:
                    raise refusal(result.error_code, result.log_dir)
                sizes = {
                    TopicPartition(topic.name, partition.partition_index): partition.partition_size
                    for topic in result.topics
                    for partition in topic.partitions
                }
                found.append(
                    LogDirectory(node, result.log_dir, sizes, result.total_bytes, result.usable_bytes)
                )
        return found
