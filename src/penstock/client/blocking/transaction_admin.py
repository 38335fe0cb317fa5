"""The calls of a blocking admin client that concern transactions: those for asyncio, waited for."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from penstock.client.admin.admin import AsyncAdmin
from penstock.client.admin.transactions import (
    HANGING_AGE_MS,
    HangingTransaction,
    PartitionProducer,
    TransactionDescription,
    TransactionListing,
)
from penstock.client.blocking.base import Blocking
from penstock.client.transactions.steps import TransactionCoordinates
from penstock.model import TopicPartition


class BlockingTransactionAdministration(Blocking):
    """A part of `Admin`. For errors, see the method of that name in `AsyncAdmin`."""

    _admin: AsyncAdmin

    def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        longer_than_ms: float | None = None,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """All transactional ids, or those that every given filter selects."""
        return self._run(
            self._admin.list_transactions(
                states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms, pattern=pattern
            )
        )

    def describe_transactions(self, transactional_ids: Iterable[str]) -> list[TransactionDescription]:
        """Describe transactional ids, in the order given."""
        return self._run(self._admin.describe_transactions(transactional_ids))

    def end_transaction(self, coordinates: TransactionCoordinates, *, commit: bool) -> None:
        """Commit or abort a prepared transaction by its coordinates, from any process. May be repeated."""
        self._run(self._admin.end_transaction(coordinates, commit=commit))

    def fence_producer(self, transactional_id: str) -> TransactionCoordinates:
        """Abort what the producer of an id has open, and let that producer do nothing more."""
        return self._run(self._admin.fence_producer(transactional_id))

    def describe_producers(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], *, broker: int | None = None
    ) -> dict[TopicPartition, list[PartitionProducer]]:
        """The producers that partitions keep, and the starts of their open transactions."""
        return self._run(self._admin.describe_producers(partitions, broker=broker))

    def find_hanging_transactions(
        self,
        partitions: Iterable[TopicPartition | tuple[str, int]],
        *,
        older_than_ms: float = HANGING_AGE_MS,
    ) -> list[HangingTransaction]:
        """Transactions that are open in one of these partitions, and that no coordinator will end."""
        return self._run(self._admin.find_hanging_transactions(partitions, older_than_ms=older_than_ms))

    def abort_hanging_transaction(
        self, partition: TopicPartition | tuple[str, int], start_offset: int
    ) -> PartitionProducer:
        """Write an abort marker for the transaction that is open in a partition from `start_offset` on."""
        return self._run(self._admin.abort_hanging_transaction(partition, start_offset))

    def write_abort_marker(
        self,
        partition: TopicPartition | tuple[str, int],
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
    ) -> None:
        """Abort what a producer has open in one partition. A wrong `coordinator_epoch` does harm."""
        self._run(self._admin.write_abort_marker(partition, producer_id, producer_epoch, coordinator_epoch))
