"""Batches in transactions: what a transactional producer keeps and sends otherwise than a plain one.

A plain producer pays nothing for it: these are subclasses, imported where ``transactional.id`` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.connection_pool import Peer
from penstock.client.config import ProducerConfig
from penstock.client.produce.accumulator import Accumulator
from penstock.client.produce.batch_payload import payload_for
from penstock.client.produce.batches import Batch
from penstock.client.produce.partition_queue import PartitionQueue
from penstock.client.produce.sender import Sender
from penstock.client.producer_id import ProducerId
from penstock.client.transactions.driver import TransactionDriver
from penstock.errors import PenstockError, UnsupportedVersionError
from penstock.protocol.messages.produce_request import ProduceRequest

if TYPE_CHECKING:
    from typing_extensions import Buffer

EXPLICIT_PRODUCE_VERSION_MAX, IMPLICIT_PRODUCE_VERSION = 11, 12
"""With newer versions of Produce, leaders add their partitions to the transaction (KIP-890)."""


class TransactionalAccumulator(Accumulator):
    """Batches under the producer id and epoch of a transaction; the first that is lost fails it."""

    def __init__(self, config: ProducerConfig, dice: Callable[[], float]) -> None:
        super().__init__(config, dice)
        self.wants_epoch = False
        self.driver: TransactionDriver | None = None
        self._lost: list[Batch] = []
        self._is_broken_by: PenstockError | None = None

    # -- the driver's side

    @property
    def has_unsettled(self) -> bool:
        return bool(self._unsettled)

    @property
    def has_in_flight(self) -> bool:
        with self._lock:
            return any(queue.in_flight for queue in self._queues.values())

    def open(self, owner: ProducerId) -> None:
        with self._lock:
            self.owner = owner
            self._closed_by = None

    def seal(self, error: PenstockError) -> None:
        with self._lock:
            for queue in self._busy.values():
                queue.seal()
            self._closed_by = error

    def drop_unsent(self, error: PenstockError) -> None:
        with self._lock:
            dropped: list[Batch] = []
            for queue in list(self._busy.values()):
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

    # -- what differs

    def _may_send(self, queue: PartitionQueue) -> bool:
        assert self.driver is not None
        return self.driver.machine.admits(queue.tp) and super()._may_send(queue)

    def _break(self, queue: PartitionQueue) -> None:
        queue.is_broken = True
        self._is_broken_by = queue.again[0].error

    def _give_up(self, batch: Batch) -> None:
        super()._give_up(batch)
        self._lost.append(batch)

    def fail(self, batch: Batch, error: PenstockError, now: float) -> Batch | None:
        too_large = super().fail(batch, error, now)
        if self._is_broken_by is not None:
            broken_by, self._is_broken_by = self._is_broken_by, None
            self._report(batch, broken_by)
        self._report_lost()
        return too_large

    def expire(self, now: float) -> float:
        next_expiry = super().expire(now)
        self._report_lost()
        return next_expiry

    def abandon(self, error: PenstockError) -> None:
        """Settle everything with `error`, which fails the transaction."""
        with self._lock:
            owner = self.owner
            queues = self._queues.values()
            lost = [batch for queue in queues for batch in (*queue.in_flight, *queue.waiting())]
        super().abandon(error)
        self.owner = owner
        self.wants_epoch = False
        for batch in lost:
            if batch.outcome.error is not None:
                self._report(batch, batch.outcome.error)

    def _report_lost(self) -> None:
        lost, self._lost = self._lost, []
        for batch in lost:
            if batch.outcome.error is not None:
                self._report(batch, batch.outcome.error)

    def _report(self, batch: Batch, error: PenstockError) -> None:
        if self.driver is not None:
            self.driver.machine.batch_failed(error, is_numbered=batch.base_sequence >= 0)


class TransactionalSender(Sender):
    """Sends batches in transactions, in the versions of the flow that the transaction goes by."""

    def __init__(
        self,
        client: AsyncClient,
        config: ProducerConfig,
        accumulator: TransactionalAccumulator,
        driver: TransactionDriver,
    ) -> None:
        super().__init__(client, config, accumulator)
        self._driver = driver
        driver.on_change(self.wake)

    def _pump(self) -> None:
        super()._pump()
        if not self._is_closed:
            self._driver.pump()

    def _payload(self, batch: Batch, version: int) -> Buffer:
        return payload_for(batch, version, self._codec, is_transactional=True)

    def _version(self, peer: Peer, batches: Iterable[Batch]) -> int:
        if not self._driver.machine.is_implicit:
            return peer.versions.choose(ProduceRequest, EXPLICIT_PRODUCE_VERSION_MAX)
        version = super()._version(peer, batches)
        if version < IMPLICIT_PRODUCE_VERSION:
            raise UnsupportedVersionError(
                f"broker {peer.connection.address} speaks Produce {version}, transaction.version = 2 needs "
                f"{IMPLICIT_PRODUCE_VERSION}: upgrade it, or lower the feature"
            )
        return version

    def _request(self, batches: Iterable[Batch], version: int) -> ProduceRequest:
        request = super()._request(batches, version)
        request.transactional_id = self._config.transactional_id
        return request
