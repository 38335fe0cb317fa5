"""The calls of a producer that concern transactions. What they need is imported where an id is set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from penstock.common.suggestions import short_repr
from penstock.errors import ConfigError, PenstockError, TransactionAbortableError

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.client.config import ProducerConfig
    from penstock.client.group.offsets import Committable, GroupMetadata
    from penstock.client.produce.accumulator import Accumulator
    from penstock.client.produce.sender import Sender
    from penstock.client.transactions.driver import TransactionDriver
    from penstock.client.transactions.steps import TransactionCoordinates

INTERRUPTED_ABORT_S = 0.5
"""Ctrl-C and cancellation leave an abort this long. The coordinator aborts by the timeout otherwise."""


class GroupMember(Protocol):
    """A consumer of a group, blocking or for asyncio."""

    def group_metadata(self) -> GroupMetadata:
        """The member's id and generation."""


class TransactionCalls:
    """A part of `AsyncProducer`."""

    config: ProducerConfig
    _client: AsyncClient
    _accumulator: Accumulator
    _driver: TransactionDriver | None = None

    def transaction(self) -> TransactionBlock:
        """A transaction as a block: committed at its end, aborted where it is left by an exception.

        >>> async with producer.transaction():
        ...     await producer.send("orders", b"two tickets")

        Entering it raises as `begin_transaction`, leaving it as `commit_transaction`. A commit that is
        refused with `TransactionAbortableError` is followed by an abort, so that the producer can go on.
        """
        self.check_transactional_id()
        return TransactionBlock(self)

    async def init_transactions(self) -> None:
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
        await (await self._transactions()).initialize()

    async def begin_transaction(self) -> None:
        """Open a transaction. All that is sent from here on belongs to it, until it is committed or aborted.

        Raises:
            TransactionStateError: one is open.
            TransactionAbortableError: the last one has failed, and must be aborted first.
            TransactionFatalError: the producer has failed for good.
            PenstockError: as `init_transactions`, the first time.
        """
        await (await self._transactions()).begin()

    async def send_offsets(self, offsets: Committable, group: GroupMetadata | GroupMember | str) -> None:
        """Make the offsets of a group part of the transaction: committed with it, or not at all.

        `offsets` are the next to read of each partition, as `AsyncConsumer.positions` has them. `group` is
        the consumer, or its `group_metadata`: the group then refuses a member that it has gone on without
        (KIP-447). The name of a group alone is not checked.

        Raises:
            TransactionAbortableError: the group has gone on without the member, or refuses the offsets.
            TransactionRetriableError: not within ``max.block.ms``; call it again, or abort.
            TransactionFatalError: the producer has failed for good, for instance since it is fenced.
            TransactionStateError: no transaction is open.
            ConfigError: an offset is negative, or the group has no name.
        """
        from penstock.client.group.offsets import GroupMetadata, checked_offsets

        metadata = group if isinstance(group, GroupMetadata) else None
        if metadata is None:
            metadata = GroupMetadata(group) if isinstance(group, str) else group_metadata_of(group)
        metadata.check()
        checked = checked_offsets(offsets, "send_offsets()")
        driver = await self._transactions()
        if checked:
            await driver.send_offsets(checked, metadata)

    async def prepare_transaction(self) -> TransactionCoordinates:
        """Wait until all is acknowledged, accept nothing more, and return what names the transaction.

        The transaction stays open, also when this producer is closed, until `commit_transaction` or
        `abort_transaction` here, `AsyncAdmin.end_transaction` anywhere, or ``transaction.timeout.ms``.

        Raises:
            TransactionAbortableError: a record was not accepted. Abort.
            TransactionRetriableError: not within ``max.block.ms``; call it again, or abort.
            TransactionFatalError: the producer has failed for good.
            TransactionStateError: no transaction is open.
        """
        return await (await self._transactions()).prepare()

    async def commit_transaction(self) -> None:
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
        await (await self._transactions()).commit()

    async def abort_transaction(self) -> None:
        """Give up what was not sent, wait for what is under way, and abort.

        Raises:
            TransactionRetriableError: not within ``max.block.ms``; call it again.
            TransactionFatalError: the producer has failed for good; the coordinator aborts by the timeout.
            TransactionStateError: no transaction is open, or a commit is under way.
        """
        await (await self._transactions()).abort()

    @property
    def transaction_coordinates(self) -> TransactionCoordinates:
        """What names the open transaction: its id, producer id and epoch.

        Raises:
            TransactionStateError: no producer id was given out yet.
        """
        from penstock.client.transactions.steps import TransactionCoordinates
        from penstock.errors import TransactionStateError

        self.check_transactional_id()
        if self._driver is None or self._driver.machine.owner.producer_id < 0:
            raise TransactionStateError("no producer id yet: call init_transactions() or begin_transaction()")
        machine = self._driver.machine
        return TransactionCoordinates(machine.transactional_id, *machine.owner)

    async def leave_transaction(self, exc: BaseException | None) -> None:
        """End the block of `transaction`: commit, or abort because of `exc`, which the caller raises."""
        driver = await self._transactions()
        if exc is None:
            try:
                await driver.commit()
            except TransactionAbortableError as error:
                await self._abort_because_of(error)
                raise
        elif driver.is_open:
            await self._abort_because_of(exc)

    async def _abort_because_of(self, reason: BaseException) -> None:
        driver = await self._transactions()
        try:
            if isinstance(reason, Exception):
                await driver.abort()
            else:
                await driver.settle(INTERRUPTED_ABORT_S)
        except PenstockError as error:
            reason.add_note(f"The abort of the transaction has failed, too: {error}")

    # -- what is made where there is an id

    def check_transactional_id(self) -> None:
        """Raise ConfigError where there is no ``transactional.id``."""
        if self.config.transactional_id is None:
            raise ConfigError(
                'transactions need the option "transactional.id": a name that this producer has again '
                "after a restart, and that no other producer has meanwhile"
            )

    async def _transactions(self) -> TransactionDriver:
        self.check_transactional_id()
        await self.start()
        assert self._driver is not None
        return self._driver

    async def start(self) -> Any:
        """Reach the cluster."""

    def _new_transactional_accumulator(self) -> Accumulator:
        from penstock.client.produce.transactional_sender import TransactionalAccumulator

        return TransactionalAccumulator(self.config, self._client.dice)

    def _new_transactional_sender(self) -> Sender:
        from penstock.client.produce.transactional_sender import TransactionalAccumulator, TransactionalSender
        from penstock.client.transactions.driver import TransactionDriver

        accumulator = self._accumulator
        assert isinstance(accumulator, TransactionalAccumulator)
        self._driver = accumulator.driver = TransactionDriver(self._client, self.config, accumulator)
        return TransactionalSender(self._client, self.config, accumulator, self._driver)


class TransactionBlock:
    """A transaction for ``async with``. Made by `AsyncProducer.transaction`."""

    def __init__(self, producer: TransactionCalls) -> None:
        self._producer = producer

    async def __aenter__(self) -> None:
        await self._producer.begin_transaction()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: object
    ) -> None:
        await self._producer.leave_transaction(exc)


def group_metadata_of(group: object) -> GroupMetadata:
    """The member's id and generation of a consumer.

    Raises:
        ConfigError: it is no consumer.
    """
    if not hasattr(group, "group_metadata"):
        raise ConfigError(
            f"group is {short_repr(group)}: a consumer, its group_metadata() or the name of a group is needed"
        )
    metadata: GroupMetadata = group.group_metadata()
    return metadata
