"""A topic of one Kafka copied into another: keys, values, headers, timestamps and partitions stay.

How far the copy is stands in the target, as offsets of a group, and is committed in one transaction with the
records: a copy that is killed at any moment and started again has every record once. Where the target has no
transactions (before Kafka 0.11), a record that was written and not yet committed comes twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.admin.admin import NewTopic
from penstock.client.blocking.admin import Admin
from penstock.client.blocking.consumer import Consumer
from penstock.client.blocking.producer import Producer
from penstock.common.logs import logger_named
from penstock.errors import ConfigError, KafkaError, PenstockError, TransactionError, UnsupportedVersionError
from penstock.model import Record, TopicPartition
from penstock.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from penstock.client import Delivery

log = logger_named("penstock.tables")

STEP_RECORDS_MAX = 10_000
"""How many records one transaction has at most."""

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


class TopicMirror:
    """Copies one topic of the cluster `source` into the cluster `target`.

    The target topic is created where it does not exist, with the partitions of the source and with the
    settings that are not default there. `name` is the group in the target that has the positions, and the
    transactional id; a second copy under the same name fences the first.

    >>> with TopicMirror("orders", "old:9092", "new:9092") as mirror:
    ...     while not mirror.is_at_end:
    ...         mirror.step()

    Raises:
        ConfigError: the target has fewer partitions, or positions of another topic of that name.
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
        compression: str = "none",
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
        self._copied: dict[int, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> TopicMirror:
        with contextlib.ExitStack() as stack:
            partitions = self._prepare()
            options = {"max.request.size": RECORD_BYTES_MAX, "compression.type": self._compression}
            self._producer = self._open_producer(stack, {**options, **self._config})
            self._admin = stack.enter_context(Admin(self._target, _shared(self._config)))
            consumer_config = {**self._source_config, "isolation.level": self._isolation}
            self._consumer = stack.enter_context(Consumer(self._source, consumer_config))
            self._begin([TopicPartition(self.topic, number) for number in partitions])
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def is_at_end(self) -> bool:
        """Whether everything is copied that was there when the end was looked at last."""
        return all(self._consumer.position(tp) >= end for tp, end in self._ends.items())

    def look_at_end(self) -> None:
        """Find out anew where the source ends."""
        self._ends = dict(self._consumer.end_offsets(list(self._ends)))

    def step(self, timeout_ms: float = 200.0) -> int:
        """Copy what comes within `timeout_ms`, at most `STEP_RECORDS_MAX` records; return how many it were.

        What is returned for is acknowledged, and committed with its positions.
        """
        records = self._consumer.poll(timeout_ms=timeout_ms, max_records=STEP_RECORDS_MAX)
        if not records:
            return 0
        positions = {
            TopicPartition(self.target_topic, record.partition): record.offset + 1 for record in records
        }
        if self.is_exactly_once:
            try:
                with self._producer.transaction():
                    self._send(records)
                    self._producer.send_offsets(positions, self.name)
            except TransactionError as error:
                if not any(word in str(error) for word in FENCED):
                    raise
                raise PenstockError(
                    f"another copy named {self.name} has started, so this one ends: every record is to be "
                    "copied once"
                ) from error
        else:
            for delivery in self._send(records):
                delivery.result()
            self._admin.alter_group_offsets(self.name, positions)
        for record in records:
            self._copied[record.partition] = self._copied.get(record.partition, 0) + 1
        return len(records)

    def progress(self) -> list[CopyProgress]:
        """How far the copy is, partition by partition."""
        return [
            CopyProgress(
                tp.partition, self._copied.get(tp.partition, 0), self._consumer.position(tp), self._ends[tp]
            )
            for tp in sorted(self._ends)
        ]

    def _send(self, records: Sequence[Record]) -> list[Delivery]:
        return [
            self._producer.send(
                self.target_topic,
                record.value,
                key=record.key,
                partition=record.partition,
                timestamp=record.timestamp if record.timestamp >= 0 else None,
                headers=record.headers,
            )
            for record in records
        ]

    def _prepare(self) -> list[int]:
        """Make the target topic, or check the one that is there; return the partitions of the source."""
        with Admin(self._source, _shared(self._source_config)) as admin:
            cluster = admin.describe_cluster()
            (described,) = admin.describe_topics([self.topic])
            try:
                settings = {
                    name: one.value
                    for name, one in admin.describe_config(self.topic).items()
                    if not one.is_default and one.value is not None and not name.startswith(NOT_COPIED)
                }
            except UnsupportedVersionError:
                settings = {}
        self.name = self.name or f"penstock-mirror-{cluster.cluster_id or 'source'}-{self.topic}"
        partitions = sorted(partition.partition for partition in described.partitions)
        with Admin(self._target, _shared(self._config)) as admin:
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

    def _begin(self, partitions: Sequence[TopicPartition]) -> None:
        """Go to where the copy was; to the beginning of partitions that have none."""
        committed = self._admin.list_group_offsets(self.name)
        first = self._consumer.beginning_offsets(partitions)
        self._ends = dict(self._consumer.end_offsets(partitions))
        self._consumer.assign(partitions)
        for tp in partitions:
            at = committed.get(TopicPartition(self.target_topic, tp.partition))
            position = first[tp] if at is None else at.offset
            if position > self._ends[tp]:
                raise ConfigError(
                    f"the copy of {tp} is at offset {position}, and the source ends at {self._ends[tp]}: it "
                    f"is another topic of that name. penstock group delete {self.name} starts afresh"
                )
            if position < first[tp]:
                log.warning(
                    "%s: offsets %d to %d were removed from the source before they were copied",
                    tp, position, first[tp] - 1,
                )  # fmt: skip
            self._consumer.seek(tp, max(position, first[tp]))


def _shared(config: Mapping[str, object]) -> dict[str, object]:
    """Those settings of a client that every kind of client has."""
    from penstock.client.config import SECURITY_NAMES, ClientConfig, known_names

    known = known_names(ClientConfig)
    return {
        name: value
        for name, value in config.items()
        if name.replace("_", ".") in known or name.replace("_", ".").startswith(SECURITY_NAMES)
    }
