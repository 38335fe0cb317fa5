"""Messages between the nodes of a cluster and its controller. Fetches use Kafka's own messages.

They stand for BrokerRegistration, BrokerHeartbeat and AlterPartition, and for what nodes read of the metadata
log. All nodes are in one process, so these are never bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from penstock.protocol.message import Message

CONTROLLER = -1
"""The address of the controller, beside the ids of nodes."""


class Batch(NamedTuple):
    """Metadata records that count together. `number` counts batches from 0, without gaps."""

    number: int
    records: tuple[Message, ...]


class Registration(NamedTuple):
    """A node has started. `endpoints` are host and port by the name of the listener."""

    node: int
    incarnation: int
    """Another one with each start of the node."""
    rack: str | None
    endpoints: Mapping[str, tuple[str, int]]
    was_clean: bool = True
    """Whether its last life has ended in order: else records may be lost that it had."""


class Registered(NamedTuple):
    """The answer: the broker epoch that the node has from now on, and the metadata it lacks."""

    broker_epoch: int


class Heartbeat(NamedTuple):
    """A node lives. `next_batch` is the number of the first batch of metadata that it does not have."""

    node: int
    broker_epoch: int
    next_batch: int
    wants_stop: bool = False


class HeartbeatAnswer(NamedTuple):
    """`is_known` is False where the node has to register again; `may_stop` where it may shut down now."""

    is_known: bool
    may_stop: bool
    batches: Sequence[Batch]


class IsrChange(NamedTuple):
    """Another ISR of one partition, given with the broker epoch of each member; -1 is not compared."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    in_sync: tuple[tuple[int, int], ...]


class Proposal(NamedTuple):
    """A leader proposes other ISRs of partitions that it leads, each of them once (AlterPartition)."""

    node: int
    broker_epoch: int
    changes: tuple[IsrChange, ...]
    number: int = 0
    """Counts the proposals of one life of a node: an older one, or the same again, is not looked at."""


class Decision(NamedTuple):
    """The answer to a proposal: errors of AlterPartition, or 0. The changes themselves come as metadata."""

    error: int
    """Of the proposal as a whole: nothing of it was written."""
    errors: tuple[int, ...] = ()
    """Of each change, in their order; none where the whole was refused."""


class Feed(NamedTuple):
    """Metadata as it is written."""

    batch: Batch


Asked: TypeAlias = "Registration | Heartbeat | Proposal | Feed | Message"
"""What one node sends to another, or to the controller."""
