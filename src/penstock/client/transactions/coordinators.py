"""The steps of a transactional producer as requests to coordinators, and their responses. For asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client.assignors.member_metadata import group_by_topic
from penstock.client.cluster.client import ANY_NODE
from penstock.client.cluster.metadata import BrokerNode
from penstock.client.cluster.retry import check_complete, only
from penstock.client.producer_id import NO_PRODUCER_ID, ProducerId
from penstock.client.transactions.steps import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    End,
    FindCoordinator,
    Initialize,
    Step,
    StepAnswer,
)
from penstock.errors import NetworkError, ProtocolViolationError, UnsupportedVersionError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from penstock.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from penstock.protocol.messages.end_txn_request import EndTxnRequest
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.protocol.since import (
    ADD_PARTITIONS_TO_TXN_SEVERAL_SINCE,
    END_TXN_RAISES_EPOCH_SINCE,
    FIND_COORDINATOR_KEYS_SINCE,
    INIT_PRODUCER_ID_RAISES_EPOCH_SINCE,
    TXN_OFFSET_COMMIT_IMPLICIT_ADDS_SINCE,
)

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.client.cluster.connection_pool import Peer

TYPED_KEY_VERSION = 1

EXPLICIT_ADD_VERSION_MAX = ADD_PARTITIONS_TO_TXN_SEVERAL_SINCE - 1
"""The last version of AddPartitionsToTxn for clients. Only brokers send newer ones."""

EXPLICIT_END_VERSION_MAX = END_TXN_RAISES_EPOCH_SINCE - 1
EXPLICIT_OFFSETS_VERSION_MAX = TXN_OFFSET_COMMIT_IMPLICIT_ADDS_SINCE - 1
GROUP_METADATA_VERSION = 3
FEATURE = "transaction.version"
IMPLICIT_LEVEL = 2
"""The first level of the feature `transaction.version` at which brokers add partitions to a transaction, and
every end of a transaction raises the epoch (KIP-890)."""


class UnsentError(NetworkError):
    """A request was not sent, because the broker cannot be reached: it had no effect."""


def speaks_implicit_adds(client: AsyncClient) -> bool:
    """Return True if the cluster has enabled the transactions of KIP-890 (`transaction.version` 2)."""
    return client.feature_level(FEATURE) >= IMPLICIT_LEVEL


async def take_step(
    client: AsyncClient, step: Step, node: int, transactional_id: str, timeout_ms: int
) -> StepAnswer:
    """Send one request of a transactional producer (a step) to a node, without retries; return the answer.

    Raises:
        UnsentError: the request has not been sent.
        NetworkError, RequestTimeoutError, ProtocolViolationError: sent, and no valid response has come.
        UnsupportedVersionError: the broker is too old for the step.
        AuthenticationError, DecodeError: the login failed, or the response cannot be decoded.
    """
    if isinstance(step, FindCoordinator):
        return await find_coordinator(client, step)
    peer = await _reach(client, node)
    if isinstance(step, Initialize):
        return await _initialize(client, peer, step, transactional_id, timeout_ms)
    if isinstance(step, AddPartitions):
        return await _add_partitions(client, peer, step, transactional_id)
    if isinstance(step, AddOffsets):
        request = AddOffsetsToTxnRequest(
            transactional_id=transactional_id,
            producer_id=step.owner.producer_id,
            producer_epoch=step.owner.epoch,
            group_id=step.group_id,
        )
        return StepAnswer((await peer.request(request, client.request_timeout_s)).error_code)
    if isinstance(step, CommitOffsets):
        return await _commit_offsets(client, peer, step, transactional_id)
    return await end(client, peer, step, transactional_id)


async def _reach(client: AsyncClient, node: int) -> Peer:
    try:
        return await client.peer(node)
    except OSError as error:
        raise UnsentError(str(error)) from error


async def find_coordinator(client: AsyncClient, step: FindCoordinator) -> StepAnswer:
    """Ask any broker for the coordinator of a group or a transactional id; return the broker's answer.

    Raises as `take_step`.
    """
    await client.bootstrap()
    peer = await _reach(client, ANY_NODE)
    version = peer.versions.choose(FindCoordinatorRequest)
    if version < TYPED_KEY_VERSION:
        raise UnsupportedVersionError(
            f"broker {peer.connection.address} is older than Kafka 0.11: it has no transactions"
        )
    has_list = version >= FIND_COORDINATOR_KEYS_SINCE
    request = FindCoordinatorRequest(
        key="" if has_list else step.key,
        key_type=step.kind,
        coordinator_keys=[step.key] if has_list else [],
    )
    answer = await peer.connection.request(request, version, client.request_timeout_s)
    broker = peer.connection.address
    found: Any = only(answer.coordinators, broker, "FindCoordinator") if has_list else answer
    if found.error_code:
        return StepAnswer(found.error_code)
    if found.node_id < 0:
        raise ProtocolViolationError(f"broker {broker} says that {step.key!r} is with node {found.node_id}")
    known = client.cluster.nodes.get(found.node_id)
    if known is None:
        client.cluster.nodes[found.node_id] = BrokerNode(found.node_id, found.host, found.port)
    return StepAnswer(node=found.node_id)


async def _initialize(
    client: AsyncClient, peer: Peer, step: Initialize, transactional_id: str, timeout_ms: int
) -> StepAnswer:
    version = peer.versions.choose(InitProducerIdRequest)
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
    if step.owner != NO_PRODUCER_ID:
        if version < INIT_PRODUCER_ID_RAISES_EPOCH_SINCE:
            raise UnsupportedVersionError(
                f"a transaction is in doubt, and broker {peer.connection.address} is older than Kafka 2.5: "
                "it cannot give this producer a new epoch; use another producer"
            )
        request.producer_id, request.producer_epoch = step.owner
    answer = await peer.connection.request(request, version, client.request_timeout_s)
    if not answer.error_code and (answer.producer_id < 0 or answer.producer_epoch < 0):
        raise _no_producer(peer, answer)
    return StepAnswer(answer.error_code, owner=ProducerId(answer.producer_id, answer.producer_epoch))


async def _add_partitions(
    client: AsyncClient, peer: Peer, step: AddPartitions, transactional_id: str
) -> StepAnswer:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=step.owner.producer_id,
        v3_and_below_producer_epoch=step.owner.epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=numbers)
            for topic, numbers in group_by_topic(sorted(step.partitions))
        ],
    )
    answer = await peer.request(request, client.request_timeout_s, EXPLICIT_ADD_VERSION_MAX)
    codes = {
        TopicPartition(topic.name, each.partition_index): each.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    }
    check_complete(step.partitions, codes, peer.connection.address, "AddPartitionsToTxn")
    # The codes of the others say why those were not attempted.
    told = [code for code in codes.values() if code != ErrorCode.OPERATION_NOT_ATTEMPTED]
    if any(told):
        codes = {tp: code for tp, code in codes.items() if code != ErrorCode.OPERATION_NOT_ATTEMPTED}
    return StepAnswer(codes=codes)


async def _commit_offsets(
    client: AsyncClient, peer: Peer, step: CommitOffsets, transactional_id: str
) -> StepAnswer:
    at_most = TXN_OFFSET_COMMIT_IMPLICIT_ADDS_SINCE if step.is_implicit else EXPLICIT_OFFSETS_VERSION_MAX
    version = peer.versions.choose(TxnOffsetCommitRequest, at_most)
    if step.is_implicit and version < TXN_OFFSET_COMMIT_IMPLICIT_ADDS_SINCE:
        raise _too_old_for_feature(peer)
    group = step.group
    if group.is_member and version < GROUP_METADATA_VERSION:
        raise UnsupportedVersionError(
            f"broker {peer.connection.address} is older than Kafka 2.5 and cannot check a group's member "
            "(KIP-447): give the name of the group alone"
        )
    topics = [
        TxnOffsetCommitRequestTopic(
            name=topic,
            partitions=[
                TxnOffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=at.offset,
                    committed_leader_epoch=at.leader_epoch,
                    committed_metadata=at.metadata,
                )
                for number in numbers
                for at in [step.offsets[TopicPartition(topic, number)]]
            ],
        )
        for topic, numbers in group_by_topic(step.offsets)
    ]
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group.group_id,
        producer_id=step.owner.producer_id,
        producer_epoch=step.owner.epoch,
        topics=topics,
    )
    if version >= GROUP_METADATA_VERSION:
        request.generation_id_or_member_epoch = group.generation
        request.member_id = group.member_id
        request.group_instance_id = group.group_instance_id
    answer = await peer.connection.request(request, version, client.request_timeout_s)
    codes = {
        TopicPartition(topic.name, each.partition_index): each.error_code
        for topic in answer.topics
        for each in topic.partitions
    }
    check_complete(step.offsets, codes, peer.connection.address, "TxnOffsetCommit")
    return StepAnswer(codes=codes)


async def end(client: AsyncClient, peer: Peer, step: End, transactional_id: str) -> StepAnswer:
    """Send EndTxn to the coordinator, and return its answer. Raises as `take_step`."""
    request = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=step.owner.producer_id,
        producer_epoch=step.owner.epoch,
        committed=step.is_commit,
    )
    at_most = END_TXN_RAISES_EPOCH_SINCE if step.raises_epoch else EXPLICIT_END_VERSION_MAX
    version = peer.versions.choose(EndTxnRequest, at_most)
    if step.raises_epoch and version < END_TXN_RAISES_EPOCH_SINCE:
        raise _too_old_for_feature(peer)
    answer = await peer.connection.request(request, version, client.request_timeout_s)
    owner = ProducerId(answer.producer_id, answer.producer_epoch)
    if step.raises_epoch and not answer.error_code and min(owner) < 0:
        raise _no_producer(peer, answer)
    return StepAnswer(answer.error_code, owner=owner)


def _too_old_for_feature(peer: Peer) -> UnsupportedVersionError:
    return UnsupportedVersionError(
        f"broker {peer.connection.address} does not speak transactions as {FEATURE} = {IMPLICIT_LEVEL} "
        "needs, which the cluster has finalised: upgrade it, or lower the feature"
    )


def _no_producer(peer: Peer, answer: Any) -> ProtocolViolationError:
    return ProtocolViolationError(
        f"broker {peer.connection.address} gave out producer id {answer.producer_id} "
        f"with epoch {answer.producer_epoch}"
    )
