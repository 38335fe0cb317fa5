"""Implements `SinkCluster` with Kafka: the decisions, transactions and topics of a sink. Uses asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress

from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.metadata import is_recreated
from penstock.client.config import ProducerConfig
from penstock.client.produce.producer import AsyncProducer
from penstock.client.transactions.coordinators import speaks_implicit_adds
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, PenstockError, ProducerFencedError, TransactionAbortableError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.spark.exactly_once import log_reader
from penstock.spark.exactly_once.attempt import known_ids
from penstock.spark.exactly_once.coordinators import UNENDED_STATES, Coordinators
from penstock.spark.exactly_once.decision import (
    Decision,
    Ranges,
    SinkState,
    TaskTransaction,
    TopicIds,
    merged,
)
from penstock.spark.exactly_once.gate import Gate, until_marked
from penstock.spark.exactly_once.place import SinkPlace
from penstock.spark.exactly_once.settlement import TransactionFate
from penstock.spark.exactly_once.state_topic import finished_value, partition_of, read_state

DRIVER_TIMEOUT_MS = 30_000
"""The transaction timeout of a driver in ms. If a driver is killed, its open transaction blocks the drivers
of other sinks at most this long."""

RETRY_BACKOFF_MS = 20
"""The pause in ms before a retry: the previous transaction of the id usually ends within milliseconds."""

GONE_CODES = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)
"""The error codes of brokers for a topic that does not exist, or that is being created."""

_log = logger_named("penstock.spark")


class KafkaSinkCluster:
    """The operations of `SinkCluster` on a Kafka cluster. Use it on one event loop, and close it."""

    def __init__(self, place: SinkPlace) -> None:
        self._place = place
        settings = {"retry.backoff.ms": RETRY_BACKOFF_MS, **place.settings()}
        # To ask what became of a topic is not to create it.
        options = {"bootstrap_servers": place.bootstrap_servers, "allow_auto_create_topics": False}
        config = ProducerConfig.parse(settings, options, prefix="kafka.")
        self._client = AsyncClient(config)
        self._coordinators = Coordinators(self._client, int(config.transaction_timeout_ms))
        self._producer: AsyncProducer | None = None
        self._partition: TopicPartition | None = None
        self._finishing: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Wait until the state is stored, and close the connections."""
        await self._finished()
        if self._producer is not None:
            await self._producer.close()
        await self._client.close()

    # -- what is stored

    async def take_over(self) -> SinkState:
        self._partition = await partition_of(self._client, self._place)
        self._producer = AsyncProducer(
            self._place.bootstrap_servers,
            self._place.settings(
                **{
                    "transactional.id": self._place.driver_id,
                    "transaction.timeout.ms": DRIVER_TIMEOUT_MS,
                    "retry.backoff.ms": RETRY_BACKOFF_MS,
                    "linger.ms": 0,
                    "max.request.size": 8 << 20,
                }
            ),
        )
        await self._producer.init_transactions()
        return await read_state(self._client, self._place)

    async def peek(self) -> SinkState | None:
        """Return the sink's state without fencing a driver, or None while a driver's transaction is open."""
        if await self._coordinators.state_of(self._place.driver_id) in UNENDED_STATES:
            return None
        return await read_state(self._client, self._place)

    async def decide(self, decision: Decision) -> None:
        await self._finished()
        await self._store(self._place.decision_key, decision.to_bytes())

    async def finish(self, batch: int) -> None:
        # Spares the next driver some questions, no more: nothing waits for it.
        await self._finished()
        store = self._store(self._place.finished_key, finished_value(batch))
        self._finishing = asyncio.create_task(store)

    async def _finished(self) -> None:
        if self._finishing is not None:
            task, self._finishing = self._finishing, None
            try:
                await task
            except PenstockError as error:
                _log.warning(
                    "that a batch of %s is finished could not be stored: %s", self._place.sink, error
                )

    async def _store(self, key: bytes, value: bytes | None) -> None:
        producer, tp = self._producer, self._partition
        assert producer is not None  # every driver takes over first
        assert tp is not None
        try:
            async with producer.transaction():
                await producer.send(tp.topic, value, key=key, partition=tp.partition)
        except (ProducerFencedError, TransactionAbortableError) as error:
            cause = error.__cause__
            if isinstance(error, TransactionAbortableError) and not (
                isinstance(cause, KafkaError) and cause.code == ErrorCode.INVALID_PRODUCER_EPOCH
            ):
                raise
            raise ProducerFencedError(
                f"another driver has taken over the sink {self._place.sink!r}: the same query runs twice, or "
                f"was started anew; this one stops ({error})"
            ) from error

    # -- transactions of tasks

    async def end(self, transaction: TaskTransaction, *, is_commit: bool) -> TransactionFate:
        return await self._coordinators.end(transaction, is_commit=is_commit)

    async def fence(self, transactional_id: str) -> None:
        await self._coordinators.fence(transactional_id)

    async def open_ids(self) -> Collection[str]:
        return await self._coordinators.open_ids(self._place.task_prefix)

    async def end_gate(self, gate: Gate, transactions: Collection[TaskTransaction] = ()) -> None:
        """Abort the gate, so that the rows appear, once `transactions` are committed in all partitions."""
        await until_marked(self._coordinators, transactions)
        fate = await self.end(gate.transaction, is_commit=False)
        # With brokers before KIP-890 the epoch stays: a task that is late would close the gate again. With
        # later ones the end of a transaction is a new epoch; what has no transaction yet gets none.
        if not transactions or not speaks_implicit_adds(self._client):
            await self.fence(gate.transaction.transactional_id)
        if fate is TransactionFate.UNCLEAR and transactions:
            _log.warning(
                "the gate of %s ended before its time: its rows may have appeared one task after the other",
                self._place.sink,
            )

    # -- topics

    async def replaced(self, topic_ids: TopicIds) -> Collection[str]:
        if not topic_ids:
            return ()
        names = {name for name, _ in topic_ids}
        await self._client.refresh(names)
        known = self._client.cluster.topics
        for name in names:
            if name in known and known[name].error_code not in (ErrorCode.NONE, *GONE_CODES):
                raise error_for(known[name].error_code, f"topic {name!r}")
        return {
            name
            for name, topic_id in topic_ids
            if name not in known
            or known[name].error_code in GONE_CODES
            or is_recreated(topic_id, known[name].topic_id)
        }

    # -- logs

    async def inspect(
        self, transactions: Collection[TaskTransaction], ranges: Ranges
    ) -> Mapping[TaskTransaction, TransactionFate]:
        return await log_reader.fates(self._client, transactions, ranges)

    async def copy(
        self, transactions: Collection[TaskTransaction], ranges: Ranges
    ) -> tuple[TaskTransaction, Ranges, TopicIds]:
        producer = AsyncProducer(
            self._place.bootstrap_servers, self._place.settings(**{"transactional.id": self._place.copy_id})
        )
        try:
            await producer.begin_transaction()
            deliveries = [
                await producer.send_arrow(topic, batch)
                async for topic, batch in log_reader.rows(self._client, transactions, ranges)
            ]
            coordinates = await producer.prepare_transaction()
            written = [await delivery for delivery in deliveries]
        finally:
            with suppress(PenstockError):
                await producer.close()
        spans = merged({each.topic: each.offsets} for each in written)
        return TaskTransaction(*coordinates), log_reader.spans_of(spans), known_ids(deliveries)


class UnnamedJobCluster(KafkaSinkCluster):
    """The `SinkCluster` of a job with a generated name. It stores no state, as no other run uses the name.

    If the job fails between two of its commits, its other transactions are aborted, because no later run
    would commit them.
    """

    async def take_over(self) -> SinkState:
        return SinkState()

    async def peek(self) -> SinkState | None:
        return SinkState()

    async def decide(self, decision: Decision) -> None:
        return

    async def finish(self, batch: int) -> None:
        return
