"""What keeps the durable state of share partitions: the share coordinator, here or at another node.

The leader of a partition reads the state when a share group first fetches from it, and writes what has become
of records before it answers for that. Both are calls that are answered later, since the coordinator may be
another node, and answers only after its replicas have the state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from penstock.protocol.messages.read_share_group_state_request import ReadShareGroupStateRequest
    from penstock.protocol.messages.read_share_group_state_response import ReadShareGroupStateResponse
    from penstock.protocol.messages.write_share_group_state_request import WriteShareGroupStateRequest
    from penstock.protocol.messages.write_share_group_state_response import WriteShareGroupStateResponse

ReadDone: TypeAlias = "Callable[[ReadShareGroupStateResponse], None]"
"""Called once with the answer to a read."""

WriteDone: TypeAlias = "Callable[[WriteShareGroupStateResponse], None]"
"""Called once with the answer to a write."""


class SharePersister(Protocol):
    """Reads and writes the state of share partitions at the node that coordinates it (KIP-932).

    Each method returns at once and calls `done` exactly once: before it returns, or later in the thread of
    the broker that called, from a turn of its purgatory. It raises nothing: what fails is an error code of
    each partition in the answer. Where nothing comes of a call, `done` gets COORDINATOR_NOT_AVAILABLE (15)
    within `share.coordinator.write.timeout.ms`. An answer has the topics and partitions of its request, in
    the same order.

    Error codes that the caller distinguishes: NOT_COORDINATOR (16), COORDINATOR_NOT_AVAILABLE (15) and
    COORDINATOR_LOAD_IN_PROGRESS (14), that may be tried again; FENCED_LEADER_EPOCH (74), another node leads
    the partition; FENCED_STATE_EPOCH (124), the state was initialized anew; INVALID_REQUEST (42), the group
    has no state of the partition; GROUP_ID_NOT_FOUND (69), UNKNOWN_TOPIC_OR_PARTITION (3). After any of
    the last five the leader drops what it has of the share partition, and reads again.
    """

    def read_state(self, request: ReadShareGroupStateRequest, done: ReadDone) -> None:
        """ReadShareGroupState (84): the state epoch, the start offset and the batches of share partitions.

        The leader epoch in the request fences writes of earlier leaders from then on.
        """

    def write_state(self, request: WriteShareGroupStateRequest, done: WriteDone) -> None:
        """WriteShareGroupState (85, in version 1): add what has become of records to what is stored.

        `done` gets NONE (0) for what is durable: it is in the log of the topic of states
        and its in-sync replicas have it.
        """
