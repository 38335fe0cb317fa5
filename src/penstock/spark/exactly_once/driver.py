"""The driver's part of a sink: decides a batch, commits its transactions, and aborts all others.

The cluster is a Protocol, so that a simulation can end the driver between any two steps. A new driver has
only the state that `SinkCluster` stores.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from penstock.common.logs import logger_named
from penstock.errors import RequestTimeoutError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.spark.exactly_once.decision import (
    Course,
    Decision,
    Ranges,
    SinkState,
    TaskTransaction,
    TopicIds,
    course_of,
)
from penstock.spark.exactly_once.settlement import (
    Copy,
    EndTransactions,
    Finish,
    Inspect,
    LostRowsError,
    Settlement,
    TransactionFate,
)

INSPECTION_PAUSE_S = 0.2
"""The pause in seconds between two lookups of a transaction's markers in the log."""

INSPECTIONS_MAX = 300
"""The most lookups of a transaction's markers, which take about a minute. A transaction without a marker then
counts as hanging."""

_log = logger_named("penstock.spark")


class SinkCluster(Protocol):
    """The interface to the Kafka cluster of one sink. Each method raises PenstockError."""

    async def take_over(self) -> SinkState:
        """Fence every other driver of the sink, and return the state that is stored."""
        ...

    async def decide(self, decision: Decision) -> None:
        """Store a decision atomically, unless another driver has taken over.

        Raises:
            ProducerFencedError: another driver has taken over.
        """
        ...

    async def finish(self, batch: int) -> None:
        """Store in the state topic that all rows of `batch` are committed."""
        ...

    async def end(self, transaction: TaskTransaction, *, is_commit: bool) -> TransactionFate:
        """Commit or abort a transaction; return its resulting state, a `TransactionFate`. Can be repeated."""
        ...

    async def inspect(
        self, transactions: Collection[TaskTransaction], ranges: Ranges
    ) -> Mapping[TaskTransaction, TransactionFate]:
        """Return the fates of transactions, read from their markers in the log; UNCLEAR without a marker."""
        ...

    async def replaced(self, topic_ids: TopicIds) -> Collection[str]:
        """Return the given topics that were deleted since the rows were written, even if created again."""
        ...

    async def copy(
        self, transactions: Collection[TaskTransaction], ranges: Ranges
    ) -> tuple[TaskTransaction, Ranges, TopicIds]:
        """Write the rows of aborted transactions into a new one, and leave it open.

        Returns the new transaction, and the offset ranges and topic ids of its rows.
        """
        ...

    async def open_ids(self) -> Collection[str]:
        """Return the transactional ids of this sink's tasks that have an open transaction."""
        ...

    async def fence(self, transactional_id: str) -> None:
        """Abort the transaction of a transactional id, and fence the producer that uses it."""
        ...


class SinkDriver:
    """Commits the batches of one sink, one after another. After an exception, create a new object."""

    def __init__(self, cluster: SinkCluster, *, accepts_loss: bool = False) -> None:
        self._cluster = cluster
        self._accepts_loss = accepts_loss
        self._state: SinkState | None = None

    async def commit(
        self,
        batch: int,
        transactions: Sequence[TaskTransaction],
        ranges: Ranges,
        rows: int = 0,
        topic_ids: TopicIds = frozenset(),
    ) -> tuple[TaskTransaction, ...]:
        """Commit the rows of `batch` exactly once: those in `transactions`, or those in an earlier decision.

        `topic_ids` are the ids of the topics to which the rows were written.

        Returns the transactions that now hold the rows.

        Raises:
            ConfigError: the sink holds a later batch.
            ProducerFencedError: another driver has taken over.
            KafkaError: UNKNOWN_TOPIC_ID (100), a topic was deleted while the batch was written.
            LostRowsError: rows of a decided batch are no longer in the log.
            PenstockError: the cluster cannot be reached, or refuses.
        """
        if self._state is None:
            self._state = await self._cluster.take_over()
        course = course_of(self._state, batch)
        if course is Course.DECIDE:
            decision = Decision(batch, tuple(transactions), ranges, rows, topic_ids)
            await self._check_topics(decision)
            if transactions:
                await self._cluster.decide(decision)
                self._state = self._state.with_decision(decision)
        else:
            _log.info(
                "batch %d was written before it was interrupted; what was written again is dropped", batch
            )
            await self._abort(transactions)
            decision = self._state.decision or Decision(batch, ())
            if course is Course.ROLL_FORWARD:
                decision = decision.without(await self._cluster.replaced(decision.topic_ids))
        if course is not Course.DROP:
            decision = await self._settle(decision)
            self._state = self._state.with_decision(decision) if decision.transactions else self._state
        await self._fence_leftovers(decision)
        if decision.transactions and course is not Course.DROP:
            self._state = self._state.with_finished(batch)
            await self._cluster.finish(batch)
        return decision.transactions

    async def abort(
        self, state: SinkState | None, batch: int, transactions: Sequence[TaskTransaction]
    ) -> None:
        """Abort the transactions of a failed batch, unless it is decided or `state` is None (unknown).

        Transactions that are left open are ended by the next driver, or by their timeout.
        """
        if state is None or (state.decision is not None and state.decision.batch == batch):
            return
        await self._abort(transactions)
        if batch > state.last_batch:
            await self._fence_leftovers(Decision(batch, ()))

    async def _abort(self, transactions: Sequence[TaskTransaction]) -> None:
        await asyncio.gather(*(self._cluster.end(each, is_commit=False) for each in transactions))

    async def _settle(self, decision: Decision) -> Decision:
        """Commit the transactions of a decision; return the decision that was carried out in the end.

        It is a new decision if rows had to be copied into a new transaction.
        """
        settlement = Settlement(decision)
        looks = 0
        while True:
            action = settlement.next_action()
            if isinstance(action, EndTransactions):
                ends = (self._cluster.end(each, is_commit=True) for each in action.transactions)
                fates = await asyncio.gather(*ends)
                settlement.learn(dict(zip(action.transactions, fates, strict=True)))
            elif isinstance(action, Inspect):
                looks += 1
                if looks > INSPECTIONS_MAX:
                    raise RequestTimeoutError(
                        f"{action.transactions[0].transactional_id!r} of batch {decision.batch} is "
                        "neither committed nor aborted: it hangs; find it with 'penstock transaction list', "
                        "then start the query again"
                    )
                if looks > 1:
                    await asyncio.sleep(INSPECTION_PAUSE_S)
                settlement.learn(await self._cluster.inspect(action.transactions, settlement.decision.ranges))
            elif isinstance(action, Copy):
                settlement = Settlement(await self._decide_for_copy(settlement.decision, action.transactions))
            elif isinstance(action, Finish):
                decision = settlement.decision
                # Markers go to topics by name: a commit that succeeds does not say where the rows are.
                self._lose_topics(decision, await self._cluster.replaced(decision.topic_ids))
                return decision
            else:
                self._lose(settlement, action.transactions)

    async def _check_topics(self, decision: Decision) -> None:
        replaced = await self._cluster.replaced(decision.topic_ids)
        if replaced:
            raise error_for(
                ErrorCode.UNKNOWN_TOPIC_ID,
                f"{_names(replaced)}: deleted, or deleted and created anew, while batch {decision.batch} was "
                "written; the batch is aborted, and written once more at the next start of the query",
            )

    def _lose_topics(self, decision: Decision, topics: Collection[str]) -> None:
        if not topics:
            return
        message = (
            f"rows of batch {decision.batch} are lost: {_names(topics)} was deleted, or deleted and created "
            "anew, after the batch was decided; its rows in other topics are committed"
        )
        if not self._accepts_loss:
            raise LostRowsError(
                f"{message}. To go on without them, set failOnDataLoss to false for the next start"
            )
        _log.error("%s; going on, since failOnDataLoss is false", message)

    async def _decide_for_copy(
        self, decision: Decision, transactions: Collection[TaskTransaction]
    ) -> Decision:
        _log.warning(
            "%d transactions of batch %d were aborted after the batch was decided, mostly by their timeout: "
            "their rows are written again from the log",
            len(transactions),
            decision.batch,
        )
        copy, ranges, copied_ids = await self._cluster.copy(transactions, decision.ranges)
        # The ids of before stay: what became of a topic is judged again when the copy is committed.
        instead = Decision(decision.batch, (copy,), ranges, decision.rows, decision.topic_ids | copied_ids)
        # Before the copy is committed: else the next driver would copy once more.
        await self._cluster.decide(instead)
        return instead

    def _lose(self, settlement: Settlement, transactions: Sequence[TaskTransaction]) -> None:
        batch = settlement.decision.batch
        message = (
            f"rows of batch {batch} are lost: {len(transactions)} of its transactions were aborted after the "
            "batch was decided (by their timeout, mostly), and their rows were "
            "removed by retention, by compaction or with their topic"
        )
        if not self._accepts_loss:
            raise LostRowsError(
                f"{message}. To go on without them, set failOnDataLoss to false for the next start; "
                "a longer kafka.transaction.timeout.ms makes it less likely"
            )
        _log.error("%s; going on, since failOnDataLoss is false", message)
        settlement.give_up(transactions)

    async def _fence_leftovers(self, decision: Decision) -> None:
        """Abort the open transactions of attempts not in `decision`, because readers wait for them."""
        decided = {each.transactional_id for each in decision.transactions}
        left = sorted(set(await self._cluster.open_ids()) - decided)
        await asyncio.gather(*map(self._cluster.fence, left))


def _names(topics: Collection[str]) -> str:
    return ", ".join(f"topic {name!r}" for name in sorted(topics))
