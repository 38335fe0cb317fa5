"""A topic of one Kafka copied into another: keys, values, headers, timestamps and partitions stay.

How far the copy is stands in the target, as offsets of a group, and is committed in one transaction with the
records: a copy that is killed at any moment and started again has every record once. Where the target has no
transactions (before Kafka 0.11), a record that was written and not yet committed comes twice.

Batches are copied as they are, without a look at their records, wherever that changes nothing
(`penstock.tables.batch_copies` says where it does).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from penstock.client.admin.topics import NewTopic
from penstock.client.blocking.admin import Admin
from penstock.client.blocking.consumer import Consumer
from penstock.client.blocking.producer import Producer
from penstock.client.cluster.metadata import NO_TOPIC_ID, recreated
from penstock.client.config import SECURITY_NAMES, ClientConfig, ConsumerConfig, known_names
from penstock.client.group.offsets import OffsetAndMetadata
from penstock.client.produce.encoded import TableDelivery
from penstock.clock import SystemClock
from penstock.common.logs import logger_named
from penstock.errors import (
    ConfigError,
    KafkaError,
    NetworkError,
    PenstockError,
    RequestTimeoutError,
    TransactionError,
    UnsupportedVersionError,
)
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.uuid import uuid_from_text, uuid_to_text
from penstock.records.compression.codecs import Codec
from penstock.tables.batch_copies import BatchCopy, batch_copies

log = logger_named("penstock.tables")

STEP_BYTES_MAX = 32 << 20
"""How many bytes of batches one transaction has, but for one batch more."""

STEP_S_MAX = 5.0
"""After so many seconds a transaction is committed: brokers abort those of a minute."""

ANOTHER_MS = 100.0
"""How long a transaction waits for more, where the source has more."""

CHECK_EVERY_S = 1.0
"""How often a copy that has nothing to do asks whether its topics are still the same."""

FETCH_OPTIONS = {"max.partition.fetch.bytes": 4 << 20, "fetch.max.bytes": 16 << 20}
"""What is fetched at a time unless the settings of the source say otherwise."""

RECORD_BYTES_MAX = 128 << 20
"""What a record may have unless the settings of the producer say otherwise: the source took it, after all."""

FENCED = ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
"""Names of the errors after which another producer has the transactional id."""

NOT_COPIED = ("min.insync.replicas", "confluent.")
"""Settings of topics, or beginnings of them, that depend on the brokers rather than on the topic."""


class CopyProgress(NamedTuple):
    """How far the copy of a partition is: records copied so far, the next offset, the end of the source."""

    partition: int
    copied: int
    position: int
    end: int


class TopicIds(NamedTuple):
    """Which topics a copy is of and into; None where the brokers have no ids, which Kafka 2.8 brought."""

    source: str | None
    target: str | None

    def to_json(self) -> str:
        """The note beside a position in the target."""
        return json.dumps({"source": self.source, "target": self.target}) if any(self) else ""

    @classmethod
    def from_json(cls, note: str) -> TopicIds:
        """The inverse of `to_json`; without ids where another program has written it, or an older release."""
        try:
            found = json.loads(note)
            ids = found["source"], found["target"]
            for each in ids:
                _bytes(each)
        except (ValueError, KeyError, TypeError):
            return cls(None, None)
        return cls(*ids)


def _bytes(topic_id: str | None) -> bytes:
    return NO_TOPIC_ID if topic_id is None else uuid_from_text(topic_id)


class TopicMirror:
    """Copies one topic of the cluster `source` into the cluster `target`.

    The target topic is created where it does not exist, with the partitions of the source and with the
    settings that are not default there. `name` is the group in the target that has the positions, and the
    transactional id; a second copy under the same name fences the first. `compression` None keeps the codec
    of each batch.

    >>> with TopicMirror("orders", "old:9092", "new:9092") as mirror:
    ...     while not mirror.is_at_end:
    ...         mirror.step()

    Raises:
        ConfigError: the target has fewer partitions, or positions that the source does not have.
        TopicRecreatedError: one of the two topics was deleted and created anew since the copy began.
        KafkaError: the topic does not exist, or the target refuses records.
        NetworkError, RequestTimeoutError: source or target cannot be reached.
    """

    def __init__(
        self,
        topic: str,
        source: str | Sequence[str],
        target: str | Sequence[str],
        *,
        target_topic: str | None = None,
        name: str | None = None,
        compression: str | None = None,
        isolation: str = "read_committed",
        source_config: Mapping[str, object] | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        self.topic = topic
        self.target_topic = target_topic or topic
        self.name = name or ""
        self.is_exactly_once = True
        self._source, self._target = source, target
        self._source_config, self._config = dict(source_config or {}), dict(config or {})
        self._compression, self._isolation = compression, isolation
        self._codec = None if compression is None else Codec.from_name(compression)
        self._unpack = ConsumerConfig.parse(self._source_config, {"bootstrap_servers": source}).unpack_limits
        self._clock = SystemClock()
        self._ids = TopicIds(None, None)
        self._checked_at = float("-inf")
        self._copied: dict[int, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._fetched: dict[TopicPartition, int] = {}
        """Where the next part of a partition is due to begin."""
        self._under_way: tuple[TopicPartition, Iterator[BatchCopy]] | None = None
        """The part of the source that is being copied: a transaction may end within it."""
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> TopicMirror:
        with contextlib.ExitStack() as stack:
            self._source_admin = stack.enter_context(Admin(self._source, _shared(self._source_config)))
            self._admin = stack.enter_context(Admin(self._target, _shared(self._config)))
            partitions = self._prepare()
            options = {"max.request.size": RECORD_BYTES_MAX, "compression.type": self._compression or "none"}
            self._producer = self._open_producer(stack, {**options, **self._config})
            consumer_config = {**FETCH_OPTIONS, **self._source_config}
            # What retention removes before it is copied must not take everything else with it.
            consumer_config |= {"isolation.level": self._isolation, "auto.offset.reset": "earliest"}
            self._consumer = stack.enter_context(Consumer(self._source, consumer_config))
            self._begin([TopicPartition(self.topic, number) for number in partitions])
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def is_at_end(self) -> bool:
        """Whether everything is copied that was there when the end was looked at last."""
        return all(self._positions[tp] >= end for tp, end in self._ends.items())

    def look_at_end(self) -> None:
        """Find out anew where the source ends. Partitions that it has got meanwhile are copied from now on.

        Raises:
            KafkaError: the topic is gone or another one, or the target cannot have as many partitions.
        """
        (described,) = self._source_admin.describe_topics([self.topic])
        self._refuse_others(described.topic_id, self._id_of_target())
        found = {TopicPartition(self.topic, one.partition) for one in described.partitions}
        if new := sorted(found - self._ends.keys()):
            self._grow_target(len(found))
            self._begin(new)
        self._ends = dict(self._consumer.end_offsets(list(self._ends)))

    def look_at_target(self) -> None:
        """Ask the target for an answer: while there is nothing to copy, nothing else is asked of it.

        Raises:
            NetworkError, RequestTimeoutError: it cannot be reached, or gives none.
        """
        self._admin.describe_cluster()

    def step(self, timeout_ms: float = 200.0) -> int:
        """Copy what comes within `timeout_ms`, as much as one transaction has; return how many records.

        What is returned for is acknowledged, and committed with its positions.

        Raises:
            CorruptRecordError: a batch of the source is damaged.
            PenstockError: another copy of the same name has started, or the target does not take a batch.
        """
        first = self._next_copy(timeout_ms)
        if first is None:
            if time.monotonic() - self._checked_at >= CHECK_EVERY_S:
                self._check_topics()
            return 0
        positions: dict[TopicPartition, int] = {}
        counts: dict[int, int] = {}
        copies = itertools.chain((first,), iter(self._another_copy, None))
        if self.is_exactly_once:
            try:
                with self._producer.transaction():
                    self._send(copies, positions, counts)
                    self._producer.send_offsets(self._of_target(positions), self.name)
            except TransactionError as error:
                if not any(word in str(error) for word in FENCED):
                    raise
                raise PenstockError(
                    f"another copy named {self.name} has started, so this one ends: every record is to be "
                    "copied once"
                ) from error
        else:
            self._send(copies, positions, counts).result()
            self._admin.alter_group_offsets(self.name, self._of_target(positions))
        # Behind the commit: where the target is another one by now, the position says what it was in.
        with contextlib.suppress(NetworkError, RequestTimeoutError):
            self._refuse_others(self._ids.source, self._id_of_target())
        self._positions |= positions
        for partition, count in counts.items():
            self._copied[partition] = self._copied.get(partition, 0) + count
        return sum(counts.values())

    def progress(self) -> list[CopyProgress]:
        """How far the copy is, partition by partition."""
        return [
            CopyProgress(tp.partition, self._copied.get(tp.partition, 0), self._positions[tp], self._ends[tp])
            for tp in sorted(self._ends)
        ]

    def _next_copy(self, timeout_ms: float) -> tuple[TopicPartition, BatchCopy] | None:
        """The next batch to copy with its partition in the source; None where nothing comes in time."""
        while True:
            if self._under_way is not None:
                tp, copies = self._under_way
                copy = next(copies, None)
                if copy is not None:
                    return tp, copy
                self._under_way = None
            part = self._consumer.poll_part(timeout_ms)
            if part is None:
                return None
            if part.cursor.topic_id != NO_TOPIC_ID:
                self._refuse_others(uuid_to_text(part.cursor.topic_id), self._ids.target)
            expected = self._fetched.get(part.tp, part.start)
            if expected < part.start:
                self._say_gone(part.tp, expected, part.start)
            self._fetched[part.tp] = part.next_offset
            self._under_way = (
                part.tp,
                batch_copies(part, codec=self._codec, now_ms=self._clock.now_ms(), unpack=self._unpack),
            )

    def _another_copy(self) -> tuple[TopicPartition, BatchCopy] | None:
        """The next batch of the transaction under way; at the end of the source it is not waited for."""
        is_due = any(at < self._ends[tp] for tp, at in self._fetched.items())
        return self._next_copy(ANOTHER_MS if is_due else 0)

    def _send(
        self,
        copies: Iterator[tuple[TopicPartition, BatchCopy]],
        positions: dict[TopicPartition, int],
        counts: dict[int, int],
    ) -> TableDelivery:
        """Send as much as one transaction has; note where to go on, and how many records there were."""
        delivery = TableDelivery(self.target_topic)
        deadline = time.monotonic() + STEP_S_MAX
        size = 0
        for tp, copy in copies:
            positions[tp] = copy.next_offset
            if copy.batch is not None:
                self._producer.send_encoded(self.target_topic, copy.batch, delivery)
                counts[tp.partition] = counts.get(tp.partition, 0) + copy.batch.record_count
                size += len(copy.batch.data)
            if size >= STEP_BYTES_MAX or time.monotonic() > deadline:
                break
        return delivery

    def _of_target(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndMetadata]:
        note = self._ids.to_json()
        return {
            TopicPartition(self.target_topic, tp.partition): OffsetAndMetadata(at, note)
            for tp, at in positions.items()
        }

    def _check_topics(self) -> None:
        """See that both topics are those that the copy began with, as far as they can be asked now."""
        with contextlib.suppress(NetworkError, RequestTimeoutError):
            (described,) = self._source_admin.describe_topics([self.topic])
            self._refuse_others(described.topic_id, self._id_of_target())
            self._checked_at = time.monotonic()

    def _id_of_target(self) -> str | None:
        (described,) = self._admin.describe_topics([self.target_topic])
        return described.topic_id

    def _refuse_others(self, source_id: str | None, target_id: str | None) -> None:
        """Raise TopicRecreatedError where a topic is not the one that the copy is of, or into."""
        begun = self._ids
        if None not in (begun.source, source_id) and source_id != begun.source:
            why = f"what was copied is of the old one: penstock group delete {self.name} starts afresh"
            raise recreated(self.topic, _bytes(begun.source), _bytes(source_id), f"in the source, {why}")
        if None not in (begun.target, target_id) and target_id != begun.target:
            why = f"what was copied is gone with the old one: penstock group delete {self.name} starts afresh"
            raise recreated(
                self.target_topic, _bytes(begun.target), _bytes(target_id), f"in the target, {why}"
            )

    def _prepare(self) -> list[int]:
        """Make the target topic, or check the one that is there; return the partitions of the source."""
        source = self._source_admin
        cluster = source.describe_cluster()
        (described,) = source.describe_topics([self.topic])
        try:
            settings = {
                name: one.value
                for name, one in source.describe_config(self.topic).items()
                if not one.is_default and one.value is not None and not name.startswith(NOT_COPIED)
            }
        except UnsupportedVersionError:
            settings = {}
        self.name = self.name or f"penstock-mirror-{cluster.cluster_id or 'source'}-{self.topic}"
        partitions = sorted(partition.partition for partition in described.partitions)
        admin = self._admin
        if admin.describe_cluster().cluster_id == cluster.cluster_id and self.topic == self.target_topic:
            raise ConfigError(
                f"source and target are one cluster ({cluster.cluster_id}): give the copy another name"
            )
        try:
            admin.create_topics([NewTopic(self.target_topic, len(partitions), config=settings)])
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        (target,) = admin.describe_topics([self.target_topic])
        self._ids = TopicIds(described.topic_id, target.topic_id)
        if len(target.partitions) < len(partitions):
            raise ConfigError(
                f"topic {self.target_topic} has {len(target.partitions)} partitions, the source "
                f"{len(partitions)}: penstock topic grow {self.target_topic} --partitions {len(partitions)}"
            )
        return partitions

    def _open_producer(self, stack: contextlib.ExitStack, config: Mapping[str, object]) -> Producer:
        """A producer with the copy's name as its transactional id; without, where there can be none."""
        with contextlib.ExitStack() as attempt:
            producer = attempt.enter_context(
                Producer(self._target, {**config, "transactional.id": self.name})
            )
            try:
                producer.init_transactions()
            except UnsupportedVersionError:
                self.is_exactly_once = False
            else:
                stack.push(attempt.pop_all())
                return producer
        log.warning("%s: the target has no transactions, so records may come twice after a crash", self.name)
        return stack.enter_context(Producer(self._target, config))

    def _grow_target(self, count: int) -> None:
        """Have the target have as many partitions as the source has got."""
        (target,) = self._admin.describe_topics([self.target_topic])
        if len(target.partitions) < count:
            self._admin.create_partitions(self.target_topic, count)
        log.warning("%s has %d partitions now, and all are copied", self.topic, count)

    def _begin(self, partitions: Sequence[TopicPartition]) -> None:
        """Copy these as well, from where the copy was; from the beginning of those that have no position."""
        committed = self._admin.list_group_offsets(self.name)
        first = self._consumer.beginning_offsets(partitions)
        self._ends |= dict(self._consumer.end_offsets(partitions))
        self._consumer.assign([*self._positions, *partitions])
        for tp in partitions:
            at = committed.get(TopicPartition(self.target_topic, tp.partition))
            position = first[tp] if at is None else at.offset
            if at is not None:
                now, self._ids = self._ids, TopicIds.from_json(at.metadata)
                self._refuse_others(*now)
                self._ids = now
            if position > self._ends[tp]:
                raise ConfigError(
                    f"the copy of {tp} is at offset {position}, and the source ends at {self._ends[tp]}: it "
                    f"is another topic of that name. penstock group delete {self.name} starts afresh"
                )
            if position < first[tp]:
                self._say_gone(tp, position, first[tp])
            self._positions[tp] = max(position, first[tp])
            self._fetched[tp] = self._positions[tp]
            self._consumer.seek(tp, self._positions[tp])

    def _say_gone(self, tp: TopicPartition, position: int, first: int) -> None:
        log.warning(
            "%s: offsets %d to %d were removed from the source before they were copied",
            tp, position, first - 1,
        )  # fmt: skip


def _shared(config: Mapping[str, object]) -> dict[str, object]:
    """Those settings of a client that every kind of client has."""
    known = known_names(ClientConfig)
    return {
        name: value
        for name, value in config.items()
        if name.replace("_", ".") in known or name.replace("_", ".").startswith(SECURITY_NAMES)
    }
