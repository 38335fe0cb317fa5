"""`StateTopic`: the topic in which a coordinator stores its state: creates, appends to and replays the topic.

The topics are `__consumer_offsets`, `__transaction_state` and `__share_group_state`. The hash of a key (the
id of a group, a transactional id, the text of a share partition) determines its partition, as in Apache
Kafka; the leader of that partition coordinates it. Only the coordinator interprets the records. If replicas
must have the records before a response is sent, `penstock.broker.replication.coordinated` makes the response
wait; it computes the partition from the same topic and key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from penstock.broker.partitions.producers.transactional_appends import append_offsets
from penstock.common.java_hash import partition_of
from penstock.errors import DecodeError
from penstock.log.segments.salvage import sound_batches
from penstock.log.walk import walk_buffer
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.records.batch import decode_batch, encode_batch, read_marker
from penstock.records.format.batch_header import read_header

if TYPE_CHECKING:
    from penstock.broker.coordination.losses import Losses
    from penstock.broker.coordination.records import KeyAndValue
    from penstock.log.contract import Log

T = TypeVar("T")

_COMMIT_MARKER = 1


class StateTopicSettings(Protocol):
    """The interface through which a state topic reads the broker's settings."""

    def integer(self, name: str) -> int:
        """Return the value of a numeric setting."""


class _Limits(Protocol):
    @property
    def max_message_bytes(self) -> int: ...
    @property
    def segment_bytes(self) -> int: ...


class StatePartition(Protocol):
    """The interface of a partition that `StateTopic` uses."""

    @property
    def log(self) -> Log: ...
    @property
    def config(self) -> _Limits: ...
    @property
    def leads(self) -> bool: ...
    @property
    def leader_epoch(self) -> int: ...
    def advance(self) -> None:
        """Update the high watermark after an append to the log."""


class _Topic(Protocol):
    @property
    def id(self) -> bytes: ...
    @property
    def partitions(self) -> Sequence[Any]: ...


class StateTopics(Protocol):
    """The interface of the broker's metadata that `StateTopic` uses."""

    @property
    def topics(self) -> Mapping[str, _Topic]: ...
    @property
    def config(self) -> StateTopicSettings: ...
    def catch_up(self) -> None:
        """Apply all metadata that have been written."""

    def plan_topic(self, name: str, partitions: int, *, configs: Mapping[str, str | None] = ...) -> Any: ...
    def create_topics(self, topics: Sequence[Any], now_ms: int) -> object: ...


class Logs(Protocol):
    """The interface of the broker's log store that `StateTopic` uses."""

    def has_log(self, topic: str, partition: int, topic_id: bytes) -> bool:
        """Return True if a partition has ever been written to."""


class StateTopicLayout(NamedTuple):
    """The definition of a state topic: its name, and the settings for its creation."""

    name: str
    settings: str
    """The prefix of the broker settings for the topic, such as ``offsets.topic.``."""
    configs: Mapping[str, str]
    """The topic configs with which the topic is created, without `segment.bytes`."""
    has_min_isr: bool = False
    """True if the broker setting with suffix ``min.isr`` determines `min.insync.replicas` of the topic."""


class StateTopic:
    """The internal topic in which one coordinator stores its state.

    `wrote` is called with the partition and the size in bytes of each appended batch.
    """

    def __init__(
        self, layout: StateTopicLayout, cluster: StateTopics, logs: Logs, wrote: Callable[[Any, int], object]
    ) -> None:
        self.name = layout.name
        self._layout = layout
        self._cluster = cluster
        self._logs = logs
        self._wrote = wrote

    # --- which partition ---------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        return self.name in self._cluster.topics

    @property
    def partitions(self) -> Sequence[Any]:
        """The partitions of the topic; empty if the topic does not exist."""
        topic = self._cluster.topics.get(self.name)
        return () if topic is None else topic.partitions

    @property
    def partition_count(self) -> int:
        """The number of partitions, or the number that the topic would be created with."""
        return len(self.partitions) or self._setting("num.partitions")

    def partition_of(self, key: str) -> int:
        """Return the index of the partition that stores the state of a key."""
        return partition_of(key, self.partition_count)

    def partition(self, key: str) -> Any:
        """Return the partition that stores the state of a key. The topic must exist."""
        return self.partitions[self.partition_of(key)]

    def is_begun(self, index: int) -> bool:
        """Return True if the partition `index` has ever been written to. The topic must exist."""
        return self._logs.has_log(self.name, index, self._cluster.topics[self.name].id)

    def led(self, index: int) -> Any:
        """Return a partition, after checking that this node leads it.

        Raises:
            KafkaError: NOT_COORDINATOR (16), the partition does not exist, or another node leads it.
        """
        partitions = self.partitions
        if index >= len(partitions):
            raise error_for(ErrorCode.NOT_COORDINATOR, f"there is no {self.name}-{index} yet")
        partition = partitions[index]
        if not partition.leads:
            raise error_for(ErrorCode.NOT_COORDINATOR, f"another broker leads {self.name}-{index}")
        return partition

    # --- making it ---------------------------------------------------------------------------------------

    def create(self, now_ms: int) -> None:
        """Create the topic if it does not exist.

        Raises:
            KafkaError, StorageError: the topic cannot be created now.
        """
        if self.exists:
            return
        self._cluster.catch_up()
        if self.name in self._cluster.topics:
            return  # another node has made it
        count = self._setting("num.partitions")
        configs = {**self._layout.configs, "segment.bytes": str(self._setting("segment.bytes"))}
        if self._layout.has_min_isr:
            replicas = self._cluster.plan_topic(self.name, count).replication_factor
            configs["min.insync.replicas"] = str(min(self._setting("min.isr"), replicas))
        self._cluster.create_topics([self._cluster.plan_topic(self.name, count, configs=configs)], now_ms)

    def _setting(self, name: str) -> int:
        return self._cluster.config.integer(self._layout.settings + name)

    # --- writing -----------------------------------------------------------------------------------------

    def append(self, index: int, records: Sequence[KeyAndValue], now_ms: int, what: str) -> int:
        """Append records to a partition as one batch, all or none; return the offset of the first record.

        `what` describes the records in error messages, such as "group g".

        Raises:
            KafkaError: MESSAGE_TOO_LARGE (10), the records exceed the largest batch of the topic.
            StorageError: the records could not be written.
        """
        partition = self.partitions[index]
        log = partition.log
        first_offset: int = log.end_offset
        batch = encode_batch(
            [(key, value, (), now_ms) for key, value in records],
            base_offset=first_offset,
            partition_leader_epoch=partition.leader_epoch,
        )
        _check_size(partition, len(batch), len(records), what)
        log.append(
            batch,
            first_offset=first_offset,
            last_offset=first_offset + len(records) - 1,
            max_timestamp=now_ms,
            now_ms=now_ms,
        )
        partition.advance()
        self._wrote(partition, len(batch))
        return first_offset

    def append_in_transaction(
        self,
        index: int,
        records: Sequence[KeyAndValue],
        producer: tuple[int, int],
        now_ms: int,
        verification: Any,
        what: str,
    ) -> int:
        """Store records that take effect when the transaction of `producer` (id and epoch) commits.

        `verification` is the result of `transactional_appends.join` for this append. `what` describes the
        records in error messages. Returns the offset of the first record.

        Raises:
            KafkaError: MESSAGE_TOO_LARGE (10), or the transaction has ended meanwhile.
            StorageError: the records could not be written.
        """
        partition = self.partitions[index]
        batch = encode_batch(
            [(key, value, (), now_ms) for key, value in records],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=0,
            is_transactional=True,
        )
        _check_size(partition, len(batch), len(records), what)
        view = memoryview(bytearray(batch))
        offset = append_offsets(partition, view, read_header(view), now_ms, verification)
        self._wrote(partition, len(batch))
        return offset

    # --- reading -----------------------------------------------------------------------------------------

    def batches(self, index: int, losses: Losses) -> Iterator[StoredBatch]:
        """Yield the valid batches of a partition, in order; add damaged ranges of bytes to `losses`.

        Raises:
            StorageError: the log cannot be opened or read.
        """
        if not self.is_begun(index):
            return
        log = self.partitions[index].log
        for segment in list(log.segments):
            base = segment.base_offset

            def damaged(position: int, size: int, base: int = base) -> None:
                losses.damaged(base, position, size)

            for view, magic in sound_batches(segment, damaged):
                batch = StoredBatch(self.name, index, view, magic, log.start_offset, losses)
                if not batch.is_deleted:
                    yield batch

    def replay(
        self, index: int, losses: Losses, read: Callable[[bytes | None, bytes | None], T | None]
    ) -> Iterator[tuple[T, int]]:
        """Yield for each record of a partition, in order, the result of `read` and the record's offset.

        Records for which `read` returns None are left out. Records that are damaged, or of a version that
        only newer brokers support, are added to `losses`.

        Raises:
            StorageError: the log cannot be opened or read.
        """
        for batch in self.batches(index, losses):
            yield from batch.read(read)


class StoredBatch:
    """One valid batch that is read from a state topic."""

    __slots__ = ("_index", "_losses", "_start", "_topic", "_view", "header", "is_deleted")

    def __init__(
        self, topic: str, index: int, view: memoryview, magic: int, start_offset: int, losses: Losses
    ) -> None:
        self._topic = topic
        self._index = index
        self._view = view
        self._start = start_offset
        self._losses = losses
        self.header = read_header(view) if magic >= 2 else None
        """The batch header; None for a message of the formats 0 and 1."""
        self.is_deleted = self.header is not None and self.header.last_offset < start_offset
        """True if all records of the batch are before the start of the log."""

    @property
    def is_control(self) -> bool:
        """True if this batch is a transaction marker, which ends the transaction of its producer."""
        return self.header is not None and self.header.is_control

    @property
    def is_transactional(self) -> bool:
        """True if the records take effect only when the producer's transaction commits."""
        return self.header is not None and self.header.is_transactional

    @property
    def commits(self) -> bool:
        """Return True if this batch is a commit marker. Add a malformed marker to the losses."""
        try:
            return read_marker(self._view, 0, len(self._view))[0] == _COMMIT_MARKER
        except Exception as error:
            # A barrier, as in `read`.
            self._losses.add(f"the marker at {self._offsets}: {_described(error)}")
            return False

    def read(self, read: Callable[[bytes | None, bytes | None], T | None]) -> Iterator[tuple[T, int]]:
        """Yield (result of `read`, offset) for each record; leave out records whose result is None."""
        view = self._view
        try:
            rows = decode_batch(view, 0, len(view), self._topic, self._index, verify=False)
        except Exception as error:
            # A barrier: nothing has been taken from the batch yet. Bytes under a right checksum may be
            # anything.
            self._losses.add(f"the batch at {self._offsets}: {_described(error)}")
            return
        for row in rows:
            if row.offset < self._start:
                continue
            try:
                found = read(row.key, row.value)
            except Exception as error:
                # A barrier around one record: the others are kept.
                self._losses.add(f"the record at offset {row.offset}: {_described(error)}")
                continue
            if found is not None:
                yield found, row.offset

    @property
    def _offsets(self) -> str:
        entry = next(walk_buffer(self._view))
        return f"offsets {entry.base_offset} to {entry.last_offset}"


def _check_size(partition: StatePartition, size: int, count: int, what: str) -> None:
    """Check that a batch of `count` records does not exceed the topic's limits for batches and segments.

    Raises:
        KafkaError: MESSAGE_TOO_LARGE (10).
    """
    limit = min(partition.config.max_message_bytes, partition.config.segment_bytes)
    if size > limit:
        raise error_for(
            ErrorCode.MESSAGE_TOO_LARGE, f"{count} records of {what} have {size} bytes, the limit is {limit}"
        )


def _described(error: Exception) -> str:
    """Return an exception's text, preceded by the name of its class unless it is a `DecodeError`."""
    return str(error) if isinstance(error, DecodeError) else f"{type(error).__name__}: {error}"
