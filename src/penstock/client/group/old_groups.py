"""The group and offset APIs of brokers of Kafka 0.8 and 0.9, found out by sending requests.

These brokers have no ApiVersions, and close the connection after an unknown request. Kafka 0.9 has groups
like later releases. 0.8.2 has a coordinator that stores offsets in Kafka (OffsetCommit and OffsetFetch
version 1). 0.8.1 stores offsets in ZooKeeper, through any broker (version 0). 0.8.0 stores none. Each probe
costs a connection and, at 0.8.2, creates the offsets topic, so that the client probes only when it needs an
answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from penstock.errors import NetworkError, UnsupportedVersionError
from penstock.protocol.api import ApiKey
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.list_groups_request import ListGroupsRequest
from penstock.protocol.messages.offset_fetch_request import OffsetFetchRequest

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.client.cluster.connection import Connection
    from penstock.client.cluster.connection_pool import Peer
    from penstock.client.cluster.negotiation import NodeVersions
    from penstock.protocol.message import Message

Ranges = dict[int, tuple[int, int]]
Open = Callable[[], "Awaitable[Connection]"]

GROUPS_0_9: Ranges = {
    int(ApiKey.FIND_COORDINATOR): (0, 0),
    int(ApiKey.JOIN_GROUP): (0, 0),
    int(ApiKey.SYNC_GROUP): (0, 0),
    int(ApiKey.HEARTBEAT): (0, 0),
    int(ApiKey.LEAVE_GROUP): (0, 0),
    int(ApiKey.OFFSET_COMMIT): (2, 2),
    int(ApiKey.OFFSET_FETCH): (1, 1),
    int(ApiKey.DESCRIBE_GROUPS): (0, 0),
    int(ApiKey.LIST_GROUPS): (0, 0),
}
OFFSETS_0_8_2: Ranges = {
    int(ApiKey.FIND_COORDINATOR): (0, 0),
    int(ApiKey.OFFSET_COMMIT): (1, 1),
    int(ApiKey.OFFSET_FETCH): (1, 1),
}
"""The coordinator and offset APIs to use with brokers of Kafka 0.8.2, with their versions. Version 0 of the
offset APIs is left out, because it uses ZooKeeper, where consumers that use version 1 would not find the
commits.
"""

OFFSETS_0_8_1: Ranges = {int(ApiKey.OFFSET_COMMIT): (0, 0), int(ApiKey.OFFSET_FETCH): (0, 0)}

PROBE_GROUP = "penstock"
"""The group id in the requests that detect APIs. No group of this name is created."""


async def learn(open_connection: Open, timeout_s: float) -> Ranges:
    """Return the group APIs, and their versions, of a broker that is older than ApiVersions.

    A broker may also close a connection because it is overloaded, so every request is sent twice. The request
    that distinguishes 0.8.1 and 0.8.2 is sent again after another one has been answered: otherwise offsets
    could be stored in ZooKeeper while the group has them in Kafka.

    Raises:
        NetworkError: the broker cannot be reached.
        RequestTimeoutError: the broker does not answer.
    """
    if await _answers(open_connection, ListGroupsRequest(), timeout_s):
        return GROUPS_0_9
    find = FindCoordinatorRequest(key=PROBE_GROUP)
    if await _answers(open_connection, find, timeout_s):
        return OFFSETS_0_8_2
    if await _answers(open_connection, OffsetFetchRequest(group_id=PROBE_GROUP, topics=[]), timeout_s):
        return OFFSETS_0_8_2 if await _answers(open_connection, find, timeout_s) else OFFSETS_0_8_1
    return {}


async def _answers(open_connection: Open, question: Message, timeout_s: float) -> bool:
    for _ in range(2):
        connection = await open_connection()
        try:
            await connection.request(question, 0, timeout_s)
        except NetworkError:
            continue
        finally:
            connection.close()
        return True
    return False


def check_groups(versions: NodeVersions) -> None:
    """Check that a broker has groups whose members share partitions.

    Raises:
        UnsupportedVersionError: the broker is of Kafka 0.8.
    """
    if versions.is_ancient and ApiKey.JOIN_GROUP not in versions.ranges:
        raise UnsupportedVersionError(
            f"broker {versions.address} is of Kafka 0.8, which has no groups that share partitions: assign() "
            f"partitions instead of subscribe(){_of_offsets(versions)}"
        )


def check_offsets(versions: NodeVersions) -> None:
    """Check that a broker stores committed offsets.

    Raises:
        UnsupportedVersionError: the broker is of Kafka 0.8.0.
    """
    if versions.is_ancient and ApiKey.OFFSET_COMMIT not in versions.ranges:
        raise UnsupportedVersionError(
            f"broker {versions.address} is of Kafka 0.8.0, which stores no offsets of groups: leave group.id "
            "out, and keep offsets with what was made of the records"
        )


def _of_offsets(versions: NodeVersions) -> str:
    return "; group.id is for commits only" if ApiKey.OFFSET_COMMIT in versions.ranges else ""


async def peer_for_groups(client: AsyncClient, node_id: int, purpose: str) -> Peer:
    """Return a connection whose `versions` include a broker's group APIs. Raises as `AsyncClient.peer`."""
    peer = await client.peer(node_id, purpose)
    if peer.versions.is_ancient:
        address = peer.connection.address
        known = client.old_groups.get(address)
        if known is None:
            timeout_s = client.config.api_version_request_timeout_ms / 1000
            known = client.old_groups[address] = await learn(lambda: client.connect(address), timeout_s)
        peer.versions.ranges.update(known)
    return peer
