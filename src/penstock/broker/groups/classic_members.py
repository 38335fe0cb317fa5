"""Requests of classic clients to consumer groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup (KIP-848).

Every request is answered at once, since the broker computes the assignment and no member waits for others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.groups.classic.coordinator import check_join
from penstock.broker.groups.classic.group import MEMBER_ID_REQUIRED_SINCE, refused_join
from penstock.broker.groups.classic.member import protocols_of
from penstock.broker.groups.consumer import classic_members as rules
from penstock.broker.groups.consumer.embedded_protocol import (
    PROTOCOL_TYPE,
    read_subscription,
    write_assignment,
)
from penstock.broker.groups.consumer.group import Classic, Heartbeat
from penstock.broker.groups.consumer.settings import MigrationPolicy
from penstock.errors import DecodeError, KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.join_group_response import JoinGroupResponse
from penstock.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from penstock.protocol.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.broker.groups.classic.member import Caller
    from penstock.broker.groups.classic.settings import ClassicGroupSettings
    from penstock.broker.groups.consumer.group import ConsumerGroup
    from penstock.broker.groups.consumer_service import ConsumerGroupService
    from penstock.broker.groups.metadata_view import TopicView
    from penstock.broker.groups.store import GroupStore
    from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
    from penstock.protocol.messages.join_group_request import JoinGroupRequest
    from penstock.protocol.messages.leave_group_request import MemberIdentity
    from penstock.protocol.messages.sync_group_request import SyncGroupRequest

_NONE = ErrorCode.NONE


class ClassicMembers:
    """Handles requests of classic members of the consumer groups of one broker.

    `topics` returns the topics of the cluster by name; `new_id` makes a member id.
    """

    def __init__(
        self,
        service: ConsumerGroupService,
        settings: ClassicGroupSettings,
        topics: Callable[[], Mapping[str, TopicView]],
        new_id: Callable[[], str],
    ) -> None:
        self._service = service
        self._settings = settings
        self._topics = topics
        self._new_id = new_id

    def group(self, group_id: str) -> ConsumerGroup | None:
        """Return the consumer group `group_id`, or None if it does not exist or has no members."""
        group = self._service.groups.get(group_id)
        return None if group is None or group.can_be_deleted else group

    # --- JoinGroup ---------------------------------------------------------------------------------------

    def join(
        self, store: GroupStore, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now: float
    ) -> JoinGroupResponse:
        """Handle JoinGroup; return the response. Its generation is the member's epoch; it names no leader.

        If the migration policy is disabled, a classic member cannot join a consumer group that has members.
        """
        error = check_join(request, self._settings)
        if error:
            return refused_join(request.member_id, error)
        if self._service.settings_of(group.id).migration is MigrationPolicy.DISABLED:
            return refused_join("", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        names = [protocol.name for protocol in request.protocols]
        member_id = request.member_id or self._new_id()
        if self._is_full(group, member_id):
            return refused_join("", ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not rules.accepts(group.stored, request.protocol_type, names):
            return refused_join("", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        is_dynamic = request.group_instance_id is None
        if not request.member_id and is_dynamic and caller.version >= MEMBER_ID_REQUIRED_SINCE:
            return refused_join(member_id, ErrorCode.MEMBER_ID_REQUIRED)
        try:
            epoch = self._service.join_classic(store, group, self._beat(request, member_id, caller), now)
        except DecodeError:
            return refused_join("", ErrorCode.UNKNOWN_SERVER_ERROR)
        except KafkaError as refusal:
            return refused_join("", ErrorCode(refusal.code))
        return JoinGroupResponse(
            generation_id=epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=names[0],
            leader="",
            member_id=member_id,
            members=[],
        )

    def _is_full(self, group: ConsumerGroup, member_id: str) -> bool:
        members = group.stored.subscriptions
        max_size = self._service.settings_of(group.id).max_size
        return member_id not in members and len(members) >= max_size

    def _beat(self, request: JoinGroupRequest, member_id: str, caller: Caller) -> Heartbeat:
        """Convert a JoinGroup to a heartbeat of the consumer group, with the first protocol's metadata.

        Raises:
            DecodeError: the metadata is not a subscription.
        """
        protocols = protocols_of([(protocol.name, protocol.metadata) for protocol in request.protocols])
        wanted = read_subscription(protocols[0][1], self._topics())
        return Heartbeat(
            member_id,
            0,
            request.group_instance_id,
            wanted.rack_id,
            request.rebalance_timeout_ms,
            wanted.topics,
            "",
            None,
            wanted.owned,
            caller.client_id,
            caller.host,
            Classic(request.session_timeout_ms, protocols, has_id=bool(request.member_id)),
        )

    # --- SyncGroup, Heartbeat ----------------------------------------------------------------------------

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, now: float) -> SyncGroupResponse:
        """Handle SyncGroup; return the response with the member's partitions."""
        state, member_id = group.stored, request.member_id
        error = rules.check_classic(state, member_id, request.group_instance_id, request.generation_id)
        if not error:
            subscription = state.subscriptions[member_id]
            error = rules.check_protocol(subscription, request.protocol_type, request.protocol_name)
        if error:
            return SyncGroupResponse(error_code=error)
        coordinator = self._service.coordinator
        if rules.has_to_rejoin_first(state, member_id):
            coordinator.awaits_join(group, member_id, now)
            return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        names = {topic.id: name for name, topic in self._topics().items()}
        coordinator.has_synced(group, member_id)
        coordinator.touch(group, member_id, coordinator.settings_of(group.id), now)
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(
                state.current(member_id).assigned, names, subscription.protocols[0][1]
            ),
        )

    def heartbeat(
        self, group: ConsumerGroup, request: HeartbeatRequest, now: float, now_ms: int
    ) -> ErrorCode:
        """Handle Heartbeat; return NONE or an error: REBALANCE_IN_PROGRESS makes the member rejoin."""
        state, member_id = group.stored, request.member_id
        error = rules.check_classic(state, member_id, request.group_instance_id, request.generation_id)
        if error:
            return error
        coordinator = self._service.coordinator
        coordinator.touch(group, member_id, coordinator.settings_of(group.id), now)
        if rules.has_to_rejoin(state, member_id) or coordinator.waits_for_join(group, now_ms):
            coordinator.awaits_join(group, member_id, now)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return _NONE

    # --- LeaveGroup --------------------------------------------------------------------------------------

    def leave(
        self, store: GroupStore, group: ConsumerGroup, identities: list[MemberIdentity], now: float
    ) -> LeaveGroupResponse:
        """Handle LeaveGroup for several members, of either protocol, each with its own result.

        An administrator names static members by only their instance ids.
        """
        state = group.stored
        answers, gone = [], {}
        for one in identities:
            member_id, error = one.member_id, _NONE
            if one.group_instance_id is not None and not member_id:
                member_id = state.instances.get(one.group_instance_id, "")
            error = rules.check_member(state, member_id, one.group_instance_id)
            if not error:
                gone[member_id] = True
            answers.append(
                MemberResponse(
                    member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=error
                )
            )
        try:
            if gone:
                self._service.leave_classic(store, group, list(gone), now)
        except KafkaError as refusal:
            return LeaveGroupResponse(error_code=refusal.code)
        return LeaveGroupResponse(members=answers)
