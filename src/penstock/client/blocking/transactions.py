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
    """A part of `Producer`. For errors, see the method of that name in `AsyncProducer`."""

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

        See `AsyncProducer.transaction`.
        """
        self._producer.check_transactional_id()
        return BlockingTransactionBlock(self)

    def init_transactions(self) -> None:
        """Get the producer id, which fences earlier producers. See `AsyncProducer.init_transactions`."""
        self._run(self._producer.init_transactions())

    def begin_transaction(self) -> None:
        """Open a transaction. See `AsyncProducer.begin_transaction`."""
        self._run(self._producer.begin_transaction())

    def send_offsets(self, offsets: Committable, group: GroupMetadata | GroupMember | str) -> None:
        """Make the offsets of a group part of the transaction. See `AsyncProducer.send_offsets`.

        `group` is a `Consumer`, its `group_metadata()`, or the name of a group.
        """
        # On this thread: a blocking consumer waits for the loop.
        metadata = group if isinstance(group, (str, tuple)) else group_metadata_of(group)
        self._run(self._producer.send_offsets(offsets, metadata))

    def prepare_transaction(self) -> TransactionCoordinates:
        """Wait until all is acknowledged; return what names the open transaction.

        From any process, `Admin.end_transaction` commits or aborts it.

        See `AsyncProducer.prepare_transaction`.
        """
        return self._run(self._producer.prepare_transaction())

    def commit_transaction(self) -> None:
        """Send everything, wait until it is acknowledged, commit. See `AsyncProducer.commit_transaction`."""
        self._run(self._producer.commit_transaction())

    def abort_transaction(self) -> None:
        """Give up what was not sent, and abort. See `AsyncProducer.abort_transaction`."""
        self._run(self._producer.abort_transaction())

    @property
    def transaction_coordinates(self) -> TransactionCoordinates:
        """What names the open transaction. See `AsyncProducer.transaction_coordinates`."""
        return self._producer.transaction_coordinates

    def leave_transaction(self, exc: BaseException | None) -> None:
        """End the block of `transaction`. See `AsyncProducer.leave_transaction`."""
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
