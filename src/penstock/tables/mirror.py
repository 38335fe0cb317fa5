"""Copy a topic of Kafka 0.7 into any newer Kafka, each record once, however often the copy is interrupted.

Two headers of every record contain its origin: the byte offset of the outermost message in the source, and
the record's index inside that message (0 unless the message is compressed). A copy that is started again
reads the last record of each target partition, and continues in the source after that record, so that no
record is copied twice. For that, the copy must be the only program that writes to the target.

Partitions keep their order: the first of the source, by broker and number, becomes partition 0 and so on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, cast

from penstock.client.admin.topics import NewTopic
from penstock.client.blocking.admin import Admin
from penstock.client.blocking.consumer import Consumer
from penstock.client.blocking.producer import Producer
from penstock.client.cluster.metadata import recreated
from penstock.errors import ConfigError, KafkaError, NetworkError, RequestTimeoutError
from penstock.model import Record, TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.uuid import uuid_from_text
from penstock.tables.topics07 import Range07, Topics07
from penstock.v07.message_set import PlainMessage, iter_messages

if TYPE_CHECKING:
    from penstock.client.options import CompressionType

OFFSET_HEADER = "kafka-0.7-offset"
PLACE_HEADER = "kafka-0.7-place"

POLL_INTERVAL_S = 1.0
"""Seconds to wait at the end of the source before the next fetch, if the copy follows the source."""

SIGNS = 4
"""Number of requests per `POLL_INTERVAL_S` that are sent to source and target to check that they still
answer.
"""

LAST_RECORD_TIMEOUT_S = 30.0


class Position07(NamedTuple):
    """The position of a message in the source: byte offset of its outermost message, and index inside it."""

    offset: int
    place: int


class MirrorProgress(NamedTuple):
    """The progress of one partition: records copied, byte offset reached in the source, the source's end."""

    source_partition: int
    partition: int
    copied: int
    offset: int
    end: int


class Mirror:
    """Copies one topic of Kafka 0.7 into a newer Kafka.

    `source` and `target` are broker lists; `source` may be ``zookeeper://host:port/chroot``. The target topic
    is created, with as many partitions as the source has, unless it exists. `compression` and `config` are
    those of the producer.

    Raises:
        ConfigError: the target has fewer partitions than the source, or records that are no copies.
        TopicRecreatedError: the target was deleted and created anew during the copy.
        NetworkError, KafkaError: source or target cannot be reached, or refuses a request.
    """

    def __init__(
        self,
        topic: str,
        source: str | Sequence[str],
        target: str | Sequence[str],
        *,
        target_topic: str | None = None,
        compression: str = "none",
        config: Mapping[str, object] | None = None,
    ) -> None:
        self.topic = topic
        self.target_topic = target_topic or topic
        self._target = target
        self._source = Topics07(source)
        self._producer = Producer(
            target, config, compression_type=cast("CompressionType", compression), enable_idempotence=True
        )
        self._copied: dict[int, int] = {}
        self._positions: dict[int, Position07 | None] = {}
        self._target_id: str | None = None

    def __enter__(self) -> Mirror:
        self._producer.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait until all records that were sent are acknowledged, and close both clients."""
        self._producer.close()
        self._source.close()

    def run(
        self, *, follow: bool = False, wait: Callable[[float], object] = time.sleep
    ) -> Iterator[MirrorProgress]:
        """Copy all records that the source has, and with `follow` also those that arrive later, without end.

        Yields the progress after each chunk, whose records are acknowledged by then. With `follow`, a source
        that cannot be reached is tried again. While the source has no new records, requests are sent to the
        target, so that `penstock.client.cluster.retry` can report a target that does not answer.
        """
        partitions = self._source.partitions(self.topic)
        with Admin(self._target) as admin:
            self._prepare_target(admin, len(partitions))
            if not follow:
                yield from self._copy_all(partitions)
                self._check_target(admin)
                return
            while True:
                has_come = False
                self._check_target(admin)
                with self._source_may_be_away():
                    for progress in self._copy_all(partitions):
                        has_come = True
                        yield progress
                if not has_come:
                    for _ in range(SIGNS):
                        wait(POLL_INTERVAL_S / SIGNS)
                        self._ask_for_signs(admin, partitions[0])

    @contextlib.contextmanager
    def _source_may_be_away(self) -> Iterator[None]:
        """Suppress a `_SourceAwayError` in the block; store it in `Topics07.troubles` until a success."""
        try:
            yield
        except _SourceAwayError as error:
            self._source.troubles.note("source", error)
        else:
            self._source.troubles.end("source")

    def _ask_for_signs(self, admin: Admin, source_partition: int) -> None:
        with contextlib.suppress(NetworkError, RequestTimeoutError):
            admin.describe_cluster()
        with self._source_may_be_away(), _of_source():
            self._source.bounds(self.topic, source_partition)

    def _copy_all(self, partitions: Sequence[int]) -> Iterator[MirrorProgress]:
        for number, partition in enumerate(partitions):
            yield from self._copy(partition, number)

    def _check_target(self, admin: Admin) -> None:
        """Raise TopicRecreatedError if the target topic's id has changed since the copy began."""
        with contextlib.suppress(NetworkError, RequestTimeoutError):
            (described,) = admin.describe_topics([self.target_topic])
            if None not in (self._target_id, described.topic_id) and described.topic_id != self._target_id:
                before, now = (uuid_from_text(each or "") for each in (self._target_id, described.topic_id))
                raise recreated(self.target_topic, before, now, "start the copy again to fill the new one")

    def _prepare_target(self, admin: Admin, count: int) -> None:
        try:
            admin.create_topics([NewTopic(self.target_topic, count)])
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        (described,) = admin.describe_topics([self.target_topic])
        self._target_id = described.topic_id
        if len(described.partitions) < count:
            raise ConfigError(
                f"topic {self.target_topic} has {len(described.partitions)} partitions, the source {count}: "
                "add partitions, or name another target topic"
            )
        with Consumer(self._target) as consumer:
            for number in range(count):
                self._positions[number] = _last_copied(consumer, TopicPartition(self.target_topic, number))

    def _copy(self, source_partition: int, partition: int) -> Iterator[MirrorProgress]:
        with _of_source():
            first, end = self._source.bounds(self.topic, source_partition)
        last = self._positions[partition]
        start = first if last is None else max(first, last.offset)
        for offset, data in self._chunks(Range07(self.topic, source_partition, start, end)):
            deliveries = []
            for position, message in _with_places(iter_messages(data, offset)):
                if last is not None and position <= last:
                    continue
                headers = [
                    (OFFSET_HEADER, b"%d" % position.offset),
                    (PLACE_HEADER, b"%d" % position.place),
                ]
                deliveries.append(
                    self._producer.send(
                        self.target_topic, message.payload, partition=partition, headers=headers
                    )
                )
                last = position
            for delivery in deliveries:
                delivery.result()
            if not deliveries:
                continue
            self._positions[partition] = last
            copied = self._copied[partition] = self._copied.get(partition, 0) + len(deliveries)
            yield MirrorProgress(source_partition, partition, copied, offset + len(data), end)

    def _chunks(self, wanted: Range07) -> Iterator[tuple[int, memoryview]]:
        with _of_source():
            yield from self._source.chunks(wanted)


@contextlib.contextmanager
def _of_source() -> Iterator[None]:
    """Convert a NetworkError in the block to `_SourceAwayError`, to distinguish source and target."""
    try:
        yield
    except NetworkError as error:
        raise _SourceAwayError(str(error)) from error


class _SourceAwayError(NetworkError):
    """Raised if the source cluster cannot be reached, or has closed the connection."""


def _with_places(messages: Iterator[PlainMessage]) -> Iterator[tuple[Position07, PlainMessage]]:
    """Yield (position, message); in a position, the messages inside an outermost message count from 0."""
    for offset, inner in groupby(messages, attrgetter("offset")):
        for place, message in enumerate(inner):
            yield Position07(offset, place), message


def _last_copied(consumer: Consumer, tp: TopicPartition) -> Position07 | None:
    """Return the source position of the last record in a target partition, or None if it has no record."""
    end = consumer.end_offsets([tp])[tp]
    begin = consumer.beginning_offsets([tp])[tp]
    if begin >= end:
        return None
    consumer.assign([tp])
    found: Record | None = None
    # The last offset may be a marker, or compacted away: go back until there is a record.
    distance = 1
    while found is None and distance < 2 * (end - begin):
        consumer.seek(tp, max(begin, end - distance))
        deadline = time.monotonic() + LAST_RECORD_TIMEOUT_S
        while consumer.position(tp) < end and time.monotonic() < deadline:
            for record in consumer.poll(timeout_ms=500):
                found = record
        distance *= 10
    if found is None:
        return None
    headers = dict(found.headers)
    try:
        return Position07(int(headers[OFFSET_HEADER] or b""), int(headers[PLACE_HEADER] or b""))
    except (KeyError, ValueError):
        raise ConfigError(
            f"the last record of {tp} is no copy from Kafka 0.7 (it has no header {OFFSET_HEADER}); "
            "name a target topic that no other program writes to"
        ) from None
