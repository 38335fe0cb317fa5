"""Copy a topic of one Kafka into another: keys, values, headers, timestamps and partitions stay the same.

The positions of the copy are source offsets that a group in the target commits, in one transaction with the
records: a copy that is killed at any moment and started again has every record once. If the target has no
transactions (before Kafka 0.11), records that were written and not yet committed are written twice.

A map from source offsets to target offsets is stored in the target as well (`penstock.tables.mirroring`), so
that the offsets of groups can be moved exactly. A target that keeps the offsets of the source (a topic of
Penstock with ``penstock.keep.offsets``) needs no map and no positions: its end offsets are the positions.

Batches are copied without decoding their records if possible; `penstock.tables.batch_copies` lists the
exceptions.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from penstock.client.admin.topics import NewTopic
from penstock.client.blocking.admin import Admin
from penstock.client.blocking.consumer import Consumer
from penstock.client.blocking.producer import Producer
from penstock.client.cluster.metadata import NO_TOPIC_ID, recreated
from penstock.client.config import ConsumerConfig
from penstock.client.group.offsets import OffsetAndMetadata
from penstock.client.produce.encoded import EncodedBatch, TableDelivery
from penstock.clock import SystemClock
from penstock.common.logs import logger_named
from penstock.errors import (
    ConfigError,
    KafkaError,
    NetworkError,
    PenstockError,
    RequestTimeoutError,
    TopicRecreatedError,
    TransactionError,
    UnsupportedVersionError,
)
from penstock.model import EARLIEST, LATEST, TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.uuid import uuid_to_text
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.format.batch_header import read_header, set_leader_epoch
from penstock.tables.batch_copies import BatchCopy, batch_copies
from penstock.tables.mirroring.group_moves import GroupMoves
from penstock.tables.mirroring.map_topic import MapTopic
from penstock.tables.mirroring.notes import CopyNote, copy_name, topic_id_bytes
from penstock.tables.mirroring.settings import shared_settings

log = logger_named("penstock.tables")

STEP_BYTES_MAX = 32 << 20
"""Size in bytes of sent batches at which a transaction is committed; the last batch may exceed the limit."""

STEP_S_MAX = 5.0
"""Seconds after which a transaction is committed; brokers abort transactions after a minute by default."""

ANOTHER_MS = 100.0
"""Milliseconds that an open transaction waits for the next batch if the source has more records."""

CHECK_EVERY_S = 1.0
"""Interval in seconds at which an idle copy checks that the topic ids of both topics are unchanged."""

TRIM_EVERY_S = 60.0
"""Interval in seconds at which records that retention has removed from the target are removed from the
maps.
"""

FETCH_OPTIONS = {"max.partition.fetch.bytes": 4 << 20, "fetch.max.bytes": 16 << 20}
"""Default options of the consumer that reads the source; `source_config` overrides them."""

RECORD_BYTES_MAX = 128 << 20
"""Default ``max.request.size`` of the producer: large, because the source has accepted these records."""

FENCED = ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
"""Names of the error codes that mean that another producer has taken over the transactional id."""

NOT_COPIED = ("min.insync.replicas", "confluent.", "penstock.")
"""Names or prefixes of topic settings that are not copied, because they depend on the brokers."""

INT_MAX = 2**31 - 1

KEEP_OFFSETS = "penstock.keep.offsets"
"""The topic setting with which a Penstock broker stores batches at the offsets that the producer sets."""


class CopyProgress(NamedTuple):
    """The progress of one partition's copy: records copied, the next source offset, the source's end offset.

    `moved` is the number of group offsets that were committed in the target.
    """

    partition: int
    copied: int
    position: int
    end: int
    moved: int = 0


class TopicMirror:
    """Copies one topic of the cluster `source` into the cluster `target`.

    The target topic is created if it does not exist, with as many partitions as the source topic and with
    those of its settings that are not default. `name` is the transactional id, and the group in the target
    that commits the positions; a second copy with the same name fences the first. A `compression` of None
    keeps the codec of each batch.

    `groups` are shell patterns for the groups of the source whose offsets `move_groups` moves. With
    `keep_offsets`, records keep the offsets that they have in the source: the target must be a topic of
    Penstock with the setting ``penstock.keep.offsets``; if the topic is created, it gets that setting.

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
        groups: Sequence[str] = (),
        keep_offsets: bool = False,
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
        self._codec = None if compression is None else CompressionCodec.from_name(compression)
        self._unpack = ConsumerConfig.parse(self._source_config, {"bootstrap_servers": source}).unpack_limits
        self._clock = SystemClock()
        self._group_patterns = (groups,) if isinstance(groups, str) else tuple(groups)
        self._keeps_offsets = keep_offsets
        self._ids = CopyNote()
        self._maps: MapTopic | None = None
        """The maps from source to target offsets; None if no maps are stored."""
        self._groups: GroupMoves | None = None
        self._checked_at = self._trimmed_at = float("-inf")
        self._copied: dict[int, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._fetched: dict[TopicPartition, int] = {}
        """The source offset at which the next fetched part of each partition should begin."""
        self._edges: dict[int, tuple[int, int]] = {}
        """First and end offset of each target partition at the last `move_groups`."""
        self._firsts: dict[int, int] = {}
        """With `keep_offsets`: first offsets of source partitions, at which empty target partitions must
        begin.
        """
        self._ends_of_target: dict[int, int] = {}
        """With `keep_offsets`: end offsets of target partitions after all batches that were sent."""
        self._under_way: tuple[TopicPartition, Iterator[BatchCopy]] | None = None
        """The partition and remaining batches of the part being copied: a transaction may end within it."""
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> TopicMirror:
        with contextlib.ExitStack() as stack:
            here, there = shared_settings(self._source_config), shared_settings(self._config)
            self._source_admin = stack.enter_context(Admin(self._source, here))
            self._admin = stack.enter_context(Admin(self._target, there))
            partitions = self._prepare()
            self._maps = self._prepare_maps()
            options = {"max.request.size": RECORD_BYTES_MAX, "compression.type": self._compression or "none"}
            self._producer = self._open_producer(stack, {**options, **self._config})
            consumer_config = {**FETCH_OPTIONS, **self._source_config}
            # What retention removes before it is copied must not take everything else with it.
            consumer_config |= {"isolation.level": self._isolation, "auto.offset.reset": "earliest"}
            self._consumer = stack.enter_context(Consumer(self._source, consumer_config))
            # Behind the start of the producer: another copy of the same name can write no more.
            if self._maps is not None:
                isolation = "read_committed" if self.is_exactly_once else "read_uncommitted"
                with Consumer(self._target, {**there, "isolation.level": isolation}) as reader:
                    self._maps.load(reader)
                self._groups = self._group_moves(self._maps)
            self._begin([TopicPartition(self.topic, number) for number in partitions])
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def is_at_end(self) -> bool:
        """True if all records are copied up to the end offsets that `look_at_end` has last looked up."""
        return all(self._positions[tp] >= end for tp, end in self._ends.items())

    def look_at_end(self) -> None:
        """Look up the source's end offsets again, and include partitions that were added to it.

        Raises:
            KafkaError: the topic was deleted, or the target cannot get as many partitions.
            TopicRecreatedError: a topic was deleted and created anew.
        """
        (described,) = self._source_admin.describe_topics([self.topic])
        self._refuse_others(described.topic_id, self._id_of_target())
        found = {TopicPartition(self.topic, one.partition) for one in described.partitions}
        if new := sorted(found - self._ends.keys()):
            self._grow_target(len(found))
            self._begin(new)
        self._ends = dict(self._consumer.end_offsets(list(self._ends)))
        if time.monotonic() - self._trimmed_at >= TRIM_EVERY_S:
            self._trim_maps()

    def _trim_maps(self) -> None:
        """Remove from the maps the records that retention has removed from the target."""
        self._trimmed_at = time.monotonic()
        if self._maps is not None and not self._keeps_offsets:
            for partition, (begin, _) in self._edges_of_target(list(self._maps.maps)).items():
                self._maps.forget_before(partition, begin)

    def look_at_target(self) -> None:
        """Send a request to the target, to check that it answers, while there is nothing to copy.

        Raises:
            NetworkError, RequestTimeoutError: the target cannot be reached, or does not answer.
        """
        self._admin.describe_cluster()

    def _begin_as_source(self, partitions: Iterable[int]) -> None:
        """Set the log start offsets of the target to those of the source by DeleteRecords.

        Only for a target that keeps the source's offsets. Compacted topics refuse the request, so their log
        starts stay.
        """
        starts = {TopicPartition(self.target_topic, n): self._firsts.pop(n, 0) for n in partitions}
        for tp, start in starts.items():
            if start > 0:
                with contextlib.suppress(KafkaError):  # compacted topics begin where they began
                    self._admin.delete_records({tp: start})

    def move_groups(self) -> int:
        """Commit the offsets of the source's groups in the target, translated; return how many have changed.

        Only offsets that the copy has reached are moved; `waiting_offsets` counts the others.

        Raises:
            KafkaError: the source does not list its groups.
            NetworkError, RequestTimeoutError: source or target cannot be reached.
            PenstockError: another copy of the same name has started.
        """
        if self._groups is None:
            return 0
        partitions = [tp.partition for tp in sorted(self._positions)]
        self._edges = self._edges_of_target(partitions)
        return self._groups.round(partitions)

    @property
    def waiting_offsets(self) -> int:
        """Number of group offsets that the last `move_groups` did not move: the copy had not reached them."""
        return 0 if self._groups is None else self._groups.waiting

    @property
    def groups(self) -> list[str]:
        """The names of the groups whose offsets were moved, sorted."""
        return [] if self._groups is None else sorted(self._groups.groups)

    def step(self, timeout_ms: float = 200.0) -> int:
        """Wait `timeout_ms` for records of the source, and copy them in one transaction; return their number.

        On return, the records are acknowledged, and committed with the copy's positions.

        Raises:
            CorruptRecordError: a batch of the source is damaged.
            PenstockError: another copy of the same name has started, or the target does not accept a batch.
        """
        first = self._next_copy(timeout_ms)
        if first is None:
            if time.monotonic() - self._checked_at >= CHECK_EVERY_S:
                self._check_topics()
            return 0
        positions: dict[TopicPartition, int] = {}
        counts: dict[int, int] = {}
        copies = itertools.chain((first,), iter(self._another_copy, None))
        with self._transaction():
            sent = _Sent(TableDelivery(self.target_topic))
            self._send(copies, positions, counts, sent)
            if self._maps is not None and not self._keeps_offsets:
                self._producer.flush()
                self._extend_maps(self._maps, sent.runs())
                self._write_maps()
            if self.is_exactly_once:
                self._producer.send_offsets(self._of_target(positions), self.name)
        if not self.is_exactly_once:
            try:
                sent.delivery.result()
            except KafkaError as error:
                if not self._keeps_offsets or error.code != ErrorCode.INVALID_RECORD:
                    raise
                if not self._go_on_behind_others():
                    raise
                counts = {}
                for partition, _, count in sent.delivery.places():
                    counts[partition] = counts.get(partition, 0) + count
                self._count(counts)
                return sum(counts.values())
            if self._firsts:
                self._begin_as_source(counts)
            self._admin.alter_group_offsets(self.name, self._of_target(positions))
        # Behind the commit: where the target is another one by now, the position says what it was in.
        with contextlib.suppress(NetworkError, RequestTimeoutError):
            self._refuse_others(self._ids.source, self._id_of_target())
        self._positions |= positions
        self._count(counts)
        return sum(counts.values())

    def _count(self, counts: Mapping[int, int]) -> None:
        for partition, count in counts.items():
            self._copied[partition] = self._copied.get(partition, 0) + count

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run the block in a transaction, if the target has transactions.

        Raises:
            PenstockError: another copy of the same name has started.
        """
        if not self.is_exactly_once:
            yield
            return
        try:
            with self._producer.transaction():
                yield
        except TransactionError as error:
            if not any(word in str(error) for word in FENCED):
                raise
            raise PenstockError(
                f"another copy named {self.name} has started, so this one ends: every record is to be "
                "copied once"
            ) from error

    def _extend_maps(self, maps: MapTopic, runs: Mapping[int, Sequence[tuple[int, int, int]]]) -> None:
        try:
            for partition, found in runs.items():
                maps.add(partition, found)
        except ValueError as error:
            with contextlib.suppress(TopicRecreatedError):
                self._refuse_others(self._ids.source, self._id_of_target())
                raise PenstockError(f"{self.target_topic} is not as this copy has left it: {error}") from None
            # `step` raises it behind the commit, whose note lets every later start raise it.

    def _write_maps(self) -> None:
        """Send the changes of the maps; without a transaction, also wait until they are acknowledged."""
        assert self._maps is not None
        deliveries = self._maps.write(self._producer)
        if not self.is_exactly_once:
            for delivery in deliveries:
                delivery.result()

    def progress(self) -> list[CopyProgress]:
        """Return the progress of each partition."""
        moved = {} if self._groups is None else self._groups.moved
        return [
            CopyProgress(
                tp.partition,
                self._copied.get(tp.partition, 0),
                self._positions[tp],
                self._ends[tp],
                moved.get(tp.partition, 0),
            )
            for tp in sorted(self._ends)
        ]

    def _next_copy(self, timeout_ms: float) -> tuple[TopicPartition, BatchCopy] | None:
        """Return (source partition, next batch to copy), or None if nothing arrives within `timeout_ms`."""
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
                batch_copies(
                    part,
                    codec=self._codec,
                    now_ms=self._clock.now_ms(),
                    unpack=self._unpack,
                    keep_offsets=self._keeps_offsets,
                ),
            )

    def _another_copy(self) -> tuple[TopicPartition, BatchCopy] | None:
        """Return (partition, next batch) for the open transaction; do not wait at the end of the source."""
        is_due = any(at < self._ends[tp] for tp, at in self._fetched.items())
        return self._next_copy(ANOTHER_MS if is_due else 0)

    def _send(
        self,
        copies: Iterator[tuple[TopicPartition, BatchCopy]],
        positions: dict[TopicPartition, int],
        counts: dict[int, int],
        sent: _Sent,
    ) -> None:
        """Send batches up to the limits of one transaction; add to `positions`, `counts` and `sent`."""
        deadline = time.monotonic() + STEP_S_MAX
        size = 0
        for tp, copy in copies:
            positions[tp] = copy.next_offset
            if copy.batch is not None:
                if self._keeps_offsets:
                    self._chain(copy.batch, sent.delivery)
                self._producer.send_encoded(self.target_topic, copy.batch, sent.delivery)
                sent.note(tp.partition, copy)
                counts[tp.partition] = counts.get(tp.partition, 0) + copy.batch.record_count
                size += len(copy.batch.data)
            if size >= STEP_BYTES_MAX or time.monotonic() > deadline:
                break

    def _chain(self, batch: EncodedBatch, delivery: TableDelivery) -> None:
        """Write the gap to the previous batch into the leader epoch field of a batch with its own offsets.

        The target then accepts the batch only right after the previous one. Otherwise it could accept a batch
        that follows a refused one, and the refused batch would never be copied.
        """
        header = read_header(batch.data)
        gap = header.base_offset - self._ends_of_target[batch.partition]
        if gap > INT_MAX:
            delivery.result()
            gap = -1
        set_leader_epoch(batch.data, 0, gap)
        self._ends_of_target[batch.partition] = header.next_offset

    def _of_target(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndMetadata]:
        return {
            TopicPartition(self.target_topic, tp.partition): OffsetAndMetadata(at, self._note(tp.partition))
            for tp, at in positions.items()
        }

    def _note(self, partition: int) -> str:
        """Return the metadata to commit with a position: the `CopyNote` of the partition as JSON."""
        if self._maps is None or self._keeps_offsets:
            return self._ids.to_json()
        found = self._maps.maps[partition]
        return self._ids._replace(map=(found.floor, found.end)).to_json()

    def _look_at_end_of_target(self, partition: int) -> int:
        """Look up the end offset of a target partition; store it in `_ends_of_target` and return it."""
        end = self._ends_of_target[partition] = self._edges_of_target([partition])[partition][1]
        return end

    def _go_on_behind_others(self) -> bool:
        """Move the positions past the records that another copy of the same name has written to the target.

        Return True if there are such records. Only for a target that keeps the source's offsets.
        """
        self._under_way = None
        has_moved = False
        for tp, position in self._positions.items():
            end = self._look_at_end_of_target(tp.partition)
            has_moved = has_moved or end > position
            self._positions[tp] = self._fetched[tp] = max(position, end)
            self._consumer.seek(tp, self._positions[tp])
        return has_moved

    def _edges_of_target(self, partitions: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return the current (first offset, end offset) of target partitions."""
        asked = [TopicPartition(self.target_topic, number) for number in partitions]
        edges = [self._admin.list_offsets(dict.fromkeys(asked, when)) for when in (EARLIEST, LATEST)]
        found: dict[int, tuple[int, int]] = {}
        for tp in asked:
            begin, end = (at[tp] for at in edges)
            found[tp.partition] = (begin.offset if begin else 0, end.offset if end else 0)
        return found

    def _translated(self, partition: int, offset: int) -> int | None:
        """Return the target offset for a group's source offset, or None if the copy has not reached it.

        Raises:
            ValueError: the offset is lower than those that the map covers.
        """
        if offset > self._positions[TopicPartition(self.topic, partition)]:
            return None
        begin, end = self._edges[partition]
        if self._keeps_offsets:
            return max(begin, min(offset, end))
        assert self._maps is not None
        found = self._maps.maps[partition].translate(offset)
        return end if found is None else max(begin, found)

    def _check_topics(self) -> None:
        """Raise TopicRecreatedError if source or target topic was recreated, unless no broker answers."""
        with contextlib.suppress(NetworkError, RequestTimeoutError):
            (described,) = self._source_admin.describe_topics([self.topic])
            self._refuse_others(described.topic_id, self._id_of_target())
            self._checked_at = time.monotonic()

    def _id_of_target(self) -> str | None:
        (described,) = self._admin.describe_topics([self.target_topic])
        return described.topic_id

    def _refuse_others(self, source_id: str | None, target_id: str | None) -> None:
        """Raise TopicRecreatedError if a topic id differs from the one with which the copy began."""
        begun = self._ids
        if None not in (begun.source, source_id) and source_id != begun.source:
            why = f"what was copied is of the old one: penstock group delete {self.name} starts afresh"
            raise recreated(
                self.topic, topic_id_bytes(begun.source), topic_id_bytes(source_id), f"in the source, {why}"
            )
        if None not in (begun.target, target_id) and target_id != begun.target:
            why = f"what was copied is gone with the old one: penstock group delete {self.name} starts afresh"
            raise recreated(
                self.target_topic,
                topic_id_bytes(begun.target),
                topic_id_bytes(target_id),
                f"in the target, {why}",
            )

    def _prepare(self) -> list[int]:
        """Create the target topic, or check the existing one; return the partitions of the source."""
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
        self.name = self.name or copy_name(cluster.cluster_id, self.topic)
        partitions = sorted(partition.partition for partition in described.partitions)
        admin = self._admin
        if admin.describe_cluster().cluster_id == cluster.cluster_id and self.topic == self.target_topic:
            raise ConfigError(
                f"source and target are one cluster ({cluster.cluster_id}): give the copy another name"
            )
        if self._keeps_offsets:
            settings[KEEP_OFFSETS] = "true"
        try:
            admin.create_topics([NewTopic(self.target_topic, len(partitions), config=settings)])
        except KafkaError as error:
            if error.code == ErrorCode.INVALID_CONFIG and self._keeps_offsets:
                raise ConfigError(f"only brokers of Penstock keep offsets: {error}") from error
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            self._check_keeping(admin)
        (target,) = admin.describe_topics([self.target_topic])
        self._ids = CopyNote(described.topic_id, target.topic_id)
        if len(target.partitions) < len(partitions):
            raise ConfigError(
                f"topic {self.target_topic} has {len(target.partitions)} partitions, the source "
                f"{len(partitions)}: penstock topic grow {self.target_topic} --partitions {len(partitions)}"
            )
        return partitions

    def _check_keeping(self, admin: Admin) -> None:
        """Raise ConfigError if the target's ``penstock.keep.offsets`` differs from `keep_offsets`."""
        try:
            found = admin.describe_config(self.target_topic).get(KEEP_OFFSETS)
        except (KafkaError, UnsupportedVersionError):
            if self._keeps_offsets:
                raise
            return  # what a target refuses, it refuses with its reasons
        if (found is not None and found.value == "true") == self._keeps_offsets:
            return
        has, does = ("does not have", "keeps") if self._keeps_offsets else ("has", "does not keep")
        change = f"{self.target_topic} {KEEP_OFFSETS}={str(self._keeps_offsets).lower()}"
        raise ConfigError(
            f"topic {self.target_topic} {has} {KEEP_OFFSETS}, and this copy {does} offsets: "
            f"penstock config set {change}"
        )

    def _prepare_maps(self) -> MapTopic | None:
        """Create the topic of the offset maps if it is missing; return None if the copy works without maps.

        Raises:
            KafkaError: group offsets are to be moved, and the target refuses to create the topic.
        """
        if self._keeps_offsets and not self._group_patterns:
            return None
        maps = MapTopic(self.name)
        try:
            maps.create(self._admin)
        except KafkaError as error:
            if self._group_patterns:
                raise
            log.warning(
                "%s: topic %s cannot be made, so that no map of offsets is kept: %s",
                self.name, maps.topic, error,
            )  # fmt: skip
            return None
        return maps

    def _group_moves(self, maps: MapTopic) -> GroupMoves | None:
        if not self._group_patterns:
            return None

        def write() -> None:
            if maps.has_changed:
                with self._transaction():
                    self._write_maps()

        return GroupMoves(
            self._group_patterns,
            self.topic,
            self.target_topic,
            name=self.name,
            source=self._source_admin,
            target=self._admin,
            notes=maps,
            translate=self._translated,
            write=write,
        )

    def _open_producer(self, stack: contextlib.ExitStack, config: Mapping[str, object]) -> Producer:
        """Return a producer with the copy's name as transactional id, if the target has transactions.

        A target that keeps offsets has no free offsets for transaction markers. It needs no transactions: its
        end offset shows which batches are written. The producer is then only idempotent.
        """
        if self._keeps_offsets:
            self.is_exactly_once = False
            return stack.enter_context(Producer(self._target, {**config, "enable.idempotence": True}))
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
        """Add partitions to the target until it has as many as the source."""
        (target,) = self._admin.describe_topics([self.target_topic])
        if len(target.partitions) < count:
            self._admin.create_partitions(self.target_topic, count)
        log.warning("%s has %d partitions now, and all are copied", self.topic, count)

    def _begin(self, partitions: Sequence[TopicPartition]) -> None:
        """Start to copy `partitions`, at their committed positions or else at their first offsets."""
        committed = self._admin.list_group_offsets(self.name)
        first = self._consumer.beginning_offsets(partitions)
        self._ends |= dict(self._consumer.end_offsets(partitions))
        self._consumer.assign([*self._positions, *partitions])
        for tp in partitions:
            at = committed.get(TopicPartition(self.target_topic, tp.partition))
            position = first[tp] if at is None else at.offset
            known: tuple[int, int] | None = None
            if at is not None:
                now, self._ids = self._ids, CopyNote.from_json(at.metadata)
                known = self._ids.map
                self._refuse_others(now.source, now.target)
                self._ids = now
            if self._keeps_offsets:
                # What was written and not committed is there once, and is not written again.
                end = self._look_at_end_of_target(tp.partition)
                position = max(position, end)
                if not end:
                    self._firsts[tp.partition] = first[tp]
            if position > self._ends[tp]:
                raise ConfigError(
                    f"the copy of {tp} is at offset {position}, and the source ends at {self._ends[tp]}: it "
                    f"is another topic of that name. penstock group delete {self.name} starts afresh"
                )
            if self._maps is not None and not self._keeps_offsets:
                if at is None:
                    self._maps.begin(tp.partition)
                else:
                    self._maps.resume(tp.partition, position, known)
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


class _Sent:
    """The batches sent in one `step`: source offsets of their records, and the pending acknowledgements."""

    def __init__(self, delivery: TableDelivery) -> None:
        self.delivery = delivery
        self._spans: dict[int, list[tuple[int, int]]] = {}

    def note(self, partition: int, copy: BatchCopy) -> None:
        """Add the source offsets of the records in a batch."""
        self._spans.setdefault(partition, []).extend(copy.spans)

    def runs(self) -> dict[int, list[tuple[int, int, int]]]:
        """Return a dict from partition to runs (source offset, target offset, count) of acknowledged records.

        Return {} if a batch failed: then the transaction raises the error, and the map stays unchanged.

        Raises:
            PenstockError: the target has acknowledged a batch without its offset.
        """
        places: dict[int, list[tuple[int, int]]] = {}
        for partition, base_offset, count in self.delivery.places():
            places.setdefault(partition, []).append((base_offset, count))
        found: dict[int, list[tuple[int, int, int]]] = {}
        for partition, spans in self._spans.items():
            sent, placed = (sum(count for _, count in each) for each in (spans, places.get(partition, ())))
            if sent != placed:
                return {}
            if any(base_offset < 0 for base_offset, _ in places[partition]):
                raise PenstockError(
                    f"the target has not said at which offset a batch of partition {partition} is: start the "
                    "copy again"
                )
            found[partition] = list(_side_by_side(spans, places[partition]))
        return found


def _side_by_side(
    spans: Sequence[tuple[int, int]], places: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, int]]:
    """Combine the records' spans (offset, count) in both logs to runs (source offset, target offset, count).

    `spans` are their offsets in the source, `places` those in the target.
    """
    at, left = 0, 0
    targets = iter(places)
    for span_start, length in spans:
        start = span_start
        while length:
            if not left:
                at, left = next(targets)
            count = min(length, left)
            yield start, at, count
            start, at, length, left = start + count, at + count, length - count, left - count
