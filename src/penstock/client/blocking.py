"""The blocking clients: the asyncio ones, on one background loop.

What is fast happens in the caller's thread, without a word to the loop: records go straight into the
accumulator, and what has been fetched is decoded where it is wanted, while the loop fetches on.
A client belongs to the process that made it: after a fork, make another one.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.client.admin import (
    BROKER_DEFAULT,
    AsyncAdmin,
    ClusterDescription,
    ConfigValue,
    NewTopic,
    TopicDescription,
)
from penstock.client.background import run
from penstock.client.changes import LogDirectory
from penstock.client.consumer import ARROW_BATCH_BYTES, ITERATION_POLL_S, AsyncConsumer
from penstock.client.delivery import Delivery
from penstock.client.events import record_of
from penstock.client.group.administration import GroupDescription, GroupListing
from penstock.client.group.commits import WhenDone
from penstock.client.group.offsets import Committable, OffsetAndMetadata
from penstock.client.offsets import Answers
from penstock.client.producer import AsyncProducer, closing_patience_s
from penstock.errors import PenstockError
from penstock.model import COLUMN_NAMES, Header, Record, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.columns import TableDelivery
    from penstock.cloudevents import Event
    from penstock.cloudevents.binding import KeyMapper, Mode
    from penstock.cloudevents.formats import FormatName

T = TypeVar("T")
S = TypeVar("S", bound="_Blocking")

EXIT_PATIENCE_S = 5.0
"""How long the end of the process may wait for producers that nobody has closed."""


class _Blocking(ABC):
    """What all blocking clients have in common."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._is_closed = False

    def __enter__(self: S) -> S:
        self._start()
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: object, traceback: object) -> None:
        self.close()

    @abstractmethod
    def _start(self) -> None:
        """Open what is needed before the first call."""

    @abstractmethod
    def close(self) -> None:
        """Finish what is under way, and let go of the connections."""

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._process != os.getpid():
            coroutine.close()
            raise PenstockError(
                f"this {type(self).__name__} was made before the process forked, and its connections stayed "
                "with the parent: make a new one in the child"
            )
        return run(coroutine)


class Producer(_Blocking):
    """Writes records to topics.

    >>> with Producer(bootstrap_servers="localhost:9092") as producer:
    ...     delivery = producer.send("orders", b"two tickets", key=b"ada")
    ...     metadata = delivery.result(timeout=10)

    Options: Kafka's dotted names in `config`, or the same with underscores as keywords. Thread-safe.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: Mapping[str, object] | None = None,
        **options: object,
    ) -> None:
        super().__init__()
        self._producer = AsyncProducer(bootstrap_servers, config, **options)
        _unclosed.add(self)

    def _start(self) -> None:
        self._run(self._producer.start())

    def __exit__(self, exc_type: type[BaseException] | None, exc: object, traceback: object) -> None:
        self.close(closing_patience_s(exc_type))

    def send(
        self,
        topic: str,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Sequence[Header] = (),
        event: Event | None = None,
        mode: Mode = "binary",
        key_mapper: KeyMapper | None = None,
        event_format: FormatName = "json",
    ) -> Delivery:
        """Accept one record and return its delivery: `result()` waits for it. See `AsyncProducer.send`."""
        if event is not None:
            key, value, headers = record_of(event, value, key, headers, mode, key_mapper, event_format)
        if self._process == os.getpid():
            accepted = self._producer.try_send(topic, value, key, partition, timestamp, headers)
            if accepted is not None:
                return accepted[0]
        return self._run(self._producer.send_when_possible(topic, value, key, partition, timestamp, headers))

    def send_arrow(
        self,
        topic: str,
        data: pa.Table | pa.RecordBatch,
        *,
        fields: Mapping[str, str] | None = None,
        delivery: TableDelivery | None = None,
    ) -> TableDelivery:
        """Accept a table and return its delivery. See `AsyncProducer.send_arrow`.

        Encodes in this thread, while the background loop sends. `delivery` collects several tables.
        """
        from penstock.client.columns import TableDelivery, record_batches

        producer = self._producer
        delivery = delivery or TableDelivery(topic)
        block_s = producer.config.max_block_ms / 1000
        self._run(producer.get_ready(topic, time.monotonic() + block_s))
        for chunk in record_batches(data, fields or {}):
            for batch in producer.encode_columns(topic, chunk):
                if not producer.append_encoded(topic, batch, delivery):
                    self._run(producer.get_ready(topic, time.monotonic() + block_s))
                    producer.append_encoded(topic, batch, delivery, even_if_full=True)
        return delivery

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now, and wait for the outcome of every record. See `AsyncProducer.flush`."""
        self._run(self._producer.flush(timeout))

    def close(self, timeout: float | None = None) -> None:
        """Flush, then close. What is not acknowledged within `timeout` seconds fails."""
        _unclosed.discard(self)
        if self._process == os.getpid():
            self._run(self._producer.close(timeout))


class Consumer(_Blocking):
    """Reads records of partitions, those of its choice or those that its group gives it.

    >>> with Consumer("localhost:9092", group_id="billing") as consumer:
    ...     consumer.subscribe("orders")
    ...     for record in consumer:
    ...         bill(record)

    >>> with Consumer("localhost:9092") as consumer:
    ...     consumer.assign([TopicPartition("orders", 0)])
    ...     consumer.seek_to_beginning()
    ...     records = consumer.poll(timeout_ms=1000)

    Options: Kafka's dotted names in `config`, or the same with underscores as keywords. For one thread at
    a time; heartbeats go on in the background. Callbacks of `subscribe` run in the thread that polls.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: Mapping[str, object] | None = None,
        **options: object,
    ) -> None:
        super().__init__()
        self._consumer = AsyncConsumer(bootstrap_servers, config, **options)
        self.assign = self._consumer.assign
        self.assignment = self._consumer.assignment
        self.subscribe = self._consumer.subscribe
        self.seek = self._consumer.seek
        self.seek_to_beginning = self._consumer.seek_to_beginning
        self.seek_to_end = self._consumer.seek_to_end
        self.pause = self._consumer.pause
        self.resume = self._consumer.resume
        self.paused = self._consumer.paused

    def _start(self) -> None:
        self._run(self._consumer.start())

    def poll(self, timeout_ms: float = 1_000.0, max_records: int | None = None) -> list[Record]:
        """Return the next records: what is there at once, at most `max_records` (default
        ``max.poll.records``); wait up to `timeout_ms` for the first. See `AsyncConsumer.poll`.
        """
        consumer = self._consumer
        limit = consumer.config.max_poll_records if max_records is None else max_records
        deadline = time.monotonic() + timeout_ms / 1000
        while True:
            if consumer.needs_attention:
                self._attend()
            records = consumer.poll_now(limit)
            if records or not self._run(consumer.wait(deadline)):
                return records

    def poll_arrow(
        self,
        timeout_ms: float = 1_000.0,
        *,
        columns: Sequence[str] = COLUMN_NAMES,
        batch_bytes: int = ARROW_BATCH_BYTES,
    ) -> pa.RecordBatch | None:
        """Return the next records of one partition as an Arrow batch. See `AsyncConsumer.poll_arrow`."""
        consumer = self._consumer
        deadline = time.monotonic() + timeout_ms / 1000
        while True:
            if consumer.needs_attention:
                self._attend()
            batch = consumer.poll_arrow_now(columns, batch_bytes)
            if batch is not None or not self._run(consumer.wait(deadline)):
                return batch

    def __iter__(self) -> Iterator[Record]:
        """Every record, for ever. The position follows record by record."""
        while True:
            if self._consumer.needs_attention:
                self._attend()
            yield from self._consumer.iterate_now()
            self._run(self._consumer.wait(time.monotonic() + ITERATION_POLL_S))

    def _attend(self) -> None:
        """Do what the group wants done, and call the callbacks in this thread."""
        consumer = self._consumer
        while (notice := self._run(consumer.notice())) is not None:
            call, confirm = notice
            try:
                if call is not None:
                    call()
            finally:
                self._run(confirm())

    def unsubscribe(self) -> None:
        """Leave the group. Commits before, if commits are automatic."""
        self._leave(False)

    def commit(self, offsets: Committable | None = None) -> None:
        """Commit `offsets`, by default where every partition is. See `AsyncConsumer.commit`."""
        self._run(self._consumer.commit(offsets))

    def commit_async(
        self,
        offsets: Committable | None = None,
        when_done: WhenDone | None = None,
    ) -> None:
        """Commit in the background, in the order of the calls.

        `when_done` gets the offsets and the error, if any, in the background thread.
        """
        self._run(_on_loop(lambda: self._consumer.commit_async(offsets, when_done)))

    def committed(
        self, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for each partition; None for nothing."""
        return self._run(self._consumer.committed(partitions))

    def lag(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """How many offsets lie between the position of each partition and its end."""
        return self._run(self._consumer.lag(partitions))

    @property
    def member_id(self) -> str:
        """The id that the group's coordinator gave this consumer; empty before it has joined."""
        return self._consumer.member_id

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record to be handed out."""
        return self._run(self._consumer.position(partition))

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return self._run(self._consumer.beginning_offsets(partitions))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset that the next record of each partition will get."""
        return self._run(self._consumer.end_offsets(partitions))

    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset whose record is not older than the given time in milliseconds, or None."""
        return self._run(self._consumer.offsets_for_times(times))

    def __exit__(self, exc_type: type[BaseException] | None, exc: object, traceback: object) -> None:
        self.close(has_failed=exc_type is not None, timeout=closing_patience_s(exc_type))

    def close(self, *, has_failed: bool = False, timeout: float | None = None) -> None:
        """Leave the group, stop fetching and close the connections. See `AsyncConsumer.close`.

        Committing and leaving are given up after `timeout` seconds each; the group then notices at the end
        of ``session.timeout.ms``. The end of a `with` block waits half a second at most when the program
        is interrupted.
        """
        if self._process == os.getpid() and not self._is_closed:
            self._is_closed = True
            try:
                self._leave(has_failed, timeout)
            finally:
                self._run(self._consumer.let_go())

    def _leave(self, has_failed: bool, timeout: float | None = None) -> None:
        if self._consumer.is_in_group:
            self._run(_within(timeout, self._consumer.begin_leaving(has_failed)))
            self._attend()
            self._run(_within(timeout, self._consumer.end_leaving()))


async def _within(timeout: float | None, work: Coroutine[Any, Any, None]) -> None:
    """Await `work` for so many seconds at most."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            await work


async def _on_loop(action: Callable[[], None]) -> None:
    action()


class Admin(_Blocking):
    """Looks after topics, settings and groups. See `AsyncAdmin` for what each call promises.

    >>> with Admin(bootstrap_servers="localhost:9092") as admin:
    ...     admin.create_topic("orders", partitions=6)
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: Mapping[str, object] | None = None,
        **options: object,
    ) -> None:
        super().__init__()
        self._admin = AsyncAdmin(bootstrap_servers, config, **options)

    def _start(self) -> None:
        self._run(self._admin.start())

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = BROKER_DEFAULT,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create one topic, and wait until it can be used."""
        self._run(self._admin.create_topic(name, partitions, replication_factor, config))

    def create_topics(self, topics: Iterable[NewTopic | str]) -> None:
        """Create topics, and wait until they can be used."""
        self._run(self._admin.create_topics(topics))

    def delete_topics(self, names: Collection[str]) -> None:
        """Delete topics and everything in them."""
        self._run(self._admin.delete_topics(names))

    def list_topics(self, *, include_internal: bool = False) -> list[str]:
        """The names of all topics, sorted."""
        return self._run(self._admin.list_topics(include_internal=include_internal))

    def describe_topics(self, names: Collection[str]) -> list[TopicDescription]:
        """Describe topics, in the order given."""
        return self._run(self._admin.describe_topics(names))

    def describe_cluster(self) -> ClusterDescription:
        """The cluster's id, controller and brokers."""
        return self._run(self._admin.describe_cluster())

    def describe_config(
        self, topic: str | None = None, *, broker: int | None = None
    ) -> dict[str, ConfigValue]:
        """The settings of a topic, or of a broker."""
        return self._run(self._admin.describe_config(topic, broker=broker))

    def create_partitions(self, topic: str, count: int) -> None:
        """Let a topic grow to `count` partitions altogether."""
        self._run(self._admin.create_partitions(topic, count))

    def alter_config(
        self,
        topic: str | None = None,
        *,
        broker: int | None = None,
        all_brokers: bool = False,
        set: Mapping[str, object] | None = None,
        delete: Collection[str] = (),
        append: Mapping[str, object] | None = None,
        subtract: Mapping[str, object] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Change settings of a topic, of one broker, or of all brokers: all the changes or none."""
        self._run(
            self._admin.alter_config(
                topic,
                broker=broker,
                all_brokers=all_brokers,
                set=set,
                delete=delete,
                append=append,
                subtract=subtract,
                validate_only=validate_only,
            )
        )

    def delete_records(
        self, offsets: Mapping[TopicPartition | tuple[str, int], int]
    ) -> dict[TopicPartition, int]:
        """Delete the records below an offset of each partition (-1: all); return where each begins now."""
        return self._run(self._admin.delete_records(offsets))

    def describe_log_dirs(self, broker: int | None = None) -> list[LogDirectory]:
        """The data directories of one broker, or of all, with the size of every partition."""
        return self._run(self._admin.describe_log_dirs(broker))

    def list_offsets(
        self, questions: Mapping[TopicPartition, int], *, isolation: str = "read_uncommitted"
    ) -> Answers:
        """One offset per partition: earliest, latest or by time."""
        return self._run(self._admin.list_offsets(questions, isolation=isolation))

    def list_groups(self, *, states: Collection[str] = ()) -> list[GroupListing]:
        """All groups of the cluster, or those in the given states, by name."""
        return self._run(self._admin.list_groups(states=states))

    def describe_groups(self, group_ids: Iterable[str]) -> list[GroupDescription]:
        """Describe groups and their members, in the order given."""
        return self._run(self._admin.describe_groups(group_ids))

    def delete_groups(self, group_ids: Iterable[str]) -> None:
        """Delete groups that have no members, with their offsets."""
        self._run(self._admin.delete_groups(group_ids))

    def list_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition | tuple[str, int]] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed, for all partitions or some."""
        return self._run(self._admin.list_group_offsets(group_id, partitions))

    def alter_group_offsets(self, group_id: str, offsets: Committable) -> None:
        """Set offsets of a group without members."""
        self._run(self._admin.alter_group_offsets(group_id, offsets))

    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> None:
        """Forget what a group has committed for some partitions."""
        self._run(self._admin.delete_group_offsets(group_id, partitions))

    def close(self) -> None:
        if self._process == os.getpid():
            self._run(self._admin.close())


_unclosed: weakref.WeakSet[Producer] = weakref.WeakSet()


@atexit.register
def _close_producers() -> None:
    """Records must not vanish because somebody forgot to close a producer."""
    deadline = time.monotonic() + EXIT_PATIENCE_S
    for producer in list(_unclosed):
        with contextlib.suppress(PenstockError):
            producer.close(max(0.0, deadline - time.monotonic()))
