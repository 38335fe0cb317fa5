"""Finds the coordinator of a group, and adapts requests to the API versions of that broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client.cluster.client import ANY_NODE, MAIN
from penstock.client.cluster.metadata import BrokerNode
from penstock.client.cluster.retry import only
from penstock.client.group.old_groups import check_offsets, peer_for_groups
from penstock.errors import ProtocolViolationError, UnsupportedVersionError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from penstock.protocol.messages.join_group_request import JoinGroupRequest
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest
from penstock.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.protocol.since import (
    CONSUMER_GROUP_HEARTBEAT_OWN_IDS_SINCE,
    FIND_COORDINATOR_KEYS_SINCE,
    LEAVE_GROUP_MEMBERS_SINCE,
)

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.client.cluster.connection_pool import Peer
    from penstock.protocol.message import Message

GROUP = "group"
"""The purpose of connections for JoinGroup, SyncGroup and heartbeats. The response to a JoinGroup may take
long, and would delay the response to a commit on the same connection."""

STATIC_MEMBER_VERSION = 5

FINAL_SHARE_VERSION = 1
"""The first version of ShareGroupHeartbeat after the early access of Kafka 4.0."""

NEEDS_SHARE_GROUPS = (
    "share groups (KIP-932) need Kafka 4.2 or newer, whose feature share.version is 1: upgrade the feature, "
    "or read the topic with Consumer"
)


class CoordinatorFinder:
    """Finds the coordinator of one group and keeps its node id, on one event loop."""

    def __init__(self, client: AsyncClient, group_id: str) -> None:
        self.group_id = group_id
        self.node: int | None = None
        self.has_rebalance_timeout = True
        """True if JoinGroup has a rebalance timeout besides the session timeout (since 0.10.1)."""
        self._client = client

    async def find(self) -> int:
        """Ask any broker for the group's coordinator, and return its node id.

        Raises:
            KafkaError: 15 while the group has no coordinator, 30 if the client may not use the group.
            NetworkError, RequestTimeoutError: no broker answers.
        """
        client = self._client
        await client.bootstrap()
        peer = await peer_for_groups(client, ANY_NODE, MAIN)
        check_offsets(peer.versions)
        if ApiKey.FIND_COORDINATOR not in peer.versions.ranges and peer.versions.is_ancient:
            return await self._any_node(peer)
        version = peer.versions.choose(FindCoordinatorRequest)
        has_list = version >= FIND_COORDINATOR_KEYS_SINCE
        request = FindCoordinatorRequest(
            key="" if has_list else self.group_id, coordinator_keys=[self.group_id] if has_list else []
        )
        answer: FindCoordinatorResponse = await peer.connection.request(
            request, version, client.request_timeout_s
        )
        broker = peer.connection.address
        found: Any = only(answer.coordinators, broker, "FindCoordinator") if has_list else answer
        if found.error_code:
            what = f"looking for the coordinator of group {self.group_id!r}, at broker {broker}"
            raise error_for(found.error_code, what)
        if found.node_id < 0:
            raise ProtocolViolationError(
                f"broker {broker} says that node {found.node_id} coordinates group {self.group_id!r}"
            )
        if found.node_id not in client.cluster.nodes:
            client.cluster.nodes[found.node_id] = BrokerNode(found.node_id, found.host, found.port)
        self.has_rebalance_timeout = peer.versions.highest(ApiKey.JOIN_GROUP) > 0
        self.node = found.node_id
        return self.node

    async def _any_node(self, peer: Peer) -> int:
        """Return the node id of `peer` as that of the coordinator.

        Every broker of Kafka 0.8.1 stores offsets, in ZooKeeper, and none coordinates groups.
        """
        nodes = self._client.cluster.nodes
        if not nodes:
            # A broker of 0.8 names none before there is a topic.
            await self._client.refresh(all_topics=True)
        here = [number for number, node in nodes.items() if node.address == peer.connection.address]
        if not here and not self._client.cluster.nodes:
            raise error_for(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"broker {peer.connection.address}")
        self.node = here[0] if here else min(self._client.cluster.nodes)
        return self.node

    async def known(self) -> int:
        """Return the coordinator's node id, and ask a broker only if it is not known. Raises as `find`."""
        return await self.find() if self.node is None else self.node

    def forget(self, node: int | None) -> None:
        """Drop the coordinator if it is still `node`, which has failed or no longer coordinates the group."""
        if self.node == node:
            self.node = None

    async def request(self, message: Message, node: int, timeout_s: float) -> Any:
        """Send one request to the coordinator and return the response.

        Raises:
            NetworkError, RequestTimeoutError, DecodeError: as `Connection.request`.
            UnsupportedVersionError: the broker is too old for the request.
        """
        # A farewell must not queue behind a JoinGroup that waits for the others.
        is_farewell = isinstance(message, LeaveGroupRequest)
        peer = await peer_for_groups(self._client, node, MAIN if is_farewell else GROUP)
        version = peer.versions.choose(type(message))
        return await peer.connection.request(fitted(message, version), version, timeout_s)


def fitted(message: Message, version: int) -> Message:
    """Return the request with only the fields that this version of its API has.

    Raises:
        UnsupportedVersionError: a field is set that the version does not have.
    """
    if isinstance(message, JoinGroupRequest):
        if message.group_instance_id is not None and version < STATIC_MEMBER_VERSION:
            raise UnsupportedVersionError("group.instance.id needs Kafka 2.3 or newer: leave it out")
    elif isinstance(message, ConsumerGroupHeartbeatRequest):
        if version < CONSUMER_GROUP_HEARTBEAT_OWN_IDS_SINCE:
            raise UnsupportedVersionError(
                "group.protocol=consumer (KIP-848) needs Kafka 4.0 or newer: take classic, or auto"
            )
    elif isinstance(message, ShareGroupHeartbeatRequest):
        if version < FINAL_SHARE_VERSION:
            raise UnsupportedVersionError(NEEDS_SHARE_GROUPS)
    elif isinstance(message, LeaveGroupRequest):
        if version < LEAVE_GROUP_MEMBERS_SINCE:
            return LeaveGroupRequest(group_id=message.group_id, member_id=message.member_id)
        return LeaveGroupRequest(group_id=message.group_id, members=message.members)
    return message


MEMBER_CODES = frozenset(
    (
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
    )
)
"""Error codes about the state of the member, such as an unknown id or an old generation, not about its
request.
"""
