"""The sans-I/O core of fetching: cursors, their replicas, requests and responses. `fetcher` does the I/O."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.cluster.metadata import NO_NODE, NO_TOPIC_ID, ClusterMetadata
from penstock.common.logs import logger_named
from penstock.errors import CorruptRecordError, PenstockError
from penstock.model import TopicPartition
from penstock.protocol.field_values import READ_COMMITTED, READ_UNCOMMITTED
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.fetch_response import FetchResponse, PartitionData
from penstock.protocol.since import FETCH_TOPIC_IDS_SINCE
from penstock.records.format.batch_header import (
    LAST_OFFSET_DELTA_POSITION,
    LENGTH_EXTRA_BYTES,
    LENGTH_POSITION,
    MAGIC_POSITION,
    MESSAGE_LENGTH_MIN,
)

if TYPE_CHECKING:
    from penstock.client.config import ConsumerConfig

ISOLATION_LEVELS = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}

FIRST_GUESS_RECORD_BYTES = 1_024
"""The assumed size in bytes of a record, until records have been fetched."""

PARTITION_BYTES_MIN = 16 << 10
ESTIMATE_SLACK = 1.1

LEADER_S = 10.0
"""The time in seconds for which a partition is read from its leader after another replica has failed. It is
longer than a broker's session (9 s by default), after whose end the leader does not name that replica any
more."""

BEHIND_S = 1.0
"""The time in seconds for which a follower may lack records that the cursor must read, before the leader is
used instead: twice the longest wait of a follower's fetch.
"""

log = logger_named("penstock.client")

_BATCH_LENGTH = struct.Struct(">i")
_BASE_OFFSET = struct.Struct(">q")


class Cursor:
    """The offset in a partition from which records are fetched next, and the offset where fetching ends."""

    __slots__ = (
        "empties",
        "end",
        "failing_since",
        "high_watermark",
        "is_dropped",
        "is_stopped",
        "last_stable_offset",
        "leader_until",
        "log_start_offset",
        "may_have_gaps",
        "not_before",
        "offset",
        "record_bytes",
        "replica",
        "replica_until",
        "size_max",
        "topic_id",
        "tp",
        "tries",
        "violated_since",
    )

    def __init__(
        self,
        tp: TopicPartition,
        offset: int,
        end: int | None,
        size_max: int,
        topic_id: bytes = NO_TOPIC_ID,
    ) -> None:
        self.tp = tp
        self.topic_id = topic_id
        """The id of the topic that `offset` belongs to; zero while it is not known, or if the broker has no
        topic ids."""
        self.offset = offset
        self.end = end
        """The offset at which fetching ends (exclusive); None for no end."""
        self.size_max = size_max
        """The maximum size in bytes of this partition in a response. It grows if a broker before 0.10.1 cuts
        off the first batch."""
        self.record_bytes = 0.0
        """The average size in bytes of a record in the log, from the last response; 0 before the first."""
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1
        """High watermark, last stable offset and log start offset of the partition, from the last Fetch
        response; -1 before the first.
        """
        self.is_stopped = False
        """True if an error has ended this cursor. The code that gets the error then starts another cursor, or
        none."""
        self.is_dropped = False
        """True if the consumer has stopped fetching at this cursor: records that arrive later are dropped."""
        self.not_before = 0.0
        self.failing_since = 0.0
        """The time of the first failure since the last success, in monotonic seconds; 0 without a failure."""
        self.violated_since = 0.0
        """The time of the first malformed response since the last valid one, in monotonic seconds; 0 without
        any. Failures to reach the broker do not count."""
        self.tries = 0
        self.empties = 0
        """The number of responses in a row without records, although the log has records at or after
        `offset`.
        """
        self.replica = NO_NODE
        """The replica to fetch from, which the leader has named (KIP-392); -1 to fetch from the leader."""
        self.replica_until = self.leader_until = 0.0
        """The monotonic times until which `replica` is used (`replica_until`), and until which only the
        leader is used (`leader_until`).
        """
        self.may_have_gaps: bool | None = None
        """True if compaction may have removed all records up to the log's end; None before that is known."""

    @property
    def is_finished(self) -> bool:
        return self.end is not None and self.offset >= self.end

    @property
    def wanted_bytes(self) -> int:
        """The maximum size in bytes to request next, estimated from the number of offsets up to `end`."""
        if self.end is None:
            return self.size_max
        left = (self.end - self.offset) * (self.record_bytes or FIRST_GUESS_RECORD_BYTES) * ESTIMATE_SLACK
        return max(min(self.size_max, PARTITION_BYTES_MIN), min(self.size_max, int(left)))

    def advance(self, next_offset: int, size: int) -> None:
        """Continue at `next_offset`, after `size` bytes of records were fetched."""
        if next_offset > self.offset:
            self.record_bytes = size / (next_offset - self.offset)
        self.offset = next_offset
        self.note_well()

    def note_well(self) -> None:
        """Reset the failure counts, after a response with records or one that shows the end of the log."""
        self.failing_since = self.violated_since = 0.0
        self.tries = self.empties = 0


class FetchedPart(NamedTuple):
    """The part of a Fetch response for one partition: whole batches in offset order, or an error."""

    cursor: Cursor
    tp: TopicPartition
    records: memoryview
    start: int
    """The offset that was requested. The first batch may begin before it."""
    next_offset: int
    aborted: Sequence[tuple[int, int]]
    high_watermark: int
    error: PenstockError | None = None

    @classmethod
    def failed(cls, cursor: Cursor, error: PenstockError) -> FetchedPart:
        """Return a part without records, with the error that has ended the cursor."""
        return cls(cursor, cursor.tp, memoryview(b""), cursor.offset, cursor.offset, (), -1, error)

    @property
    def size(self) -> int:
        return self.records.nbytes


class FetchLimits(NamedTuple):
    """The limits of every Fetch request: wait time, sizes in bytes, and isolation level."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    rack: str = ""
    """The ``client.rack``: a leader may name a replica in this rack to fetch from."""


class FetchSettings(NamedTuple):
    """Settings of a fetcher: how much to fetch at a time, and how long to retry after failures."""

    limits: FetchLimits
    buffered_bytes_max: int
    patience_s: float | None
    """The time in seconds after which failures in a row end a cursor; None for no limit."""
    violation_patience_s: float = 60.0
    """The time in seconds after which malformed responses end a cursor, if `patience_s` is None."""

    @classmethod
    def of_consumer(cls, config: ConsumerConfig) -> FetchSettings:
        """Return the settings for a consumer with the options `config`."""
        limits = FetchLimits(
            config.fetch_max_wait_ms,
            config.fetch_min_bytes,
            config.fetch_max_bytes,
            ISOLATION_LEVELS[config.isolation_level],
            config.client_rack or "",
        )
        violation_patience_s = config.default_api_timeout_ms / 1000
        return cls(limits, config.queued_max_messages_kbytes << 10, None, violation_patience_s)


class ReadReplicas:
    """Chooses the node to read from for each cursor: the leader, or the nearest replica (KIP-392).

    Without a `rack` it is always the leader. As in Java's consumer, the replica that the leader has named is
    asked until `metadata.max.age.ms` has passed, the replica fails, or the metadata list it as offline; then
    the leader is asked again. Unlike in Java's consumer, a partition then stays with its leader for a while,
    since the leader names a replica that does not answer for as long as the replica's session lasts. Times
    are seconds of the event loop's clock.
    """

    def __init__(self, cluster: ClusterMetadata, rack: str, max_age_s: float) -> None:
        """Begin with the leader of every partition. `max_age_s` is ``metadata.max.age.ms`` in seconds."""
        self._cluster = cluster
        self._rack = rack
        self._max_age_s = max_age_s

    def node_of(self, cursor: Cursor, now: float) -> int | None:
        """Return the id of the node to ask next, or None while the partition has no leader."""
        replica = cursor.replica
        if replica == NO_NODE:
            return self._cluster.leader(cursor.tp)
        if now < cursor.replica_until and self._is_online(cursor, replica):
            return replica
        cursor.replica = NO_NODE
        return self._cluster.leader(cursor.tp)

    def _is_online(self, cursor: Cursor, replica: int) -> bool:
        info = self._cluster.partition(cursor.tp)
        return replica in self._cluster.nodes and info is not None and replica not in info.offline_replicas

    def rack_for(self, cursors: Iterable[Cursor], now: float) -> str:
        """Return the rack for a request; empty if one of the cursors must stay with its leader at present."""
        if self._rack and any(cursor.leader_until > now for cursor in cursors):
            return ""
        return self._rack

    def sent_on(self, cursor: Cursor, node: int, preferred: int, now: float) -> bool:
        """Record the replica that a response names (`preferred`), if any; return True if it will be used.

        If a node names itself, or a node that the metadata do not have, the cursor stays with its leader for
        a while.
        """
        if preferred == NO_NODE or not self._rack:
            return False
        if preferred == node or not self._is_online(cursor, preferred):
            cursor.leader_until = now + LEADER_S
            return False
        log.debug("%s is read from broker %d, as broker %d says", cursor.tp, preferred, node)
        cursor.replica, cursor.replica_until = preferred, now + self._max_age_s
        return True

    def failed(self, cursor: Cursor, node: int, now: float) -> bool:
        """Record that reading from `node` has failed; return True if `node` was the follower in use."""
        if cursor.replica != node or node == NO_NODE:
            return False
        log.debug("%s is read from its leader again: broker %d has failed", cursor.tp, node)
        cursor.replica, cursor.leader_until = NO_NODE, now + LEADER_S
        return True

    def is_behind(self, cursor: Cursor, now: float) -> bool:
        """Return True if a follower has lacked records for too long; then the leader is used instead."""
        return now - cursor.failing_since >= BEHIND_S and self.failed(cursor, cursor.replica, now)


def fetch_request(
    cursors: Iterable[Cursor], cluster: ClusterMetadata, limits: FetchLimits, rack: str = ""
) -> FetchRequest:
    """Return a Fetch request for the cursors. Brokers fill the response in the order of the cursors.

    With a `rack`, a leader may answer with the id of a replica in that rack (KIP-392).
    """
    topics: dict[str, FetchTopic] = {}
    for cursor in cursors:
        name, partition = cursor.tp
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = FetchTopic(topic=name, topic_id=cluster.topic_id(name))
        topic.partitions.append(
            FetchPartition(
                partition=partition, fetch_offset=cursor.offset, partition_max_bytes=cursor.wanted_bytes
            )
        )
    return FetchRequest(
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        isolation_level=limits.isolation_level,
        topics=list(topics.values()),
        rack_id=rack,
    )


def fetch_version_limit(cursors: Iterable[Cursor], cluster: ClusterMetadata) -> int | None:
    """Return the highest Fetch version that can request these topics, or None for no limit.

    Versions from 13 on name topics by ids only, and a topic may have no id.
    """
    has_ids = all(cluster.topic_id(cursor.tp.topic) != NO_TOPIC_ID for cursor in cursors)
    return None if has_ids else FETCH_TOPIC_IDS_SINCE - 1


def fetch_answers(
    answer: FetchResponse, cluster: ClusterMetadata
) -> Iterator[tuple[TopicPartition, PartitionData]]:
    """Yield each partition in a Fetch response, without topics whose id is not in the metadata."""
    for topic in answer.responses:
        name = topic.topic or cluster.name_of(topic.topic_id)
        if name is not None:
            for partition in topic.partitions:
                yield TopicPartition(name, partition.partition_index), partition


def measure(records: memoryview, offset: int) -> tuple[int, int]:
    """Return the offset after the last whole batch in `records`, and the index of the byte after that batch.

    If there is no whole batch, the offset is `offset`. If the broker sends wrong offsets, the result is
    wrong, too. The function reads only the lengths and offsets of batches, because the next request waits for
    it; decoding comes later.

    Raises:
        CorruptRecordError: a batch's length is too small.
    """
    size = records.nbytes
    position = last = 0
    unpack = _BATCH_LENGTH.unpack_from
    while position + LENGTH_POSITION + 4 <= size:
        (length,) = unpack(records, position + LENGTH_POSITION)
        if length < MESSAGE_LENGTH_MIN:
            raise CorruptRecordError(f"a batch of length {length} at byte {position} of a fetch answer")
        end: int = position + LENGTH_EXTRA_BYTES + length
        if end > size:
            break
        last, position = position, end
    if not position:
        return offset, 0
    next_offset = int(_BASE_OFFSET.unpack_from(records, last)[0]) + 1
    if records[last + MAGIC_POSITION] >= 2:
        if position - last < LAST_OFFSET_DELTA_POSITION + 4:
            raise CorruptRecordError(f"a batch of {position - last} bytes in a fetch answer")
        next_offset += unpack(records, last + LAST_OFFSET_DELTA_POSITION)[0]
    return next_offset, position


def cut_batch_bytes(records: memoryview) -> int:
    """Return the size in bytes of the batch that `records` begin with, even if its end was cut off.

    Returns 0 if `records` are too short to have the length.
    """
    if records.nbytes < LENGTH_POSITION + 4:
        return 0
    return int(_BATCH_LENGTH.unpack_from(records, LENGTH_POSITION)[0]) + LENGTH_EXTRA_BYTES
