"""Messages between the nodes of a cluster and its controller. Fetches use Kafka's own messages.

They correspond to Kafka's BrokerRegistration, BrokerHeartbeat and AlterPartition, and to fetches of the
metadata log. All nodes are in one process, so these messages are never encoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from penstock.protocol.message import Message

CONTROLLER = -1
"""The transport address of the controller. The address of a node is its broker id."""


class MetadataBatch(NamedTuple):
    """Metadata records that are applied together. `number` counts batches from 0, without gaps."""

    number: int
    records: tuple[Message, ...]


class NodeRegistration(NamedTuple):
    """The message with which a started node registers. `endpoints` are host and port by listener name."""

    node: int
    incarnation: int
    """A number that is different for each start of the node."""
    rack: str | None
    endpoints: Mapping[str, tuple[str, int]]
    was_clean: bool = True
    """True if the node's previous shutdown was clean; otherwise the node may have lost records."""


class Registered(NamedTuple):
    """The response to a registration: the node's new broker epoch."""

    broker_epoch: int


class NodeHeartbeat(NamedTuple):
    """The heartbeat of a live node. The node lacks metadata batches from number `next_batch` on."""

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
    """A new ISR of one partition, with the broker epoch of each member; an epoch of -1 is not checked."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    in_sync: tuple[tuple[int, int], ...]


class Proposal(NamedTuple):
    """New ISRs for partitions that the sender leads (AlterPartition); each partition occurs once."""

    node: int
    broker_epoch: int
    changes: tuple[IsrChange, ...]
    number: int = 0
    """The sequence number of the proposal since the node's start. Old and repeated numbers are rejected; 0
    is not checked."""


class ProposalAnswer(NamedTuple):
    """The response to a proposal: AlterPartition error codes, or 0. Accepted changes follow as metadata."""

    error: int
    """The error of the whole proposal. If it is not 0, nothing was written."""
    errors: tuple[int, ...] = ()
    """The error codes of the changes, in the proposal's order; empty if the whole proposal was rejected."""


class Feed(NamedTuple):
    """The message with a new metadata batch that the controller sends to nodes."""

    batch: MetadataBatch


Asked: TypeAlias = "NodeRegistration | NodeHeartbeat | Proposal | Feed | Message"
"""Any message from a node or the controller."""
