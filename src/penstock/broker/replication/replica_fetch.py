"""The leader's half of replication: it answers the Fetch requests of followers. Without I/O.

The leader records a follower's progress once, when the request arrives. If the request waits for records, the
leader only reads the log again afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.broker.replication.local_replica import replica_of
from penstock.broker.requests.purgatory import Wait
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)

if TYPE_CHECKING:
    from penstock.broker.metadata.brokers import BrokerStates
    from penstock.broker.metadata.replica_manager import Topic
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.replication.local_replica import LocalReplica
    from penstock.broker.replication.throttles import ReplicationThrottle
    from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic


class Serving(Protocol):
    """The interface of a node that `serve` uses to answer the fetches of followers."""

    brokers: BrokerStates
    throttle: ReplicationThrottle
    """The replication quota of the leader side (KIP-73); it limits followers that are not in sync."""

    def monotonic(self) -> float:
        """Return the node's monotonic clock in seconds."""

    def topic_of(self, asked: FetchTopic, version: int) -> Topic:
        """Return the topic that a request names.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3), UNKNOWN_TOPIC_ID (100).
        """

    def fetched(self, local: LocalReplica, replica: int) -> None:
        """Record a follower's fetch, advance the high watermark, and propose the follower for the ISR."""


def follower_of(request: FetchRequest) -> tuple[int, int]:
    """Return the id and broker epoch of the follower that sent a request; -1 and -1 for a consumer."""
    if request.replica_id >= 0:
        epoch = request.replica_state.replica_epoch if request.replica_state.replica_id >= 0 else -1
        return request.replica_id, epoch
    return request.replica_state.replica_id, request.replica_state.replica_epoch


def serve(
    request: FetchRequest, version: int, node: Serving, *, arrives: bool = True
) -> FetchResponse | Wait:
    """Return the response to a follower's Fetch, or a `Wait` until the log has enough records.

    `arrives` is False for a request that is processed again after a wait.
    """
    replica, broker_epoch = follower_of(request)
    reader = _Reader(replica, broker_epoch, request.max_bytes, version, node, arrives)
    responses = [reader.read_topic(topic) for topic in request.topics]
    if arrives:
        for local in reader.noted:
            node.fetched(local, replica)
    if reader.found_bytes < request.min_bytes and not reader.has_news and request.max_wait_ms > 0 and arrives:
        deadline = node.monotonic() + request.max_wait_ms / 1000
        keys = reader.keys
        missing = request.min_bytes - reader.found_bytes
        return Wait(keys, deadline, missing, lambda: serve(request, version, node, arrives=False))
    return FetchResponse(responses=responses)


class _Reader:
    """Reads the partitions of a follower's Fetch request and collects the response."""

    def __init__(
        self, replica: int, broker_epoch: int, max_bytes: int, version: int, node: Serving, arrives: bool
    ) -> None:
        self._replica = replica
        self._broker_epoch = broker_epoch
        self._left_bytes = max_bytes
        self._version = version
        self._node = node
        self._arrives = arrives
        self.found_bytes = 0
        self.has_news = False
        """True if the response is sent without waiting: it has an error, a diverging epoch or a new log
        start offset.
        """
        self.noted: list[LocalReplica] = []
        self.keys: list[Partition] = []

    def read_topic(self, asked: FetchTopic) -> FetchableTopicResponse:
        found: Topic | None = None
        failure = ErrorCode.NONE
        try:
            found = self._node.topic_of(asked, self._version)
        except KafkaError as error:
            failure = ErrorCode(error.code)
        answers = []
        for each in asked.partitions:
            try:
                if found is None:
                    raise error_for(failure, "")
                answers.append(self._read(found.partition(each.partition), each))
            except KafkaError as error:
                answers.append(self._refuse(each, error.code, found))
            except StorageError:
                answers.append(self._refuse(each, ErrorCode.KAFKA_STORAGE_ERROR, None))
        return FetchableTopicResponse(topic=asked.topic, topic_id=asked.topic_id, partitions=answers)

    def _refuse(self, asked: FetchPartition, code: int, topic: Topic | None) -> PartitionData:
        self.has_news = True
        start = -1
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and topic is not None:
            start = topic.partition(asked.partition).log_start_offset
        return PartitionData(
            partition_index=asked.partition,
            error_code=code,
            high_watermark=-1,
            log_start_offset=start,
            records=b"",
        )

    def _read(self, partition: Partition, asked: FetchPartition) -> PartitionData:
        partition.check_leader_epoch(max(asked.current_leader_epoch, -1))
        partition.check_leads()
        local = replica_of(partition)
        followers = local.followers
        assert followers is not None
        if followers.get(self._replica) is None:
            # The follower may know of a reassignment before the leader.
            known = asked.current_leader_epoch >= 0
            code = ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise error_for(code, f"broker {self._replica} is no replica of {partition!r}")
        broker = self._node.brokers.by_id.get(self._replica)
        if broker is not None and 0 <= self._broker_epoch < broker.epoch:
            raise error_for(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"a fetch of an earlier life of broker {self._replica}"
            )
        high_watermark = partition.high_watermark
        if asked.last_fetched_epoch >= 0:
            epoch, end_offset = partition.end_of_epoch(asked.last_fetched_epoch)
            if end_offset < 0:
                raise error_for(
                    ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition!r} has no epoch {asked.last_fetched_epoch}"
                )
            if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
                self.has_news = True
                return PartitionData(
                    partition_index=asked.partition,
                    high_watermark=high_watermark,
                    log_start_offset=partition.log_start_offset,
                    diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end_offset),
                    records=b"",
                )
        max_bytes = max(0, min(asked.partition_max_bytes, self._left_bytes))
        throttle, now_s = self._node.throttle, self._node.monotonic()
        is_held_back = throttle.holds_back(partition, self._replica, now_s)
        found = local.read_for_follower(
            asked.fetch_offset,
            0 if is_held_back else max_bytes,
            at_least_one=self.found_bytes == 0 and not is_held_back,
        )
        throttle.took(partition, found.size, now_s)
        if self._arrives:
            is_news = followers.fetched(
                self._replica,
                asked.fetch_offset,
                asked.log_start_offset,
                self._broker_epoch,
                partition.reader.end_offset,
                now_s,
            )
            is_behind = high_watermark < partition.reader.end_offset
            if is_news or is_behind or self._replica not in followers.in_sync:
                self.noted.append(local)
            if followers.is_to_begin_later(self._replica, partition.log_start_offset):
                self.has_news = True
        records: bytes = found.to_bytes() if found.size else b""
        self.found_bytes += len(records)
        self._left_bytes -= len(records)
        self.keys.append(partition)
        return PartitionData(
            partition_index=asked.partition,
            high_watermark=high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log_start_offset,
            records=records,
        )
