"""The calls of a blocking producer that concern transactions: those of the asyncio one, waited for."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from penstock.client.blocking.base import Blocking
from penstock.client.produce.transaction_calls import group_metadata_of

if TYPE_CHECKING:
    from penstock.client.group.offsets import Committable, GroupMetadata
    from penstock.client.produce.producer import AsyncProducer
    from penstock.client.produce.transaction_calls import GroupMember
    from penstock.client.transactions.steps import TransactionCoordinates


class BlockingTransactionCalls(Blocking):
    """A part of `Producer`."""

    _producer: AsyncProducer[Any, Any]

    @property
    def transactional_id(self) -> str | None:
        """The name under which this producer has transactions; None where it has none."""
        return self._producer.config.transactional_id

    def at_once(self) -> AbstractContextManager[None]:
        """A transaction where there is a transactional id; otherwise a block that changes nothing."""
        return nullcontext() if self.transactional_id is None else self.transaction()

    def transaction(self) -> BlockingTransactionBlock:
        """A transaction as a block: committed at its end, aborted where it is left by an exception.

        >>> with producer.transaction():
        ...     producer.send("orders", b"two tickets")
        ...     producer.send_offsets(consumer.positions(), consumer)

        Entering it raises as `begin_transaction`, leaving it as `commit_transaction`. A commit that is
        refused with `TransactionAbortableError` is followed by an abort, so that the producer can go on.
        """
        self._producer.check_transactional_id()
        return BlockingTransactionBlock(self)

    def init_transactions(self) -> None:
        """Get the producer id of ``transactional.id``, which fences all earlier producers of that id.

        What such a producer has left open is aborted. Optional: the first `begin_transaction` does it.

        Raises:
            TransactionRetriableError: not within ``max.block.ms``; call it again.
            TransactionalIdAuthorizationError: the id may not be used. It can be tried again.
            TransactionFatalError: the producer cannot be used, for instance with a ``transaction.timeout.ms``
                above the broker's ``transaction.max.timeout.ms``.
            UnsupportedVersionError: the broker is older than Kafka 0.11.
            ConfigError: no ``transactional.id``.
            NetworkError: no bootstrap server answers.
        """
        self._run(self._producer.init_transactions())

    def begin_transaction(self) -> None:
        """Open a transaction. All that is sent from here on belongs to it, until it is committed or aborted.

        Raises:
            TransactionStateError: one is open.
            TransactionAbortableError: the last one has failed, and must be aborted first.
            TransactionFatalError: the producer has failed for good.
            PenstockError: as `init_transactions`, the first time.
        """
        self._run(self._producer.begin_transaction())

    def send_offsets(self, offsets: Committable, group: GroupMetadata | GroupMember | str) -> None:
        """Make the offsets of a group part of the transaction: committed with it, or not at all.

        `offsets` are the next to read of each partition, as `Consumer.positions` has them. `group` is
        the consumer, or its `group_metadata`: the group then refuses a member that it has gone on without
        (KIP-447). The name of a group alone is not checked.

        Raises:
            TransactionAbortableError: the group has gone on without the member, or refuses the offsets.
            TransactionRetriableError: not within ``max.block.ms``; call it again, or abort.
            TransactionFatalError: the producer has failed for good, for instance since it is fenced.
            TransactionStateError: no transaction is open.
            ConfigError: an offset is negative, or the group has no name.
        """
        # On this thread: a blocking consumer waits for the loop.
        metadata = group if isinstance(group, (str, tuple)) else group_metadata_of(group)
        self._run(self._producer.send_offsets(offsets, metadata))

    def prepare_transaction(self) -> TransactionCoordinates:
        """Wait until all is acknowledged, accept nothing more, and return what names the transaction.

        The transaction stays open, also when this producer is closed, until `commit_transaction` or
        `abort_transaction` here, `Admin.end_transaction` anywhere, or ``transaction.timeout.ms``.

        Raises:
            TransactionAbortableError: a record was not accepted. Abort.
            TransactionRetriableError: not within ``max.block.ms``; call it again, or abort.
            TransactionFatalError: the producer has failed for good.
            TransactionStateError: no transaction is open.
        """
        return self._run(self._producer.prepare_transaction())

    def commit_transaction(self) -> None:
        """Send everything, wait until it is acknowledged, and commit.

        Raises:
            TransactionAbortableError: nothing is committed, since a record was not accepted, or since the
                transaction ran into its timeout (with KIP-890). Abort, then do its work again.
            TransactionRetriableError: not within ``max.block.ms``. Whether it is committed is not known yet:
                call it again. No other call is accepted before.
            TransactionFatalError: the producer has failed for good. `ProducerFencedError`: another one uses
                the id, or the transaction ran into its timeout. It is not known here whether it was
                committed before that; another producer goes on from what is committed.
            TransactionStateError: no transaction is open.
        """
        self._run(self._producer.commit_transaction())

    def abort_transaction(self) -> None:
        """Give up what was not sent, wait for what is under way, and abort.

        Raises:
            TransactionRetriableError: not within ``max.block.ms``; call it again.
            TransactionFatalError: the producer has failed for good; the coordinator aborts by the timeout.
            TransactionStateError: no transaction is open, or a commit is under way.
        """
        self._run(self._producer.abort_transaction())

    @property
    def transaction_coordinates(self) -> TransactionCoordinates:
        """What names the open transaction: its id, producer id and epoch.

        Raises:
            TransactionStateError: no producer id was given out yet.
        """
        return self._producer.transaction_coordinates

    def leave_transaction(self, exc: BaseException | None) -> None:
        """End the block of `transaction`: commit, or abort because of `exc`, which the caller raises."""
        self._run(self._producer.leave_transaction(exc))


class BlockingTransactionBlock(AbstractContextManager[None]):
    """A transaction for ``with``. Made by `Producer.transaction`."""

    def __init__(self, producer: BlockingTransactionCalls) -> None:
        self._producer = producer

    def __enter__(self) -> None:
        self._producer.begin_transaction()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: object
    ) -> None:
        self._producer.leave_transaction(exc)
