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
        """All transactional ids of the cluster, by name, or those that every given filter selects.

        `states` are names as in `TransactionDescription.state`; `longer_than_ms` selects transactions that
        have been running for longer; `pattern` is a regular expression for the whole id.

        Raises:
            KafkaError: a broker refuses; 128: the pattern is none.
            UnsupportedVersionError: a broker is older than Kafka 3.0, or 3.8 or 4.1 for the last filters.
            ConfigError: a state does not exist.
            NetworkError, RequestTimeoutError: a broker does not answer.
        """
        return self._run(
            self._admin.list_transactions(
                states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms, pattern=pattern
            )
        )

    def describe_transactions(self, transactional_ids: Iterable[str]) -> list[TransactionDescription]:
        """Describe transactional ids, in the order given.

        Raises:
            KafkaError: an id is not known (105), or may not be seen (53).
            UnsupportedVersionError: the coordinator is older than Kafka 3.0.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        return self._run(self._admin.describe_transactions(transactional_ids))

    def end_transaction(self, coordinates: TransactionCoordinates, *, commit: bool) -> None:
        """Commit or abort a prepared transaction by its coordinates, from any process.

        For what `Producer.prepare_transaction` has returned, wherever that producer is now. It may be
        repeated, until the transactional id is used again: the coordinator has the outcome. All records
        must have been acknowledged. Nothing is initialized, so that no producer is fenced.

        Raises:
            TransactionAbortableError: a commit came too late; the transaction is aborted, mostly since it
                ran into its timeout. Its work has to be done again.
            ProducerFencedError: the id is used by a newer producer, or has expired. With
                ``transaction.version`` below 2 also: the transaction ran into its timeout. It is not
                known here whether it was committed before that.
            TransactionFatalError: an abort of what is committed, or a refusal.
            NetworkError, RequestTimeoutError: no coordinator answers in time. Repeat the call.
        """
        self._run(self._admin.end_transaction(coordinates, commit=commit))

    def fence_producer(self, transactional_id: str) -> TransactionCoordinates:
        """Abort what the producer of a transactional id has open, and let that producer do nothing more.

        As a new producer of the id does when it starts. Returns the producer id and epoch given out for it.

        Raises:
            KafkaError: the id may not be used (53), or is refused.
            RequestTimeoutError: the transaction is not over within ``default.api.timeout.ms``.
            NetworkError: no coordinator answers.
        """
        return self._run(self._admin.fence_producer(transactional_id))

    def describe_producers(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], *, broker: int | None = None
    ) -> dict[TopicPartition, list[PartitionProducer]]:
        """The producers that have written to partitions and are kept there, as of the leaders.

        `broker` asks that replica instead.

        Raises:
            ConfigError: the cluster has no such broker.
            KafkaError: a partition does not exist (3), is not at that broker (6), or may not be read (29).
            UnsupportedVersionError: a broker is older than Kafka 2.8.
            NetworkError, RequestTimeoutError: a broker does not answer.
        """
        return self._run(self._admin.describe_producers(partitions, broker=broker))

    def find_hanging_transactions(
        self,
        partitions: Iterable[TopicPartition | tuple[str, int]],
        *,
        older_than_ms: float = HANGING_AGE_MS,
    ) -> list[HangingTransaction]:
        """Transactions that are open in one of these partitions, and that no coordinator will end.

        Such a transaction keeps ``read_committed`` readers waiting for ever. It is one whose last record is
        older than `older_than_ms`, and whose producer has no transactional id, or one whose coordinator does
        not count the partition in. Raises as `describe_producers` and `list_transactions`.
        """
        return self._run(self._admin.find_hanging_transactions(partitions, older_than_ms=older_than_ms))

    def abort_hanging_transaction(
        self, partition: TopicPartition | tuple[str, int], start_offset: int
    ) -> PartitionProducer:
        """Write an abort marker for the transaction that is open in a partition from `start_offset` on.

        For hanging transactions only (`find_hanging_transactions`): one that a coordinator has is better
        ended by a producer that takes its id, since the other partitions keep it open. Returns the producer.

        Raises:
            ConfigError: no transaction begins there.
            KafkaError: the partition has gone on (47, 52), or it is not allowed (31).
            NetworkError, RequestTimeoutError: the leader does not answer.
        """
        return self._run(self._admin.abort_hanging_transaction(partition, start_offset))

    def write_abort_marker(
        self,
        partition: TopicPartition | tuple[str, int],
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
    ) -> None:
        """Abort what a producer has open in one partition. A wrong `coordinator_epoch` does harm.

        With one above the real one, the partition refuses every later marker of the producer's coordinator.
        -1 stands for 0. Raises as `abort_hanging_transaction`.
        """
        self._run(self._admin.write_abort_marker(partition, producer_id, producer_epoch, coordinator_epoch))
