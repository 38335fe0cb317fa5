"""Transactions from outside: listed, described, ended by their coordinates, aborted where they hang.

For asyncio. A mixin of `AsyncAdmin`, which brings the connection.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.client.arguments import (
    broker_id,
    checked,
    flag,
    instance_of,
    list_of,
    milliseconds,
    names,
    optional,
    text,
    topic_partition,
    topic_partitions,
    whole,
)
from penstock.client.assignors.member_metadata import group_by_topic, ungroup
from penstock.client.cluster.answers import check_complete, left_out, only
from penstock.client.producer_id import NO_PRODUCER_ID
from penstock.client.transactions.coordinators import end, find_coordinator, speaks_implicit_adds, take_step
from penstock.client.transactions.steps import (
    TRANSACTION_COORDINATOR,
    End,
    FindCoordinator,
    Initialize,
    TransactionCoordinates,
)
from penstock.client.transactions.verdicts import Verdict, judge_step
from penstock.errors import (
    ConfigError,
    KafkaError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionFatalError,
    UnsupportedVersionError,
)
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from penstock.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from penstock.protocol.messages.list_transactions_request import ListTransactionsRequest
from penstock.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from penstock.client.cluster.client import AsyncClient
    from penstock.client.cluster.connection_pool import Peer
    from penstock.protocol.messages.describe_producers_response import ProducerState
    from penstock.protocol.messages.describe_transactions_response import TransactionState

DURATION_VERSION, PATTERN_VERSION = 1, 2
"""From here on ListTransactions filters by duration (KIP-994) and by a pattern (KIP-1152)."""

HANGING_AGE_MS = 15 * 60_000.0
"""How old a transaction without a coordinator must be: brokers allow no longer ``transaction.timeout.ms``."""


class TransactionListing(NamedTuple):
    """A transactional id in a list, and the node that coordinates it."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


class TransactionDescription(NamedTuple):
    """A transactional id, as of its coordinator."""

    transactional_id: str
    state: str
    """``Empty``, ``Ongoing``, ``PrepareCommit``, ``CompleteCommit``, or the last two with ``Abort``."""
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    """When the first partition was added, in milliseconds since 1970; None where no transaction was begun."""
    partitions: tuple[TopicPartition, ...]
    """The partitions that are part of it, and have no marker yet."""
    coordinator: int


class PartitionProducer(NamedTuple):
    """A producer that has written to a partition, as of the partition's leader."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    """That of its last marker; -1 before the first one."""
    last_sequence: int
    last_timestamp_ms: int
    transaction_start_offset: int | None
    """Where its open transaction begins; None where it has none here."""


class HangingTransaction(NamedTuple):
    """A transaction that is open in a partition, and that no coordinator will end."""

    partition: TopicPartition
    producer: PartitionProducer


class TransactionAdministration:
    """The calls of `AsyncAdmin` that concern transactions."""

    _client: AsyncClient

    @checked(
        states=list_of(text, "['Ongoing']"),
        producer_ids=list_of(whole, "[7]"),
        longer_than_ms=optional(milliseconds),
        pattern=optional(text),
    )
    async def list_transactions(
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
        client = self._client
        await client.bootstrap()
        duration_ms = -1 if longer_than_ms is None else int(longer_than_ms)
        found: list[TransactionListing] = []

        async def ask(node: int) -> None:
            peer = await client.peer(node)
            version = peer.versions.choose(ListTransactionsRequest)
            _check_filters(peer, version, longer_than_ms, pattern)
            request = ListTransactionsRequest(
                state_filters=list(states), producer_id_filters=list(producer_ids)
            )
            if version >= DURATION_VERSION:
                request.duration_filter = duration_ms
            if version >= PATTERN_VERSION:
                request.transactional_id_pattern = pattern
            answer = await peer.connection.request(request, version, client.request_timeout_s)
            if answer.error_code:
                raise error_for(answer.error_code, f"transactions of broker {peer.connection.address}")
            if answer.unknown_state_filters:
                raise ConfigError(f"transactions have no state {answer.unknown_state_filters[0]!r}")
            found.extend(
                TransactionListing(each.transactional_id, each.producer_id, each.transaction_state, node)
                for each in answer.transaction_states
            )

        async def ask_all() -> None:
            found.clear()
            await asyncio.gather(*map(ask, client.cluster.nodes))

        await client.retrying("listing transactions", ask_all)
        return sorted(found)

    async def describe_transactions(self, transactional_ids: Iterable[str]) -> list[TransactionDescription]:
        """Describe transactional ids, in the order given.

        Raises:
            KafkaError: an id is not known (105), or may not be seen (53).
            UnsupportedVersionError: the coordinator is older than Kafka 3.0.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        wanted = names(transactional_ids, "describe_transactions()", "transactional id")
        return [await self._describe_transaction(name) for name in wanted]

    async def _describe_transaction(self, transactional_id: str) -> TransactionDescription:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

        async def ask(peer: Peer, node: int) -> TransactionDescription:
            answer = await peer.request(request, self._client.request_timeout_s)
            told = only(answer.transaction_states, peer.connection.address, "DescribeTransactions")
            if told.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
                raise KafkaError(code, code.name, f"transactional id {transactional_id!r} does not exist")
            if told.error_code:
                raise error_for(told.error_code, f"transactional id {transactional_id!r}")
            if told.transactional_id != transactional_id:
                raise left_out(peer.connection.address, repr(transactional_id), "DescribeTransactions")
            return _description(told, node)

        described: TransactionDescription = await self._at_coordinator(
            transactional_id, "describing a transaction", ask
        )
        return described

    @checked(coordinates=instance_of(TransactionCoordinates), commit=flag)
    async def end_transaction(self, coordinates: TransactionCoordinates, *, commit: bool) -> None:
        """Commit or abort a prepared transaction by its coordinates, from any process.

        For what `AsyncProducer.prepare_transaction` has returned, wherever that producer is now. It may be
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
        where = TransactionCoordinates(*coordinates)
        client = self._client

        async def ask(peer: Peer, node: int) -> None:
            step = End(where.owner, commit, speaks_implicit_adds(client))
            answer = await end(client, peer, step, where.transactional_id)
            verdict = judge_step(step, answer.code)
            if verdict is Verdict.DONE:
                return
            doing = "committing" if commit else "aborting"
            error = error_for(answer.code, f"{doing} the transaction of {where}")
            if verdict in (Verdict.RETRY, Verdict.FIND):
                raise error
            if answer.code == ErrorCode.INVALID_PRODUCER_ID_MAPPING or verdict is Verdict.FENCED:
                raise ProducerFencedError(
                    f"{error}; the id is used by a newer producer, the transaction ran into its timeout, or "
                    "the id has expired"
                ) from error
            if commit and answer.code in (ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE):
                raise TransactionAbortableError(
                    f"{error}; nothing is committed: do its work again"
                ) from error
            raise TransactionFatalError(f"{error}; describe the transaction to see its state") from error

        await self._at_coordinator(where.transactional_id, "ending a transaction", ask)

    @checked(transactional_id=text)
    async def fence_producer(self, transactional_id: str) -> TransactionCoordinates:
        """Abort what the producer of a transactional id has open, and let that producer do nothing more.

        As a new producer of the id does when it starts. Returns the producer id and epoch given out for it.

        Raises:
            KafkaError: the id may not be used (53), or is refused.
            RequestTimeoutError: the transaction is not over within ``default.api.timeout.ms``.
            NetworkError: no coordinator answers.
        """
        timeout_ms = int(self._client.config.request_timeout_ms)

        async def ask(peer: Peer, node: int) -> TransactionCoordinates:
            answer = await take_step(
                self._client, Initialize(NO_PRODUCER_ID), node, transactional_id, timeout_ms
            )
            if answer.code:
                raise error_for(answer.code, f"fencing the producer of {transactional_id!r}")
            return TransactionCoordinates(transactional_id, *answer.owner)

        fenced: TransactionCoordinates = await self._at_coordinator(
            transactional_id, "fencing a producer", ask
        )
        return fenced

    @checked(broker=optional(broker_id))
    async def describe_producers(
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
        wanted = topic_partitions(partitions, "describe_producers()")
        if broker is not None:
            await self._client.check_node(broker)
        found: dict[TopicPartition, list[PartitionProducer]] = {}

        async def attempt() -> None:
            by_node: dict[int, list[TopicPartition]] = {}
            for tp in wanted:
                by_node.setdefault(await self._node_for(tp, broker), []).append(tp)
            await asyncio.gather(
                *(self._describe_producers_at(node, part, found) for node, part in by_node.items())
            )

        await self._client.retrying("describing producers", attempt)
        return {tp: found[tp] for tp in wanted}

    async def _node_for(self, tp: TopicPartition, broker: int | None) -> int:
        await self._client.topics_with([tp])
        if broker is not None:
            return broker
        leader = self._client.cluster.leader(tp)
        if leader is None:
            raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {tp}")
        return leader

    async def _describe_producers_at(
        self, node: int, part: list[TopicPartition], found: dict[TopicPartition, list[PartitionProducer]]
    ) -> None:
        peer = await self._client.peer(node)
        request = DescribeProducersRequest(
            topics=[
                TopicRequest(name=topic, partition_indexes=numbers) for topic, numbers in group_by_topic(part)
            ]
        )
        answer = await peer.request(request, self._client.request_timeout_s)
        for topic in answer.topics:
            for told in topic.partitions:
                tp = TopicPartition(topic.name, told.partition_index)
                if told.error_code:
                    raise error_for(told.error_code, f"producers of partition {tp}")
                found[tp] = sorted(map(_producer, told.active_producers))
        check_complete(part, found, peer.connection.address, "DescribeProducers")

    @checked(older_than_ms=milliseconds)
    async def find_hanging_transactions(
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
        described = await self.describe_producers(partitions)
        newest_ms = time.time() * 1000 - older_than_ms
        suspects = [
            HangingTransaction(tp, producer)
            for tp, producers in described.items()
            for producer in producers
            if producer.transaction_start_offset is not None and producer.last_timestamp_ms <= newest_ms
        ]
        if not suspects:
            return []
        ids = {suspect.producer.producer_id for suspect in suspects}
        owners = {each.producer_id: each for each in await self.list_transactions(producer_ids=ids)}
        accounted: set[tuple[int, TopicPartition]] = set()
        for owner in owners.values():
            try:
                description = await self._describe_transaction(owner.transactional_id)
            except KafkaError as error:
                if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    raise
                continue
            accounted.update((description.producer_id, tp) for tp in description.partitions)
        return [each for each in suspects if (each.producer.producer_id, each.partition) not in accounted]

    @checked(start_offset=whole)
    async def abort_hanging_transaction(
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
        tp = topic_partition(partition)
        producers = (await self.describe_producers([tp]))[tp]
        for producer in producers:
            if producer.transaction_start_offset == start_offset:
                await self.write_abort_marker(
                    tp, producer.producer_id, producer.producer_epoch, producer.coordinator_epoch
                )
                return producer
        raise ConfigError(f"no transaction is open in {tp} from offset {start_offset} on")

    @checked(producer_id=whole, producer_epoch=whole, coordinator_epoch=whole)
    async def write_abort_marker(
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
        tp = topic_partition(partition)
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])],
            coordinator_epoch=max(coordinator_epoch, 0),
        )

        async def attempt() -> None:
            peer = await self._client.peer(await self._node_for(tp, None))
            request = WriteTxnMarkersRequest(markers=[marker])
            answer = await peer.request(request, self._client.request_timeout_s)
            broker = peer.connection.address
            told = only(answer.markers, broker, "WriteTxnMarkers")
            codes = {
                TopicPartition(topic.name, each.partition_index): each.error_code
                for topic in told.topics
                for each in topic.partitions
            }
            check_complete([tp], codes, broker, "WriteTxnMarkers")
            if codes[tp]:
                raise error_for(codes[tp], f"aborting a transaction of producer {producer_id} in {tp}")

        await self._client.retrying("aborting a transaction", attempt)

    async def _at_coordinator(
        self, transactional_id: str, what: str, ask: Callable[[Peer, int], Awaitable[Any]]
    ) -> Any:
        """Ask the coordinator of a transactional id until it answers."""
        client = self._client

        async def attempt() -> Any:
            found = await find_coordinator(client, FindCoordinator(TRANSACTION_COORDINATOR, transactional_id))
            if found.code:
                raise error_for(found.code, f"looking for the coordinator of {transactional_id!r}")
            return await ask(await client.peer(found.node), found.node)

        return await client.retrying(what, attempt)


def _check_filters(peer: Peer, version: int, longer_than_ms: float | None, pattern: str | None) -> None:
    for given, since, release in (
        (longer_than_ms, DURATION_VERSION, "3.8"),
        (pattern, PATTERN_VERSION, "4.1"),
    ):
        if given is not None and version < since:
            raise UnsupportedVersionError(
                f"broker {peer.connection.address} is older than Kafka {release} and cannot filter "
                "transactions by that: leave the filter out"
            )


def _description(told: TransactionState, node: int) -> TransactionDescription:
    return TransactionDescription(
        told.transactional_id,
        told.transaction_state,
        told.producer_id,
        told.producer_epoch,
        told.transaction_timeout_ms,
        None if told.transaction_start_time_ms < 0 else told.transaction_start_time_ms,
        tuple(sorted(ungroup((topic.topic, topic.partitions) for topic in told.topics))),
        node,
    )


def _producer(told: ProducerState) -> PartitionProducer:
    return PartitionProducer(
        told.producer_id,
        told.producer_epoch,
        told.coordinator_epoch,
        told.last_sequence,
        told.last_timestamp,
        None if told.current_txn_start_offset < 0 else told.current_txn_start_offset,
    )
