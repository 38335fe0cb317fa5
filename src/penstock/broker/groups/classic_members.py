"""Classic members of a consumer group (KIP-848): what the classic protocol's requests mean for such a group.

A classic member rejoins for every step of its reconciliation: JoinGroup names the partitions that it owns,
the response has the member's epoch as the generation, and SyncGroup returns the partitions. A classic member
never leads, since the broker assigns. Every request is answered at once, since no member waits for others.

`classic.coordinator` handles the requests, with the checks that are the same for classic groups.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from penstock.broker.groups.classic.group import GroupOutbox, refused_join
from penstock.broker.groups.classic.member import Caller, Ticket, protocols_of
from penstock.broker.groups.consumer.embedded_protocol import (
    PROTOCOL_TYPE,
    read_subscription,
    write_assignment,
)
from penstock.broker.groups.consumer.group import Classic, Heartbeat
from penstock.broker.groups.consumer.state import ConsumerSubscription, GroupState, MemberState
from penstock.broker.groups.settings import MigrationPolicy
from penstock.errors import DecodeError, KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.join_group_response import JoinGroupResponse
from penstock.protocol.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from penstock.broker.groups.consumer.group import ConsumerGroup
    from penstock.broker.groups.consumer_service import ConsumerGroupService
    from penstock.broker.groups.store import GroupStore
    from penstock.protocol.messages.join_group_request import JoinGroupRequest
    from penstock.protocol.messages.sync_group_request import SyncGroupRequest


class ClassicMembers:
    """Handles one request of the classic protocol for a consumer group, as a `JoinableGroup`."""

    def __init__(
        self,
        service: ConsumerGroupService,
        store: GroupStore,
        group: ConsumerGroup,
        outbox: GroupOutbox,
    ) -> None:
        self._service = service
        self._coordinator = service.coordinator
        self._store = store
        self._group = group
        self._outbox = outbox
        self._settings = service.settings_of(group.id)
        self._leaving: dict[str, None] = {}

    @property
    def _state(self) -> GroupState:
        return self._group.stored

    @property
    def members(self) -> Mapping[str, ConsumerSubscription]:
        """The members of both protocols, by their ids."""
        return self._state.subscriptions

    @property
    def instances(self) -> Mapping[str, str]:
        """The member ids of static members, by instance id."""
        return self._state.instances

    def generation_of(self, member_id: str) -> int | None:
        """Return the epoch of a classic member, which is its generation; None for other members."""
        return self._state.current(member_id).epoch if self.members[member_id].is_classic else None

    def protocol_of(self, member_id: str) -> tuple[str, str]:
        """Return the protocol type and the first protocol of a classic member."""
        return PROTOCOL_TYPE, self.members[member_id].protocols[0][0]

    # --- JoinGroup ---------------------------------------------------------------------------------------

    @property
    def _is_closed(self) -> bool:
        """True if `group.consumer.migration.policy` is `disabled`, so that no classic member can join."""
        return self._settings.migration is MigrationPolicy.DISABLED

    def has_room_for(self, member_id: str) -> bool:
        """Return True if the member is in the group or fits in; also True if `accepts` will refuse it."""
        return self._is_closed or member_id in self.members or len(self.members) < self._settings.max_size

    def accepts(self, protocol_type: str, protocols: Collection[str]) -> bool:
        """Return True if a classic member may join: all other classic members have one of its protocols."""
        if self._is_closed or protocol_type != PROTOCOL_TYPE:
            return False
        known = [{name for name, _ in each.protocols} for each in self.members.values() if each.is_classic]
        return any(all(name in names for names in known) for name in protocols)

    def give_id(self, request: JoinGroupRequest, caller: Caller, now: float) -> str:
        """Return a new member id. The group does not store it, and members may join with other ids, too."""
        return str(uuid.uuid4())

    def withdraw(self, member_id: str) -> bool:
        """Return False: a consumer group does not store assigned member ids, so it has none to withdraw."""
        return False

    def refuse(self, ticket: Ticket, member_id: str, error: ErrorCode) -> None:
        """Answer a JoinGroup with an error.

        As in Apache Kafka, the response has a member id only if the error is MEMBER_ID_REQUIRED.
        """
        named = member_id if error is ErrorCode.MEMBER_ID_REQUIRED else ""
        self._outbox.replies.append((ticket, refused_join(named, error)))

    def join(self, request: JoinGroupRequest, caller: Caller, ticket: Ticket, now: float) -> None:
        """Handle JoinGroup. The response has the member's epoch as generation, and no leader."""
        member_id = request.member_id or str(uuid.uuid4())
        try:
            beat = self._beat(request, member_id, caller)
            epoch = self._service.join_classic(self._store, self._group, beat, now)
        except (DecodeError, KafkaError) as refusal:
            code = getattr(refusal, "code", ErrorCode.UNKNOWN_SERVER_ERROR)
            self.refuse(ticket, member_id, ErrorCode(code))
            return
        response = JoinGroupResponse(
            generation_id=epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=request.protocols[0].name,
            leader="",
            member_id=member_id,
            members=[],
        )
        self._outbox.replies.append((ticket, response))

    def _beat(self, request: JoinGroupRequest, member_id: str, caller: Caller) -> Heartbeat:
        """Convert a JoinGroup to a heartbeat of the consumer group, with the first protocol's metadata.

        Raises:
            DecodeError: the metadata is not a subscription.
        """
        protocols = protocols_of([(protocol.name, protocol.metadata) for protocol in request.protocols])
        wanted = read_subscription(protocols[0][1], self._service.topics)
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

    def sync(self, request: SyncGroupRequest, ticket: Ticket, now: float) -> ErrorCode:
        """Handle SyncGroup: answer it with the member's partitions, or return the error to respond with."""
        state, member_id = self._state, request.member_id
        if _has_to_rejoin_first(state, member_id):
            self._coordinator.awaits_join(self._group, member_id, now)
            return ErrorCode.REBALANCE_IN_PROGRESS
        names = {topic.id: name for name, topic in self._service.topics.items()}
        self._coordinator.has_synced(self._group, member_id)
        self._coordinator.touch(self._group, member_id, self._settings, now)
        metadata = self.members[member_id].protocols[0][1]
        response = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(state.current(member_id).assigned, names, metadata),
        )
        self._outbox.replies.append((ticket, response))
        return ErrorCode.NONE

    def heartbeat(self, member_id: str, now: float) -> ErrorCode:
        """Handle Heartbeat; return NONE or an error: REBALANCE_IN_PROGRESS makes the member rejoin."""
        self._coordinator.touch(self._group, member_id, self._settings, now)
        if _has_to_rejoin(self._state, member_id) or self._service.waits_for_join(self._group):
            self._coordinator.awaits_join(self._group, member_id, now)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    # --- LeaveGroup --------------------------------------------------------------------------------------

    def leave(self, member_id: str) -> None:
        """Record that a member, of either protocol, leaves; `members_have_gone` then removes it."""
        self._leaving[member_id] = None

    def members_have_gone(self, now: float) -> None:
        """Remove the members for which `leave` was called.

        Raises:
            KafkaError: the removal cannot be stored; nothing has changed.
        """
        self._service.leave_classic(self._store, self._group, list(self._leaving), now)

    def go_on(self, now: float) -> None:
        """Do nothing: no member of a consumer group waits for other members."""


def _has_to_rejoin_first(state: GroupState, member_id: str) -> bool:
    """Return True if SyncGroup must be refused, so that the member rejoins for a newer target assignment.

    A member that must give up partitions first is not refused: the response has the member's remaining
    partitions.
    """
    current = state.current(member_id)
    return current.epoch < state.target_epoch and current.state is not MemberState.UNREVOKED


def _has_to_rejoin(state: GroupState, member_id: str) -> bool:
    """Return True if the response to Heartbeat must ask the member to rejoin.

    The reasons are a newer target assignment, partitions to give up, and assigned partitions that their
    former owners have released.
    """
    current = state.current(member_id)
    if current.epoch < state.target_epoch or current.state is MemberState.UNREVOKED:
        return True
    if current.state is not MemberState.UNRELEASED:
        return False
    missing = state.target(member_id) - current.assigned.keys()
    return not any(partition in state.owners for partition in missing)
