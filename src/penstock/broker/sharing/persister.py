"""The interface to the share coordinator, which stores states of share partitions on this or another node.

The leader of a partition reads the state when a share group first fetches from it, and writes the delivery
states of records before it responds. Both calls are answered later: the coordinator may be another node, and
it responds only after its replicas have the state.
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
"""A callback, called once, with the response to `SharePersister.read_state`."""

WriteDone: TypeAlias = "Callable[[WriteShareGroupStateResponse], None]"
"""A callback, called once, with the response to `SharePersister.write_state`."""


class SharePersister(Protocol):
    """Reads and writes the state of share partitions at the node that coordinates it (KIP-932).

    Each method returns at once and calls `done` exactly once: before it returns, or later in the thread of
    the calling broker, from its purgatory. No method raises: a failure is an error code of
    each partition in the response. Without a response, `done` gets COORDINATOR_NOT_AVAILABLE (15)
    within `share.coordinator.write.timeout.ms`. A response has the topics and partitions of its request, in
    the same order.

    These are the error codes that the caller distinguishes: NOT_COORDINATOR (16), COORDINATOR_NOT_AVAILABLE
    (15) and COORDINATOR_LOAD_IN_PROGRESS (14), which can be retried; FENCED_LEADER_EPOCH (74), another node
    leads the partition; FENCED_STATE_EPOCH (124), the state was reset; INVALID_REQUEST (42), the group has no
    state of the partition; GROUP_ID_NOT_FOUND (69), UNKNOWN_TOPIC_OR_PARTITION (3). After any of the last
    five, the leader drops its state of the share partition, and reads it again.
    """

    def read_state(self, request: ReadShareGroupStateRequest, done: ReadDone) -> None:
        """Send ReadShareGroupState (84): read state epoch, start offset and batches of share partitions.

        The leader epoch in the request fences earlier leaders: their later writes fail.
        """

    def write_state(self, request: WriteShareGroupStateRequest, done: WriteDone) -> None:
        """Send WriteShareGroupState (85, version 1): add new delivery states of records to the stored state.

        `done` gets NONE (0) when the states are durable: in the log of `__share_group_state`, on all in-sync
        replicas.
        """
