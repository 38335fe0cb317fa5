"""One registry's membership in the group of all registries on a topic: joining, heartbeats, leaving.

It does no I/O of its own: the caller supplies the objects that send requests and wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from penstock.common.logs import logger_named
from penstock.errors import DecodeError, KafkaError, NetworkError, PenstockError, RequestTimeoutError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.message import Message
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.join_group_response import JoinGroupResponse
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from penstock.registry.server.group_protocol import (
    PROTOCOL,
    PROTOCOL_TYPE,
    Assignment,
    RegistryIdentity,
    assignment_bytes,
    assignment_in,
    elect,
    identity_bytes,
    identity_in,
)

BACKOFF_S = 0.2
COMPLAIN_EVERY_S = 30.0
GRACE_S = 5.0
"""Seconds by which the wait for an answer to JoinGroup or SyncGroup exceeds the rebalance timeout."""
LEAVE_TIMEOUT_S = 2.0
_log = logger_named("penstock.registry")

_REJOINING = frozenset((ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION))
_MOVED = frozenset(
    (
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    )
)


class GroupCoordinator(Protocol):
    """Finds the coordinator of the group, and sends requests to it."""

    async def known(self) -> int:
        """Return the id of the group's coordinator (a broker), which is looked up if it is unknown."""

    def forget(self, node: int | None) -> None:
        """Drop the address of the coordinator, so that it is looked up again."""

    async def request(self, message: Message, node: int, timeout_s: float) -> Any:
        """Send one request to the group's coordinator, and return the answer."""


class Role(Protocol):
    """The interface through which a membership reports elections to its registry."""

    async def assigned(self, assignment: Assignment, *, is_own: bool) -> None:
        """Apply the outcome of an election; `is_own` is True if this registry is elected."""

    async def revoked(self) -> None:
        """Stop writing until the next election has an outcome. Return when no write is in progress."""

    def failed(self, error: PenstockError) -> None:
        """Handle an error that delays the outcome of an election. The membership retries by itself."""


@dataclass(frozen=True)
class MembershipSettings:
    """The settings of a membership; those of Confluent's registry have the prefix ``kafkagroup.``."""

    group_id: str = "schema-registry"
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 300_000


class RegistryMembership:
    """Keeps a registry in the group, and passes the outcome of every election to the registry's `Role`."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        identity: RegistryIdentity,
        settings: MembershipSettings,
        role: Role,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.identity = identity
        self._coordinator = coordinator
        self._settings = settings
        self._role = role
        self._clock = clock
        self._pause = pause
        self._member_id = ""
        self._generation = -1
        self._must_join = True
        self._node: int | None = None
        self._answered_at = clock()
        self._complain_at = float("-inf")

    async def run(self) -> None:
        """Join the group, and stay a member until cancelled; then leave the group."""
        try:
            while True:
                await self._step()
        finally:
            await self._leave()

    def rejoin(self) -> None:
        """Make the member join the group again, as the outcome of the last election is invalid."""
        self._must_join = True
        self.identity = replace(self.identity, is_leader=False)

    async def _step(self) -> None:
        try:
            self._node = await self._coordinator.known()
            if self._must_join:
                await self._join(self._node)
            else:
                await self._pause(self._settings.heartbeat_interval_ms / 1000)
                await self._beat(self._node)
        except PenstockError as error:
            await self._failed(error)

    async def _failed(self, error: PenstockError) -> None:
        now = self._clock()
        if now >= self._complain_at:
            self._complain_at = now + COMPLAIN_EVERY_S
            _log.warning("group %s of the registries: %s", self._settings.group_id, error)
        code = error.code if isinstance(error, KafkaError) else None
        if code in _MOVED or isinstance(error, NetworkError | RequestTimeoutError):
            self._coordinator.forget(self._node)
        self._role.failed(error)
        # Another registry may be elected once the session has ended.
        if not self._must_join and now - self._answered_at >= self._settings.session_timeout_ms / 1000:
            await self._role.revoked()
            self._must_join = True
        await self._pause(BACKOFF_S)

    async def _join(self, node: int) -> None:
        await self._role.revoked()
        settings = self._settings
        metadata = identity_bytes(self.identity)
        answer = await self._coordinator.request(
            JoinGroupRequest(
                group_id=settings.group_id,
                session_timeout_ms=settings.session_timeout_ms,
                rebalance_timeout_ms=settings.rebalance_timeout_ms,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[JoinGroupRequestProtocol(name=PROTOCOL, metadata=metadata)],
            ),
            node,
            settings.rebalance_timeout_ms / 1000 + GRACE_S,
        )
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            return
        self._check(answer.error_code, "JoinGroup")
        self._member_id, self._generation = answer.member_id, answer.generation_id
        self._answered_at = self._clock()
        synced = await self._coordinator.request(
            SyncGroupRequest(
                group_id=settings.group_id,
                generation_id=self._generation,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=PROTOCOL,
                assignments=self._assignments(answer) if answer.leader == answer.member_id else [],
            ),
            node,
            settings.rebalance_timeout_ms / 1000 + GRACE_S,
        )
        self._check(synced.error_code, "SyncGroup")
        self._answered_at = self._clock()
        assignment = assignment_in(bytes(synced.assignment))
        is_own = assignment.leader is not None and assignment.leader_id == self._member_id
        self.identity = replace(self.identity, is_leader=is_own)
        self._must_join = False
        await self._role.assigned(assignment, is_own=is_own)

    def _assignments(self, answer: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """Elect a registry, and return the outcome for every member. Malformed metadata is ignored."""
        members = {}
        for each in answer.members:
            try:
                members[each.member_id] = identity_in(bytes(each.metadata))
            except DecodeError as error:
                _log.warning("member %s of the registries' group makes no sense: %s", each.member_id, error)
        data = assignment_bytes(elect(members))
        return [
            SyncGroupRequestAssignment(member_id=each.member_id, assignment=data) for each in answer.members
        ]

    async def _beat(self, node: int) -> None:
        answer = await self._coordinator.request(
            HeartbeatRequest(
                group_id=self._settings.group_id,
                generation_id=self._generation,
                member_id=self._member_id,
            ),
            node,
            self._settings.session_timeout_ms / 1000,
        )
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._must_join = True
            return
        self._check(answer.error_code, "Heartbeat")
        self._answered_at = self._clock()

    def _check(self, code: int, api: str) -> None:
        if code == ErrorCode.NONE:
            return
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        if code in _REJOINING or code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._must_join = True
        raise error_for(code, f"{api}, group {self._settings.group_id!r} of the registries")

    async def _leave(self) -> None:
        """Leave the group, so that the other members need not wait until the session expires."""
        await self._role.revoked()
        if not self._member_id or self._node is None:
            return
        members = [MemberIdentity(member_id=self._member_id, reason="the registry is stopped")]
        request = LeaveGroupRequest(
            group_id=self._settings.group_id, member_id=self._member_id, members=members
        )
        try:
            await self._coordinator.request(request, self._node, LEAVE_TIMEOUT_S)
        except PenstockError as error:
            _log.info("group %s of the registries was not left: %s", self._settings.group_id, error)
