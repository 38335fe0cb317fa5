"""Messages between the nodes of a cluster and its controller. Fetches use Kafka's own messages.

They stand for BrokerRegistration, BrokerHeartbeat and AlterPartition, and for fetches of the metadata
log. All nodes are in one process, so these messages are never encoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from penstock.protocol.message import Message

CONTROLLER = -1
"""The address of the controller, beside the ids of nodes."""


class MetadataBatch(NamedTuple):
    """Metadata records that are applied together. `number` counts batches from 0, without gaps."""

    number: int
    records: tuple[Message, ...]


class NodeRegistration(NamedTuple):
    """The message of a node that has started. `endpoints` are host and port by listener name."""

    node: int
    incarnation: int
    """Another one with each start of the node."""
    rack: str | None
    endpoints: Mapping[str, tuple[str, int]]
    was_clean: bool = True
    """Whether its last life has ended in order: else records may be lost that it had."""


class Registered(NamedTuple):
    """The answer to a registration: the node's broker epoch, and the metadata that it lacks."""

    broker_epoch: int


class NodeHeartbeat(NamedTuple):
    """The heartbeat of a live node. `next_batch` is the number of the first metadata batch that it lacks."""

    node: int
    broker_epoch: int
    next_batch: int
    wants_stop: bool = False


class HeartbeatAnswer(NamedTuple):
    """The answer to a heartbeat.

    `is_known` is False if the node must register again; `may_stop` is True if it may shut down now.
    """

    is_known: bool
    may_stop: bool
    batches: Sequence[MetadataBatch]


class IsrChange(NamedTuple):
    """A new ISR of one partition, with the broker epoch of each member; epoch -1 is not compared."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    in_sync: tuple[tuple[int, int], ...]


class Proposal(NamedTuple):
    """The new ISRs that a leader proposes for partitions that it leads, each once (AlterPartition)."""

    node: int
    broker_epoch: int
    changes: tuple[IsrChange, ...]
    number: int = 0
    """Counts the proposals of one life of a node: an older one, or the same again, is not looked at."""


class ProposalAnswer(NamedTuple):
    """The answer to a proposal: errors of AlterPartition, or 0. The changes themselves come as metadata."""

    error: int
    """Of the proposal as a whole: nothing of it was written."""
    errors: tuple[int, ...] = ()
    """Of each change, in their order; none where the whole was refused."""


class Feed(NamedTuple):
    """A metadata batch that the controller sends to a node after writing it."""

    batch: MetadataBatch


Asked: TypeAlias = "NodeRegistration | NodeHeartbeat | Proposal | Feed | Message"
"""What one node sends to another, or to the controller."""
