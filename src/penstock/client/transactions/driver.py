"""The I/O of a transactional producer: sends the steps of its state machine, and completes calls.

A driver belongs to the event loop of the producer's sender, which calls `pump` after each run of its loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.client.cluster.retry import timed_out
from penstock.client.group.offsets import GroupMetadata, OffsetAndMetadata
from penstock.client.producer_id import ProducerId
from penstock.client.transactions.coordinators import UnsentError, speaks_implicit_adds, take_step
from penstock.client.transactions.machine import TransactionMachine
from penstock.client.transactions.pauses import Pauses
from penstock.client.transactions.states import ProducerEvent, ProducerPhase
from penstock.client.transactions.steps import Step, TransactionCoordinates
from penstock.common.logs import logger_named
from penstock.errors import (
    KafkaError,
    NetworkError,
    PenstockError,
    ProtocolViolationError,
    RequestTimeoutError,
    TransactionAbortableError,
    TransactionRetriableError,
    TransactionStateError,
)
from penstock.model import TopicPartition

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.client.config import ProducerConfig

log = logger_named("penstock.client")

INTERRUPTED_ABORT_S = 0.5
"""The limit in seconds for an abort after Ctrl-C or a cancellation; after that, the transaction is left to
its timeout at the coordinator."""

GIVEN_UP_BY_ABORT = (ProducerEvent.SEND_OFFSETS, ProducerEvent.PREPARE)
UNANSWERED = (NetworkError, RequestTimeoutError, ProtocolViolationError)


class AccumulatedBatches(Protocol):
    """The interface of the producer's accumulator that the driver uses."""

    @property
    def has_unsettled(self) -> bool:
        """True if any batch is neither acknowledged nor failed."""

    @property
    def has_in_flight(self) -> bool:
        """True if any batch was sent and has no response yet."""

    def open(self, owner: ProducerId) -> None:
        """Accept records again, to be sent under this producer id and epoch."""

    def seal(self, error: PenstockError) -> None:
        """Refuse more records with `error`, and make all waiting batches due before ``linger.ms`` ends."""

    def drop_unsent(self, error: PenstockError) -> None:
        """Fail every batch that is not in flight with `error`."""


class _Call(NamedTuple):
    """A call of the application that has begun and is not complete.

    The application may have stopped waiting.
    """

    event: ProducerEvent
    is_done: Callable[[], bool]


class TransactionDriver:
    """Runs one producer's transactions: sends the requests of the state machine to coordinators."""

    def __init__(self, client: AsyncClient, config: ProducerConfig, batches: AccumulatedBatches) -> None:
        assert config.transactional_id is not None
        self.machine = TransactionMachine(config.transactional_id, Pauses(client.backoff, client.dice))
        self._client = client
        self._config = config
        self._batches = batches
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._call: _Call | None = None
        self._hindered_by: PenstockError | None = None
        self._is_closed = False
        self._wake_sender: Callable[[], None] = lambda: None
        self._seal()

    def on_change(self, wake_sender: Callable[[], None]) -> None:
        """Set the function to call when batches that waited for the transaction may be sent."""
        self._wake_sender = wake_sender

    # -- calls

    async def initialize(self) -> None:
        """Get a producer id, unless there is one. Raises as `AsyncProducer.init_transactions`."""
        machine = self.machine
        if (
            machine.state in (ProducerPhase.READY, ProducerPhase.IN_TRANSACTION, ProducerPhase.PREPARED)
            and self._call is None
        ):
            return
        if machine.state is ProducerPhase.INITIALIZING and self._call is None:
            # The last transaction was in doubt, and the next epoch is on its way.
            self._call = _Call(
                ProducerEvent.INITIALIZE, lambda: machine.state is not ProducerPhase.INITIALIZING
            )
        await self._finish(
            ProducerEvent.INITIALIZE,
            machine.initialize,
            lambda: machine.state is not ProducerPhase.INITIALIZING,
        )

    async def begin(self) -> None:
        """Begin a transaction; get a producer id first if there is none."""
        self._check_no_other(ProducerEvent.BEGIN)
        if self.machine.state in (ProducerPhase.UNINITIALIZED, ProducerPhase.INITIALIZING):
            await self.initialize()
        self.machine.begin(is_implicit=speaks_implicit_adds(self._client))
        self._batches.open(self.machine.owner)

    @property
    def is_open(self) -> bool:
        """True if there is a transaction that an abort would end."""
        return self.machine.state in (
            ProducerPhase.IN_TRANSACTION,
            ProducerPhase.ABORTABLE_ERROR,
            ProducerPhase.PREPARED,
        )

    @property
    def coordinates(self) -> TransactionCoordinates | None:
        """The `TransactionCoordinates` of the open transaction; None before there is a producer id."""
        machine = self.machine
        if machine.owner.producer_id < 0:
            return None
        return TransactionCoordinates(machine.transactional_id, *machine.owner)

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata
    ) -> None:
        """Add a group's offsets to the transaction, and wait until the coordinators have accepted them."""
        machine = self.machine
        await self._finish(
            ProducerEvent.SEND_OFFSETS,
            lambda: machine.send_offsets(group, offsets),
            lambda: not machine.has_offsets,
        )

    async def prepare(self) -> TransactionCoordinates:
        """Wait until all records are acknowledged, refuse more, and return the `TransactionCoordinates`."""
        machine = self.machine
        await self._finish(
            ProducerEvent.PREPARE,
            self._start_preparing,
            lambda: self._is_settled() or machine.state in FAILED,
        )
        return machine.prepare()

    async def commit(self) -> None:
        """Send all batches, wait until they are acknowledged, and commit."""
        before = self.machine.ended
        await self._finish(
            ProducerEvent.COMMIT,
            self._start_commit,
            lambda: self.machine.ended > before or self._has_failed(),
        )

    async def abort(self) -> None:
        """Drop batches that are not in flight, wait for the others, and abort."""
        before = self.machine.ended
        await self._finish(
            ProducerEvent.ABORT, self._start_abort, lambda: self.machine.ended > before or self._has_failed()
        )

    async def leave(self, exc: BaseException | None) -> None:
        """End a transaction block: commit if `exc` is None, else abort. The caller raises `exc` itself."""
        if exc is None:
            try:
                await self.commit()
            except TransactionAbortableError as error:
                await self._abort_because_of(error)
                raise
        elif self.is_open:
            await self._abort_because_of(exc)

    async def _abort_because_of(self, reason: BaseException) -> None:
        try:
            if isinstance(reason, Exception):
                await self.abort()
            else:
                await self.settle(INTERRUPTED_ABORT_S)
        except PenstockError as error:
            reason.add_note(f"The abort of the transaction has failed, too: {error}")

    async def settle(self, timeout_s: float | None) -> None:
        """Complete a commit that has begun, or abort an open transaction that is not prepared.

        Raises no error. After `timeout_s` seconds, the transaction is left to its timeout at the coordinator.
        """
        try:
            async with asyncio.timeout(timeout_s):
                if self._call is not None and self._call.event is ProducerEvent.COMMIT:
                    await self.commit()
                elif self.machine.state in (
                    ProducerPhase.IN_TRANSACTION,
                    ProducerPhase.ABORTABLE_ERROR,
                    ProducerPhase.ABORTING,
                ):
                    self._call = self._call if self.machine.state is ProducerPhase.ABORTING else None
                    await self.abort()
        except (PenstockError, TimeoutError) as error:
            name = self.machine.transactional_id
            log.debug("the transaction of %s is left to its timeout: %s", name, error)

    async def close(self, timeout_s: float | None) -> None:
        """End the open transaction as `settle` does, then send no more requests."""
        try:
            await self.settle(timeout_s)
        finally:
            self._is_closed = True
            if self._timer is not None:
                self._timer.cancel()
            if self._task is not None:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)

    # -- starting and waiting

    def _start_commit(self) -> None:
        self.machine.commit()
        self._seal()

    def _start_abort(self) -> None:
        self.machine.abort()
        self._seal()

    def _start_preparing(self) -> None:
        if self.machine.state is not ProducerPhase.IN_TRANSACTION:
            self.machine.prepare()  # raises why not
        self._seal()

    def _seal(self) -> None:
        self._batches.seal(
            TransactionStateError(
                "a producer with a transactional id writes in transactions: call begin_transaction() first, "
                "or write inside producer.transaction()"
            )
        )

    def _is_settled(self) -> bool:
        return not self._batches.has_unsettled and not self._batches.has_in_flight

    def _has_failed(self) -> bool:
        return self.machine.state in FAILED

    def _check_no_other(self, event: ProducerEvent) -> None:
        if event is ProducerEvent.ABORT and self._call is not None and self._call.event in GIVEN_UP_BY_ABORT:
            self._call = None
        if self._call is not None and self._call.event is not event:
            raise TransactionStateError(
                f"{self._call.event.value} has not ended: make that call again before {event.value}"
            )

    async def _finish(
        self, event: ProducerEvent, start: Callable[[], None], is_done: Callable[[], bool]
    ) -> None:
        """Start the call `event`, or continue it after a timeout, and wait until `is_done` returns True."""
        self._check_no_other(event)
        if self._call is None:
            start()
            self._call = _Call(event, is_done)
        call = self._call
        self._hindered_by = None
        timeout_ms = self._config.max_block_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._until(call.is_done)
        except TimeoutError:
            late = timed_out(event.value, timeout_ms, self._hindered_by)
            raise TransactionRetriableError(f"{late}; make the same call again") from self._hindered_by
        if self._call is call:
            self._call = None
        self._raise_failure(event)

    def _raise_failure(self, event: ProducerEvent) -> None:
        error = self.machine.error
        if error is not None and (self._has_failed() or event is ProducerEvent.INITIALIZE):
            raise error

    async def _until(self, is_done: Callable[[], bool]) -> None:
        self.pump()
        while not is_done():
            future: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(future)
            await future

    # -- steps

    def pump(self) -> None:
        """Send the next step, if there is one, and wake waiting calls. Call this on the event loop."""
        machine = self.machine
        if machine.is_dropping:
            error = machine.error
            self._batches.drop_unsent(error or _aborted(machine.transactional_id))
            if error is not None:
                self._batches.seal(error)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is None and not self._is_closed:
            now = self._loop.time()
            step = machine.next_step(now, is_settled=self._may_end())
            if step is not None:
                self._task = self._loop.create_task(self._take(step))
            elif now < machine.wake_at < float("inf"):
                self._timer = self._loop.call_at(machine.wake_at, self.pump)
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _may_end(self) -> bool:
        if self.machine.state is ProducerPhase.ABORTING:
            return not self._batches.has_in_flight
        return self.machine.state is ProducerPhase.COMMITTING and self._is_settled()

    async def _take(self, step: Step) -> None:
        machine = self.machine
        node = machine.node_of(step)
        try:
            answer = await take_step(
                self._client, step, node, machine.transactional_id, int(self._config.transaction_timeout_ms)
            )
        except PenstockError as error:
            is_unsent = isinstance(error, UnsentError)
            if is_unsent or isinstance(error, UNANSWERED) or _may_go_again(error):
                self._hindered_by = error
                machine.lost(step, self._loop.time(), is_sent=not is_unsent)
                self._client.troubles.note("transactions", error)
            else:
                machine.failed(step, error)
        else:
            self._hindered_by = machine.answered(step, answer, self._loop.time())
        self._task = None
        self.pump()
        self._wake_sender()


FAILED = (ProducerPhase.ABORTABLE_ERROR, ProducerPhase.FATAL_ERROR)


def _may_go_again(error: PenstockError) -> bool:
    return isinstance(error, KafkaError) and error.retriable


def _aborted(transactional_id: str) -> PenstockError:
    return TransactionAbortableError(
        f"the transaction of {transactional_id!r} was aborted before the record was sent"
    )
