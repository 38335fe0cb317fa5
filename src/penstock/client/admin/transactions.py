"""Administration of transactions for asyncio: list, describe, complete prepared ones, abort hanging ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from penstock.client.assignors.member_metadata import group_by_topic, ungroup
from penstock.client.cluster.retry import check_complete, left_out, only
from penstock.client.producer_id import NO_PRODUCER_ID
from penstock.client.transactions.coordinators import end, find_coordinator, speaks_implicit_adds, take_step
from penstock.client.transactions.steps import (
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
from penstock.protocol.field_values import TRANSACTION_KEY
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

T = TypeVar("T")

DURATION_VERSION, PATTERN_VERSION = 1, 2
"""The first versions of ListTransactions that filter by duration (KIP-994) and by a pattern (KIP-1152)."""

HANGING_AGE_MS = 15 * 60_000.0
"""The default age in ms from which a transaction counts as hanging. It is the default value of the broker's
``transaction.max.timeout.ms``.
"""


class TransactionListing(NamedTuple):
    """A transactional id as ListTransactions reports it, and the broker that is its coordinator."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


class TransactionDescription(NamedTuple):
    """The state of a transactional id, as its coordinator reports it."""

    transactional_id: str
    state: str
    """The state of the transaction: ``Empty``, ``Ongoing``, ``PrepareCommit``, ``CompleteCommit``,
    ``PrepareAbort`` or ``CompleteAbort``.
    """
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    """The time at which a partition was first added to the transaction (ms since 1970); None before that."""
    partitions: tuple[TopicPartition, ...]
    """The partitions in the transaction for which the coordinator still has to write a marker."""
    coordinator: int


class PartitionProducer(NamedTuple):
    """A producer that has written to a partition, as the partition's leader reports it."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    """The coordinator epoch of the producer's last marker; -1 before the first one."""
    last_sequence: int
    last_timestamp_ms: int
    transaction_start_offset: int | None
    """The first offset of the producer's open transaction in this partition, or None if none is open."""


class HangingTransaction(NamedTuple):
    """A transaction that is open in a partition, and that no coordinator will end."""

    partition: TopicPartition
    producer: PartitionProducer


class TransactionAdministration:
    """Describes and ends transactions, through the connections of a client.

    Each call raises KafkaError if a broker refuses, and NetworkError or RequestTimeoutError if no broker
    answers in time.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def listings(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        longer_than_ms: float | None = None,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """Return all transactional ids of the cluster, sorted, or those that match every given filter.

        `states` are names as in `TransactionDescription.state`; `longer_than_ms` selects transactions that
        have been running for longer; `pattern` is a regular expression that must match the whole id.
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

    async def describe(self, transactional_id: str) -> TransactionDescription:
        """Return the description of a transactional id."""
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

        return await self._at_coordinator(transactional_id, "describing a transaction", ask)

    async def end(self, where: TransactionCoordinates, *, commit: bool) -> None:
        """Commit or abort a prepared transaction, given its transactional id, producer id and epoch.

        Raises:
            TransactionAbortableError: a commit came too late; the transaction is aborted.
            ProducerFencedError: a newer producer uses the transactional id, or the id has expired.
            TransactionFatalError: the transaction to abort is committed already, or the coordinator refuses
                the request.
        """
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

    async def fence(self, transactional_id: str) -> TransactionCoordinates:
        """Abort the open transaction of a transactional id, and fence the producer that uses the id now.

        The effect on the transactional id is that of a new producer that calls InitProducerId. Returns the
        producer id and epoch that the coordinator has assigned.
        """
        timeout_ms = int(self._client.config.request_timeout_ms)

        async def ask(peer: Peer, node: int) -> TransactionCoordinates:
            answer = await take_step(
                self._client, Initialize(NO_PRODUCER_ID), node, transactional_id, timeout_ms
            )
            if answer.code:
                raise error_for(answer.code, f"fencing the producer of {transactional_id!r}")
            return TransactionCoordinates(transactional_id, *answer.owner)

        return await self._at_coordinator(transactional_id, "fencing a producer", ask)

    async def producers(
        self, wanted: Sequence[TopicPartition], broker: int | None = None
    ) -> dict[TopicPartition, list[PartitionProducer]]:
        """Return the active producers of each partition, from the partition leaders (DescribeProducers).

        If `broker` is not None, the client asks the replicas at that broker.
        """
        found: dict[TopicPartition, list[PartitionProducer]] = {}

        async def attempt() -> None:
            by_node: dict[int, list[TopicPartition]] = {}
            await self._client.topics_with(wanted)
            for tp in wanted:
                node = await self._client.leader(tp) if broker is None else broker
                by_node.setdefault(node, []).append(tp)
            await asyncio.gather(
                *(self._describe_producers_at(node, part, found) for node, part in by_node.items())
            )

        await self._client.retrying("describing producers", attempt)
        return {tp: found[tp] for tp in wanted}

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

    async def hanging(
        self, partitions: Sequence[TopicPartition], older_than_ms: float
    ) -> list[HangingTransaction]:
        """Return transactions that are open in one of these partitions, and that no coordinator will end.

        A transaction hangs if its last record is older than `older_than_ms`, and either its producer has no
        transactional id, or the coordinator of that id does not list the partition. Raises as `producers` and
        `listings`.
        """
        described = await self.producers(partitions)
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
        owners = {each.producer_id: each for each in await self.listings(producer_ids=ids)}
        accounted: set[tuple[int, TopicPartition]] = set()
        for owner in owners.values():
            try:
                description = await self.describe(owner.transactional_id)
            except KafkaError as error:
                if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    raise
                continue
            accounted.update((description.producer_id, tp) for tp in description.partitions)
        return [each for each in suspects if (each.producer.producer_id, each.partition) not in accounted]

    async def abort_hanging(self, tp: TopicPartition, start_offset: int) -> PartitionProducer:
        """Write an abort marker for the transaction that is open in a partition from `start_offset` on.

        Returns the producer of the transaction. Raises ConfigError if no transaction begins at
        `start_offset`.
        """
        producers = (await self.producers([tp]))[tp]
        for producer in producers:
            if producer.transaction_start_offset == start_offset:
                await self.write_abort_marker(
                    tp, producer.producer_id, producer.producer_epoch, producer.coordinator_epoch
                )
                return producer
        raise ConfigError(f"no transaction is open in {tp} from offset {start_offset} on")

    async def write_abort_marker(
        self, tp: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
    ) -> None:
        """Write an abort marker for a producer's open transaction in one partition.

        Do not pass a `coordinator_epoch` above the coordinator's real epoch: the partition would refuse the
        coordinator's later markers. If `coordinator_epoch` is -1 (not known), the marker has 0. Raises as
        `abort_hanging`.
        """
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])],
            coordinator_epoch=max(coordinator_epoch, 0),
        )

        async def attempt() -> None:
            peer = await self._client.peer(await self._client.leader(tp))
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
        self, transactional_id: str, what: str, ask: Callable[[Peer, int], Awaitable[T]]
    ) -> T:
        """Find a transactional id's coordinator, and return what `ask` returns for a connection to it.

        Failed attempts are retried. `ask` gets the connection and the coordinator's node id. `what` describes
        the action in error messages.
        """
        client = self._client

        async def attempt() -> T:
            found = await find_coordinator(client, FindCoordinator(TRANSACTION_KEY, transactional_id))
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
