"""The requests of a transactional producer to coordinators ("steps"), and the answers, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.client.group.offsets import GroupMetadata, OffsetAndMetadata
from penstock.client.producer_id import NO_PRODUCER_ID, ProducerId
from penstock.model import TopicPartition
from penstock.printable import printable

NO_NODE = -1


class TransactionCoordinates(NamedTuple):
    """The identity of one open transaction, with which any process can send EndTxn to end it.

    The fields are plain values, to be stored or sent. They are valid until the transactional id is used
    again.
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
    """The step FindCoordinator: asks for the node id of a transactional id's or a group's coordinator."""

    kind: int
    key: str


class Initialize(NamedTuple):
    """The step InitProducerId, which fences other producers of the transactional id.

    `owner` is the current producer id and epoch, of which the coordinator gives the next epoch (KIP-360).
    """

    owner: ProducerId


class AddPartitions(NamedTuple):
    """The step AddPartitionsToTxn, which precedes the first batch in the protocol before KIP-890."""

    owner: ProducerId
    partitions: frozenset[TopicPartition]


class AddOffsets(NamedTuple):
    """The step AddOffsetsToTxn, which precedes a group's offsets in the protocol before KIP-890."""

    owner: ProducerId
    group_id: str


class CommitOffsets(NamedTuple):
    """The step TxnOffsetCommit. `is_implicit`: the broker adds the group's partition itself (KIP-890)."""

    owner: ProducerId
    group: GroupMetadata
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    is_implicit: bool


class End(NamedTuple):
    """The step EndTxn. If `raises_epoch`, the answer has the next producer id and epoch (KIP-890)."""

    owner: ProducerId
    is_commit: bool
    raises_epoch: bool


Step = FindCoordinator | Initialize | AddPartitions | AddOffsets | CommitOffsets | End


class StepAnswer(NamedTuple):
    """A coordinator's answer to a step: one error code for the request or each partition, and the result."""

    code: int = 0
    codes: Mapping[TopicPartition, int] = {}
    owner: ProducerId = NO_PRODUCER_ID
    node: int = NO_NODE
