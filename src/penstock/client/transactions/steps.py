"""What a transactional producer asks of coordinators, and what they answer: plain values, no protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.client.group.offsets import GroupMetadata, OffsetAndMetadata
from penstock.client.producer_id import NO_PRODUCER_ID, ProducerId
from penstock.model import TopicPartition
from penstock.printable import printable

GROUP_COORDINATOR, TRANSACTION_COORDINATOR = 0, 1
"""Kinds of coordinators, as FindCoordinator numbers them."""

NO_NODE = -1


class TransactionCoordinates(NamedTuple):
    """What names one open transaction to its coordinator, from any process: EndTxn needs no more.

    They are plain values, to be stored or sent. They hold until the id is used again.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int

    @property
    def owner(self) -> ProducerId:
        return ProducerId(self.producer_id, self.producer_epoch)

    def __str__(self) -> str:
        return printable(
            f"{self.transactional_id!r} (producer id {self.producer_id}, epoch {self.producer_epoch})"
        )


class FindCoordinator(NamedTuple):
    """Which node coordinates a transactional id or a group."""

    kind: int
    key: str


class Initialize(NamedTuple):
    """InitProducerId: fences other producers of the id. An `owner` gets its next epoch (KIP-360)."""

    owner: ProducerId


class AddPartitions(NamedTuple):
    """AddPartitionsToTxn, which the flow before KIP-890 sends ahead of the first batch."""

    owner: ProducerId
    partitions: frozenset[TopicPartition]


class AddOffsets(NamedTuple):
    """AddOffsetsToTxn, which the flow before KIP-890 sends ahead of offsets of a group."""

    owner: ProducerId
    group_id: str


class CommitOffsets(NamedTuple):
    """TxnOffsetCommit. `is_implicit` says that the broker adds the group's partition by itself (KIP-890)."""

    owner: ProducerId
    group: GroupMetadata
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    is_implicit: bool


class End(NamedTuple):
    """EndTxn. With `raises_epoch`, the answer has the producer id and epoch that come next (KIP-890)."""

    owner: ProducerId
    is_commit: bool
    raises_epoch: bool


Step = FindCoordinator | Initialize | AddPartitions | AddOffsets | CommitOffsets | End


class Answer(NamedTuple):
    """What a coordinator says: an error code for all, or for each partition, and what the step asked for."""

    code: int = 0
    codes: Mapping[TopicPartition, int] = {}
    owner: ProducerId = NO_PRODUCER_ID
    node: int = NO_NODE
