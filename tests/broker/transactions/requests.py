"""One request for each API about transactions, for tests that cover all APIs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.protocol.api import ApiKey
from penstock.protocol.message import Message
from penstock.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from penstock.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.protocol.messages.end_txn_request import EndTxnRequest
from penstock.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)


def add_partitions(node: Any, version: int) -> Message:
    topics = [AddPartitionsToTxnTopic(name="t", partitions=[0, 9])]
    if version >= 4:
        transaction = AddPartitionsToTxnTransaction(transactional_id="x", topics=topics)
        return AddPartitionsToTxnRequest(transactions=[transaction])
    return AddPartitionsToTxnRequest(v3_and_below_transactional_id="x", v3_and_below_topics=topics)


def write_markers(node: Any, version: int) -> Message:
    topics = [WritableTxnMarkerTopic(name="t", partition_indexes=[0, 9])]
    return WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=7, topics=topics)])


def commit_offsets(node: Any, version: int) -> Message:
    partitions = [TxnOffsetCommitRequestPartition(partition_index=index) for index in (0, 9)]
    topic_id = node.cluster.topic("t").id
    topics = [TxnOffsetCommitRequestTopic(name="t", topic_id=topic_id, partitions=partitions)]
    return TxnOffsetCommitRequest(transactional_id="x", group_id="g", topics=topics)


TRANSACTION_REQUESTS: dict[ApiKey, Callable[[Any, int], Message]] = {
    ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: lambda node, version: AddOffsetsToTxnRequest(
        transactional_id="x", group_id="g"
    ),
    ApiKey.END_TXN: lambda node, version: EndTxnRequest(transactional_id="x", committed=True),
    ApiKey.WRITE_TXN_MARKERS: write_markers,
    ApiKey.TXN_OFFSET_COMMIT: commit_offsets,
}

TRANSACTION_CODES: dict[ApiKey, set[int]] = {
    ApiKey.ADD_OFFSETS_TO_TXN: {16},
    ApiKey.END_TXN: {16},
    ApiKey.WRITE_TXN_MARKERS: {3},
    ApiKey.TXN_OFFSET_COMMIT: {3, 16},
}
"""The error codes of these requests at a broker that has no `__transaction_state` topic yet."""
