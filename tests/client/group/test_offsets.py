"""Tests of commits during a rebalance: a refused commit fails only after the pending join was answered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.client.group.coordinator import CoordinatorFinder
from penstock.client.group.offsets import GroupOffsets, MemberIdentity
from penstock.errors import KafkaError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for

ME = MemberIdentity(3, "me")
OFFSETS = {TopicPartition("orders", 0): 7}


class OneAttempt:
    """A stand-in for a client whose `retrying` tries once, since the commit itself retries here."""

    async def retrying(self, what: str, attempt: Any, timeout_ms: float | None) -> Any:
        return await attempt()


class Refusing(GroupOffsets):
    """A `GroupOffsets` whose coordinator accepts commits of one generation and refuses all others."""

    def __init__(self, generation: int) -> None:
        client: Any = OneAttempt()
        super().__init__(client, CoordinatorFinder(client, "group"))
        self.generation = generation
        self.tried: list[int] = []

    async def _commit(self, topics: Any, identity: MemberIdentity) -> None:
        self.tried.append(identity.generation)
        if identity.generation != self.generation:
            raise error_for(ErrorCode.ILLEGAL_GENERATION, "the group has gone on")


def test_the_refusal_may_come_before_the_new_generation() -> None:
    """JoinGroup uses a connection of its own: the coordinator is in generation 4, the member still in 3.

    The commit is sent again with generation 4 after the join was answered.
    """
    offsets, mine = Refusing(4), [ME]

    async def joined() -> None:
        mine.append(ME._replace(generation=4))

    offsets.join_answered = joined
    asyncio.run(offsets.commit(OFFSETS, lambda before: mine[-1]))
    assert offsets.tried == [3, 4]


@pytest.mark.parametrize("generation", [2, 4])
def test_without_a_new_generation_the_refusal_is_told(generation: int) -> None:
    offsets = Refusing(generation)
    with pytest.raises(KafkaError, match="gone on"):
        asyncio.run(offsets.commit(OFFSETS, lambda before: ME))
    assert offsets.tried == [3]


def test_what_the_coordinator_has_said_is_told_where_the_member_has_left_meanwhile() -> None:
    """The commit fails with the coordinator's ILLEGAL_GENERATION (22).

    Error 22 makes the member rejoin, which once replaced this error with UNKNOWN_MEMBER_ID (25).
    """
    offsets, is_member = Refusing(4), [True]

    async def joined() -> None:
        is_member.clear()

    def identify(before: MemberIdentity | None) -> MemberIdentity:
        if not is_member:
            raise error_for(ErrorCode.UNKNOWN_MEMBER_ID, "not a member")
        return ME

    offsets.join_answered = joined
    with pytest.raises(KafkaError) as caught:
        asyncio.run(offsets.commit(OFFSETS, identify))
    assert caught.value.code == ErrorCode.ILLEGAL_GENERATION
