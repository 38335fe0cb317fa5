"""The states of a group, as tables: what leads where, who is refused, and what a rejoin means.

`TRANSITIONS` is all there is: a group changes its state by looking up (state, cause) here and in no
other way. `tools/draw_group_states.py` draws the picture in the documentation from the same table.

States and their names follow Apache Kafka's classic groups.
"""

from __future__ import annotations

from enum import StrEnum

from penstock.protocol.error_codes import ErrorCode


class State(StrEnum):
    """What a group is doing. The values are the words that DescribeGroups and ListGroups answer."""

    EMPTY = "Empty"
    """Nobody is in it; it may have offsets."""
    PREPARING = "PreparingRebalance"
    """Members are asked to join again; their JoinGroup requests wait here for each other."""
    COMPLETING = "CompletingRebalance"
    """A new generation has begun; its members wait in SyncGroup for what the leader assigns."""
    STABLE = "Stable"
    """Everybody can know what is assigned to them."""
    DEAD = "Dead"
    """It has been deleted."""


class Cause(StrEnum):
    """Why a group changes its state, in the words of the picture."""

    MEMBER_JOINS = "a member joins"
    MEMBER_CHANGES = "the leader rejoins, or a member changes its protocols"
    MEMBER_GOES = "a member leaves, or its session ends"
    SYNC_IS_OVERDUE = "a member does not sync in time"
    NOT_STORED = "the disk refuses to store it"
    ALL_JOINED = "all have joined, or time is up"
    NOBODY_LEFT = "nobody is left"
    LEADER_ASSIGNS = "the leader's assignment is stored"
    DELETED = "deleted, or expired"


TRANSITIONS: dict[tuple[State, Cause], State] = {
    (State.EMPTY, Cause.MEMBER_JOINS): State.PREPARING,
    (State.PREPARING, Cause.ALL_JOINED): State.COMPLETING,
    (State.PREPARING, Cause.NOBODY_LEFT): State.EMPTY,
    (State.COMPLETING, Cause.LEADER_ASSIGNS): State.STABLE,
    (State.COMPLETING, Cause.MEMBER_JOINS): State.PREPARING,
    (State.COMPLETING, Cause.MEMBER_CHANGES): State.PREPARING,
    (State.COMPLETING, Cause.MEMBER_GOES): State.PREPARING,
    (State.COMPLETING, Cause.SYNC_IS_OVERDUE): State.PREPARING,
    (State.COMPLETING, Cause.NOT_STORED): State.PREPARING,
    (State.STABLE, Cause.MEMBER_JOINS): State.PREPARING,
    (State.STABLE, Cause.MEMBER_CHANGES): State.PREPARING,
    (State.STABLE, Cause.MEMBER_GOES): State.PREPARING,
    (State.STABLE, Cause.SYNC_IS_OVERDUE): State.PREPARING,
    (State.STABLE, Cause.NOT_STORED): State.PREPARING,
    (State.EMPTY, Cause.DELETED): State.DEAD,
}
"""From a state, by a cause, to a state. Causes that a state does not list change nothing."""


class Ask(StrEnum):
    """Requests whose answer depends on the state."""

    SYNC = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    COMMIT = "OffsetCommit"
    DELETE = "DeleteGroups"


REFUSALS: dict[tuple[Ask, State], ErrorCode] = {
    (Ask.SYNC, State.EMPTY): ErrorCode.UNKNOWN_MEMBER_ID,
    (Ask.SYNC, State.PREPARING): ErrorCode.REBALANCE_IN_PROGRESS,
    (Ask.HEARTBEAT, State.EMPTY): ErrorCode.UNKNOWN_MEMBER_ID,
    (Ask.HEARTBEAT, State.PREPARING): ErrorCode.REBALANCE_IN_PROGRESS,
    (Ask.COMMIT, State.COMPLETING): ErrorCode.REBALANCE_IN_PROGRESS,
    (Ask.DELETE, State.PREPARING): ErrorCode.NON_EMPTY_GROUP,
    (Ask.DELETE, State.COMPLETING): ErrorCode.NON_EMPTY_GROUP,
    (Ask.DELETE, State.STABLE): ErrorCode.NON_EMPTY_GROUP,
}
"""What a member that is who it says gets for an answer where the state does not allow what it asks."""


class Rejoin(StrEnum):
    """What a JoinGroup request of somebody who is a member already leads to."""

    WAIT = "wait for the others"
    REPEAT = "the current generation again"
    REBALANCE = "a new generation"
    RESET = "forget who you are"


REJOINS: dict[State, tuple[Rejoin, Rejoin, Rejoin]] = {
    State.PREPARING: (Rejoin.WAIT, Rejoin.WAIT, Rejoin.WAIT),
    State.COMPLETING: (Rejoin.REPEAT, Rejoin.REPEAT, Rejoin.REBALANCE),
    State.STABLE: (Rejoin.REPEAT, Rejoin.REBALANCE, Rejoin.REBALANCE),
    State.EMPTY: (Rejoin.RESET, Rejoin.RESET, Rejoin.RESET),
}
"""By state: for a follower with the same protocols, the leader with the same ones, anybody with others.

The answer to JoinGroup may have been lost, so that it is asked again; a leader that asks again in a
stable group has seen something its protocols do not tell, such as a topic with more partitions.
"""
