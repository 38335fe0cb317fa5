"""ListOffsets (2): the offset of the first record at or after a time.

v0 answers with the start offsets of segments, newest first. v1 answers with one offset and its time:
that of the first record at or after the requested time, or -1 and -1. Negative times have a meaning:
-1 the end, -2 the start, -3 the record with the greatest time (v7), -4 the start on the local disk (v8),
-5 the end in tiered storage (v9), -6 the earliest offset not yet tiered (v11).
v2 adds the isolation level, v4 leader epochs, v10 a timeout, which a broker without tiered storage never
needs.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.partitions.partition import Partition
from penstock.broker.requests.purgatory import Wait
from penstock.broker.requests.repetition import merged
from penstock.broker.requests.side_thread import (
    INLINE_BYTES,
    answer_later,
    full_budget,
    inline_budget,
)
from penstock.errors import KafkaError, StorageError, UnpackLimitError
from penstock.log.times import OffsetAndTime, record_since
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import READ_COMMITTED
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.protocol.since import LIST_OFFSETS_MAX_TIMESTAMP_SINCE

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.broker.metadata.replica_manager import Topic
    from penstock.log.contract import Bytes
    from penstock.log.walk import BatchEntry
    from penstock.records.compression.codecs import UnpackBudget

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = range(-1, -7, -1)

LEADER_EPOCH_SINCE = 4


CONSUMER, DEBUGGING_REPLICA = -1, -2
"""The replica ids of consumers and of debugging tools; any replica answers debugging tools.

For consumers, a log ends at the high watermark or last stable offset, for others at the log end offset.
"""

AT_ONCE = 16
"""The maximum number of batches of one request that are in memory at a time for a thread to search."""

_SINCE = {
    MAX_TIMESTAMP: LIST_OFFSETS_MAX_TIMESTAMP_SINCE,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING: 11,
}


_INDEX = attrgetter("partition_index")


class _View:
    """The log end that a request may see: consumers see up to last stable offset or high watermark."""

    __slots__ = ("any_replica", "committed_only", "of_consumer")

    def __init__(self, request: ListOffsetsRequest) -> None:
        self.any_replica = request.replica_id == DEBUGGING_REPLICA
        self.of_consumer = request.replica_id == CONSUMER
        self.committed_only = self.of_consumer and request.isolation_level == READ_COMMITTED

    def end(self, partition: Partition) -> int:
        """Return the offset after the last record that the request may see."""
        if self.committed_only:
            return partition.last_stable_offset
        return partition.high_watermark if self.of_consumer else partition.reader.end_offset


def list_offsets(request: ListOffsetsRequest, context: Context[ServingNode]) -> ListOffsetsResponse | Wait:
    """Look up the offset for the requested time in every partition."""
    times = Counter(
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )
    # Version 0 answers each time that is asked of a partition, as Kafka does: its answers are short.
    which = attrgetter("partition_index", "timestamp") if context.version == 0 else _INDEX
    topics = merged(request.topics, attrgetter("name"), "partitions", which)
    searches: list[_Search] = []
    view = _View(request)
    found = [(topic.name, _look_up_all(topic, times, context, searches, view)) for topic in topics]
    answer = ListOffsetsResponse(
        topics=[ListOffsetsTopicResponse(name=name, partitions=partitions) for name, partitions in found]
    )
    return _search_later(answer, searches, context) if searches else answer


def _look_up_all(
    topic: ListOffsetsTopic,
    times: Mapping[tuple[str, int], int],
    context: Context[ServingNode],
    searches: list[_Search],
    view: _View,
) -> list[ListOffsetsPartitionResponse]:
    """Return one answer for every partition; from v1 on, INVALID_REQUEST (42) for a partition named twice.

    `times` has the number of times that the request names each partition. Unfinished searches are appended to
    `searches`.
    """
    return [
        _look_up(topic.name, partition, context, searches, view)
        if context.version == 0 or times[topic.name, partition.partition_index] == 1
        else ListOffsetsPartitionResponse(
            partition_index=partition.partition_index, error_code=ErrorCode.INVALID_REQUEST
        )
        for partition in topic.partitions
    ]


def _look_up(
    name: str,
    asked: ListOffsetsPartition,
    context: Context[ServingNode],
    searches: list[_Search],
    view: _View,
) -> ListOffsetsPartitionResponse:
    response = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    try:
        if context.version:
            _check_time(asked.timestamp, context.version)
        topic = context.node.cluster.topic(name)
        partition = topic.partition(asked.partition_index)
        partition.check_leader_epoch(asked.current_leader_epoch, any_replica=view.any_replica)
        if context.version == 0:
            response.old_style_offsets = _segment_offsets(topic, partition, asked, context.now_ms, view)
        else:
            found = _offset_for(partition, asked.timestamp, context, response, searches, view)
            if found is not None:
                _answer(response, partition, found, context, is_end=asked.timestamp == LATEST)
    except KafkaError as error:
        response.error_code = error.code
    except StorageError as error:
        context.node.limited_log.once(logging.ERROR, str(error))
        response.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return response


def _check_time(timestamp: int, version: int) -> None:
    """Check the timestamp of a request, before its partition is looked up.

    Raises:
        KafkaError: UNSUPPORTED_VERSION (35), a special time that this version does not have.
    """
    if version < _SINCE.get(timestamp, 0) or timestamp < EARLIEST_PENDING:
        raise error_for(ErrorCode.UNSUPPORTED_VERSION, f"time {timestamp} in ListOffsets v{version}")


def _segment_offsets(
    topic: Topic, partition: Partition, asked: ListOffsetsPartition, now_ms: int, view: _View
) -> list[int]:
    if asked.timestamp < EARLIEST:
        raise error_for(ErrorCode.UNSUPPORTED_VERSION, f"time {asked.timestamp} in ListOffsets v0")
    if asked.max_num_offsets <= 0:
        return []
    if asked.timestamp == EARLIEST:
        return [partition.log_start_offset]
    if not partition.has_log:  # Apache Kafka makes the first segment together with the topic
        return [0] if asked.timestamp == LATEST or asked.timestamp >= topic.since_ms else []
    offsets = partition.reader.segment_offsets(asked.timestamp, now_ms)[: asked.max_num_offsets]
    end = view.end(partition)
    if offsets and offsets[0] > end:  # records at the end that are not replicated yet
        return [end, *(offset for offset in offsets if offset <= end)]
    return offsets


def _answer(
    response: ListOffsetsPartitionResponse,
    partition: Partition,
    found: OffsetAndTime,
    context: Context[ServingNode],
    *,
    is_end: bool = False,
) -> None:
    """Set offset, time and leader epoch of a response; for an end offset, the epoch is the leader's."""
    response.offset, response.timestamp = found
    if context.version >= LEADER_EPOCH_SINCE:
        written = -1 if is_end else partition.reader.leader_epochs.epoch_of(found[0])
        response.leader_epoch = partition.leader_epoch if written < 0 else written


def _offset_for(
    partition: Partition,
    timestamp: int,
    context: Context[ServingNode],
    response: ListOffsetsPartitionResponse,
    searches: list[_Search],
    view: _View,
) -> OffsetAndTime | None:
    """Return offset and time for a response from v1 on, or None if no record matches.

    If the search would take long, it is appended to `searches`, and None is returned, too.
    """
    if timestamp == LATEST:
        return view.end(partition), -1
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return partition.log_start_offset, -1
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING):
        return None
    log = partition.reader
    wants_latest = timestamp == MAX_TIMESTAMP
    if wants_latest:
        timestamp = log.max_timestamp
        if timestamp < 0:
            return None
    search = _Search(partition, timestamp, wants_latest, response, view.committed_only)
    if not search.go_on(context):
        searches.append(search)
    return search.visible


class _Search:
    """A search for the first record at or after a time, batch by batch.

    The event loop finds batches with their headers, and searches small ones; a thread searches the others.
    Only the next batch for the thread is held in memory.
    """

    __slots__ = (
        "_batch",
        "_committed_only",
        "_from_offset",
        "_timestamp_ms",
        "_wants_latest",
        "found",
        "partition",
        "response",
    )

    def __init__(
        self,
        partition: Partition,
        timestamp_ms: int,
        wants_latest: bool,
        response: ListOffsetsPartitionResponse,
        committed_only: bool,
    ) -> None:
        self._committed_only = committed_only
        self.partition = partition
        self.response = response
        self.found: OffsetAndTime | None = None
        self._timestamp_ms = timestamp_ms
        self._wants_latest = wants_latest
        self._from_offset = 0
        self._batch: tuple[BatchEntry, Bytes] | None = None

    @property
    def visible(self) -> OffsetAndTime | None:
        """The record found, or None if there is none, or if a transaction that may abort hides it."""
        found = self.found
        hidden = found is not None and self._committed_only and found[0] >= self.partition.last_stable_offset
        return None if hidden else found

    def go_on(self, context: Context[ServingNode]) -> bool:
        """Search until the result is certain; return False if a thread must search the next batch first.

        Raises:
            StorageError: the log cannot be read.
        """
        log = self.partition.reader
        budget = inline_budget(context)
        while self.found is None:
            self._from_offset = max(self._from_offset, log.start_offset)
            found = log.batch_since(self._timestamp_ms, self._from_offset)
            if found is None:
                if self._wants_latest:  # the latest lies below the start of the log
                    self.found = log.offset_of_max_timestamp(budget)
                break
            entry, batch = found
            if len(batch) > INLINE_BYTES:
                return False
            try:
                self.found = record_since(
                    entry, batch, self._timestamp_ms, self._from_offset, budget, by_limit=False
                )
            except UnpackLimitError:
                return False
            self._from_offset = entry.last_offset + 1
        return True

    def load(self) -> int:
        """Read the next batch for the thread into memory; return its size in bytes.

        Raises:
            KafkaError, StorageError: the log cannot be opened or read.
        """
        self._batch = self.partition.reader.batch_since(self._timestamp_ms, self._from_offset)
        return len(self._batch[1]) if self._batch is not None else 0

    def look(self, budget: UnpackBudget) -> None:
        """Search the batch that `load` has read for the record. Any thread may call this method."""
        if self._batch is None:
            return
        (entry, batch), self._batch = self._batch, None
        self.found = record_since(entry, batch, self._timestamp_ms, self._from_offset, budget)
        self._from_offset = entry.last_offset + 1


def _search_later(
    answer: ListOffsetsResponse, searches: list[_Search], context: Context[ServingNode]
) -> ListOffsetsResponse | Wait:
    """Search large batches in a thread; return a `Wait` whose answer has the results."""
    budget = full_budget(context)

    def look() -> None:
        for search in searches[:AT_ONCE]:
            search.look(budget)

    def go_on() -> ListOffsetsResponse | Wait:
        nonlocal searches
        looked_into, searches = searches[:AT_ONCE], searches[AT_ONCE:]
        for search in looked_into:
            try:
                if search.found is None and not search.go_on(context):
                    searches.append(search)
                elif (found := search.visible) is not None:
                    _answer(search.response, search.partition, found, context)
            except KafkaError as error:
                search.response.error_code = error.code
            except StorageError as error:
                context.node.limited_log.once(logging.ERROR, str(error))
                search.response.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return begin() if searches else answer

    def begin() -> ListOffsetsResponse | Wait:
        size = 0
        for search in searches[:AT_ONCE]:
            with suppress(KafkaError, StorageError):  # `go_on` meets it again, and answers it
                size += search.load()
        waiting: ListOffsetsResponse | Wait = answer_later(context, look, size, go_on)
        return waiting

    return begin()
