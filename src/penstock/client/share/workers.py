"""A pool of workers on a share group: calls a function with each record, and acknowledges the record.

Each worker has one record at a time. What the function returns or raises decides the acknowledgement. While
the function runs, the record's lock is renewed, so that work may take longer than a lock lasts. Records are
fetched only for free workers, so that a slow pool leaves records to other pools.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock.client import arguments
from penstock.client.share.acknowledgements import AcknowledgeType
from penstock.common.logs import logger_named
from penstock.errors import ConfigError, DecodeError, DeserializationError
from penstock.model import TopicPartition

if TYPE_CHECKING:
    from penstock.client.share.holdings import Holdings
    from penstock.model import ShareRecord

Handler = Callable[..., Any]
"""A function or coroutine function that processes a record. It returns None to accept the record, or an
`AcknowledgeType`."""

OnError = Callable[..., Any]
"""A function that gets a record and the handler's exception. It returns None to release the record, or an
`AcknowledgeType`."""

WORKERS_MAX = 10_000
POLL_S = 0.5
AHEAD_S = 0.1
"""The time in seconds for which workers can work on records fetched in advance, so that fast workers do not
wait for a broker each time."""

GATHER_S = 0.005
"""The time in seconds that an acknowledgement waits for others, to be sent with them."""

RENEW_AFTER = 0.5
"""The fraction of a lock's duration after which the lock is renewed."""

KEEP_EVERY_S = 1.0
JOIN_S = 30.0
"""The time in seconds that a consumer with `idle_ms` waits for its first partitions."""

log = logger_named("penstock.client")


class PoolSummary(NamedTuple):
    """The numbers of records that a `run` has accepted, released and rejected.

    `refused` is the number of acknowledgements that a broker has refused: these records are delivered again,
    although they are counted here.
    """

    accepted: int
    released: int
    rejected: int
    refused: int


class PoolSource(Protocol):
    """The interface of a share consumer that a worker pool uses to get records and to acknowledge them."""

    holdings: Holdings

    @property
    def stops(self) -> int:
        """The number of calls of `stop` or `close` so far, from which running workers detect a new call."""

    @property
    def is_limit_possible(self) -> bool:
        """True if brokers can limit a fetch to a number of records, and can renew locks."""

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        """The time for which brokers lock records, in milliseconds; None before it is known."""

    def assignment(self) -> Sequence[TopicPartition]:
        """Return the partitions to fetch from."""

    def begin_poll(self) -> None:
        """Raise ConfigError if a record of an earlier poll has no acknowledgement."""

    def poll_now(self, limit: int) -> Sequence[ShareRecord[Any, Any]]:
        """Return records that have been fetched already."""

    async def wait(self, deadline: float, limit: int, is_strict: bool | None = None) -> bool:
        """Fetch records, and wait for some; return False if none have come by the `deadline`."""

    async def notify(self) -> None:
        """Call the callback for acknowledgements, with the outcomes that brokers have sent."""

    def flush(self) -> None:
        """Send acknowledgements in the background, without waiting for the answers."""

    async def commit_pool(self) -> None:
        """Send acknowledgements, and wait for the answers."""

    def keep_alive(self) -> None:
        """Record that the application processes records, so that ``max.poll.interval.ms`` starts again."""


class WorkerPool:
    """The workers of one call of `run` of a share consumer. Raises ConfigError if an argument is wrong."""

    def __init__(
        self,
        consumer: PoolSource,
        handler: Handler,
        workers: int,
        on_error: OnError | None,
        idle_ms: float | None,
    ) -> None:
        self._consumer = consumer
        self._handler = arguments.function(handler, "handler")
        self._workers = arguments.size(workers, "workers")
        if self._workers > WORKERS_MAX:
            raise ConfigError(f"workers is {workers}: {WORKERS_MAX} are the most")
        self._on_error = None if on_error is None else arguments.function(on_error, "on_error")
        self._idle_s = None if idle_ms is None else arguments.milliseconds(idle_ms, "idle_ms") / 1000
        self._is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)  # noqa: B004
        )
        self._threads: ThreadPoolExecutor | None = None
        self._turn = asyncio.Lock()
        """The lock that one worker at a time holds, to take the next record or wait for it."""
        self._idle = self._workers
        self._in_work: dict[tuple[TopicPartition, int], float] = {}
        """A dict from each record being processed to the monotonic time in seconds of its next lock
        renewal."""
        self._counts = dict.fromkeys(AcknowledgeType, 0)
        self._work_s = 0.0
        """The average time in seconds that a worker takes for a record lately; 0 before the first."""
        self._worked_at = time.monotonic()
        self._has_begun = False
        """True if the group has assigned partitions to the consumer, which takes two heartbeats."""
        self._stops = consumer.stops
        self._is_over = False
        self._flushing: asyncio.TimerHandle | None = None

    async def run(self) -> PoolSummary:
        """Process records until the consumer is stopped or idle, and return their counts.

        Raises as `AsyncShareConsumer.run`.
        """
        consumer = self._consumer
        consumer.begin_poll()
        refused = consumer.holdings.refused
        if not self._is_async:
            self._threads = ThreadPoolExecutor(self._workers, thread_name_prefix="penstock-worker")
        workers = [asyncio.create_task(self._work()) for _ in range(self._workers)]
        keeper = asyncio.create_task(self._keep())
        try:
            # The first error ends all of them, after what is in work.
            await asyncio.gather(*workers)
        except BaseException as error:
            self._is_over = True
            if isinstance(error, Exception):
                await asyncio.gather(*workers, return_exceptions=True)
            raise
        finally:
            self._is_over = True
            for task in (*workers, keeper):
                task.cancel()
            await asyncio.gather(*workers, keeper, return_exceptions=True)
            if self._flushing is not None:
                self._flushing.cancel()
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)
        await consumer.commit_pool()
        counts = self._counts
        return PoolSummary(
            counts[AcknowledgeType.ACCEPT],
            counts[AcknowledgeType.RELEASE],
            counts[AcknowledgeType.REJECT],
            consumer.holdings.refused - refused,
        )

    @property
    def _must_end(self) -> bool:
        if self._is_over or self._consumer.stops != self._stops:
            return True
        if self._idle_s is None or self._in_work:
            return False
        now = time.monotonic()
        if not self._has_begun and self._consumer.assignment():
            self._has_begun = True
            self._worked_at = now
        if not self._consumer.holdings.is_quiet:
            self._worked_at = now
        return now - self._worked_at >= (self._idle_s if self._has_begun else max(self._idle_s, JOIN_S))

    async def _work(self) -> None:
        """Process records one after the other: the loop of one worker."""
        while (record := await self._next()) is not None:
            self._idle -= 1
            place = TopicPartition(record.topic, record.partition), record.offset
            started = time.monotonic()
            self._in_work[place] = started + self._lock_s * RENEW_AFTER
            kind = AcknowledgeType.RELEASE
            try:
                kind = await self._handle(record)
            finally:
                del self._in_work[place]
                self._idle += 1
                now = self._worked_at = time.monotonic()
                took_s = now - started
                self._work_s = took_s if not self._work_s else self._work_s * 0.9 + took_s * 0.1
                if self._consumer.holdings.acknowledge_held(*place, kind):
                    self._counts[kind] += 1
                self._flush_soon()

    async def _next(self) -> ShareRecord[Any, Any] | None:
        """Wait for a record and return it, or None if the worker must stop."""
        consumer = self._consumer
        async with self._turn:
            while not self._must_end:
                try:
                    records = consumer.poll_now(1)
                except DeserializationError as error:
                    log.warning("%s", error)
                    continue
                except DecodeError as error:
                    # It is rejected, or released where only this consumer's limits are in the way.
                    log.error("%s", error)
                    continue
                if records:
                    return records[0]
                wait_s = POLL_S if self._idle_s is None else min(POLL_S, self._idle_s)
                await consumer.wait(time.monotonic() + wait_s, self._wanted(), consumer.is_limit_possible)
                await consumer.notify()
            # Those who wait for records are woken when it is over.
            return None

    def _wanted(self) -> int:
        """Return the number of records to fetch: one for each free worker, and some in advance."""
        ahead = int(self._workers * AHEAD_S / max(self._work_s, 1e-4)) if self._work_s else 0
        return max(1, self._idle + ahead)

    @property
    def _lock_s(self) -> float:
        lock_ms = self._consumer.acquisition_lock_timeout_ms
        return lock_ms / 1000 if lock_ms else float("inf")

    async def _handle(self, record: ShareRecord[Any, Any]) -> AcknowledgeType:
        """Call the handler with a record, and return the type of the record's acknowledgement."""
        try:
            return self._decided(await self._call(self._handler, record), AcknowledgeType.ACCEPT)
        except Exception as error:
            if self._on_error is None:
                log.warning(
                    "the handler failed for offset %d of %s-%d, delivery %d: %r",
                    record.offset,
                    record.topic,
                    record.partition,
                    record.delivery_count,
                    error,
                )
                return AcknowledgeType.RELEASE
            return self._decided(await self._call(self._on_error, record, error), AcknowledgeType.RELEASE)

    async def _call(self, function: Callable[..., Any], *given: Any) -> Any:
        if self._is_async or self._threads is None:
            outcome = function(*given)
            return await outcome if isinstance(outcome, Awaitable) else outcome
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *given)

    def _decided(self, outcome: object, default: AcknowledgeType) -> AcknowledgeType:
        if outcome is None:
            return default
        try:
            kind = AcknowledgeType.of(outcome)
        except ConfigError:
            kind = AcknowledgeType.RENEW
        if kind is AcknowledgeType.RENEW:
            raise ConfigError(
                f"a handler of run() returned {outcome!r}: return None to accept the record, or 'accept', "
                "'release' or 'reject'; locks are prolonged by themselves"
            )
        return kind

    def _flush_soon(self) -> None:
        """Send acknowledgements after a short delay, so that several go together."""
        if self._flushing is None and not self._is_over:
            self._flushing = asyncio.get_running_loop().call_later(GATHER_S, self._flush)

    def _flush(self) -> None:
        self._flushing = None
        self._consumer.flush()

    async def _keep(self) -> None:
        """Renew the locks of records that are being processed, and keep the consumer's membership alive."""
        consumer = self._consumer
        while True:
            lock_s = self._lock_s
            await asyncio.sleep(min(KEEP_EVERY_S, lock_s / 8))
            consumer.keep_alive()
            if not consumer.is_limit_possible:
                continue
            now = time.monotonic()
            due = [place for place, renew_at in self._in_work.items() if renew_at <= now]
            for tp, offset in due:
                consumer.holdings.renew_in_place(tp, offset)
                self._in_work[tp, offset] = now + lock_s * RENEW_AFTER
            if due:
                consumer.flush()
