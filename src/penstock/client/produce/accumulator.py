"""The sans-I/O core of the producer, which decides which batches to send.

From records, responses and the time it computes the batches to send now. A record is settled when it is
acknowledged or has failed permanently. The accumulator keeps these invariants:
- The batches of a partition reach the log in the order in which they were filled, retries included.
- With a producer id, a batch keeps its sequence number through retries and splits, so that brokers recognise
  duplicates. After a gap in the sequence, the producer gets a new epoch (KIP-360).
- Without a producer id, a partition has one batch in flight at a time, because a retry could overtake
  another.
- A record counts towards ``buffer.memory`` from `append` until it is settled; `is_full` is true at the limit.
  A call that waits for memory returns when a quarter of it is free, so that requests have full batches again.
- With a transactional id, batches are sent when their transaction admits their partition, under its producer
  id and epoch; the first batch that fails makes the transaction fail.

Any thread may call `append`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock.client.cluster.retry import Backoff, RetryVerdict, judge
from penstock.client.config import ProducerConfig
from penstock.client.counters import PartitionCounters
from penstock.client.produce.batches import ProducerBatch, Row
from penstock.client.produce.delivery import Delivery, DeliveryOutcome
from penstock.client.produce.partition_queue import PartitionQueue, precedes
from penstock.client.producer_id import NO_PRODUCER_ID, ProducerId
from penstock.errors import KafkaError, PenstockError, RequestTimeoutError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.records.row_format import Meter, RowWriter

if TYPE_CHECKING:
    from penstock.client.cluster.metadata import TopicInfo

REQUEST_BYTES_MAX = 8 << 20
"""The maximum size in bytes of a request with several batches, even if ``max.request.size`` is larger."""

INT32_MAX = (1 << 31) - 1
"""The maximum size of a batch in bytes, because its length field is an int32."""

FAILURES_KEPT = 1_000
"""The number of failures that are kept until they are logged; older ones are dropped."""

BROKEN_SEQUENCE = frozenset(
    (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH)
)
TOO_LARGE = frozenset((ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE))


class Drained(NamedTuple):
    """The batches to send now, by node, and the time at which to call `drain` again at the latest."""

    requests: dict[int, list[ProducerBatch]]
    wake_at: float
    """The monotonic time in seconds at which to call `drain` again; infinite if no batch waits for a time."""
    unroutable: list[TopicPartition]
    """Partitions that have batches to send and no known leader."""


class ProducerTransaction(Protocol):
    """The interface of a transaction that the accumulator uses."""

    def admits(self, tp: TopicPartition) -> bool:
        """Return True if the partition is part of the transaction, so that its batches may be sent."""

    def batch_failed(self, error: PenstockError, *, is_numbered: bool) -> None:
        """Record that a batch has failed permanently; `is_numbered` is True if it had a sequence number."""


class Accumulator:
    """Holds a producer's records until they are acknowledged or fail, and decides which batches to send."""

    def __init__(self, config: ProducerConfig, dice: Callable[[], float]) -> None:
        self.batch_bytes_max = min(config.batch_size, config.max_request_size)
        self._record_bytes_max = min(config.max_request_size, INT32_MAX)
        self.owner = NO_PRODUCER_ID
        self.is_idempotent = config.wants_idempotence
        self._is_transactional = config.transactional_id is not None
        self.transaction: ProducerTransaction | None = None
        """The transaction that admits batches, if there is a ``transactional.id``: before it is set, nothing
        is sent."""
        self.wants_epoch = self.is_idempotent and not self._is_transactional
        """True if a producer id, or a new epoch of it, must be fetched before anything is sent. Transactional
        producers get theirs from the coordinator (`open`)."""
        self._config = config
        self._dice = dice
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._linger_s = config.linger_ms / 1000
        self._delivery_timeout_s = config.delivery_timeout_ms / 1000
        self._lock = threading.Lock()
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._busy: dict[TopicPartition, PartitionQueue] = {}
        """Queues with waiting batches, in the order in which `drain` takes batches from them."""
        self._unsettled: dict[DeliveryOutcome, None] = {}
        self.memory = Meter(config.buffer_memory)
        """The size in bytes of the records that are neither acknowledged nor failed."""
        self.is_awaited = False
        """True while a call waits for memory: all batches are due, without waiting for ``linger.ms``."""
        self._topic_limits: dict[str, int] = {}
        self.written: dict[TopicPartition, PartitionCounters] = {}
        """A dict from partition to the counters of acknowledged records."""
        self._failures: deque[tuple[DeliveryOutcome, int]] = deque(maxlen=FAILURES_KEPT)
        self._closed_by: PenstockError | None = None

    @property
    def is_full(self) -> bool:
        return bool(self.memory.used >= self.memory.limit)

    @property
    def has_ample_room(self) -> bool:
        """True if a quarter of ``buffer.memory`` is free."""
        return bool(self.memory.used * 4 <= self.memory.limit * 3)

    def unsettled(self) -> list[DeliveryOutcome]:
        """Return the `DeliveryOutcome` of each batch that is neither acknowledged nor failed."""
        with self._lock:
            return list(self._unsettled)

    # -- filling

    def append(
        self, tp: TopicPartition, row: Row, size: int, clock: Callable[[], float]
    ) -> tuple[Delivery, bool]:
        """Take one record of at most `size` bytes; return its delivery, and True if the sender must be woken.

        The sender must be woken when a batch was begun or became full: no other record changes what `drain`
        returns. `clock` is called once per batch, not for every record.

        Raises:
            KafkaError: the record is larger than ``max.request.size``.
        """
        if size > self._record_bytes_max:
            raise _too_large(tp, size, self._record_bytes_max)
        with self._lock:
            queue = self._queues.get(tp)
            batch = queue.open if queue is not None else None
            index = -1 if batch is None else batch.writer.add(*row, size)
            is_news = index < 0
            if batch is None or is_news:
                batch = self._begin(tp, clock())
                index = batch.writer.add(*row, size)
            return Delivery(batch.outcome, index, row[3]), is_news

    def writer(self, tp: TopicPartition) -> Any:
        """Return the writer of a partition's open batch, or None if no batch is open.

        The writer takes further records without a call of `append`, until the batch is full.
        """
        queue = self._queues.get(tp)
        batch = None if queue is None else queue.open
        return None if batch is None else batch.writer

    def open_lane(self, writer: Any, topics: Mapping[str, object], info: TopicInfo, grant: int) -> None:
        """Let `writer` accept up to `grant` bytes of records without a key, without calls of `append`.

        The permission ends when `topics` has other metadata than `info` for the topic.
        """
        with self._lock:
            writer.open_lane(topics, info.name, info, grant)

    def close_lane(self, writer: Any) -> int:
        """End the direct writes that `open_lane` allowed; return the number of bytes written in this way."""
        with self._lock:
            return int(writer.close_lane())

    def append_encoded(
        self, tp: TopicPartition, encoded: memoryview, count: int, now: float
    ) -> DeliveryOutcome:
        """Accept an encoded batch of magic 2, to be sent after earlier batches, and return its outcome.

        `count` is its number of records.

        Raises:
            KafkaError: the batch is a single record larger than ``max.request.size``.
        """
        size = len(encoded)
        if count == 1 and size > self._config.max_request_size:
            raise _too_large(tp, size, self._config.max_request_size)
        with self._lock:
            if self._closed_by is not None:
                raise self._closed_by
            queue = self._queues.get(tp) or self._new_queue(tp)
            queue.seal()
            batch = self._new_batch(queue, ProducerBatch(DeliveryOutcome(*tp), now))
            batch.hold(encoded, count, size)
            queue.sealed.append(batch)
            self.memory.add(size)
            return batch.outcome

    def flush(self) -> None:
        """Make all waiting batches due now, without waiting for ``linger.ms``."""
        with self._lock:
            for queue in self._busy.values():
                queue.seal()

    def _new_queue(self, tp: TopicPartition) -> PartitionQueue:
        queue = self._queues[tp] = PartitionQueue(tp)
        return queue

    def _limit(self, topic: str) -> int:
        return self._topic_limits.get(topic, self.batch_bytes_max)

    def _begin(self, tp: TopicPartition, now: float) -> ProducerBatch:
        if self._closed_by is not None:
            raise self._closed_by
        queue = self._queues.get(tp) or self._new_queue(tp)
        queue.seal()
        queue.open = self._new_batch(queue, self._row_batch(tp, now, self._limit(tp.topic)))
        return queue.open

    def _row_batch(self, tp: TopicPartition, now: float, limit: int) -> ProducerBatch:
        outcome = DeliveryOutcome(*tp)
        return ProducerBatch(outcome, now, RowWriter(limit, self.memory, outcome, Delivery, self._lock))

    def _new_batch(self, queue: PartitionQueue, batch: ProducerBatch) -> ProducerBatch:
        self._unsettled[batch.outcome] = None
        self._busy.setdefault(queue.tp, queue)
        return batch

    # -- emptying

    def drain(
        self, now: float, leader_of: Callable[[TopicPartition], int | None], can_take: Callable[[int], bool]
    ) -> Drained:
        """Return the batches to send now, at most one request per node, and count them as in flight.

        `can_take` returns True if a node's connection is open and has room for one more request.
        """
        with self._lock:
            requests: dict[int, list[ProducerBatch]] = {}
            sizes: dict[int, int] = {}
            unroutable: list[TopicPartition] = []
            wake_at = float("inf")
            served: list[PartitionQueue] = []
            for queue in self._busy.values():
                if not self._may_send(queue):
                    continue
                due = self._due_at(queue, now)
                if due > now:
                    wake_at = min(wake_at, due)
                    continue
                node = leader_of(queue.tp)
                if node is None:
                    unroutable.append(queue.tp)
                    continue
                if not can_take(node):
                    continue
                size = sizes.get(node, 0)
                if size and size + queue.first().size > REQUEST_BYTES_MAX:
                    wake_at = now
                    continue
                batch = queue.take(self.is_idempotent)
                requests.setdefault(node, []).append(batch)
                sizes[node] = size + batch.size
                served.append(queue)
            for queue in served:
                del self._busy[queue.tp]
                if queue.has_waiting:
                    self._busy[queue.tp] = queue
            return Drained(requests, wake_at, unroutable)

    def _may_send(self, queue: PartitionQueue) -> bool:
        if self._is_transactional and (self.transaction is None or not self.transaction.admits(queue.tp)):
            return False
        if not self.is_idempotent:
            return self._config.acks == 0 or not queue.in_flight
        if self.owner == NO_PRODUCER_ID:
            return False
        if queue.owner != self.owner and not queue.in_flight and (queue.is_broken or not queue.again):
            queue.begin_epoch(self.owner)
        if not queue.is_established and queue.in_flight:
            return False
        # A queue with batches of the old epoch that are not broken goes on in it until they are settled.
        number = queue.again[0].number if queue.again else queue.next_number
        return queue.owner != NO_PRODUCER_ID and not queue.is_broken and queue.is_within_reach(number)

    def _due_at(self, queue: PartitionQueue, now: float) -> float:
        if queue.not_before > now:
            return queue.not_before
        if queue.again or queue.sealed or self.is_full or self.is_awaited or queue.open is None:
            return now
        return queue.open.created + self._linger_s

    # -- answers

    def succeed(self, batch: ProducerBatch, base_offset: int, log_append_time: int = -1) -> None:
        """Settle a batch that the broker has acknowledged."""
        with self._lock:
            queue = self._landed(batch)
            queue.not_before = 0.0
            queue.is_established = queue.is_established or batch.owner == queue.owner
            settle = self._release(batch)
            if settle:
                self._count(queue.tp, batch)
        if settle:
            batch.outcome.succeed(base_offset, batch.count, log_append_time)

    def fail(self, batch: ProducerBatch, error: PenstockError, now: float) -> ProducerBatch | None:
        """Handle an error for a batch: queue the batch again, or give it up, depending on `error`.

        Returns the batch if it is too large, so that the caller must divide it with `split`; else None.
        """
        final: PenstockError | None
        with self._lock:
            queue = self._landed(batch)
            batch.error = error
            code = error.code if isinstance(error, KafkaError) else None
            if batch.outcome.is_settled:
                return None
            if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                # The broker has the batch already, but no longer its offset.
                self._release(batch)
                self._count(queue.tp, batch)
                final = None
            elif code in TOO_LARGE and batch.count > 1:
                self._lower_limit(queue.tp.topic, batch.size // 2)
                self._requeue(queue, batch)
                return batch
            elif code in BROKEN_SEQUENCE and self.is_idempotent:
                self._requeue(queue, batch)
                if queue.again[0] is batch and not any(precedes(b, batch) for b in queue.in_flight):
                    queue.is_broken = True
                    self._report(batch, error)
                    self.wants_epoch |= queue.owner == self.owner and not self._is_transactional
                return None
            elif self._may_go_again(batch, error) and now < batch.created + self._delivery_timeout_s:
                self._requeue(queue, batch)
                queue.not_before = now + self._backoff.seconds(batch.attempts - 1, self._dice)
                return None
            else:
                is_late = self._may_go_again(batch, error)
                final = self._too_late(batch) if is_late else _final(error, batch)
                self._give_up(batch, final)
        if final is None:
            batch.outcome.succeed(-1, batch.count)
        else:
            batch.outcome.fail(final)
        return None

    def split(self, batch: ProducerBatch, rows: Sequence[Row], sizes: Callable[[Row], int]) -> None:
        """Replace a waiting batch by two batches, each with half of its records. `rows` are these records."""
        with self._lock:
            queue = self._queues[TopicPartition(batch.outcome.topic, batch.outcome.partition)]
            parts = queue.split(batch, rows, sizes, self._part_of)
            self._unsettled.pop(batch.outcome, None)
            self.memory.add(-batch.size)
            for _, part in parts:
                self._unsettled[part.outcome] = None
        batch.outcome.split([(first, part.outcome) for first, part in parts])

    def _part_of(self, batch: ProducerBatch) -> ProducerBatch:
        """Return an empty batch for some of the records of `batch`, which `split` divides."""
        tp = TopicPartition(batch.outcome.topic, batch.outcome.partition)
        part = self._row_batch(tp, batch.created, INT32_MAX)
        part.owner = batch.owner
        part.error = batch.error
        return part

    def _lower_limit(self, topic: str, size: int) -> None:
        """Lower the size limit of a topic's batches, also open ones, since `size` bytes were too large."""
        limit = self._topic_limits[topic] = max(1, min(self._limit(topic) // 2, size))
        for tp, queue in self._busy.items():
            if tp.topic == topic and queue.open is not None:
                queue.open.writer.limit = limit

    def hinder(self, error: PenstockError, concerns: Callable[[TopicPartition], bool]) -> None:
        """Record `error` as the last error of waiting batches, for the error message if they expire.

        `concerns` returns True for the partitions that cannot be sent to because of the error.
        """
        with self._lock:
            for tp, queue in self._busy.items():
                if concerns(tp):
                    for batch in queue.waiting():
                        batch.error = error

    def expire(self, now: float) -> float:
        """Fail batches older than ``delivery.timeout.ms``; return the time when the next one expires."""
        overdue: list[tuple[ProducerBatch, PenstockError]] = []
        oldest = float("inf")
        with self._lock:
            for queue in self._queues.values():
                for batch in [*queue.in_flight, *queue.waiting()]:
                    if batch.outcome.is_settled:
                        continue
                    if batch.created + self._delivery_timeout_s > now:
                        oldest = min(oldest, batch.created)
                        continue
                    late = self._too_late(batch)
                    overdue.append((batch, late))
                    if batch not in queue.in_flight:
                        queue.discard(batch)
                    self._give_up(batch, late)
                if not queue.has_waiting:
                    self._busy.pop(queue.tp, None)
        for batch, error in overdue:
            batch.outcome.fail(error)
        return oldest + self._delivery_timeout_s

    def close(self, error: PenstockError) -> None:
        """Fail every batch that is not acknowledged with `error`, and accept no more records."""
        with self._lock:
            self._closed_by = error
        self.abandon(error)

    def abandon(self, error: PenstockError) -> None:
        """Fail every batch that is not acknowledged; later records wait for a new producer id or epoch.

        Sequence numbers then begin at 0. Under the old id and epoch, a broker would take the next batches for
        duplicates of the first ones, and acknowledge without storing them. A transaction fails, and its
        coordinator gives out the next epoch.
        """
        with self._lock:
            if not self._is_transactional:
                self.owner = NO_PRODUCER_ID
                self.wants_epoch = self.is_idempotent
            batches = [b for q in self._queues.values() for b in (*q.in_flight, *q.waiting())]
            for batch in batches:
                batch.drop()
            self._queues.clear()
            self._busy.clear()
            self._unsettled.clear()
            self.memory.add(-self.memory.used)
        for batch in batches:
            if not batch.outcome.is_settled:
                self._failures.append((batch.outcome, batch.count))
                self._report(batch, error)
                batch.outcome.fail(error)

    # -- producer id

    def set_owner(self, owner: ProducerId) -> None:
        """Continue with a producer id, or a new epoch of it.

        Partitions with a gap in their sequence numbers begin again at 0.
        """
        with self._lock:
            self.owner = owner
            self.wants_epoch = False

    def go_without_owner(self) -> None:
        """Continue without a producer id, because the broker cannot give one."""
        with self._lock:
            self.is_idempotent = False
            self.wants_epoch = False

    # -- transactions

    @property
    def has_unsettled(self) -> bool:
        """True if any batch is neither acknowledged nor failed."""
        return bool(self._unsettled)

    @property
    def has_in_flight(self) -> bool:
        """True if any batch was sent and has no response yet."""
        with self._lock:
            return any(queue.in_flight for queue in self._queues.values())

    def open(self, owner: ProducerId) -> None:
        """Accept records again, to be sent under this producer id and epoch."""
        with self._lock:
            self.owner = owner
            self._closed_by = None

    def seal(self, error: PenstockError) -> None:
        """Refuse more records with `error`, and make all waiting batches due before ``linger.ms`` ends."""
        with self._lock:
            for queue in self._busy.values():
                queue.seal()
            self._closed_by = error

    def drop_unsent(self, error: PenstockError) -> None:
        """Fail every batch that is not in flight with `error`."""
        dropped: list[ProducerBatch] = []
        with self._lock:
            for queue in self._busy.values():
                for batch in queue.waiting():
                    queue.discard(batch)
                    if not batch.outcome.is_settled:
                        dropped.append(batch)
                        self._release(batch)
            self._busy.clear()
        for batch in dropped:
            if batch.base_sequence >= 0:
                self._report(batch, error)
            batch.outcome.fail(error)

    def _report(self, batch: ProducerBatch, error: PenstockError) -> None:
        if self.transaction is not None:
            self.transaction.batch_failed(error, is_numbered=batch.base_sequence >= 0)

    # -- bookkeeping

    def _landed(self, batch: ProducerBatch) -> PartitionQueue:
        queue = self._queues.get(TopicPartition(batch.outcome.topic, batch.outcome.partition))
        if queue is None:
            queue = PartitionQueue(TopicPartition(batch.outcome.topic, batch.outcome.partition))
        elif batch in queue.in_flight:
            queue.in_flight.remove(batch)
        return queue

    def _requeue(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        queue.requeue(batch)
        self._busy.setdefault(queue.tp, queue)

    def _count(self, tp: TopicPartition, batch: ProducerBatch) -> None:
        written = self.written.get(tp)
        if written is None:
            written = self.written[tp] = PartitionCounters()
        written.add(batch.count, batch.size)

    def waiting(self) -> dict[TopicPartition, tuple[int, int]]:
        """Return a dict from partition to the number and bytes of records that are not acknowledged yet."""
        with self._lock:
            batches = {tp: [*queue.in_flight, *queue.waiting()] for tp, queue in self._queues.items()}
            return {
                tp: (sum(batch.count for batch in each), sum(batch.size for batch in each))
                for tp, each in batches.items()
                if each
            }

    def _may_go_again(self, batch: ProducerBatch, error: PenstockError) -> bool:
        return judge(error) is not RetryVerdict.FATAL and batch.attempts <= self._config.retries

    def _too_late(self, batch: ProducerBatch) -> RequestTimeoutError:
        because = f"; the last obstacle: {batch.error}" if batch.error else ""
        return RequestTimeoutError(
            f"{batch.count} records for {batch.outcome.topic}-{batch.outcome.partition} were not "
            f"acknowledged within delivery.timeout.ms = {self._config.delivery_timeout_ms:g}{because}"
        )

    def take_failures(self) -> list[tuple[DeliveryOutcome, int]]:
        """Return the outcomes that failed since the last call, each with its number of records.

        Only the latest failures are kept.
        """
        with self._lock:
            failures = list(self._failures)
            self._failures.clear()
        return failures

    def _give_up(self, batch: ProducerBatch, error: PenstockError) -> None:
        """Fail a batch that the broker may or may not have written.

        Later batches that are in flight may be in the log as well, so they keep their sequence numbers: a new
        epoch now could write them twice. If the broker does not have this batch, it refuses the next one
        because of the gap in the sequence; then the producer gets a new epoch.
        """
        self._release(batch)
        self._failures.append((batch.outcome, batch.count))
        self._report(batch, error)

    def _release(self, batch: ProducerBatch) -> bool:
        if self._unsettled.pop(batch.outcome, batch) is batch:
            return False
        self.memory.add(-batch.size)
        return True


def _too_large(tp: TopicPartition, size: int, limit: int) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        "MESSAGE_TOO_LARGE",
        f"a record for {tp.topic!r} takes up to {size} bytes, max.request.size allows {limit}; "
        "raise it here, and max.message.bytes at the topic",
    )


def _final(error: PenstockError, batch: ProducerBatch) -> PenstockError:
    """Return the error for the application, with advice if the record is too large."""
    if isinstance(error, KafkaError) and error.code in TOO_LARGE:
        return KafkaError(
            error.code,
            error.name,
            f"a record for {batch.outcome.topic!r} of about {batch.size} bytes is larger than the topic "
            "takes; raise the topic's max.message.bytes",
        )
    return error
